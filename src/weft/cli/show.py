"""Tables on the terminal."""

from collections.abc import Callable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from weft.report.select import format_cell, format_with_interval
from weft.types import Cell, Table
from weft.untrusted import format_for_terminal

FEW = 3  # rows that may become columns
NAME = 28  # columns of the screen that a row's name and the frame want


def show_table(console: Console, table: Table, *, ranges: bool = False) -> None:
    """All columns, below each other where the screen is too narrow for all of them side by side. `ranges`: with their
    intervals."""
    if ranges:
        told_cell = format_with_interval
    else:
        told_cell = format_cell
    title = format_for_terminal(table.title)
    if len(table.rows) <= FEW and len(_fitting(table, console.width - NAME, told_cell)) > 1:
        return _turned(console, table, told_cell)
    for columns in _fitting(table, console.width - NAME, told_cell):
        made = RichTable(title=Text(title), title_justify="left")
        longest = max((len(row.label) for row in table.rows), default=1)
        made.add_column("", width=min(longest, console.width - _width(table, columns, told_cell) - 5), overflow="fold")
        for column in columns:
            made.add_column(Text(format_for_terminal("\n".join(column.split()))), justify="right")
        for row in table.rows:
            made.add_row(
                Text(format_for_terminal(row.label)),
                *(told_cell(row.cells.get(column), table.digits) for column in columns),
            )
        console.print(made)
        title = format_for_terminal(f"{table.title}, continued")
    if any(
        row.arithmetic == "official" and cell.value is None and cell.expected
        for row in table.rows
        for cell in row.cells.values()
    ):
        console.print(Text(format_for_terminal(table.note)))  # why there is no number


def _turned(console: Console, table: Table, told_cell: "Told") -> None:
    """Columns as rows, where there are few rows and no room for the columns."""
    made = RichTable(title=Text(format_for_terminal(table.title)), title_justify="left")
    made.add_column("")
    for row in table.rows:
        made.add_column(Text(format_for_terminal(row.label)), justify="right", overflow="fold")
    for column in table.columns:
        made.add_row(
            Text(format_for_terminal(column)), *(told_cell(row.cells.get(column), table.digits) for row in table.rows)
        )
    console.print(made)


Told = Callable[[Cell | None, int], str]


def _width(table: Table, columns: list[str], told_cell: Told) -> int:
    """What columns want at the least, their frame included."""
    values = {column: [told_cell(row.cells.get(column), table.digits) for row in table.rows] for column in columns}
    return sum(3 + max(map(len, [*column.split(), *values[column]])) for column in columns)


def _fitting(table: Table, room: int, told_cell: Told) -> list[list[str]]:
    made: list[list[str]] = [[]]
    left = room
    for column in table.columns:
        width = _width(table, [column], told_cell)
        if width > left and made[-1]:
            made.append([])
            left = room
        made[-1].append(column)
        left -= width
    return made
