"""How far a judge agrees with itself when it is asked again: by metric, the mean, the deviation of the repeats of one item, and its share
of the mean (the coefficient of variation)."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from weft.types import Cell, Row, Table, Verdict

COLUMNS = ("mean", "deviation", "variation", "items", "repeats")
NOTE = (
    "A judge was asked each question several times. mean: of all repeats, in points of a hundred; deviation: the standard deviation of the "
    "repeats of one item, over all items (root mean square); variation: deviation over mean, in percent."
)


def repeats_tables(runs: Mapping[str, Sequence[Verdict]], metrics: Sequence[str]) -> Iterator[Table]:
    """One table, or none where nothing was asked twice."""
    rows: list[Row] = []
    for name, verdicts in runs.items():
        for metric in metrics:
            mine = [
                verdict for verdict in verdicts if verdict.metric == metric and verdict.spread is not None and verdict.value is not None
            ]
            if not mine:
                continue
            mean = 100 * statistics.fmean(verdict.value for verdict in mine if verdict.value is not None)
            deviation = 100 * math.sqrt(statistics.fmean((verdict.spread or 0.0) ** 2 for verdict in mine))
            count = len(mine)
            cells = {
                "mean": Cell(round(mean, 2), count, count),
                "deviation": Cell(round(deviation, 2), count, count),
                "variation": Cell(round(100 * deviation / mean, 2), count, count) if mean else Cell(None),
                "items": Cell(float(count), count, count),
                "repeats": Cell(round(statistics.fmean(len(verdict.behind) for verdict in mine), 2), count, count),
            }
            rows.append(Row(metric if len(runs) == 1 else f"{name}: {metric}", cells, kind="part"))
    if rows:
        yield Table("Repeated judgements", COLUMNS, tuple(rows), NOTE, 2, "mixed")
