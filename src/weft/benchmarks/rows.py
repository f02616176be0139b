"""Rows of tables: those of runs in both arithmetics, and those of papers."""

import importlib.resources
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from weft.benchmarks.base import Finished
from weft.types import Cell, Row

Cells = Callable[[Finished, bool], Mapping[str, Cell]]  # of a run, by the official arithmetic or not


def rows_of(runs: Iterable[Finished], cells: Cells, of: str = "") -> list[Row]:
    """A row for each run; two where strict and official differ. `of` is the slice that they show."""
    rows: list[Row] = []
    for run in runs:
        strict, official = cells(run, False), cells(run, True)
        if {name: cell.value for name, cell in strict.items()} == {name: cell.value for name, cell in official.items()}:
            rows.append(Row(run.name, strict, of=of, run=run.run, judge=run.judge))
        else:
            rows.append(Row(run.name, strict, way="strict", of=of, run=run.run, judge=run.judge))
            rows.append(Row(run.name, official, way="official", of=of, run=run.run, judge=run.judge))
    return rows


def parts_of(run: Finished, cells: Mapping[str, Mapping[str, Cell]]) -> list[Row]:
    """Parts of one run, by their names."""
    return [Row(name, some, kind="part", run=run.run, judge=run.judge) for name, some in cells.items()]


def published_rows(table: Mapping[str, Any], name: Callable[[Mapping[str, Any]], str], columns: Mapping[str, str], judge: str) -> list[Row]:
    """Rows of a paper's table; `columns` says under which key of a row the value of a column stands."""
    rows: Sequence[Mapping[str, Any]] = table.get("rows", ())
    return [Row(name(row), {column: Cell(row[key]) for column, key in columns.items()}, kind="published", judge=judge) for row in rows]


def published(package: str) -> Mapping[str, Any]:
    """A benchmark's `published.json`."""
    return msgspec.json.decode(importlib.resources.files(package).joinpath("published.json").read_bytes())
