"""How a table is laid out on paper: in which size, with labels on one line or wrapped, in how many pieces, and under
which headers that span several columns.

Widths are estimates for a page with margins of an inch. A small table fits into one column of two. Another is at most
as wide as a line, or its smallest size is shrunk to MIN_SCALE; no piece is higher than a page. Wider tables are cut
between columns, longer ones between rows."""

import itertools
import math
import textwrap
from collections.abc import Collection, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from weft.report.select import format_cell, format_interval
from weft.report.tex import escape_tex
from weft.types import Row, Table

T = TypeVar("T")

WIDTH = 469.0  # points of a line: letter paper, margins of an inch
COLUMN_WIDTH = 240.0  # points of one column of two
COLUMN_RESERVE = 0.95  # of a column: widths are estimates
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
    head: tuple[str, ...]  # lines of the name, without that of its group
    value: float  # of the widest value
    range: float = 0.0  # of the widest interval, which is set in the smallest size
    group: str = ""  # the header above it and its neighbours of the same group

    def points(self, size: Size) -> float:
        """Return the column's width in points."""
        widest = max(self.value, *map(width_in_em, self.head))
        return max(size.points * widest, SMALLEST.points * self.range) + 2 * size.gap


class Layout(Struct, frozen=True):
    """The plan of one table: every group of columns is printed with every group of rows."""

    size: Size
    label_share: float | None  # of a line, for wrapped labels; None if labels are not wrapped
    width: float  # points
    is_narrow: bool  # whether it fits into one column of two
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


def plan_layout(table: Table, *, intervals: bool, below: int, mark: float = 0.0) -> Layout:
    """Return the layout with the largest type in which the table fits. `below`: characters under the table. `mark`: em
    of the mark after the names of published rows."""
    columns = [_measure_column(table, name, group, intervals) for name, group in find_groups(table.columns).items()]
    longest_label = max((width_in_em(row.label) for row in table.rows), default=0.0) + mark
    room = HEIGHT - _height_around(table, below)
    for size in SIZES:
        layout = _fit_rows(table, (tuple(columns),), longest_label, size, room)
        if layout.width <= COLUMN_RESERVE * COLUMN_WIDTH and layout.label_share is None and len(layout.rows) == 1:
            return replace(layout, is_narrow=True)
    groups = _group_columns(columns, longest_label)
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
    if sum(widths) + label <= WIDTH / MIN_SCALE:
        return (tuple(columns),)
    room = WIDTH - label
    spans = [list(members) for _, members in itertools.groupby(columns, key=lambda column: column.group or column.name)]
    span_widths = [sum(column.points(SMALLEST) for column in span) for span in spans]
    if max(span_widths) > room:  # a group has to be cut
        return _pack(columns, widths, room)
    return tuple(tuple(itertools.chain(*piece)) for piece in _pack(spans, span_widths, room))


def find_groups(names: Sequence[str]) -> dict[str, str]:
    """Return the header of each column's group, which neighbours with the same first words share: `Science` for
    `Science RP` and `Science RV`. An empty text for a column without a group. Columns that are each followed by their
    change in percent have none: these pairs begin alike anyway."""
    groups = dict.fromkeys(names, "")
    if any(f"{name} %" in groups for name in names):
        return groups
    start = 0
    while start < len(names):
        shared = _shared_words(names[start : start + 2])
        end = start + 1
        while shared and end < len(names) and names[end].startswith(f"{shared} "):
            groups[names[start]] = groups[names[end]] = shared
            end += 1
        start = end
    return groups


def _shared_words(names: Sequence[str]) -> str:
    """Return the words with which two names begin. Both have a word more."""
    if len(names) < 2:
        return ""
    first, second = (name.split(" ")[:-1] for name in names)
    shared: list[str] = []
    for word, other in zip(first, second, strict=False):
        if word != other:
            break
        shared.append(word)
    return " ".join(shared)


def span_columns(columns: Sequence[Column]) -> list[tuple[list[str], list[Column]]]:
    """Return neighbouring columns of one group together, with the lines of the header above them."""
    spans: list[tuple[list[str], list[Column]]] = []
    for group, members in itertools.groupby(columns, key=lambda column: column.group):
        spanned = list(members)
        width = sum(max(column.value, *map(width_in_em, column.head)) for column in spanned)
        spans.append((_wrap_head(group.rstrip(",:"), 2 * int(width)), spanned))
    return spans


def _measure_column(table: Table, name: str, group: str, intervals: bool) -> Column:
    value = 0.0
    interval = 0.0
    for row in table.rows:
        cell = row.cells.get(name)
        value = max(value, width_in_em(format_cell(cell, table.digits)))
        if intervals:
            interval = max(interval, width_in_em(format_interval(cell, table.digits)))
    head = name.removeprefix(f"{group} ") if group else name
    return Column(name, tuple(_wrap_head(head)), 1.1 * value, interval, group)


def _wrap_head(name: str, room: int = MAX_HEAD_LINE) -> list[str]:
    """Return a name in lines of about `room` characters, broken between words."""
    words = name.split() or [""]
    width = max(MAX_HEAD_LINE, room, *map(len, words), 1)
    return textwrap.wrap(name, width, break_long_words=False, break_on_hyphens=False) or [""]


def _fit_rows(
    table: Table, groups: tuple[tuple[Column, ...], ...], longest_label: float, size: Size, room: float
) -> Layout:
    columns_width = max(_columns_width(group, size) for group in groups) + 2 * size.gap
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
    head += size.line * max((len(lines) for group in groups for lines, _ in span_columns(group)), default=0)
    rows = _pack(table.rows, heights, room - head)
    label_share = math.floor(100 * share) / 100 if is_wrapped else None
    return Layout(size, label_share, columns_width + min(label_width, share * WIDTH), False, groups, rows)


def _columns_width(columns: Sequence[Column], size: Size) -> float:
    """Return the width of columns in points. A header may be wider than the columns below it."""
    width = 0.0
    for lines, members in span_columns(columns):
        header = size.points * max(map(width_in_em, lines)) + 2 * size.gap
        width += max(header, sum(column.points(size) for column in members))
    return width


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


def name_beside(groups: Collection[str], name: str) -> str:
    """Return a column's name beside those of groups: in brackets if a group is called so."""
    while name in groups:
        name = f"({name})"
    return name
