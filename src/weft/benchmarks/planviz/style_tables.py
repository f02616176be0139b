"""The prompt-style study in numbers: how far a score moves when a task is reworded."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import RunResults, SampleGroups
from weft.benchmarks.planviz.rubric import COLUMNS as METRICS
from weft.benchmarks.rows import CountedVerdict, build_mean_cell, flatten_verdicts
from weft.types import Cell, Row, Table

AS_WRITTEN = "as written"
NOTE = (
    "A task was given in several wordings. mean: over its wordings, then over tasks; deviation: the standard deviation "
    "over the wordings of one task, averaged over tasks with several; variation: deviation over the mean of the same "
    "tasks, in percent; as written: the same tasks in the dataset's own words."
)


class _Wordings(Struct, frozen=True):
    """The verdicts of a run, or of one of its tasks, apart by whether the task was reworded."""

    reworded: Sequence[CountedVerdict]
    as_written: Sequence[CountedVerdict]


def is_study(groups: SampleGroups) -> bool:
    """Whether a run gave its tasks in several wordings."""
    return any("style" in sample_groups for sample_groups in groups.values())


def build_style_tables(runs: Sequence[tuple[RunResults, Sequence[CountedVerdict]]], title: str) -> Iterator[Table]:
    """Yield one table over all runs, then each run's tasks and styles.

    Each run comes with its verdicts, whose samples are the tasks that the wordings are of.
    """
    if not runs:
        return
    rows = [
        Row(run.name, _build_study_cells(_split(run, verdicts)), run=run.run, judge=run.judge) for run, verdicts in runs
    ]
    columns: list[str] = []
    for name in METRICS:
        columns += [f"{name} {statistic}" for statistic in ("mean", "deviation", "variation", AS_WRITTEN)]
    yield Table(title, tuple(columns), tuple(rows), NOTE, 2, "mixed")
    for run, verdicts in runs:
        yield _build_task_table(run, verdicts)
        yield _build_style_table(run, verdicts)


def _build_task_table(run: RunResults, verdicts: Sequence[CountedVerdict]) -> Table:
    by_task: dict[str, list[CountedVerdict]] = {}
    for verdict in verdicts:
        by_task.setdefault(verdict.sample, []).append(verdict)
    rows = [Row(task, _build_task_cells(_split(run, group)), kind="part") for task, group in by_task.items()]
    columns: list[str] = []
    for name in METRICS:
        columns += [f"{name} mean", f"{name} deviation"]
    title = f"{run.name}: tasks over their wordings"
    return Table(title, (*columns, "wordings"), tuple(rows), "", 2, "breakdown")


def _build_style_table(run: RunResults, verdicts: Sequence[CountedVerdict]) -> Table:
    by_style: dict[str, list[CountedVerdict]] = {}
    for verdict in verdicts:
        by_style.setdefault(_style_of(run, verdict), []).append(verdict)
    rows = [Row(style, _build_style_cells(group), kind="part") for style, group in by_style.items()]
    return Table(f"{run.name}: by style of wording", (*METRICS, "Avg"), tuple(rows), "", 2, "breakdown")


def _style_of(run: RunResults, verdict: CountedVerdict) -> str:
    return run.groups[verdict.verdict.sample].get("style", AS_WRITTEN)


def _split(run: RunResults, verdicts: Sequence[CountedVerdict]) -> _Wordings:
    reworded: list[CountedVerdict] = []
    as_written: list[CountedVerdict] = []
    for verdict in verdicts:
        if _style_of(run, verdict) == AS_WRITTEN:
            as_written.append(verdict)
        else:
            reworded.append(verdict)
    return _Wordings(reworded, as_written)


def _select_metric(verdicts: Sequence[CountedVerdict], metric: str) -> list[CountedVerdict]:
    return [verdict for verdict in verdicts if verdict.metric == metric]


def _collect_scores(verdicts: Sequence[CountedVerdict]) -> dict[str, list[float]]:
    """Return scores by task; an empty list for a task of which nothing is scored."""
    scores: dict[str, list[float]] = {}
    for verdict in verdicts:
        task_scores = scores.setdefault(verdict.sample, [])
        if verdict.value is not None:
            task_scores.append(verdict.value)
    return scores


def _build_study_cells(wordings: _Wordings) -> dict[str, Cell]:
    """Return the cells of a run. `expected` counts tasks; the verdicts are those of all their wordings."""
    cells: dict[str, Cell] = {}
    for name, metric in METRICS.items():
        reworded = _select_metric(wordings.reworded, metric)
        cells[f"{name} mean"] = _build_mean_of_means(reworded)
        scores = _collect_scores(reworded)
        several = {task: values for task, values in scores.items() if len(values) > 1}
        verdicts = [verdict for verdict in reworded if verdict.sample in several]
        deviations = list(map(statistics.stdev, several.values()))
        deviation = _build_mean_cell(deviations, len(several), verdicts)
        mean = _build_mean_of_means(verdicts).value
        variation = None
        if mean and deviation.value is not None:
            variation = 100 * deviation.value / mean
        cells[f"{name} deviation"] = deviation
        cells[f"{name} variation"] = Cell(variation, len(several), len(several), verdicts=deviation.verdicts)
        cells[f"{name} {AS_WRITTEN}"] = _build_mean_of_means(_select_metric(wordings.as_written, metric))
    return cells


def _build_task_cells(wordings: _Wordings) -> Mapping[str, Cell]:
    cells: dict[str, Cell] = {}
    longest: Sequence[CountedVerdict] = ()
    for name, metric in METRICS.items():
        verdicts = _select_metric(wordings.reworded, metric)
        values = [verdict.value for verdict in verdicts if verdict.value is not None]
        longest = max(longest, verdicts, key=len)
        mean = _build_mean_cell(values, len(verdicts), verdicts)
        deviation = Cell(None)
        if len(values) > 1:
            deviation = Cell(statistics.stdev(values), mean.scored, mean.expected, verdicts=mean.verdicts)
        cells[f"{name} mean"] = mean
        cells[f"{name} deviation"] = deviation
    count = len(longest)
    cells["wordings"] = Cell(float(count), count, count, count=True, verdicts=flatten_verdicts([longest]))
    return cells


def _build_style_cells(verdicts: Sequence[CountedVerdict]) -> Mapping[str, Cell]:
    cells: dict[str, Cell] = {}
    terms: list[tuple[float, Sequence[CountedVerdict]]] = []
    for name, metric in METRICS.items():
        group = _select_metric(verdicts, metric)
        cells[name] = build_mean_cell(group)
        terms.append((1 / len(METRICS), group))
    cells["Avg"] = build_mean_cell(terms)
    return cells


def _build_mean_of_means(verdicts: Sequence[CountedVerdict]) -> Cell:
    """Return the mean over tasks of each task's mean over its wordings."""
    scores = _collect_scores(verdicts)
    means = [statistics.fmean(values) for values in scores.values() if values]
    return _build_mean_cell(means, len(scores), verdicts)


def _build_mean_cell(values: Sequence[float], expected: int, counted: Sequence[CountedVerdict]) -> Cell:
    verdicts = flatten_verdicts([counted])
    if not values:
        return Cell(None, 0, expected, verdicts=verdicts)
    return Cell(statistics.fmean(values), len(values), expected, verdicts=verdicts)
