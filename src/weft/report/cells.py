"""The dialogues behind a number of a table.

A cell knows its verdicts (`Cell.verdicts`), and they are the run's own objects, so they say which run and which
dialogues it was computed from. `CellIndex` gives each such cell an address in the list of dialogues; `find_cell` finds
a cell by the words of a user, such as `Avg/Science`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.report.compare import Comparison, ComparisonRow
from weft.report.select import format_cell
from weft.results.run import Run
from weft.rounding import format_number
from weft.types import Cell, Row, Table, Verdict

MAX_NAMES = 12  # cells in an error
COMPARED = 0  # stands for the number of a table, which comparisons of two runs do not have
FIRST, SECOND, DIFFERENCE = "first", "second", "difference"  # the numbers of a comparison


class NamedCell(Struct, frozen=True):
    """A cell and where it stands."""

    table: Table
    number: int  # of the table, counted from 1
    row: Row
    column: str

    @property
    def cell(self) -> Cell:
        return self.row.cells[self.column]

    @property
    def name(self) -> str:
        """The table's title, the row and the column."""
        return f"{self.table.title} / {self.row.label} / {self.column}"


def list_cells(tables: Iterable[Table]) -> Iterable[NamedCell]:
    """Yield the cells that were computed from verdicts."""
    for number, table in enumerate(tables, start=1):
        for row in table.rows:
            for column in table.columns:
                if column in row.cells and row.cells[column].verdicts:
                    yield NamedCell(table, number, row, column)


class CellIndex:
    """Which dialogues are behind each cell of a report's tables."""

    def __init__(
        self,
        runs: Mapping[str, Run],
        tables: Sequence[Table],
        samples: Iterable[str],
        comparisons: Iterable[Comparison] = (),
    ) -> None:
        """`runs` and `samples` are those of the list of dialogues, in its order."""
        self._sample_numbers = {sample: number for number, sample in enumerate(samples)}
        self._run_numbers: dict[int, int] = {}  # by the identity of a verdict
        for number, run in enumerate(runs.values()):
            self._run_numbers.update(dict.fromkeys(map(id, run.verdicts), number))
        self._sets: dict[tuple[int, ...], int] = {}
        self._entries: dict[str, dict[str, Any]] = {}
        self._keys: dict[tuple[int, int, str], str] = {}  # by the table's number, the identity of the row, the column
        for named in list_cells(tables):
            name = f"{named.name}: {format_cell(named.cell, named.table.digits)}"
            self._add((named.number, id(named.row), named.column), name, named.cell.verdicts)
        for comparison in comparisons:
            for row in comparison.rows:
                self._add_comparison(comparison, row)

    def _add_comparison(self, comparison: Comparison, row: ComparisonRow) -> None:
        """Add both numbers of a comparison and their difference, whose dialogues are the second run's."""
        first, second = comparison.names
        numbers = {
            FIRST: (row.first, row.first_verdicts),
            SECOND: (row.second, row.second_verdicts),
            DIFFERENCE: (row.difference.value, row.second_verdicts),
        }
        for column, (number, verdicts) in numbers.items():
            value = format_number(number, comparison.digits, sign=column == DIFFERENCE)
            name = f"{first} and {second} / {row.name} / {column}: {value}"
            self._add((COMPARED, id(row), column), name, verdicts, order="gap" if column == DIFFERENCE else "")

    def _add(self, place: tuple[int, int, str], name: str, members: Sequence[Verdict], order: str = "") -> None:
        verdicts = [verdict for verdict in members if id(verdict) in self._run_numbers]
        numbers = {
            self._sample_numbers[verdict.sample] for verdict in verdicts if verdict.sample in self._sample_numbers
        }
        if not numbers:
            return
        entry = {
            "s": self._sets.setdefault(tuple(sorted(numbers)), len(self._sets)),
            "r": self._run_numbers[id(verdicts[0])],
            "m": _only({verdict.metric for verdict in verdicts}),
            "t": _only({str(verdict.turn + 1) for verdict in verdicts}),
            "n": name,
        }
        if order:
            entry["o"] = order
        key = str(len(self._entries))
        self._entries[key] = entry
        self._keys[place] = key

    def find_key(self, number: int, row: Row | ComparisonRow, column: str) -> str | None:
        """Return the address of a cell of table `number`, or of a comparison (`COMPARED`); None if no dialogue of the
        list is behind it."""
        return self._keys.get((number, id(row), column))

    def build_data(self) -> dict[str, Any]:
        """Return the data for the page's script: sets of samples, and for each cell its set, its run, its metric and
        turn if it has only one, and the order of its dialogues if that is not the usual one."""
        all_samples = len(self._sample_numbers)
        sets = [None if len(numbers) == all_samples else numbers for numbers in self._sets]
        return {"sets": sets, "cells": self._entries}


def _only(values: set[str]) -> str:
    if len(values) == 1:
        return next(iter(values))
    return ""


def find_cell(tables: Sequence[Table], words: str) -> NamedCell:
    """Return the cell that `words` name: a column, and after slashes parts of the table's title or of the row's label.

    A table's number is also a name of it. The first table with such a cell counts, breakdowns last, and strict rows
    come before official ones. Raises UserError with the names of the cells that fit, or that there are."""
    cells = list(list_cells(tables))
    wanted = words.casefold().strip()
    matches = [named for named in cells if _parts_besides_column(named, wanted) is not None]
    if not matches:
        raise UserError(f"no cell is called {words!r}. There is:{_list_places(cells)}")
    best = min(_rank(named, wanted) for named in matches)
    matches = [named for named in matches if _rank(named, wanted) == best]
    if len(matches) > 1:
        raise UserError(f"more than one cell is called {words!r}. Add a part of its row:{_list_places(matches)}")
    return matches[0]


def _parts_besides_column(named: NamedCell, words: str) -> list[str] | None:
    """Return the words that are not the cell's column; None if they do not name this cell."""
    column = named.column.casefold()
    if words in (column, named.name.casefold()):
        return []
    if words.endswith(f"/{column}"):
        rest = words.removesuffix(column)
    elif words.startswith(f"{column}/"):
        rest = words.removeprefix(column)
    else:
        return None
    place = f"{named.table.title}\n{named.row.label}".casefold()
    parts = [part.strip() for part in rest.strip("/").split("/")]
    if all(part == str(named.number) or part in place for part in parts):
        return parts
    return None


def _rank(named: NamedCell, words: str) -> tuple[bool, int, bool, int]:
    """Return what puts a cell before others of the same name: its table, its arithmetic, and words that its row has."""
    label = named.row.label.casefold()
    in_row = [part for part in _parts_besides_column(named, words) or () if part in label]
    return named.table.kind == "breakdown", named.number, named.row.arithmetic == "official", -len(in_row)


def _list_places(cells: Sequence[NamedCell]) -> str:
    """Return the places of cells of one run, each with the words that name it."""
    places = list(dict.fromkeys(_describe_place(named) for named in cells))
    listed = "".join(f"\n  {place}" for place in places[:MAX_NAMES])
    if len(places) > MAX_NAMES:
        listed += f"\n  and {len(places) - MAX_NAMES} more"
    return listed


def _describe_place(named: NamedCell) -> str:
    row = named.row
    label = row.name if row.kind == "part" else row.subset
    parts = [str(named.number), label, named.column]
    return f"{'/'.join(filter(None, parts))}    ({named.table.title})"
