"""What is known of models besides their scores, in tables: columns of words (size, open or closed, format), and groups
of rows, each with its own best and second.

Of our runs it is what weft.toml says, of published rows what their paper prints:

    [models.bagel]
    about = {size = "14B", open = true, in_context = "partial"}
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from weft.errors import UserError
from weft.models.config import ABOUT, read_config
from weft.results.run import Run
from weft.results.titles import model_name
from weft.types import Cell, Row, Table

OTHER = "other"  # the group of rows that say nothing
KINDS = ("leaderboard", "parts", "groups")  # of tables whose rows are models
About = Mapping[str, str]


def arrange_rows(tables: Iterable[Table], runs: Sequence[Run], row_groups: str = "") -> list[Table]:
    """Return the tables with a column for each thing that weft.toml says about the runs' models, and rows in groups by
    `row_groups`, if it is given. Raises UserError if no row says that of itself."""
    about_runs = find_about(runs)
    if not any(about_runs.values()) and not row_groups:
        return list(tables)
    arranged: list[Table] = []
    known: dict[str, None] = {}
    for table in tables:
        if table.kind in KINDS:
            table = _attach_about(table, about_runs)
            for row in table.rows:
                known.update(dict.fromkeys(row.about))
            table = _group_rows(_add_columns(table, row_groups), row_groups)
        arranged.append(table)
    if row_groups and row_groups not in known:
        listed = ", ".join(known) or "nothing: write about = {...} below [models.NAME] in weft.toml"
        raise UserError(f"--row-groups {row_groups}: no row says it of its model; they say {listed}")
    return arranged


def find_about(runs: Sequence[Run]) -> dict[str, About]:
    """Return what weft.toml says about the model of each run, by the run's id."""
    about_models: Mapping[str, About] = read_config().get(ABOUT, {})
    return {run.id: about_models.get(model_name(run.title_input), {}) for run in runs}


def _attach_about(table: Table, about_runs: Mapping[str, About]) -> Table:
    rows: list[Row] = []
    for row in table.rows:
        about = about_runs.get(row.run.partition("+")[0], {})
        rows.append(replace(row, about=about) if about else row)
    return replace(table, rows=tuple(rows))


def _add_columns(table: Table, row_groups: str) -> Table:
    """Put what our rows say before the numbers. What rows are grouped by is above them, and in no column."""
    names: dict[str, None] = {}
    for row in table.run_rows:
        names.update(dict.fromkeys(name for name in row.about if name != row_groups and name not in table.columns))
    if not names:
        return table
    rows: list[Row] = []
    for row in table.rows:
        words = {name: Cell(None, text=row.about[name]) for name in names if row.about.get(name)}
        rows.append(replace(row, cells={**words, **row.cells}))
    return replace(table, columns=(*names, *table.columns), rows=tuple(rows))


def _group_rows(table: Table, name: str) -> Table:
    """Sort rows into groups, in the order in which those appear; rows without one come last."""
    if not name or not any(name in row.about for row in table.rows):
        return table
    groups = list(dict.fromkeys(row.about[name] for row in table.rows if row.about.get(name)))
    rows: list[Row] = []
    for group in [*groups, OTHER]:
        members = [row for row in table.rows if (row.about.get(name) or OTHER) == group]
        rows += [replace(row, group=f"{name}: {group}") for row in members]
    return replace(table, rows=tuple(rows))
