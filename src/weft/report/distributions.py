"""How scores are distributed by group and metric: a table for each metric, and one plot of all.

    found = build_distributions(runs, by=("task", "subtask"))
    found.tables, found.plot

Each scored turn counts. Bars show the percentage of scores in seven bins, of which the first and the last are zero and
full marks alone; a mean hides whether a model is half right always, or right half of the time."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.report.binned_panels import draw_binned_panels
from weft.report.charts import MAX_SERIES, Plot, in_words
from weft.results.run import Run, name_runs
from weft.stats.distributions import BIN_COUNT, Distribution, describe_distribution, name_bins
from weft.types import Cell, Row, Table

ALL = "all"
MAX_GROUPS = 12  # of two axes; with more of them only the first axis is used
MAX_BARS = 60  # runs times groups: as many as a page has room for
STATISTICS = ("mean", "standard deviation", "first quartile", "median", "third quartile")
SCORES = "scores"
Key = tuple[str, str, str]  # run, group, metric


class Distributions(Struct, frozen=True):
    """How scores are distributed."""

    tables: tuple[Table, ...]  # one for each metric
    plot: Plot


def build_distributions(runs: Sequence[Run], by: Sequence[str] = (), metrics: Sequence[str] = ()) -> Distributions:
    """Return how the scores of these runs are distributed.

    `by`: axes of the benchmark; without them its first two, or the first alone if there are many groups. `metrics`: all
    without them. Raises UserError for names that are not there, and if nothing is scored."""
    named = name_runs(runs)
    benchmark = runs[0].benchmark
    if benchmark.presentation.pairwise:
        raise UserError(f"runs of {benchmark.name} compare models in pairs: they have no scores to distribute")
    _check_names("metric", metrics, benchmark.metrics)
    _check_names("axis", by, benchmark.axes)
    axes = tuple(by) or _choose_axes(runs)
    metrics = tuple(metrics) or benchmark.metrics
    found: dict[Key, tuple[Distribution, list[Any]]] = {}
    for metric in metrics:
        for label, run in named.items():
            for group, verdicts in _group_verdicts(run, axes, metric).items():
                scored = [verdict.value for verdict in verdicts if verdict.value is not None]
                distribution = describe_distribution(scored)
                if distribution is not None:
                    found[label, group, metric] = (distribution, verdicts)
    if not found:
        raise UserError("nothing is scored yet: there is no distribution")
    what = f"by {', '.join(map(in_words, axes))}" if axes else "of all turns"
    title = f"{benchmark.presentation.title or benchmark.name}: distribution of scores {what}"
    built = [_build_table(found, runs[0], metric, title) for metric in metrics]
    first_runs = list(named)[:MAX_SERIES]
    shown = {key: distribution for key, (distribution, _) in found.items() if key[0] in first_runs}
    plot = _draw(shown, runs[0], title, len(named))
    return Distributions(tuple(table for table in built if table.rows), plot)


def _check_names(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"there is no {what} {name!r}; there is {', '.join(known) or 'none'}")


def _choose_axes(runs: Sequence[Run]) -> tuple[str, ...]:
    axes = runs[0].benchmark.axes[:2]
    groups = {_name_group(run.groups[sample], axes) for run in runs for sample in run.groups}
    if len(groups) <= MAX_GROUPS and len(groups) * len(runs) <= MAX_BARS:
        return axes
    return axes[:1]


def _name_group(groups: Mapping[str, str], axes: Sequence[str]) -> str:
    return ", ".join(in_words(groups[axis]) for axis in axes if groups.get(axis)) or ALL


def _group_verdicts(run: Run, axes: Sequence[str], metric: str) -> dict[str, list[Any]]:
    """Return the verdicts of one metric by group, in the order in which the benchmark lists the groups."""
    orders = [run.benchmark.presentation.axis_names.get(axis, ()) for axis in axes]
    by_group: dict[str, list[Any]] = {}
    places: dict[str, tuple[int, ...]] = {}
    for verdict in run.verdicts:
        if verdict.metric == metric:
            groups = run.groups[verdict.sample]
            name = _name_group(groups, axes)
            by_group.setdefault(name, []).append(verdict)
            names = [groups.get(axis, "") for axis in axes]
            places[name] = tuple(
                order.index(group) if group in order else len(order) for order, group in zip(orders, names, strict=True)
            )
    return {name: by_group[name] for name in sorted(by_group, key=lambda name: places[name])}


def _build_table(found: Mapping[Key, tuple[Distribution, list[Any]]], run: Run, metric: str, title: str) -> Table:
    presentation = run.benchmark.presentation
    full = presentation.max_score
    bins = [f"% {name}" for name in name_bins(full)]
    rows: list[Row] = []
    for (label, group, of_metric), (distribution, verdicts) in found.items():
        if of_metric != metric:
            continue
        numbers = (distribution.mean, distribution.deviation, *distribution.quartiles)
        cells = {SCORES: Cell(float(distribution.n), count=True, verdicts=verdicts)}
        for name, number in zip(STATISTICS, numbers, strict=True):
            if number is not None:
                cells[name] = Cell(full * number, distribution.n, len(verdicts), verdicts=verdicts)
        for name, count in zip(bins, distribution.bins, strict=True):
            cells[name] = Cell(100 * count / distribution.n, distribution.n, len(verdicts), digits=1, verdicts=verdicts)
        rows.append(Row(f"{label}: {group}", cells, kind="part"))
    note = f"Full marks: {full:g}. The last columns are the percentage of scores in each bin."
    columns = (SCORES, *STATISTICS, *bins)
    return Table(f"{title}: {in_words(metric)}", columns, tuple(rows), note, presentation.digits, "breakdown")


def _draw(found: Mapping[Key, Distribution], run: Run, title: str, runs: int) -> Plot:
    bins = name_bins(run.benchmark.presentation.max_score)
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    for (label, group, metric), distribution in found.items():
        for number in range(BIN_COUNT):
            percent = 100 * distribution.bins[number] / distribution.n
            place = {"run": label, "group": group, "metric": in_words(metric), "bin": bins[number], "order": number}
            rows.append({**place, "percent": percent})
        zero, top = (100 * distribution.bins[place] / distribution.n for place in (0, -1))
        lines.append(f"{label}, {group}, {in_words(metric)}: {zero:.0f}% at zero, {top:.0f}% at full marks")
    if runs > MAX_SERIES:
        title += f" (the first {MAX_SERIES} of {runs} runs)"
    is_single = len({row["run"] for row in rows}) == 1
    for row in rows:
        row["name"] = row["group"] if is_single else row["run"]
    if is_single:
        rows = [{**row, "group": ""} for row in rows]
    chart = draw_binned_panels(rows, bins, title)
    return Plot("distributions", title, chart, f"{title}. {'; '.join(lines)}")
