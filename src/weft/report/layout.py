"""How a table is laid out on paper: in which size, with labels on one line or wrapped, in how many pieces. Pure, by
estimated widths. On a page with margins of an inch a table is as wide as the line at most, or its smallest size is
shrunk to 0.85; no piece is higher than a page. Wider tables are cut between columns, longer ones between rows."""

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
HEIGHT = 500.0  # of a page in the usual class, and some room
MIN_SCALE = 0.85  # a table is not made to be shrunk by more
HEAD = 9  # characters of a column's name that stay on one line
LABELS = (0.28, 0.55)  # the least and the most of a line for labels


class Size(Struct, frozen=True):
    """A size of type, and in points: an em, a line, half the space between columns."""

    command: str
    points: float
    line: float
    gap: float


SIZES = (
    Size(r"\small", 9.0, 11.5, 6.0),
    Size(r"\footnotesize", 8.0, 10.0, 5.0),
    Size(r"\scriptsize", 7.0, 8.5, 3.5),
)


class Column(Struct, frozen=True):
    """The lines of its head, and how wide it is, in em: its values, and the intervals under them, which are in the
    smallest size."""

    name: str
    head: tuple[str, ...]
    value: float
    range: float = 0.0

    def points(self, size: Size) -> float:
        return (
            max(size.points * max(self.value, *map(width_in_em, self.head)), SIZES[-1].points * self.range)
            + 2 * size.gap
        )


class Layout(Struct, frozen=True):
    """`share` is the part of a line that labels are wrapped in; None where they stay on theirs."""

    size: Size
    label_share: float | None
    width: float
    columns: tuple[tuple[Column, ...], ...]
    rows: tuple[tuple[Row, ...], ...]


def width_in_em(text: str) -> float:
    """About how wide a text is."""
    return sum(_em(char) for char in text)


def _em(char: str) -> float:
    if not char.isascii():
        return 0.55 * (len(f"[U+{ord(char):04X}]") if escape_tex(char).startswith("{[}U+") else 1.1)
    if char in "ijl.,:;'|!()[] ":
        return 0.31
    if char in "mwMW%@":
        return 0.85
    if char.isupper():
        return 0.72
    return 0.5


def plan_layout(table: Table, *, intervals: bool, below: int) -> Layout:
    """`below` is how many characters stand under the table."""
    columns = [_column(table, name, intervals) for name in table.columns]
    longest = max((width_in_em(row.label) for row in table.rows), default=0.0)
    widths = [column.points(SIZES[-1]) for column in columns]
    label = min(longest * SIZES[-1].points, LABELS[0] * WIDTH) + 2 * SIZES[-1].gap
    if sum(widths) + label > WIDTH / MIN_SCALE:
        groups = _packed(columns, widths, WIDTH - label)
    else:
        groups = (tuple(columns),)
    over = 12.0 * math.ceil(len(table.title) / 70) + 10.0 * math.ceil(below / 75) + 40.0  # caption, notes, rules
    tried = [_tried(table, groups, longest, size, HEIGHT - over) for size in SIZES]
    fitting = [one for one in tried if one.width <= WIDTH] or tried[-1:]
    return next((one for one in fitting if len(one.rows) == 1 and one.size is not SIZES[-1]), fitting[0])


def _column(table: Table, name: str, intervals: bool) -> Column:
    cells = [row.cells.get(name) for row in table.rows]
    value = max((width_in_em(format_cell(cell, table.digits)) for cell in cells), default=0.0)
    if intervals:
        around = max((width_in_em(format_interval(cell, table.digits)) for cell in cells), default=0.0)
    else:
        around = 0.0
    return Column(name, tuple(_stacked(name)), 1.1 * value, around)


def _stacked(name: str) -> list[str]:
    """A column's name over several lines, broken between words."""
    words = name.split() or [""]
    return textwrap.wrap(name, max(HEAD, *map(len, words), 1), break_long_words=False, break_on_hyphens=False) or [""]


def _tried(table: Table, groups: tuple[tuple[Column, ...], ...], longest: float, size: Size, room: float) -> Layout:
    taken = max(sum(column.points(size) for column in group) for group in groups) + 2 * size.gap
    share = min(max((WIDTH - taken) / WIDTH, LABELS[0]), LABELS[1])
    label = longest * size.points
    wrapped = label > share * WIDTH
    lines = [
        math.ceil(1.15 * width_in_em(row.label) * size.points / (share * WIDTH)) if wrapped else 1 for row in table.rows
    ]
    two = [
        any(column.range and format_interval(row.cells.get(column.name)) for group in groups for column in group)
        for row in table.rows
    ]
    heights = [size.line * max(count, 2.0 if ranged else 1.0) for count, ranged in zip(lines, two, strict=True)]
    head = size.line * max((len(column.head) for group in groups for column in group), default=1)
    rows = _packed(table.rows, heights, room - head)
    return Layout(
        size, math.floor(100 * share) / 100 if wrapped else None, taken + min(label, share * WIDTH), groups, rows
    )


def _packed(things: Sequence[T], sizes: Sequence[float], room: float) -> tuple[tuple[T, ...], ...]:
    """In pieces of about the same size, none of which is larger than the room unless it is one thing alone."""
    pieces = max(1, math.ceil(sum(sizes) / room))
    most = min(room, sum(sizes) / pieces + max(sizes, default=0.0))
    made: list[list[T]] = [[]]
    filled = 0.0
    for thing, size in zip(things, sizes, strict=True):
        if made[-1] and filled + size > most:
            made.append([])
            filled = 0.0
        made[-1].append(thing)
        filled += size
    return tuple(map(tuple, made))
