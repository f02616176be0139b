"""How far a judge agrees with itself when it is asked again.

By metric: the mean, the standard deviation of the repeats of one item, and its share of the mean (the coefficient of
variation).
"""

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence

from weft.types import Cell, Row, Table, Verdict

COLUMNS = ("mean", "standard deviation", "variation", "items", "repeats")
NOTE = (
    "The judge was asked each question several times. mean: of all repeats, as the paper counts; standard deviation: "
    "of the repeats of one item, over all items (root mean square); variation: standard deviation over mean, in "
    "percent."
)


def build_repeats_tables(
    runs: Mapping[str, Sequence[Verdict]], metrics: Sequence[str], full: float = 1.0, digits: int = 3
) -> Iterator[Table]:
    """Yield one table, or none where nothing was asked twice. `full` is the maximum score that the paper prints."""
    rows: list[Row] = []
    for run, verdicts in runs.items():
        for metric in metrics:
            cells = _build_cells([verdict for verdict in verdicts if verdict.metric == metric], full, digits)
            if cells:
                title = metric if len(runs) == 1 else f"{run}: {metric}"
                rows.append(Row(title, cells, kind="part"))
    if rows:
        yield Table("Repeated judgements", COLUMNS, tuple(rows), NOTE, digits, "mixed")


def _build_cells(verdicts: Sequence[Verdict], full: float, digits: int) -> dict[str, Cell]:
    """Return the cells of one metric; none where nothing was asked twice."""
    items: list[list[float]] = []
    repeated: list[Verdict] = []
    for verdict in verdicts:
        groups = group_repeats(verdict)
        items += groups
        repeated += [verdict] * len(groups)
    if not items:
        return {}
    mean = full * statistics.fmean(value for values in items for value in values)
    deviation = full * math.sqrt(statistics.fmean(map(statistics.variance, items)))
    variation = None
    if mean:
        variation = round(100 * deviation / mean, 2)
    numbers = (
        round(mean, digits + 2),
        round(deviation, digits + 2),
        variation,
        float(len(items)),
        round(statistics.fmean(map(len, items)), 2),
    )
    cells: dict[str, Cell] = {}
    for column, number in zip(COLUMNS, numbers, strict=True):
        cells[column] = Cell(None)
        if number is not None:
            cells[column] = Cell(number, len(items), len(items), verdicts=repeated)
    return cells


def group_repeats(verdict: Verdict) -> list[list[float]]:
    """Return the values of each question that was asked more than once.

    The two orders of a battle, or two annotators, are two questions.
    """
    by_question: dict[str, list[float]] = {}
    for repeat in verdict.merged_from:
        if repeat.value is not None:
            question = re.sub(r"(, )?repeat \d+$", "", repeat.variant)
            by_question.setdefault(question, []).append(repeat.value)
    return [values for values in by_question.values() if len(values) > 1]
