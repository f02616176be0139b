"""The prompt-style study in numbers: how far a score moves when a task is said in other words."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from weft.benchmarks.base import RunResults, SampleGroups
from weft.benchmarks.planviz.rubric import COLUMNS as METRICS
from weft.benchmarks.rows import CountedVerdict, build_mean_cell, flatten_verdicts
from weft.types import Cell, Row, Table

AS_WRITTEN = "as written"
NOTE = (
    "A task was given in several wordings. mean: over its wordings, then over tasks; deviation: the standard deviation over the wordings "
    "of one task, averaged over tasks with several; variation: deviation over the mean of the same tasks, in percent; as written: the "
    "same tasks in the dataset's own words."
)


def is_study(groups: SampleGroups) -> bool:
    return any("style" in of for of in groups.values())


def build_style_tables(runs: Sequence[tuple[RunResults, Sequence[CountedVerdict]]], title: str) -> Iterator[Table]:
    """Of runs with their verdicts, by task, in the order of the run's own."""
    if not runs:
        return
    columns = tuple(f"{name} {what}" for name in METRICS for what in ("mean", "deviation", "variation", AS_WRITTEN))
    rows = [Row(run.name, _over_tasks(_styled(run, of)), run=run.run, judge=run.judge) for run, of in runs]
    yield Table(title, columns, tuple(rows), NOTE, 2, "mixed")
    for run, of in runs:
        found = _styled(run, of)
        tasks = list(dict.fromkeys(one.sample for _, one in found))
        parts = [
            Row(task, _of_task([(style, one) for style, one in found if one.sample == task]), kind="part")
            for task in tasks
        ]
        names = tuple(f"{name} {what}" for name in METRICS for what in ("mean", "deviation"))
        yield Table(f"{run.name}: tasks over their wordings", (*names, "wordings"), tuple(parts), "", 2, "breakdown")
        styles = list(dict.fromkeys(style for style, _ in found))
        by_style = [Row(style, _of_style([one for own, one in found if own == style]), kind="part") for style in styles]
        yield Table(f"{run.name}: by style of wording", (*METRICS, "Avg"), tuple(by_style), "", 2, "breakdown")


def _styled(run: RunResults, verdicts: Sequence[CountedVerdict]) -> list[tuple[str, CountedVerdict]]:
    """Each verdict with the style of its wording."""
    return [(run.groups[one.verdict.sample].get("style", AS_WRITTEN), one) for one in verdicts]


def _some(found: Sequence[tuple[str, CountedVerdict]], metric: str, *, reworded: bool) -> list[CountedVerdict]:
    return [one for style, one in found if one.metric == metric and (style != AS_WRITTEN) == reworded]


def _by_task(entries: Sequence[CountedVerdict]) -> dict[str, list[float]]:
    """Scores by task; none for a task of which nothing is scored."""
    made: dict[str, list[float]] = {}
    for one in entries:
        made.setdefault(one.sample, []).extend([] if one.value is None else [one.value])
    return made


def _over_tasks(found: Sequence[tuple[str, CountedVerdict]]) -> dict[str, Cell]:
    """`due` counts tasks; the verdicts are those of all their wordings."""
    cells: dict[str, Cell] = {}
    for name, metric in METRICS.items():
        reworded, written = (_some(found, metric, reworded=one) for one in (True, False))
        said = _by_task(reworded)
        as_written = _by_task(written)
        several = {task: values for task, values in said.items() if len(values) > 1}
        behind = [one for one in reworded if one.sample in several]
        cells[f"{name} mean"] = _mean(
            [statistics.fmean(values) for values in said.values() if values], len(said), reworded
        )
        deviation = _mean([statistics.stdev(values) for values in several.values()], len(several), behind)
        # of the same tasks
        mean = _mean([statistics.fmean(values) for values in several.values()], len(several), behind).value
        if not mean or deviation.value is None:
            variation = None
        else:
            variation = round(100 * deviation.value / mean, 2)
        cells[f"{name} deviation"] = deviation
        cells[f"{name} variation"] = Cell(variation, len(several), len(several), verdicts=deviation.verdicts)
        means = [statistics.fmean(values) for values in as_written.values() if values]
        cells[f"{name} {AS_WRITTEN}"] = _mean(means, len(as_written), written)
    return cells


def _of_task(found: Sequence[tuple[str, CountedVerdict]]) -> Mapping[str, Cell]:
    cells: dict[str, Cell] = {}
    most: Sequence[CountedVerdict] = ()
    for name, metric in METRICS.items():
        entries = _some(found, metric, reworded=True)
        values = [one.value for one in entries if one.value is not None]
        most = max(most, entries, key=len)
        cells[f"{name} mean"] = mean = _mean(values, len(entries), entries)
        several = len(values) > 1
        if several:
            deviation = Cell(round(statistics.stdev(values), 4), mean.scored, mean.expected, verdicts=mean.verdicts)
        else:
            deviation = Cell(None)
        cells[f"{name} deviation"] = deviation
    return {**cells, "wordings": Cell(float(len(most)), len(most), len(most), verdicts=flatten_verdicts([most]))}


def _of_style(verdicts: Sequence[CountedVerdict]) -> Mapping[str, Cell]:
    by_metric = {name: [one for one in verdicts if one.metric == metric] for name, metric in METRICS.items()}
    cells = {name: build_mean_cell(some, digits=4) for name, some in by_metric.items()}
    return {**cells, "Avg": build_mean_cell([(1 / len(METRICS), some) for some in by_metric.values()], digits=4)}


def _mean(values: Sequence[float], due: int, entries: Sequence[CountedVerdict]) -> Cell:
    behind = flatten_verdicts([entries])
    return Cell(round(statistics.fmean(values), 4) if values else None, len(values), due, verdicts=behind)
