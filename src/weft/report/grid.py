"""One number of several runs by their settings: a row for each combination of settings, a column for each group of an
axis, and how far each row is from a baseline.

    grid = build_grid(runs, ["model", "history"], baseline="none")
    grid.table, grid.plot

Runs that differ only in their seed are one row. Changes are paired: over the turns that a row and its baseline have
both scored, with 95% intervals by dialogue.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.report.charts import Plot, in_words
from weft.report.compare import PERCENT, VerdictKey, headline_pairs, key_of, pair_runs, pair_terms, scale_difference
from weft.report.grid_layout import GridKey, GridLayout, plan_layout
from weft.report.grid_plot import build_grid_plot
from weft.report.layout import name_beside
from weft.report.seeds import NOTE as SEEDS_NOTE
from weft.report.seeds import PooledRun, mean_over_seeds
from weft.report.select import Choices
from weft.results.run import Run, estimate_terms, headline_parts, scored_terms
from weft.stats.paired import compare_pairs, compare_relative
from weft.types import Cell, Row, Table, Verdict

ALL = "all"
CHANGE = "change"
RELATIVE_CHANGE = "change %"
SEEDS = "seeds"
HEADLINE = "headline score"


class Grid(Struct, frozen=True):
    """A table of runs by their settings, and its plot; None where nothing is scored."""

    table: Table
    plot: Plot | None


def check_grid_choice(by: str | Sequence[str], metric: str, baseline: str, over: str) -> None:
    """Raise UserError for choices that exclude each other."""
    if by and over:
        raise UserError("--by makes one row of runs that differ only in their seed: leave out --over")
    if not by and (metric or baseline):
        raise UserError("--metric and --baseline are about a table by settings: add --by, such as --by model,history")


def build_grid(runs: Sequence[Run], by: str | Sequence[str], metric: str = "", baseline: str = "") -> Grid:
    """Return one number of runs by their settings: `.table`, and `.plot` with its `chart`.

    `by` are one to three settings, such as `"model,history"`: options of the benchmark or the model, strategy, version,
    seed, images (the input format). One may be an axis of the benchmark, such as `class`: its groups are the columns.
    `metric`: the headline score without one. `baseline` is what changes are from: a value of one setting (`"none"`), or
    `"history=none,model=copy"`; by default the first value of the last setting.

    Raises UserError for a name or a value that the runs do not have, and for runs of one row that differ in more than
    their seed.
    """
    names = by.split(",") if isinstance(by, str) else list(by)
    benchmark = runs[0].benchmark
    if benchmark.presentation.pairwise:
        raise UserError(f"runs of {benchmark.name} compare models in pairs: they have no score to put into a grid")
    metric = find_metric(benchmark, metric)
    layout = plan_layout(runs, names, baseline)
    pooled = {key: _pool(members) for key, members in layout.cells.items()}
    rows = [_build_row(layout, pooled, key, metric) for key in layout.cells]
    columns = _list_columns(layout, metric)
    title = benchmark.presentation.title or benchmark.name
    data = runs[0].record.manifest.dataset.name
    if not benchmark.name.startswith(data):
        title += f" ({data})"
    table = Table(
        f"{title}: {in_words(metric) or HEADLINE} by {', '.join(map(in_words, layout.names))}",
        tuple(columns),
        tuple(rows),
        " ".join(_build_notes(layout, pooled, metric)),
        benchmark.presentation.digits,
        unranked=tuple(name_beside(layout.groups, name) for name in (CHANGE, RELATIVE_CHANGE)),
    )
    change = name_beside(layout.groups, RELATIVE_CHANGE)
    return Grid(table, build_grid_plot(layout, table, _score_column(layout, metric), change))


def label_grid(choices: Choices, runs: Sequence[Run], by: str | Sequence[str], metric: str = "") -> Choices:
    """Return choices with a label for LaTeX that is none of the benchmark's own tables', unless they have one."""
    names = [by] if isinstance(by, str) else list(by)
    words = "-".join(filter(None, [runs[0].benchmark.name, metric, "by", *names]))
    return replace(choices, label=choices.label or "tab:weft-" + re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-"))


def find_metric(benchmark: Benchmark, name: str) -> str:
    """Return the benchmark's name of a metric; an empty text for the headline score."""
    wanted = name.strip().replace("-", "_").replace(" ", "_").casefold()
    if wanted in ("", "headline", "headline_score"):
        return ""
    for metric in benchmark.metrics:
        if metric.casefold() == wanted:
            return metric
    raise UserError(f"{benchmark.name} has no metric {name!r}; it has headline, {', '.join(benchmark.metrics)}")


def _pool(runs: Sequence[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]
    return PooledRun(runs)


def _score_column(layout: GridLayout, metric: str) -> str:
    if layout.axis:
        return name_beside(layout.groups, ALL)
    return in_words(metric) or HEADLINE


def _list_columns(layout: GridLayout, metric: str) -> list[str]:
    columns = [*layout.groups, _score_column(layout, metric)]
    if layout.has_baseline:
        columns += [name_beside(layout.groups, CHANGE), name_beside(layout.groups, RELATIVE_CHANGE)]
    if layout.has_seeds:
        columns.append(name_beside(layout.groups, SEEDS))
    return columns


def _build_row(layout: GridLayout, pooled: Mapping[GridKey, Run], key: GridKey, metric: str) -> Row:
    members = layout.cells[key]
    run = pooled[key]
    cells: dict[str, Cell] = {}
    for group in layout.groups:
        cells[group] = _average_cell(run, members, metric, layout.axis, group)
    cells[_score_column(layout, metric)] = _average_cell(run, members, metric)
    base = layout.baseline_of(key)
    if base != key and base in pooled:
        changes = build_change_cells(run, pooled[base], metric)
        cells |= {name_beside(layout.groups, name): cell for name, cell in changes.items()}
    if layout.has_seeds:
        cells[name_beside(layout.groups, SEEDS)] = Cell(float(len(members)), count=True)
    judges = {member.record.manifest.judge.name for member in members}
    return Row(", ".join(key), cells, run=run.id, judge=judges.pop())


def _average_cell(pooled: Run, runs: Sequence[Run], metric: str, axis: str = "", group: str = "") -> Cell:
    """Return the number of one run, or the mean over seeds."""
    cells = [build_score_cell(run, metric, axis, group) for run in runs]
    if len(runs) == 1:
        return cells[0]
    cell = build_score_cell(pooled, metric, axis, group)
    return mean_over_seeds(cell, cells, pooled.benchmark.presentation.max_score)


def build_score_cell(run: Run, metric: str, axis: str = "", group: str = "") -> Cell:
    """Return a run's headline score, or one of its metrics, in one group of an axis or in all."""
    verdicts = _select_verdicts(run, run.verdicts, metric, axis, group)
    if not verdicts:
        return Cell(None)
    parts = _build_parts(run, verdicts, metric)
    members: list[Verdict] = []
    for _, part in parts:
        members += part
    scored = sum(verdict.value is not None for verdict in members)
    terms = scored_terms(parts)
    if not terms:
        return Cell(None, scored, len(members), verdicts=members)
    full = run.benchmark.presentation.max_score
    value, low, high = estimate_terms(run.benchmark, terms, run.groups)
    if low is None or high is None:
        return Cell(full * value, scored, len(members), verdicts=members)
    return Cell(full * value, scored, len(members), full * low, full * high, verdicts=members)


def _select_verdicts(run: Run, verdicts: Sequence[Verdict], metric: str, axis: str, group: str) -> list[Verdict]:
    selected: list[Verdict] = []
    for verdict in verdicts:
        is_of_metric = not metric or verdict.metric == metric
        if is_of_metric and (not axis or run.groups[verdict.sample].get(axis) == group):
            selected.append(verdict)
    return selected


def _build_parts(run: Run, verdicts: Sequence[Verdict], metric: str) -> list[tuple[float, Sequence[Verdict]]]:
    """Return the number as weighted means of verdicts."""
    if metric:
        return [(1.0, verdicts)]
    return headline_parts(run.benchmark, verdicts, run.groups)


def build_change_cells(run: Run, base: Run, metric: str) -> dict[str, Cell]:
    """Return how far a run is from another, on the paper's scale and in percent, over what both have scored."""
    pairing = pair_runs(run, base)
    paired = _select_verdicts(run, pairing.verdicts, metric, "", "")
    if not paired:
        return {}
    parts = [(1.0, paired)] if metric else headline_pairs(run, pairing.shared, pairing.pairs)
    terms = pair_terms(parts, pairing)
    difference = compare_pairs(terms, full=PERCENT)
    if difference is None:
        return {}
    difference = scale_difference(difference, run.benchmark.presentation.max_score / PERCENT)
    pairs = difference.pairs
    cells = {CHANGE: Cell(difference.value, pairs, pairs, difference.low, difference.high, verdicts=paired)}
    relative = compare_relative(terms, full=PERCENT)
    if relative is not None:
        cell = Cell(PERCENT * relative.value, pairs, pairs, digits=1, verdicts=paired)
        if relative.low is not None and relative.high is not None:
            cell = replace(cell, low=PERCENT * relative.low, high=PERCENT * relative.high)
        cells[RELATIVE_CHANGE] = cell
    return cells


def _build_notes(layout: GridLayout, pooled: Mapping[GridKey, Run], metric: str) -> list[str]:
    presentation = next(iter(pooled.values())).benchmark.presentation
    notes = [f"Full marks: {presentation.max_score:g}."]
    if layout.has_baseline:
        notes.append(
            f"Changes are from {layout.describe_baseline()}, over the turns that both have scored, with 95% intervals "
            "by dialogue."
        )
        unpaired = sum(_count_unpaired(layout, pooled, key, metric) for key in layout.cells)
        if unpaired:
            notes.append(f"{unpaired} verdicts have no partner there and are in no change.")
    if layout.has_seeds:
        notes.append(SEEDS_NOTE)
    if layout.other_differences:
        notes.append(f"The rows also differ in {', '.join(map(in_words, layout.other_differences))}.")
    return notes


def _count_unpaired(layout: GridLayout, pooled: Mapping[GridKey, Run], key: GridKey, metric: str) -> int:
    base = layout.baseline_of(key)
    if base == key or base not in pooled:
        return 0
    pairing = pair_runs(pooled[key], pooled[base])
    needed = _list_keys(pooled[key], metric) | _list_keys(pooled[base], metric)
    return len(needed - pairing.pairs.keys())


def _list_keys(run: Run, metric: str) -> set[VerdictKey]:
    """Return the keys of the verdicts behind a run's number."""
    keys: set[VerdictKey] = set()
    for _, part in _build_parts(run, _select_verdicts(run, run.verdicts, metric, "", ""), metric):
        keys |= {key_of(verdict) for verdict in part}
    return keys
