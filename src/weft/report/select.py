"""Which tables, rows and columns a report shows, and how a cell reads in every format.

Selecting takes tables and returns tables. A table that is left without rows or columns is dropped; a name that matches
nothing is an error that lists what there is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, convert
from msgspec import ValidationError as Invalid
from msgspec.structs import replace

from weft.errors import UserError
from weft.rounding import format_number, round_number
from weft.types import Cell, Row, Table

TEXT_FORMATS = ("md", "latex", "csv", "json")  # formats that accept a selection
MAX_NAMES = 40  # names in an error
ROW_GROUPS = ("ours", "strict", "official", "published")  # `strict` and `official`: a row for both is in either
LIST_FIELDS = ("columns", "rows", "tables", "rank")
LATEX_FIELDS = ("label", "caption", "cite", "rank", "top")
MAX_TOP = 3


class Choices(Struct, frozen=True, forbid_unknown_fields=True):
    """What to show; an empty field shows everything."""

    columns: tuple[str, ...] = ()  # names, in the order in which they are shown
    rows: tuple[str, ...] = ()  # parts of labels, or of ROW_GROUPS
    tables: tuple[str, ...] = ()  # numbers, counted from 1, or parts of titles
    intervals: bool = False  # LaTeX: print 95% intervals
    label: str = ""  # LaTeX: the \\label of the one table that is shown, or how every label begins
    caption: str = ""  # LaTeX: the caption of the one table that is shown, in LaTeX
    cite: str = ""  # LaTeX: the citation key of the paper that published rows are from
    rank: tuple[str, ...] = ()  # LaTeX: the rows that compete for the best value: as `rows`, or `none`
    top: int = 0  # LaTeX: how many places of a column are marked, 1 to MAX_TOP; 0: two


def parse_choices(arguments: Mapping[str, Any], format: str) -> Choices:
    """Return the choices from keyword arguments. A text is one name, or several separated by commas.

    Raises UserError for an unknown argument, and for one that the format does not use."""
    for name in arguments:
        if name not in Choices.__struct_fields__:
            raise UserError(f"report() has no argument {name!r}; it has {', '.join(Choices.__struct_fields__)}")
    values = {name: _parse_argument(name, value) for name, value in arguments.items()}
    try:
        choices = convert(values, Choices)
    except Invalid as error:
        raise UserError(f"report(): {error}") from None
    if not 0 <= choices.top <= MAX_TOP:
        raise UserError(f"--top {choices.top}: give a number from 1 to {MAX_TOP}")
    for name, value in values.items():
        if value:
            _check_format(name, format)
    return choices


def _check_format(name: str, format: str) -> None:
    if format not in TEXT_FORMATS:
        raise UserError(
            f"--{name} is for {', '.join(TEXT_FORMATS)}, not for {format}: add --format md, or leave it out"
        )
    if format == "latex":
        return
    if name == "intervals":
        raise UserError(f"--intervals is for latex, not for {format}; md, csv and json always have intervals")
    if name in LATEX_FIELDS:
        raise UserError(f"--{name} is for latex, not for {format}")


def _parse_argument(name: str, value: Any) -> Any:
    if name not in LIST_FIELDS:
        return value
    if isinstance(value, (str, int)):
        return (str(value),)
    return tuple(map(str, value or ()))


def select_tables(tables: Sequence[Table], choices: Choices) -> dict[int, Table]:
    """Return the chosen tables by number; a table keeps the number that it has among all."""
    selected = dict(enumerate(tables, 1))
    if choices.tables:
        selected = _filter_tables(selected, choices.tables)
    if choices.rows:
        selected = _filter_rows(selected, choices.rows)
    if choices.columns:
        selected = _filter_columns(selected, choices.columns)
    return selected


def _filter_tables(tables: dict[int, Table], names: Sequence[str]) -> dict[int, Table]:
    def matches(name: str, number: int) -> bool:
        if name.isdecimal():
            return int(name) == number
        return name.casefold() in tables[number].title.casefold()

    def is_known(name: str) -> bool:
        return any(matches(name, number) for number in tables)

    titles = [f"{number}: {table.title}" for number, table in tables.items()]
    wanted = _split_names(names, is_known, "table", titles)

    def is_wanted(number: int) -> bool:
        return any(matches(name, number) for name in wanted)

    return {number: table for number, table in tables.items() if is_wanted(number)}


def _matches_row(name: str, row: Row) -> bool:
    if name == "published":
        return row.kind == "published"
    if name == "ours":
        return row.kind != "published"
    if name == "strict":
        return row.kind != "published" and row.arithmetic != "official"
    if name == "official":
        return row.kind != "published" and row.arithmetic != "strict"
    return name.casefold() in row.label.casefold()


def _filter_rows(tables: dict[int, Table], names: Sequence[str]) -> dict[int, Table]:
    all_rows: list[Row] = []
    for table in tables.values():
        all_rows += table.rows

    def is_known(name: str) -> bool:
        return any(_matches_row(name, row) for row in all_rows)

    labels = dict.fromkeys(row.label for row in all_rows)
    wanted = _split_names(names, is_known, "row", [*ROW_GROUPS, *labels])

    def is_wanted(row: Row) -> bool:
        return any(_matches_row(name, row) for name in wanted)

    selected: dict[int, Table] = {}
    for number, table in tables.items():
        rows = tuple(filter(is_wanted, table.rows))
        if rows:
            selected[number] = replace(table, rows=rows)
    return selected


def select_rivals(tables: Mapping[int, Table], names: Sequence[str]) -> frozenset[str] | None:
    """Return the labels of the rows that compete for the best value; None if `names` does not say."""
    if not names:
        return None
    all_rows: list[Row] = []
    for table in tables.values():
        all_rows += table.rows

    def is_known(name: str) -> bool:
        return name == "none" or any(_matches_row(name, row) for row in all_rows)

    labels = dict.fromkeys(row.label for row in all_rows)
    wanted = _split_names(names, is_known, "row", ["none", *ROW_GROUPS, *labels])
    return frozenset(row.label for row in all_rows if any(_matches_row(name, row) for name in wanted if name != "none"))


def _filter_columns(tables: dict[int, Table], names: Sequence[str]) -> dict[int, Table]:
    known: dict[str, str] = {}  # names by their lower case
    for table in tables.values():
        known.update({column.casefold(): column for column in table.columns})

    def is_known(name: str) -> bool:
        return name.casefold() in known

    wanted = dict.fromkeys(map(str.casefold, _split_names(names, is_known, "column", list(known.values()))))
    selected: dict[int, Table] = {}
    for number, table in tables.items():
        columns: list[str] = []
        for name in wanted:
            columns += [column for column in table.columns if column.casefold() == name]
        if columns:
            rows = tuple(_keep_columns(row, columns) for row in table.rows)
            selected[number] = replace(table, columns=tuple(columns), rows=rows)
    return selected


def _keep_columns(row: Row, columns: Sequence[str]) -> Row:
    cells = {column: row.cells[column] for column in columns if column in row.cells}
    return replace(row, cells=cells, notes={column: row.notes[column] for column in columns if column in row.notes})


def _split_names(texts: Iterable[str], is_known: Callable[[str], bool], kind: str, known: Sequence[str]) -> list[str]:
    """Return the names in the texts. A text that is a name as it stands, commas included, is one name."""
    names: list[str] = []
    for text in texts:
        whole = text.strip()
        if whole and is_known(whole):
            names.append(whole)
            continue
        for part in text.split(","):
            name = part.strip()
            if name == "published" and kind == "row" and not is_known(name):
                raise UserError("these tables have no published rows; `weft report --published BENCHMARK` prints some")
            if not name or not is_known(name):
                listed = "; ".join(known[:MAX_NAMES])
                if len(known) > MAX_NAMES:
                    listed += f"; and {len(known) - MAX_NAMES} more"
                raise UserError(f"there is no {kind} {name!r}; there is {listed}")
            names.append(name)
    return names


def format_cell(cell: Cell | None, digits: int = 3) -> str:
    """Return a cell's value as text; a dash for a missing cell."""
    if cell is None:
        return "-"
    return cell.format(digits)


def format_interval(cell: Cell | None, digits: int = 3) -> str:
    """Return a cell's 95% interval; an empty text if it has none."""
    if cell is None:
        return ""
    return cell.format_interval(digits)


def format_with_interval(cell: Cell | None, digits: int = 3) -> str:
    """Return a cell's value followed by its 95% interval."""
    return f"{format_cell(cell, digits)} {format_interval(cell, digits)}".strip()


def tables_for_json(tables: Sequence[Table]) -> list[Any]:
    """Return the tables with their numbers alone, without the verdicts of each cell."""
    return [replace(table, rows=tuple(map(_without_verdicts, table.rows))) for table in tables]


def _without_verdicts(row: Row) -> Row:
    cells: Any = {column: cell.as_dict for column, cell in row.cells.items()}
    return replace(row, cells=cells)


def format_with_change(cell: Cell, change: Cell | None, digits: int = 3) -> str:
    """Return a cell's value, followed by its change in percent if there is one: `93.8 (-6.3%)`."""
    text = format_cell(cell, digits)
    if change is None or change.value is None:
        return text
    percent = format_number(change.value, 1, sign=round_number(change.value, 1) > 0)
    return f"{text} ({percent}%)"
