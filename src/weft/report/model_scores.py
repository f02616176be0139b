"""Several numbers of each model: of our runs by their verdicts, or of the rows of a table, published ones included.

Without published rows the numbers are a run's metrics, or one metric by the groups of an axis. With them they are the
columns of one table of the paper, in which our runs have the same columns: by metric, as the mean over groups, or by
group, for one metric."""

import statistics
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks import load_benchmark
from weft.errors import UserError
from weft.report.charts import in_words
from weft.report.compare import warn_of_differences
from weft.report.grid import HEADLINE, build_score_cell, find_metric
from weft.report.layout import find_groups
from weft.report.published import build_published_tables
from weft.report.row_groups import find_about
from weft.report.select import Choices, select_tables
from weft.results.run import Run, build_tables, name_runs
from weft.types import Row, Table

METRICS = "metrics"
GROUPS = "groups"
AVERAGES = ("Avg", "AVG", "Average", "Overall", "Overall as printed")  # columns that follow from the others
MIN_COLUMNS = 2


class ModelRow(Struct, frozen=True):
    """The numbers of one model."""

    name: str
    values: Mapping[str, float]  # by column; what is not there is not known
    about: Mapping[str, str] = {}  # what is known of the model
    is_published: bool = False


class ModelScores(Struct, frozen=True):
    """The numbers of several models."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ModelRow, ...]
    digits: int
    note: str


def collect_scores(
    runs: Sequence[Run],
    published: str = "",
    *,
    over: str = METRICS,
    metric: str = "",
    table: str = "",
    columns: Sequence[str] = (),
    without: Sequence[str] = (),
) -> ModelScores:
    """Return the numbers of these runs, and of the published rows of a benchmark.

    `over`: `metrics`, `groups`, or an axis of the benchmark, for runs alone. `metric`: the one that is shown by group.
    `table`: a number or a part of a title, as `weft report` counts them. `columns`: only these.
    `without`: parts of the names of rows that are left out, such as `Human`.

    Raises UserError for names that are not there, and for runs of another benchmark than the published rows."""
    if metric and over == METRICS:
        raise UserError(
            f"--metric {metric}: it is about groups: add --over {GROUPS}, or an axis; --columns selects metrics"
        )
    if published or table:
        scores = _from_table(runs, published, over, metric, table)
    elif runs:
        scores = _from_verdicts(runs, over, metric)
    else:
        raise UserError("name runs, or a benchmark whose published rows are meant: --published rover-ig")
    if columns:
        scores = _select_columns(scores, columns)
    if without:
        scores = _leave_out(scores, without)
    if len(scores.columns) < MIN_COLUMNS:
        raise UserError(f"{scores.title}: there must be two columns; there is {', '.join(scores.columns) or 'none'}")
    return scores


def _from_verdicts(runs: Sequence[Run], over: str, metric: str) -> ModelScores:
    named = name_runs(runs)
    benchmark = runs[0].benchmark
    if benchmark.presentation.pairwise:
        raise UserError(f"runs of {benchmark.name} compare models in pairs: a model has no score of its own")
    about = find_about(runs)
    warning = warn_of_differences((runs[0], run) for run in runs[1:])
    title = benchmark.presentation.title or benchmark.name
    if over == METRICS:
        plain = [name for name in benchmark.metrics if name not in benchmark.derived_metrics]
        choices = {in_words(name): (name, "", "") for name in plain}
        note = "Means of all scored turns."
        title += ": metrics"
    else:
        axis = _find_axis(runs, over)
        name = find_metric(benchmark, metric)
        groups = dict.fromkeys(group[axis] for run in runs for group in run.groups.values() if group.get(axis))
        choices = {in_words(group): (name, axis, group) for group in groups}
        note = ""
        title += f": {in_words(name) or HEADLINE} by {in_words(axis)}"
    rows: list[ModelRow] = []
    partial = 0
    for label, run in named.items():
        values: dict[str, float] = {}
        for column, choice in choices.items():
            cell = build_score_cell(run, *choice)
            if cell.value is not None:
                values[column] = cell.value
                partial += cell.scored < cell.expected
        rows.append(ModelRow(label, values, about[run.id]))
    lacking = f"{partial} of the numbers rest on a part of their turns: the others are unscored." if partial else ""
    note = " ".join(filter(None, (note, lacking, warning)))
    return ModelScores(title, tuple(choices), tuple(rows), benchmark.presentation.digits, note)


def _find_axis(runs: Sequence[Run], over: str) -> str:
    axes = runs[0].benchmark.axes
    if over == GROUPS and axes:
        return axes[0]
    if over in axes:
        return over
    raise UserError(f"--over {over}: choose {', '.join([METRICS, GROUPS, *axes])}")


def _from_table(runs: Sequence[Run], published: str, over: str, metric: str, choice: str) -> ModelScores:
    if over not in (METRICS, GROUPS):
        raise UserError(f"--over {over}: published rows and --table have {METRICS} or {GROUPS}")
    paper_tables: list[Table] = []
    if published:
        benchmark = load_benchmark(published)
        if runs and runs[0].benchmark.name != benchmark.name:
            raise UserError(f"--published {published}: the runs are of {runs[0].benchmark.name}")
        paper_tables = build_published_tables(benchmark)
    our_tables: list[Table] = []
    if runs:
        our_tables = list(build_tables(name_runs(runs)))
    chosen = _choose_table(paper_tables or our_tables, choice)
    about = find_about(runs)
    rows: dict[str, ModelRow] = {}
    readings = _read_columns(chosen, over, metric)
    for table in [_find_like(our_tables, chosen), chosen]:
        for row in table.rows if table else ():
            if row.kind != "part" and row.arithmetic != "official" and (published or row.kind != "published"):
                rows.setdefault(row.label, _read_row(row, readings, about))
    title = chosen.title
    if _group_columns(chosen):
        title += f", {over}"
    used = dict.fromkeys(column for reading in readings.values() for column in reading)
    note = f"From the columns {', '.join(used)}."
    if over == METRICS and any(len(reading) > 1 for reading in readings.values()):
        note += " Each number is the plain mean over the groups; a model without one of them has none."
    if warning := warn_of_differences((runs[0], run) for run in runs[1:]):
        note += f" {warning}"
    if runs and published and not any(row.kind == "published" for table in our_tables for row in table.rows):
        note += " Our runs are of other data than the paper's."
    return ModelScores(title, tuple(readings), tuple(rows.values()), chosen.digits, note)


def _choose_table(tables: Sequence[Table], choice: str) -> Table:
    """Return the table that is named; without a name the first whose columns are in groups, or that has several."""
    if choice:
        return next(iter(select_tables(tables, Choices(tables=(choice,))).values()))
    leaderboards = [table for table in tables if table.kind != "breakdown" and len(table.columns) >= MIN_COLUMNS]
    for table in leaderboards:
        if _group_columns(table):
            return table
    if not leaderboards:
        raise UserError("there is no table with several columns")
    return leaderboards[0]


def _find_like(tables: Sequence[Table], chosen: Table) -> Table | None:
    """Return our table of the same columns: the same table of the paper, if several have them."""
    like = [table for table in tables if set(chosen.columns) <= set(table.columns)]
    name = chosen.title.partition(": ")[2]
    return next((table for table in like if name and table.title.endswith(name)), next(iter(like), None))


def _read_columns(table: Table, over: str, metric: str) -> dict[str, list[str]]:
    """Return the columns of the table that each number is the mean of, by the number's name."""
    grouped = _group_columns(table)
    if not grouped:
        return {column: [column] for column in table.columns if column not in AVERAGES}
    by_metric: dict[str, list[str]] = {}
    by_group: dict[str, dict[str, str]] = {}
    for column, group in grouped.items():
        name = column.removeprefix(f"{group} ")
        by_metric.setdefault(name, []).append(column)
        by_group.setdefault(group, {})[name] = column
    if over == METRICS:
        return {name: columns for name, columns in by_metric.items() if name not in AVERAGES}
    wanted = metric or next((name for name in by_metric if name in AVERAGES), "")
    if wanted not in by_metric:
        raise UserError(f"--metric: name one of the columns {', '.join(by_metric)} of {table.title!r}")
    return {group: [columns[wanted]] for group, columns in by_group.items() if wanted in columns}


def _group_columns(table: Table) -> dict[str, str]:
    """Return the group of each column, without averages; empty for a table whose columns are not all in groups."""
    groups = find_groups(table.columns)
    grouped = {column: group for column, group in groups.items() if column not in AVERAGES and group not in AVERAGES}
    if len(set(grouped.values())) < MIN_COLUMNS or not all(grouped.values()):
        return {}
    return grouped


def _read_row(row: Row, readings: Mapping[str, Sequence[str]], about: Mapping[str, Mapping[str, str]]) -> ModelRow:
    values: dict[str, float] = {}
    for name, columns in readings.items():
        numbers = [row.cells[column].value for column in columns if column in row.cells]
        known = [number for number in numbers if number is not None]
        if len(known) == len(columns):
            values[name] = statistics.fmean(known)
    return ModelRow(row.label, values, row.about or about.get(row.run, {}), row.kind == "published")


def _leave_out(scores: ModelScores, without: Sequence[str]) -> ModelScores:
    """Return the scores without the rows that are named. Raises UserError for a name that no row has."""
    for name in without:
        if not any(name.casefold() in row.name.casefold() for row in scores.rows):
            raise UserError(f"--without {name}: there is {', '.join(row.name for row in scores.rows)}")
    kept = [row for row in scores.rows if not any(name.casefold() in row.name.casefold() for name in without)]
    return replace(scores, rows=tuple(kept), note=f"{scores.note} Without {', '.join(without)}.")


def _select_columns(scores: ModelScores, names: Sequence[str]) -> ModelScores:
    by_name = {column.casefold(): column for column in scores.columns}
    for name in names:
        if name.casefold() not in by_name:
            raise UserError(f"--columns {name}: there is {', '.join(scores.columns)}")
    columns = tuple(by_name[name.casefold()] for name in names)
    return replace(scores, columns=columns)
