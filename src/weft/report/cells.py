"""What a cell says, in every format: its value, and its interval. Whoever shows a number shows what is made here."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from weft.types import Cell, Row, Table


def shown(cell: Cell | None, digits: int = 3) -> str:
    return "-" if cell is None else cell.told(digits)


def interval(cell: Cell | None, digits: int = 3) -> str:
    """The 95% interval; nothing where there is none."""
    return "" if cell is None else cell.between(digits)


def with_range(cell: Cell | None, digits: int = 3) -> str:
    """The value with its 95% interval."""
    return " ".join(text for text in (shown(cell, digits), interval(cell, digits)) if text)


def as_json(tables: Sequence[Table]) -> list[Any]:
    """Tables for JSON: numbers, without the verdicts behind them."""
    return [replace(table, rows=tuple(map(_plain, table.rows))) for table in tables]


def _plain(row: Row) -> Any:
    numbers: Any = {name: cell.numbers for name, cell in row.cells.items()}
    return replace(row, cells=numbers)
