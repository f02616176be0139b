"""Runs that differ in their seed alone as one row: the mean over them, their standard deviation, and an interval over
seeds and dialogues.

The mean is that of the runs' own numbers. Its interval has two parts, added in quadrature: dialogues are drawn again
with the verdicts of all seeds in them (the cluster bootstrap of every other interval, on the pooled verdicts), and the
seeds count as so many draws of a Student's t. Two seeds say little, and the interval says so."""

import itertools
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from weft.errors import UserError, wrap_error
from weft.results.run import Run
from weft.results.summary import count_replies
from weft.results.titles import TitleInput, distinct_titles, format_title
from weft.types import Cell, Row, Table

# by degrees of freedom
T975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
NOTE = "± is the standard deviation over seeds. Intervals are over seeds and dialogues."
SeedGroups = Mapping[str, Sequence[Run]]  # under the name that their row has
RowKey = tuple[str, str, str]
Cells = Mapping[str, Cell]


class PooledRun(Run):
    """Several runs as one: all their turns and verdicts, by the same dialogues."""

    def __init__(self, runs: Sequence[Run]) -> None:
        first = runs[0]
        self.id, self.benchmark = "+".join(run.id for run in runs), first.benchmark
        self.record = replace(first.record, manifest=first.record.manifest.without_seed(), names=_names(first))
        self.turns = [turn for run in runs for turn in run.turns]
        self.groups = {sample: groups for run in runs for sample, groups in run.groups.items()}
        self.replies = count_replies(turn.reply for turn in self.turns)
        self.verdicts = [verdict for run in runs for verdict in run.verdicts]
        self.totals = [total for run in runs for total in run.totals]
        self.given, self.home = sum(run.raw_verdict_count for run in runs), first.home
        self.annotation_counts = (
            sum(run.annotation_counts[0] for run in runs),
            max(run.annotation_counts[1] for run in runs),
        )


def group_by_seed(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs that are one row, under its name. Raises UserError where no two of them differ in their seed alone."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.record.manifest.without_seed().digest, []).append(run)
    groups = list(found.values())
    if all(len(some) == 1 for some in groups):
        raise UserError(
            "--over seed: no two of these runs differ in their seed alone (--model-opt seed=N); `weft runs` lists them"
        )
    for some in groups:
        seeds = [_seeds(run) for run in some]
        if len(set(seeds)) < len(seeds):
            raise UserError(f"--over seed: {some[0].id} and another have the same seed")
    told = [_named(some) for some in groups]
    if len(told) > 1:
        names = distinct_titles(told)
    else:
        names = [format_title(told[0].manifest, "finished" if told[0].finished else "", told[0].names)]
    return {
        f"{name}, {len(some)} seeds" if len(some) > 1 else name: some for name, some in zip(names, groups, strict=True)
    }


def _names(run: Run) -> dict[str, str]:
    return {role: name for role, name in run.record.names.items() if role == "model"}


def _named(some: Sequence[Run]) -> TitleInput:
    """Tags that begin alike (ours-s0, ours-s1) are a name for all of them."""
    tags = [run.record.names.get("tag", "") for run in some]
    alike = "".join(
        letters[0] for letters in itertools.takewhile(lambda some: len(set(some)) == 1, zip(*tags, strict=False))
    )
    if len(tags) > 1:
        tag = re.sub(r"[-_ .,]+(s|seed)?[-_ .=]*$", "", alike)
    else:
        tag = tags[0]
    names = {**_names(some[0]), **({"tag": tag} if tag else {})}
    return TitleInput(
        some[0].record.manifest.without_seed(), names, all(run.record.state == "finished" for run in some)
    )


def _seeds(run: Run) -> str:
    model = run.record.manifest.model
    return str([model.seed, *(part.seed for part in model.parts.values())])


def pool_runs(groups: SeedGroups) -> dict[str, Run]:
    """For plots: each group as one run."""
    return {name: some[0] if len(some) == 1 else PooledRun(some) for name, some in groups.items()}


def build_seed_tables(groups: SeedGroups) -> list[Table]:
    """The benchmark's tables with a row for each group."""
    benchmark = next(iter(groups.values()))[0].benchmark
    whole = {name: run.results(name) for name, run in pool_runs(groups).items()}
    try:
        tables = list(benchmark.tables(list(whole.values())))
        single = {
            name: [_cells(benchmark.tables([run.results(name)])) for run in some]
            for name, some in groups.items()
            if len(some) > 1
        }
    except Exception as error:
        raise wrap_error(f"benchmark {benchmark.name}: its tables", error) from error
    by_id = {found.run: single[name] for name, found in whole.items() if name in single}
    return [_with_seeds(table, by_id, benchmark.presentation.max_score) for table in tables]


def _cells(tables: Iterable[Table]) -> dict[RowKey, Cells]:
    return {
        (table.title, row.name, f"{row.arithmetic} {row.subset}"): row.cells
        for table in tables
        for row in table.rows
        if row.kind != "published"
    }


def _with_seeds(table: Table, single: Mapping[str, Sequence[Mapping[RowKey, Cells]]], full: float) -> Table:
    rows: list[Row] = []
    for row in table.rows:
        if row.run not in single:
            rows.append(row)
            continue
        cells = [_like(table, row, some) for some in single[row.run]]
        made = {key: mean_over_seeds(cell, [some.get(key) for some in cells], full) for key, cell in row.cells.items()}
        rows.append(replace(row, cells=made))
    return replace(table, rows=tuple(rows), note=" ".join([table.note, NOTE]).strip())


def _like(table: Table, row: Row, some: Mapping[RowKey, Cells]) -> Cells:
    """The same row of one run; where its two arithmetics agree, it has one row for both."""
    places = [
        (table.title, row.name, f"{way} {row.subset}")
        for way in ((row.arithmetic, "") if row.arithmetic else ("", "strict"))
    ]
    return next((some[place] for place in places if place in some), dict[str, Cell]())


def mean_over_seeds(whole: Cell, cells: Sequence[Cell | None], full: float) -> Cell:
    """`whole` is the cell of the pooled verdicts, `cells` those of the runs."""
    values = [cell.value for cell in cells if cell is not None and cell.value is not None]
    if len(values) < len(cells) or len(values) < 2:
        return whole
    value = statistics.fmean(values)
    deviation = statistics.stdev(values)
    made = replace(whole, value=value, standard_deviation=None if whole.count else deviation)
    if whole.low is None or whole.high is None or whole.value is None:
        return made
    of_seeds = T975[min(len(values) - 1, len(T975)) - 1] * deviation / math.sqrt(len(values))
    low = value - math.hypot(whole.value - whole.low, of_seeds)
    high = value + math.hypot(whole.high - whole.value, of_seeds)
    if whole.low >= 0 and whole.high <= full:
        low, high = max(0.0, low), min(full, high)
    return replace(made, low=low, high=high)
