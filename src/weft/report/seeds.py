"""Runs that differ only in their seed as one row: the mean, its standard deviation, and an interval over seeds and
dialogues.

The mean is that of the runs' own numbers. Its interval has two parts, added in quadrature: the one that every other
number has, of the pooled verdicts of all seeds, and Student's t over the seeds. Two seeds say little, and the interval
is wide."""

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from weft.benchmarks.official import explain_official_cells, note_published_size
from weft.errors import UserError, wrap_error
from weft.results.run import FOREIGN, Run, name_runs
from weft.results.summary import count_replies
from weft.results.titles import TitleInput, distinct_titles, format_title
from weft.stats.student_t import student_t_quantile
from weft.types import Cell, Row, Table

NOTE = "± is the standard deviation over seeds. Intervals are over seeds and dialogues."
SeedGroups = Mapping[str, Sequence[Run]]  # by the name of their row
RowKey = tuple[str, str, str]  # table, row, arithmetic and subset
Cells = Mapping[str, Cell]


class PooledRun(Run):
    """Several runs as one, with the turns and verdicts of all."""

    def __init__(self, runs: Sequence[Run]) -> None:
        first = runs[0]
        self.id = "+".join(run.id for run in runs)
        self.benchmark = first.benchmark
        self.home = first.home
        self.record = replace(first.record, manifest=first.record.manifest.without_seed(), names=_model_name(first))
        self.turns = []
        self.groups = {}
        self.verdicts = []
        self.totals = []
        self.raw_verdict_count = 0
        questions = 0
        annotators = 0
        for run in runs:
            self.turns += run.turns
            self.groups.update(run.groups)
            self.verdicts += run.verdicts
            self.totals += run.totals
            self.raw_verdict_count += run.raw_verdict_count
            questions += run.annotation_counts[0]
            annotators = max(annotators, run.annotation_counts[1])
        self.replies = count_replies(turn.reply for turn in self.turns)
        self.annotation_counts = (questions, annotators)


def group_runs(runs: Sequence[Run], over: str) -> dict[str, list[Run]]:
    """Return the runs that share a row, by the row's name, for the value of `--over`."""
    if over != "seed":
        raise UserError(f"over={over!r}: runs can be pooled over their seed only: over='seed'")
    name_runs(runs)  # refuses runs of several benchmarks, and a run given twice
    return group_by_seed(runs)


def group_by_seed(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs that share a row, by the row's name. Raises UserError if no two differ only in their seed."""
    by_settings: dict[str, list[Run]] = {}
    for run in runs:
        by_settings.setdefault(run.record.manifest.without_seed().digest, []).append(run)
    groups = list(by_settings.values())
    if len(groups) == len(runs):
        raise UserError(
            "--over seed: no two of these runs differ only in their seed (--model-opt seed=N); `weft runs` lists them"
        )
    for group in groups:
        if len({_seeds_of(run) for run in group}) < len(group):
            raise UserError(f"--over seed: {group[0].id} and another run have the same seed; leave one out")
    named: dict[str, list[Run]] = {}
    for title, group in zip(_group_titles(groups), groups, strict=True):
        if len(group) > 1:
            named[f"{title}, {len(group)} seeds"] = group
        else:
            named[title] = group
    return named


def _group_titles(groups: Sequence[Sequence[Run]]) -> list[str]:
    inputs = [_title_input(group) for group in groups]
    if len(inputs) > 1:
        return distinct_titles(inputs)
    only = inputs[0]
    state = "finished" if only.finished else ""
    return [format_title(only.manifest, state, only.names)]


def _title_input(runs: Sequence[Run]) -> TitleInput:
    """Return what the title of a group is built from. Tags that begin alike (ours-s0, ours-s1) give its tag."""
    tag = _group_tag([run.record.names["tag"] for run in runs if run.record.names.get("tag")])
    names = _model_name(runs[0])
    if tag:
        names["tag"] = tag
    is_finished = all(run.record.state == "finished" for run in runs)
    return TitleInput(runs[0].record.manifest.without_seed(), names, is_finished)


def _group_tag(tags: Sequence[str]) -> str:
    """Return the tag of a group, which is how its tags begin, without the seed; all tags if they begin differently."""
    if len(tags) < 2:
        return "".join(tags)
    tag = re.sub(r"[-_ .,]+(s|seed)?[-_ .=]*\d*$", "", _common_prefix(tags))
    return tag or ", ".join(tags)


def _common_prefix(texts: Sequence[str]) -> str:
    length = 0
    for letters in zip(*texts, strict=False):
        if len(set(letters)) > 1:
            break
        length += 1
    return texts[0][:length]


def _model_name(run: Run) -> dict[str, str]:
    """Return the user's name for the model, by its role."""
    if "model" not in run.record.names:
        return {}
    return {"model": run.record.names["model"]}


def _seeds_of(run: Run) -> str:
    model = run.record.manifest.model
    return str([model.seed, *(part.seed for part in model.parts.values())])


def pool_runs(groups: SeedGroups) -> dict[str, Run]:
    """Return each group as one run."""
    pooled: dict[str, Run] = {}
    for name, runs in groups.items():
        if len(runs) == 1:
            pooled[name] = runs[0]
        else:
            pooled[name] = PooledRun(runs)
    return pooled


def build_seed_tables(groups: SeedGroups) -> list[Table]:
    """Return the benchmark's tables with one row per group."""
    benchmark = next(iter(groups.values()))[0].benchmark
    pooled = pool_runs(groups)
    cells_by_id: dict[str, list[dict[RowKey, Cells]]] = {}  # by the pooled run's id, one entry per seed
    try:
        sizes = [len(run.groups) for run in pooled.values()]
        results = [run.results(name) for name, run in pooled.items()]
        tables = [note_published_size(table, benchmark.official, sizes) for table in benchmark.tables(results)]
        for name, runs in groups.items():
            if len(runs) < 2:
                continue
            others = [result for result in results if result.name != name][:1]  # tables of several runs have other rows
            cells_by_id[pooled[name].id] = [
                _cells_by_row(benchmark.tables([run.results(name), *others])) for run in runs
            ]
    except FOREIGN as error:
        raise wrap_error(f"benchmark {benchmark.name}: its tables", error) from error
    averaged = [_average_table(table, cells_by_id, benchmark.presentation.max_score) for table in tables]
    return list(map(explain_official_cells, averaged))


def _cells_by_row(tables: Iterable[Table]) -> dict[RowKey, Cells]:
    cells: dict[RowKey, Cells] = {}
    for table in tables:
        for row in table.run_rows:
            cells[table.title, row.name, f"{row.arithmetic} {row.subset}"] = row.cells
    return cells


def _average_table(
    table: Table, cells_by_id: Mapping[str, Sequence[Mapping[RowKey, Cells]]], max_score: float
) -> Table:
    rows: list[Row] = []
    for row in table.rows:
        if row.run not in cells_by_id:
            rows.append(row)
            continue
        cells_by_seed = [_find_cells(table, row, cells) for cells in cells_by_id[row.run]]
        averaged: dict[str, Cell] = {}
        for column, cell in row.cells.items():
            averaged[column] = mean_over_seeds(cell, [cells.get(column) for cells in cells_by_seed], max_score)
        rows.append(replace(row, cells=averaged))
    return replace(table, rows=tuple(rows), note=f"{table.note} {NOTE}".strip())


def _find_cells(table: Table, row: Row, cells: Mapping[RowKey, Cells]) -> Cells:
    """Return the same row of one run. A run whose two arithmetics agree has one row for both."""
    arithmetics = (row.arithmetic, "") if row.arithmetic else ("", "strict")
    for arithmetic in arithmetics:
        key = (table.title, row.name, f"{arithmetic} {row.subset}")
        if key in cells:
            return cells[key]
    return {}


def mean_over_seeds(pooled: Cell, cells: Sequence[Cell | None], max_score: float) -> Cell:
    """Return the mean of the runs' `cells`. `pooled` is the cell of all verdicts; it comes back if a run has no
    value."""
    values = [cell.value for cell in cells if cell is not None and cell.value is not None]
    if len(values) < len(cells) or len(values) < 2:
        return pooled
    value = statistics.fmean(values)
    deviation = statistics.stdev(values)
    mean = replace(pooled, value=value, standard_deviation=None if pooled.count else deviation)
    if pooled.low is None or pooled.high is None or pooled.value is None:
        return mean
    over_seeds = student_t_quantile(len(values) - 1) * deviation / math.sqrt(len(values))
    low = value - math.hypot(pooled.value - pooled.low, over_seeds)
    high = value + math.hypot(pooled.high - pooled.value, over_seeds)
    if pooled.low >= 0 and pooled.high <= max_score:
        low = max(0.0, low)
        high = min(max_score, high)
    return replace(mean, low=low, high=high)
