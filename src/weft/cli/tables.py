"""Tables on the terminal, in its full width, with the column of the headline score first.

A table that is too wide is turned: its columns become lines. If that is too wide as well, the first columns are shown,
and the others are named below the table: they are never dropped silently. Into a file or a pipe all are printed."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from weft.report.columns import order_for_screen
from weft.report.glossary import find_terms
from weft.report.select import format_cell, format_with_interval
from weft.types import Cell, Row, Table
from weft.untrusted import format_for_terminal

MIN_LABEL_WIDTH = 24  # a longer label may be folded to this width
CELL_FRAME = 3  # a cell's padding, and the border on one side

FormatCell = Callable[[Cell | None, int], str]


def print_table(
    console: Console, table: Table, *, intervals: bool = False, glossary: Mapping[str, str] | None = None
) -> None:
    """Print a table, and below it what its columns mean. `intervals`: values with their 95% intervals. `glossary`:
    column -> spelled-out name, for any columns."""
    if intervals:
        format_value = format_with_interval
    else:
        format_value = format_cell
    columns = order_for_screen(table)
    labels = [row.label for row in table.rows]
    texts = _format_cells(table, columns, format_value)
    hidden: Sequence[str] = ()
    if _fits(console, labels, columns, texts):
        _print_grid(console, table.title, labels, columns, texts)
    else:
        turned = _transpose(texts, len(columns))
        if _fits(console, columns, labels, turned):
            _print_grid(console, table.title, columns, labels, turned)
        else:
            count = len(columns)
            if console.is_terminal:
                count = _count_fitting(console, labels, columns, texts)
            hidden = columns[count:]
            _print_grid(console, table.title, labels, columns[:count], [line[:count] for line in texts])
    if hidden:
        names = ", ".join(hidden)
        _print_text(console, f"{len(hidden)} more columns need a wider terminal, or `weft report --format md`: {names}")
    for line in _build_legend(columns, glossary or {}):
        _print_text(console, line)
    if table.note and _needs_note(table):
        _print_text(console, table.note)


def _format_cells(table: Table, columns: Sequence[str], format_value: FormatCell) -> list[list[str]]:
    """Return the texts of the cells, row by row."""

    def format_row(row: Row) -> list[str]:
        return [format_value(row.cells.get(column), table.digits) for column in columns]

    return [format_row(row) for row in table.rows]


def _transpose(texts: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Return the columns of a grid as its rows. `width`: how many there are, also where there is no row."""
    if not texts:
        return [[] for _ in range(width)]
    return [list(line) for line in zip(*texts, strict=True)]


def _column_widths(columns: Sequence[str], texts: Sequence[Sequence[str]]) -> list[int]:
    """Return the least width of each column: that of its longest value, or of the longest word of its name."""
    widths: list[int] = []
    for index, column in enumerate(columns):
        values = [line[index] for line in texts]
        widths.append(CELL_FRAME + max(map(len, [*column.split(), *values]), default=0))
    return widths


def _label_width(labels: Sequence[str]) -> int:
    longest = max(map(len, labels), default=1)
    return min(longest, MIN_LABEL_WIDTH) + CELL_FRAME + 1


def _fits(console: Console, labels: Sequence[str], columns: Sequence[str], texts: Sequence[Sequence[str]]) -> bool:
    return _needed_width(labels, columns, texts) <= console.width


def _needed_width(labels: Sequence[str], columns: Sequence[str], texts: Sequence[Sequence[str]]) -> int:
    return _label_width(labels) + sum(_column_widths(columns, texts))


def _count_fitting(
    console: Console, labels: Sequence[str], columns: Sequence[str], texts: Sequence[Sequence[str]]
) -> int:
    """Return how many of the first columns fit; at least one."""
    used = _label_width(labels)
    count = 0
    for width in _column_widths(columns, texts):
        used += width
        if used > console.width:
            break
        count += 1
    return max(count, 1)


def _plan_widths(
    width: int, labels: Sequence[str], columns: Sequence[str], texts: Sequence[Sequence[str]]
) -> tuple[int, list[int]]:
    """Return the widths of the labels and of the columns, without frames. Room that is left goes to labels first, then
    to the names of columns, from left to right."""
    minimums = _column_widths(columns, texts)
    label_width = _label_width(labels)
    room = max(width - label_width - sum(minimums), 0)
    longer_label = max(map(len, labels), default=1) + CELL_FRAME + 1
    growth = min(longer_label - label_width, room)
    label_width += growth
    room -= growth
    widths: list[int] = []
    for column, minimum in zip(columns, minimums, strict=True):
        growth = min(max(len(column) + CELL_FRAME - minimum, 0), room)
        widths.append(minimum + growth - CELL_FRAME)
        room -= growth
    return label_width - CELL_FRAME - 1, widths


def _print_grid(
    console: Console, title: str, labels: Sequence[str], columns: Sequence[str], texts: Sequence[Sequence[str]]
) -> None:
    grid = RichTable()
    terminal_width = console.width
    needed = _needed_width(labels, columns, texts)
    label_width, widths = _plan_widths(max(terminal_width, needed), labels, columns, texts)
    grid.add_column("", width=label_width, overflow="fold")
    for column, width in zip(columns, widths, strict=True):
        grid.add_column(Text(format_for_terminal(column)), justify="right", overflow="fold", width=width)
    for label, line in zip(labels, texts, strict=True):
        grid.add_row(Text(format_for_terminal(label)), *map(Text, line))
    _print_text(console, title)
    if not console.is_terminal:
        console.width = max(terminal_width, needed)  # a pipe has no width
    console.print(grid, soft_wrap=False)  # a soft-wrapping console would not keep to its width
    if not console.is_terminal:
        console.width = terminal_width


def _print_text(console: Console, text: str) -> None:
    console.print(Text(format_for_terminal(text)))


def _build_legend(columns: Sequence[str], glossary: Mapping[str, str]) -> list[str]:
    """Return a line for each name in `columns` that the glossary spells out."""
    return [f"{term}: {meaning}" for term, meaning in find_terms(columns, glossary).items()]


def _needs_note(table: Table) -> bool:
    """Whether an official row has a gap, or a number from what weft could not use: the table's note says why."""
    for row in table.rows:
        if row.arithmetic != "official":
            continue
        if any(cell.unusable or (cell.value is None and cell.expected) for cell in row.cells.values()):
            return True
    return False
