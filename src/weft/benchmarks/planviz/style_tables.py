"""The prompt-style study in numbers: how far a score moves when a task is said in other words."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from weft.benchmarks.base import Finished, Groups
from weft.benchmarks.planviz.rubric import SHORT as METRICS
from weft.benchmarks.rows import cell_of
from weft.types import Cell, Row, Table, Verdict

AS_WRITTEN = "as written"
NOTE = (
    "A task was given in several wordings. mean: over its wordings, then over tasks; deviation: the standard deviation over the wordings "
    "of one task, averaged over tasks with several; variation: deviation over the mean of the same tasks, in percent; as written: the "
    "same tasks in the dataset's own words."
)


def is_study(groups: Groups) -> bool:
    return any("style" in of for of in groups.values())


def style_tables(runs: Sequence[tuple[Finished, Sequence[Verdict]]], title: str) -> Iterator[Table]:
    """Of runs with their verdicts, which are of tasks: in the order of the run's own."""
    if not runs:
        return
    columns = tuple(f"{name} {what}" for name in METRICS for what in ("mean", "deviation", "variation", AS_WRITTEN))
    rows = [Row(run.name, _over_tasks(_styled(run, of)), run=run.run, judge=run.judge) for run, of in runs]
    yield Table(title, columns, tuple(rows), NOTE, 2, "mixed")
    for run, of in runs:
        found = _styled(run, of)
        tasks = list(dict.fromkeys(one.sample for _, one in found))
        parts = [Row(task, _of_task([(style, one) for style, one in found if one.sample == task]), kind="part") for task in tasks]
        names = tuple(f"{name} {what}" for name in METRICS for what in ("mean", "deviation"))
        yield Table(f"{run.name}: tasks over their wordings", (*names, "wordings"), tuple(parts), "", 2, "parts")
        styles = list(dict.fromkeys(style for style, _ in found))
        by_style = [Row(style, _of_style([one for own, one in found if own == style]), kind="part") for style in styles]
        yield Table(f"{run.name}: by style of wording", (*METRICS, "Avg"), tuple(by_style), "", 2, "parts")


def _styled(run: Finished, verdicts: Sequence[Verdict]) -> list[tuple[str, Verdict]]:
    """Each verdict with the style of its wording."""
    styles = [run.groups[one.sample].get("style", AS_WRITTEN) for one in run.verdicts]
    return list(zip(styles, verdicts, strict=True))


def _values(found: Sequence[tuple[str, Verdict]], metric: str, *, reworded: bool) -> dict[str, list[float]]:
    """Scores of a metric by task; none for a task of which nothing is scored."""
    made: dict[str, list[float]] = {}
    for style, one in found:
        if one.metric == metric and (style != AS_WRITTEN) == reworded:
            made.setdefault(one.sample, []).extend([] if one.value is None else [one.value])
    return made


def _over_tasks(found: Sequence[tuple[str, Verdict]]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for name, metric in METRICS.items():
        said, written = (_values(found, metric, reworded=one) for one in (True, False))
        several = {task: values for task, values in said.items() if len(values) > 1}
        cells[f"{name} mean"] = _mean([statistics.fmean(values) for values in said.values() if values], len(said))
        deviation = _mean([statistics.stdev(values) for values in several.values()], len(several))
        mean = _mean([statistics.fmean(values) for values in several.values()], len(several)).value  # of the same tasks
        variation = None if not mean or deviation.value is None else round(100 * deviation.value / mean, 2)
        cells[f"{name} deviation"], cells[f"{name} variation"] = deviation, Cell(variation, len(several), len(several))
        cells[f"{name} {AS_WRITTEN}"] = _mean([statistics.fmean(values) for values in written.values() if values], len(written))
    return cells


def _of_task(found: Sequence[tuple[str, Verdict]]) -> Mapping[str, Cell]:
    cells: dict[str, Cell] = {}
    counts: list[int] = []
    for name, metric in METRICS.items():
        due = sum(one.metric == metric and style != AS_WRITTEN for style, one in found)
        values = [value for some in _values(found, metric, reworded=True).values() for value in some]
        counts.append(due)
        cells[f"{name} mean"] = _mean(values, due)
        cells[f"{name} deviation"] = Cell(round(statistics.stdev(values), 4), len(values), due) if len(values) > 1 else Cell(None)
    return {**cells, "wordings": Cell(float(max(counts)), max(counts), max(counts))}


def _of_style(verdicts: Sequence[Verdict]) -> Mapping[str, Cell]:
    by_metric = {name: [one for one in verdicts if one.metric == metric] for name, metric in METRICS.items()}
    cells = {name: cell_of(some, digits=4) for name, some in by_metric.items()}
    return {**cells, "Avg": cell_of([(1 / len(METRICS), some) for some in by_metric.values()], digits=4)}


def _mean(values: Sequence[float], due: int) -> Cell:
    return Cell(round(statistics.fmean(values), 4), len(values), due) if values else Cell(None, 0, due)
