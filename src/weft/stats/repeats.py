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
COUNT_COLUMNS = ("items", "repeats")
NOTE = (
    "The judge was asked each question several times. mean: of all repeats, as the paper counts; standard deviation: "
    "of the repeats of one item, over all items (root mean square); variation: standard deviation over mean, in "
    "percent."
)
POOLED_NOTE = "The same over the items of all rows above: an item is one metric of one output."


def build_repeats_tables(
    runs: Mapping[str, Sequence[Verdict]], metrics: Sequence[str], full: float = 1.0, digits: int = 3
) -> Iterator[Table]:
    """Yield a table by run and metric, and one that pools them where there are several; none where nothing was asked
    twice. `full` is the maximum score that the paper prints."""
    rows: list[Row] = []
    for run, verdicts in runs.items():
        for metric in metrics:
            cells = _build_cells(_of_metric(verdicts, metric), full)
            if cells:
                title = metric if len(runs) == 1 else f"{run}: {metric}"
                rows.append(Row(title, cells, kind="part"))
    if rows:
        yield Table("Repeated judgements", COLUMNS, tuple(rows), NOTE, digits, "mixed")
    if len(rows) > 1:
        pooled = tuple(_build_pooled_rows(runs, metrics, full))
        yield Table("Repeated judgements, pooled", COLUMNS, pooled, POOLED_NOTE, digits, "mixed")


def _build_pooled_rows(runs: Mapping[str, Sequence[Verdict]], metrics: Sequence[str], full: float) -> Iterator[Row]:
    """Yield each metric over all runs, where there are several, and all metrics together, where there are several."""
    every = [verdict for verdicts in runs.values() for verdict in verdicts if verdict.metric in metrics]
    repeated = [metric for metric in metrics if _build_cells(_of_metric(every, metric), full)]
    if len(runs) > 1:
        for metric in repeated:
            yield Row(f"all runs: {metric}", _build_cells(_of_metric(every, metric), full), kind="part")
    if len(repeated) > 1:
        name = "all runs, all metrics" if len(runs) > 1 else "all metrics"
        yield Row(name, _build_cells(every, full), kind="part")


def _of_metric(verdicts: Sequence[Verdict], metric: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.metric == metric]


def _build_cells(verdicts: Sequence[Verdict], full: float) -> dict[str, Cell]:
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
        variation = 100 * deviation / mean
    numbers = (
        mean,
        deviation,
        variation,
        float(len(items)),
        statistics.fmean(map(len, items)),
    )
    cells: dict[str, Cell] = {}
    for column, number in zip(COLUMNS, numbers, strict=True):
        cells[column] = Cell(None)
        if number is not None:
            is_count = column in COUNT_COLUMNS and number == round(number)
            cells[column] = Cell(number, len(items), len(items), count=is_count, verdicts=repeated)
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
