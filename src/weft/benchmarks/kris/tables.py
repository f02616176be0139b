"""KRIS-Bench's numbers, 0 to 100: by dimension and kind of knowledge, by metric, and breakdowns by category.

Each is the mean over all single scores that it is about; a score s from 1 to 5 is 25 (s - 1). `strict`: a model's
failure is zero, what could not be scored is in no mean. `official`: an edit without an image is skipped.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import RunResults
from weft.benchmarks.edits.counting import count_verdicts, select_metric
from weft.benchmarks.kris.data import CATEGORIES, DIMENSIONS
from weft.benchmarks.kris.official import OFFICIAL
from weft.benchmarks.official import with_official_counts
from weft.benchmarks.rows import (
    CountedVerdict,
    build_breakdowns,
    build_mean_cell,
    build_published_rows,
    build_rows,
    flatten_verdicts,
    read_published,
)
from weft.types import Cell, Table

COLUMNS = {name.capitalize(): (name,) for name in DIMENSIONS}
KNOWLEDGE = {
    "Factual": ("attribute", "spatial", "temporal"),
    "Conceptual": ("social", "natural"),
    "Procedural": ("logical", "decomposition"),
}
OVERALL = "Overall"
DIMENSION_COLUMNS = {OVERALL: tuple(DIMENSIONS), **COLUMNS, **KNOWLEDGE}
METRIC_COLUMNS = {"VC": "consistency", "VQ": "quality", "IF": "instruction", "KP": "knowledge"}
AVERAGE = "AVG"
DATA_TITLES = {"kris": "KRIS-Bench", "tabletop": "Tabletop in KRIS-Bench's format"}
NOTE = "0 to 100: 25 (s - 1). Each number is the mean over all single scores that it is about."
PAPER_NOTE = (
    "Published rows: BAGEL's authors, whose summary is the only one that is published; judged by gpt-4o-2024-11-20. "
    "Users get other numbers (Kris_Bench issue 7, Bagel issue 280)."
)


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield both tables, and each run's breakdowns. Without runs these are the published ones."""
    published: Mapping[str, Any] = {}
    if all(run.dataset == "kris" for run in runs):
        published = read_published("weft.benchmarks.kris")
    data = "KRIS-Bench"
    if runs:
        data = DATA_TITLES.get(runs[0].dataset, "Own edits in KRIS-Bench's format")
    keys = {column: column for column in DIMENSION_COLUMNS}
    paper = build_published_rows(published.get("bagel_dimensions", {}), _name, keys, "gpt-4o-2024-11-20")
    note = f"{NOTE} {PAPER_NOTE}" if paper else NOTE
    yield Table(f"{data}: by dimension", tuple(keys), build_rows(runs, _build_dimension_cells, paper=paper), note, 2)
    if runs:
        columns = (*METRIC_COLUMNS, AVERAGE)
        yield Table(f"{data}: by metric", columns, build_rows(runs, _build_metric_cells), NOTE, 2)
        yield from build_breakdowns(runs, data, "by category", columns, _break_down, 2, shown=(AVERAGE,))


def _name(row: Mapping[str, Any]) -> str:
    return row["model"]


def _build_dimension_cells(run: RunResults, is_official: bool) -> dict[str, Cell]:
    counted = _count(run, is_official)
    cells: dict[str, Cell] = {}
    for column, dimensions in DIMENSION_COLUMNS.items():
        own = [one for one in counted if run.groups[one.sample]["dimension"] in dimensions]
        cells[column] = _build_cell(own, is_official)
    return cells


def _build_metric_cells(run: RunResults, is_official: bool) -> dict[str, Cell]:
    return _build_columns(_count(run, is_official), is_official)


def _break_down(run: RunResults, is_official: bool) -> dict[str, Mapping[str, Cell]]:
    counted = _count(run, is_official)
    rows: dict[str, Mapping[str, Cell]] = {}
    for category in CATEGORIES:
        own = [one for one in counted if run.groups[one.sample]["category"] == category]
        if own:
            rows[category] = _build_columns(own, is_official)
    return rows


def _build_columns(counted: Sequence[CountedVerdict], is_official: bool) -> dict[str, Cell]:
    cells = {
        column: _build_cell(select_metric(counted, metric), is_official) for column, metric in METRIC_COLUMNS.items()
    }
    return {**cells, AVERAGE: _build_cell(counted, is_official)}


def _count(run: RunResults, is_official: bool) -> list[CountedVerdict]:
    return count_verdicts(run.verdicts, OFFICIAL if is_official else None)


def _build_cell(counted: Sequence[CountedVerdict], is_official: bool) -> Cell:
    if not counted:
        return Cell(None)
    cell = build_mean_cell(counted, scale=100)
    if is_official:
        return with_official_counts(cell, OFFICIAL, flatten_verdicts([counted]))
    return cell
