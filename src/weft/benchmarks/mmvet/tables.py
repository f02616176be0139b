"""MM-Vet's numbers, in percent: the mean over questions, by capability and by combination of capabilities.

A question counts in each of its capabilities. `strict`: a model's failure is zero, an answer that could not be scored
is in no mean. `official`: as the released evaluator computes it, rounded to one decimal.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.edits.counting import count_verdicts
from weft.benchmarks.mmvet.data import list_capabilities
from weft.benchmarks.mmvet.official import NAN, OFFICIAL, RELEASED_DIGITS
from weft.benchmarks.official import MissingScore, with_official_counts
from weft.benchmarks.rows import (
    CountedVerdict,
    build_breakdowns,
    build_mean_cell,
    build_published_rows,
    build_rows,
    flatten_verdicts,
    read_published,
)
from weft.rounding import round_number
from weft.types import Cell, Row, Table

COLUMNS = {"Rec": "rec", "OCR": "ocr", "Know": "know", "Gen": "gen", "Spat": "spat", "Math": "math"}
TOTAL = "Total"
DATA_TITLES = {"mmvet": "MM-Vet", "tabletop": "Tabletop in MM-Vet's format"}
NOTE = "Percent. A question counts in each of its capabilities; Total is the mean over questions."
PAPER_NOTE = "Published rows: WEAVE, Table 4, which does not name its judge."


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield the scores by capability, and each run's breakdown by combination. Without runs: the published ones."""
    paper: list[Row] = []
    if all(run.dataset == "mmvet" for run in runs):
        paper = _read_paper_rows()
    data = "MM-Vet"
    if runs:
        data = DATA_TITLES.get(runs[0].dataset, "Own questions in MM-Vet's format")
    note = f"{NOTE} {PAPER_NOTE}" if paper else NOTE
    rows = build_rows(runs, _build_cells, paper=paper, released_digits=RELEASED_DIGITS)
    yield Table(f"{data}: scores by capability", (*COLUMNS, TOTAL), rows, note, 1)
    if runs:
        yield from build_breakdowns(
            runs, data, "by combination of capabilities", (TOTAL,), _break_down, 1, RELEASED_DIGITS, shown=(TOTAL,)
        )


def _read_paper_rows() -> list[Row]:
    table: Mapping[str, Any] = read_published("weft.benchmarks.mmvet")["weave_table4"]
    rows = [{**dict.fromkeys(COLUMNS), **row} for row in table["rows"]]
    keys = {column: column for column in (*COLUMNS, TOTAL)}
    return build_published_rows({"rows": rows}, lambda row: row["model"], keys, "")


def _build_cells(run: RunResults, is_official: bool) -> dict[str, Cell]:
    counted = count_verdicts(run.verdicts, OFFICIAL if is_official else None)
    cells: dict[str, Cell] = {}
    for column, capability in COLUMNS.items():
        own = [one for one in counted if capability in list_capabilities(run.groups[one.sample])]
        cells[column] = _build_cell(own, is_official)
    return {**cells, TOTAL: _build_cell(counted, is_official)}


def _break_down(run: RunResults, is_official: bool) -> dict[str, Mapping[str, Cell]]:
    by_combination: dict[str, list[CountedVerdict]] = {}
    for one in count_verdicts(run.verdicts, OFFICIAL if is_official else None):
        by_combination.setdefault(run.groups[one.sample]["capabilities"], []).append(one)
    ordered = sorted(by_combination.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: {TOTAL: _build_cell(own, is_official)} for name, own in ordered}


def _build_cell(counted: Sequence[CountedVerdict], is_official: bool) -> Cell:
    if not counted or (is_official and any(map(_is_nan, counted))):
        return Cell(None)
    cell = build_mean_cell(counted, scale=100)
    if not is_official:
        return cell
    if cell.value is not None:
        cell = replace(cell, value=round_number(cell.value, RELEASED_DIGITS))
    return with_official_counts(cell, OFFICIAL, flatten_verdicts([counted]))


def _is_nan(counted: CountedVerdict) -> bool:
    """Whether the evaluator takes something for a number that makes every mean nan."""
    reading = OFFICIAL.find_reading(counted.verdict)
    return not isinstance(reading, MissingScore) and reading.text == NAN
