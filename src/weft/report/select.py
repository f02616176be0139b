"""Which tables, rows and columns are shown. Pure: tables in, tables out; a table that is left without rows or columns
is left out, and a name that fits nothing is a mistake that is told with what there is. What is chosen is never empty.
And what a cell says, in every format: whoever shows a number shows what is made here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, convert
from msgspec import ValidationError as Invalid
from msgspec.structs import asdict, replace

from weft.errors import UserError
from weft.types import Cell, Row, Table

TEXT_FORMATS = ("md", "latex", "csv", "json")  # formats that show what is chosen
LISTED = 40  # names in a message


class Choices(Struct, frozen=True, forbid_unknown_fields=True):
    """`columns` by name, in the order that they get; `rows` by a part of their label, or `ours` and `published`;
    `tables` by number, counted from 1, or by a part of their title. None given means all. `intervals` and `label`, what
    `\\label`s begin with, are LaTeX's."""

    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    intervals: bool = False
    label: str = ""


def parse_choices(given: Mapping[str, Any], format: str) -> Choices:
    """From keyword arguments: a text is one name, or several with commas. Refuses what the format has no use for."""
    unknown = [name for name in given if name not in Choices.__struct_fields__]
    if unknown:
        raise UserError(f"report() knows no {unknown[0]!r}; it knows {', '.join(Choices.__struct_fields__)}")
    try:
        made = convert({name: _listed(name, value) for name, value in given.items()}, Choices)
    except Invalid as error:
        raise UserError(f"report(): {error}") from None
    for name in Choices.__struct_fields__:
        if not asdict(made)[name]:
            continue
        if format not in TEXT_FORMATS:
            raise UserError(
                f"--{name} is for {', '.join(TEXT_FORMATS)}, not for {format}: say --format md, or leave it out"
            )
        if name in ("intervals", "label") and format != "latex":
            if name == "intervals":
                more = "; md, csv and json have intervals always"
            else:
                more = ""
            raise UserError(f"--{name} is for latex, not for {format}{more}")
    return made


def _listed(name: str, value: Any) -> Any:
    if name not in ("columns", "rows", "tables"):
        return value
    if isinstance(value, (str, int)):
        found: Iterable[Any] = [value]
    else:
        found = value or ()
    return tuple(str(one) for one in found)


def select_tables(tables: Sequence[Table], chosen: Choices) -> dict[int, Table]:
    """What is chosen, by the number that each table has among all."""
    if chosen.tables:
        found = _some_tables(dict(enumerate(tables, 1)), chosen.tables)
    else:
        found = dict(enumerate(tables, 1))
    if chosen.rows:
        found = _some_rows(found, chosen.rows)
    if chosen.columns:
        found = _some_columns(found, chosen.columns)
    return found


def _some_tables(tables: dict[int, Table], wanted: Sequence[str]) -> dict[int, Table]:
    def fits(text: str, number: int) -> bool:
        if text.isdecimal():
            return int(text) == number
        return text.casefold() in tables[number].title.casefold()

    there = [f"{number}: {table.title}" for number, table in tables.items()]
    texts = _names(wanted, lambda text: any(fits(text, number) for number in tables), "table", there)
    return {number: table for number, table in tables.items() if any(fits(text, number) for text in texts)}


def _some_rows(tables: dict[int, Table], wanted: Sequence[str]) -> dict[int, Table]:
    def fits(text: str, row: Row) -> bool:
        if text in ("ours", "published"):
            return (row.kind == "published") == (text == "published")
        return text.casefold() in row.label.casefold()

    every = [row for table in tables.values() for row in table.rows]
    there = ["ours", "published", *dict.fromkeys(row.label for row in every)]
    texts = _names(wanted, lambda text: any(fits(text, row) for row in every), "row", there)
    kept = {
        n: replace(t, rows=tuple(row for row in t.rows if any(fits(text, row) for text in texts)))
        for n, t in tables.items()
    }
    return {number: table for number, table in kept.items() if table.rows}


def _some_columns(tables: dict[int, Table], wanted: Sequence[str]) -> dict[int, Table]:
    there = {column.casefold(): column for table in tables.values() for column in table.columns}
    names = _names(wanted, lambda text: text.casefold() in there, "column", list(there.values()))
    folded = list(dict.fromkeys(name.casefold() for name in names))
    kept: dict[int, Table] = {}
    for number, table in tables.items():
        columns = tuple(column for name in folded for column in table.columns if column.casefold() == name)
        if columns:
            kept[number] = replace(table, columns=columns, rows=tuple(_narrowed(row, columns) for row in table.rows))
    return kept


def _narrowed(row: Row, columns: tuple[str, ...]) -> Row:
    return replace(row, cells={column: row.cells[column] for column in columns if column in row.cells})


def _names(wanted: Iterable[str], known: Callable[[str], bool], what: str, there: Sequence[str]) -> list[str]:
    """Each text is a name as it stands, commas and all, or several names with commas between them."""
    made: list[str] = []
    for text in wanted:
        if known(text.strip()) and text.strip():
            parts = [text.strip()]
        else:
            parts = [part.strip() for part in text.split(",")]
        for part in parts:
            if not part or not known(part):
                if len(there) > LISTED:
                    more = f"; and {len(there) - LISTED} more"
                else:
                    more = ""
                raise UserError(f"there is no {what} {part!r}; there is {'; '.join(there[:LISTED])}{more}")
        made += parts
    return made


def format_cell(cell: Cell | None, digits: int = 3) -> str:
    if cell is None:
        return "-"
    return cell.format(digits)


def format_interval(cell: Cell | None, digits: int = 3) -> str:
    """The 95% interval; nothing where there is none."""
    if cell is None:
        return ""
    return cell.format_interval(digits)


def format_with_interval(cell: Cell | None, digits: int = 3) -> str:
    """The value with its 95% interval."""
    return " ".join(text for text in (format_cell(cell, digits), format_interval(cell, digits)) if text)


def tables_for_json(tables: Sequence[Table]) -> list[Any]:
    """Tables for JSON: numbers, without the verdicts behind them."""
    return [replace(table, rows=tuple(map(_plain, table.rows))) for table in tables]


def _plain(row: Row) -> Any:
    numbers: Any = {name: cell.as_dict for name, cell in row.cells.items()}
    return replace(row, cells=numbers)
