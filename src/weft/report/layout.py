"""How a table is laid out on paper: in which size, with labels on one line or wrapped, in how many pieces.

Widths are estimates for a page with margins of an inch. A table is at most as wide as a line, or its smallest size is
shrunk to MIN_SCALE; no piece is higher than a page. Wider tables are cut between columns, longer ones between rows."""

import math
import textwrap
from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from weft.report.select import format_cell, format_interval
from weft.report.tex import escape_tex
from weft.types import Row, Table

T = TypeVar("T")

WIDTH = 469.0  # points of a line: letter paper, margins of an inch
HEIGHT = 500.0  # points of a page in the standard class, less a reserve
MIN_SCALE = 0.85  # a table is not shrunk further
MAX_HEAD_LINE = 9  # characters of a column's name on one line
MIN_LABEL_SHARE = 0.28  # of a line for labels
MAX_LABEL_SHARE = 0.55


class Size(Struct, frozen=True):
    """A type size, in points."""

    command: str  # LaTeX's
    points: float  # an em
    line: float  # height of a line
    gap: float  # half the space between columns


SIZES = (
    Size(r"\small", 9.0, 11.5, 6.0),
    Size(r"\footnotesize", 8.0, 10.0, 5.0),
    Size(r"\scriptsize", 7.0, 8.5, 3.5),
)
SMALLEST = SIZES[-1]


class Column(Struct, frozen=True):
    """A column with its widths in em."""

    name: str
    head: tuple[str, ...]  # lines of the name
    value: float  # of the widest value
    range: float = 0.0  # of the widest interval, which is set in the smallest size

    def points(self, size: Size) -> float:
        """Return the column's width in points."""
        widest = max(self.value, *map(width_in_em, self.head))
        return max(size.points * widest, SMALLEST.points * self.range) + 2 * size.gap


class Layout(Struct, frozen=True):
    """The plan of one table: every group of columns is printed with every group of rows."""

    size: Size
    label_share: float | None  # of a line, for wrapped labels; None if labels are not wrapped
    width: float  # points
    columns: tuple[tuple[Column, ...], ...]
    rows: tuple[tuple[Row, ...], ...]


def width_in_em(text: str) -> float:
    """Return about how wide a text is."""
    return sum(map(_character_width, text))


def _character_width(char: str) -> float:
    if not char.isascii():
        if escape_tex(char).startswith("{[}U+"):
            return 0.55 * len(f"[U+{ord(char):04X}]")
        return 0.55 * 1.1
    if char in "ijl.,:;'|!()[] ":
        return 0.31
    if char in "mwMW%@":
        return 0.85
    if char.isupper():
        return 0.72
    return 0.5


def plan_layout(table: Table, *, intervals: bool, below: int) -> Layout:
    """Return the layout with the largest type in which the table fits. `below`: characters under the table."""
    columns = [_measure_column(table, name, intervals) for name in table.columns]
    longest_label = max((width_in_em(row.label) for row in table.rows), default=0.0)
    groups = _group_columns(columns, longest_label)
    room = HEIGHT - _height_around(table, below)
    layouts = [_fit_rows(table, groups, longest_label, size, room) for size in SIZES]
    fitting = [layout for layout in layouts if layout.width <= WIDTH]
    if not fitting:
        return layouts[-1]
    for layout in fitting:
        if len(layout.rows) == 1 and layout.size is not SMALLEST:
            return layout
    return fitting[0]


def _height_around(table: Table, below: int) -> float:
    """Return the points of caption, notes and rules."""
    return 12.0 * math.ceil(len(table.title) / 70) + 10.0 * math.ceil(below / 75) + 40.0


def _group_columns(columns: Sequence[Column], longest_label: float) -> tuple[tuple[Column, ...], ...]:
    widths = [column.points(SMALLEST) for column in columns]
    label = min(longest_label * SMALLEST.points, MIN_LABEL_SHARE * WIDTH) + 2 * SMALLEST.gap
    if sum(widths) + label > WIDTH / MIN_SCALE:
        return _pack(columns, widths, WIDTH - label)
    return (tuple(columns),)


def _measure_column(table: Table, name: str, intervals: bool) -> Column:
    value = 0.0
    interval = 0.0
    for row in table.rows:
        cell = row.cells.get(name)
        value = max(value, width_in_em(format_cell(cell, table.digits)))
        if intervals:
            interval = max(interval, width_in_em(format_interval(cell, table.digits)))
    return Column(name, tuple(_wrap_head(name)), 1.1 * value, interval)


def _wrap_head(name: str) -> list[str]:
    """Return a column's name in lines, broken between words."""
    words = name.split() or [""]
    width = max(MAX_HEAD_LINE, *map(len, words), 1)
    return textwrap.wrap(name, width, break_long_words=False, break_on_hyphens=False) or [""]


def _fit_rows(
    table: Table, groups: tuple[tuple[Column, ...], ...], longest_label: float, size: Size, room: float
) -> Layout:
    columns_width = max(sum(column.points(size) for column in group) for group in groups) + 2 * size.gap
    share = min(max((WIDTH - columns_width) / WIDTH, MIN_LABEL_SHARE), MAX_LABEL_SHARE)
    label_width = longest_label * size.points
    is_wrapped = label_width > share * WIDTH
    columns: list[Column] = []
    for group in groups:
        columns += group
    heights: list[float] = []
    for row in table.rows:
        lines = 1.0
        if is_wrapped:
            lines = math.ceil(1.15 * width_in_em(row.label) * size.points / (share * WIDTH))
        if any(column.range and format_interval(row.cells.get(column.name)) for column in columns):
            lines = max(lines, 2.0)
        heights.append(size.line * max(lines, 1.0))
    head = size.line * max((len(column.head) for column in columns), default=1)
    rows = _pack(table.rows, heights, room - head)
    label_share = math.floor(100 * share) / 100 if is_wrapped else None
    return Layout(size, label_share, columns_width + min(label_width, share * WIDTH), groups, rows)


def _pack(items: Sequence[T], sizes: Sequence[float], room: float) -> tuple[tuple[T, ...], ...]:
    """Return the items in pieces of about the same size. No piece is larger than the room unless it is one item."""
    pieces = max(1, math.ceil(sum(sizes) / room))
    limit = min(room, sum(sizes) / pieces + max(sizes, default=0.0))
    packed: list[list[T]] = [[]]
    filled = 0.0
    for item, size in zip(items, sizes, strict=True):
        if packed[-1] and filled + size > limit:
            packed.append([])
            filled = 0.0
        packed[-1].append(item)
        filled += size
    return tuple(map(tuple, packed))
