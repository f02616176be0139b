"""RISEBench's numbers, in percent: accuracy by category under both rules, then scores, and breakdowns by sub-task.

Accuracy is the share of edits whose scores are all full; a score s from 1 to 5 is 25 (s - 1). Overall is the mean over
edits. `strict`: a model's failure is zero, an edit that could not be scored is in no mean. `official`: an edit with a
reply that the released script cannot read is not complete, and has no score; the script stops at a missing image, and
its table breaks at a reply in which it reads several numbers: then there is no official number at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.edits.counting import count_verdicts, select_metric
from weft.benchmarks.official import with_official_counts
from weft.benchmarks.risebench import scoring
from weft.benchmarks.risebench.data import CATEGORIES
from weft.benchmarks.risebench.facts import read_released_scores
from weft.benchmarks.risebench.official import OFFICIAL
from weft.benchmarks.rows import (
    CountedVerdict,
    build_breakdowns,
    build_mean_cell,
    build_published_rows,
    build_rows,
    flatten_verdicts,
    read_published,
)
from weft.types import Cell, Row, Table

COLUMNS = {name.capitalize(): name for name in CATEGORIES.values()}
DIMENSIONS = {
    "Reasoning": scoring.REASONING,
    "Consistency": scoring.CONSISTENCY,
    "Plausibility": scoring.PLAUSIBILITY,
}
BREAKDOWN = {"Accuracy": scoring.ACCURACY, "Score": scoring.SCORE}
DATA_TITLES = {"risebench": "RISEBench", "tabletop": "Tabletop in RISEBench's format"}
NOTE = (
    "Percent of edits whose scores are all full, by the rule since 13 April 2026: an edit free of consistency needs "
    "the other two. `official` follows this rule, as the released script does since then."
)
OLD_NOTE = (
    "By the rule until 13 April 2026, under which an edit free of consistency is never complete. Published rows: "
    "WEAVE, Table 4. The authors' board was made anew by the later rule."
)
SCORE_NOTE = "0 to 100. The three dimensions are means over the edits that they apply to."
STOPS_NOTE = (
    "The released script stops at an edit without an image, and its table breaks at a reply in which it reads several "
    "numbers: there is no official number then."
)


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield accuracy by both rules, scores, and each run's breakdowns. Without runs these are the published tables."""
    published: Mapping[str, Any] = {}
    if all(run.dataset == "risebench" for run in runs):
        published = read_published("weft.benchmarks.risebench")
    data = "RISEBench"
    if runs:
        data = DATA_TITLES.get(runs[0].dataset, "Own edits in RISEBench's format")
    stops = any(map(_stops, runs))
    if runs:
        yield _build_accuracy_table(runs, f"{data}: accuracy", scoring.ACCURACY, _note(NOTE, stops), [])
    keys = {column: column for column in COLUMNS}
    paper = build_published_rows(published.get("weave_table4", {}), lambda row: row["model"], keys, "")
    rows = [replace(row, cells={**row.cells, "Overall": Cell(None)}) for row in paper]
    title = f"{data}: accuracy by the rule until 13 April 2026"
    if runs or rows:
        yield _build_accuracy_table(runs, title, scoring.OLD_ACCURACY, _note(OLD_NOTE, stops), rows)
    if runs:
        yield _build_score_table(runs, f"{data}: scores", _note(SCORE_NOTE, stops))
        yield from build_breakdowns(runs, data, "by sub-task", tuple(BREAKDOWN), _break_down, 1, shown=("Accuracy",))


def _note(note: str, stops: bool) -> str:
    return f"{note} {STOPS_NOTE}" if stops else note


def _build_accuracy_table(
    runs: Sequence[RunResults], title: str, metric: str, note: str, paper: Sequence[Row]
) -> Table:
    def cells(run: RunResults, is_official: bool) -> dict[str, Cell]:
        return _build_category_cells(run, metric, is_official)

    return Table(title, (*COLUMNS, "Overall"), build_rows(runs, cells, paper=paper), note, 1)


def _build_score_table(runs: Sequence[RunResults], title: str, note: str) -> Table:
    def cells(run: RunResults, is_official: bool) -> dict[str, Cell]:
        built = _build_category_cells(run, scoring.SCORE, is_official)
        for column, metric in DIMENSIONS.items():
            counted = _count_dimension(run, metric, is_official)
            built[column] = _build_cell(run, counted, is_official)
        return built

    return Table(title, (*COLUMNS, "Overall", *DIMENSIONS), build_rows(runs, cells), note, 1)


def _build_category_cells(run: RunResults, metric: str, is_official: bool) -> dict[str, Cell]:
    counted = _count(run, metric, is_official)
    built: dict[str, Cell] = {}
    for column, category in COLUMNS.items():
        own = [one for one in counted if run.groups[one.sample]["category"] == category]
        built[column] = _build_cell(run, own, is_official)
    return {**built, "Overall": _build_cell(run, counted, is_official)}


def _break_down(run: RunResults, is_official: bool) -> dict[str, Mapping[str, Cell]]:
    rows: dict[str, Mapping[str, Cell]] = {}
    names = sorted({(groups["category"], groups["subtask"]) for groups in run.groups.values()})
    for category, subtask in names:
        cells: dict[str, Cell] = {}
        for column, metric in BREAKDOWN.items():
            counted = _count(run, metric, is_official)
            own = [one for one in counted if _is_in(run, one.sample, category, subtask)]
            cells[column] = _build_cell(run, own, is_official)
        if any(cell.expected for cell in cells.values()):
            rows[f"{category}: {subtask}"] = cells
    return rows


def _is_in(run: RunResults, sample: str, category: str, subtask: str) -> bool:
    groups = run.groups[sample]
    return (groups["category"], groups["subtask"]) == (category, subtask)


def _count(run: RunResults, metric: str, is_official: bool) -> list[CountedVerdict]:
    verdicts = [verdict for verdict in run.verdicts if verdict.metric == metric]
    return count_verdicts(verdicts, OFFICIAL if is_official else None)


def _count_dimension(run: RunResults, metric: str, is_official: bool) -> list[CountedVerdict]:
    """Return one dimension. For the released script an edit has all of its scores or none."""
    if not is_official:
        return _count(run, metric, is_official)
    counted: list[CountedVerdict] = []
    applies = {verdict.sample for verdict in run.verdicts if verdict.metric == metric}
    for one in _count(run, scoring.SCORE, is_official):
        if one.sample in applies:
            number = read_released_scores(one.verdict).by_metric[metric]
            counted.append(replace(one, value=None if number is None else (number - 1) / 4))
    return counted


def _stops(run: RunResults) -> bool:
    """Whether the released script has no numbers of this run."""
    for verdict in select_metric(run.verdicts, scoring.SCORE):
        variants = verdict.merged_from or (verdict,)
        if any(one.by == "failure" or read_released_scores(one).stops for one in variants):
            return True
    return False


def _build_cell(run: RunResults, counted: Sequence[CountedVerdict], is_official: bool) -> Cell:
    if not counted or (is_official and _stops(run)):
        return Cell(None)
    cell = build_mean_cell(counted, scale=100)
    if is_official:
        return with_official_counts(cell, OFFICIAL, flatten_verdicts([counted]))
    return cell
