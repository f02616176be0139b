"""How far a judge agrees with itself when it is asked again: by metric, the mean, the deviation of the repeats of one
item, and its share of the mean (the coefficient of variation)."""

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence

from weft.types import Cell, Row, Table, Verdict

COLUMNS = ("mean", "deviation", "variation", "items", "repeats")
NOTE = (
    "A judge was asked each question several times. mean: of all repeats, as the paper counts; deviation: the standard deviation of the "
    "repeats of one item, over all items (root mean square); variation: deviation over mean, in percent."
)


def build_repeats_tables(
    runs: Mapping[str, Sequence[Verdict]], metrics: Sequence[str], full: float = 1.0, digits: int = 3
) -> Iterator[Table]:
    """One table, or none where nothing was asked twice. `full` are full marks as the benchmark's paper prints them."""
    rows: list[Row] = []
    for name, verdicts in runs.items():
        for metric in metrics:
            again = [
                (verdict, values)
                for verdict in verdicts
                if verdict.metric == metric
                for values in group_repeats(verdict)
            ]
            if not again:
                continue
            items = [values for _, values in again]
            mean = full * statistics.fmean(value for values in items for value in values)
            deviation = full * math.sqrt(statistics.fmean(statistics.variance(values) for values in items))
            count = len(items)
            behind = [verdict for verdict, _ in again]
            numbers = {
                "mean": round(mean, digits + 2),
                "deviation": round(deviation, digits + 2),
                "variation": round(100 * deviation / mean, 2) if mean else None,
                "items": float(count),
                "repeats": round(statistics.fmean(map(len, items)), 2),
            }
            nothing = Cell(None)
            cells = {
                name: nothing if one is None else Cell(one, count, count, verdicts=behind)
                for name, one in numbers.items()
            }
            rows.append(Row(metric if len(runs) == 1 else f"{name}: {metric}", cells, kind="part"))
    if rows:
        yield Table("Repeated judgements", COLUMNS, tuple(rows), NOTE, digits, "mixed")


def group_repeats(verdict: Verdict) -> list[list[float]]:
    """The values of one question asked again and again; two orders of a battle, or two raters, are two questions."""
    by_question: dict[str, list[float]] = {}
    for one in verdict.merged_from:
        if one.value is not None:
            by_question.setdefault(re.sub(r"(, )?repeat \d+$", "", one.variant), []).append(one.value)
    return [values for values in by_question.values() if len(values) > 1]
