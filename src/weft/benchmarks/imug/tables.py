"""IMUG-Bench's numbers in percent, averaged over turns (micro).

Und. (text) and Gen. (image) by class, by turn, static against dynamic questions, by domain, by task.

`strict` is the paper's formulas; a model's failure is zero. `official` is what the released scripts compute from the
same replies, rounded to 2 decimals: letters that stand alone, points averaged as they come back, grids by their own
reader. If an image is
missing, the scripts have the judge look at the remaining ones: the score is known only if the judge was asked so (a run
with `official`), else the cells that need it have no value.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.imug.classes import CLASSES
from weft.benchmarks.imug.facts import is_dynamic
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.official import score_or_none, with_official_counts
from weft.benchmarks.rows import build_breakdowns, build_published_rows, build_rows, read_published
from weft.stats.intervals import estimate_slope, mean_interval
from weft.types import Cell, Row, Table, Verdict

JUDGE = OFFICIAL.published_judge
SHORT_NAMES = {"Static Spatial": "StaticSpatial", "Temporal Causal": "TemporalCausal", "Hybrid": "Hybrid"}
NOTE = (
    "Percent. Published rows were judged by Qwen3-VL-235B-A22B-Thinking with the authors' prompts, and scored by a "
    "script that gives 0 to every multi-letter key; compare runs with the same judge. A cell `81.2 (37/40)` rests on "
    "37 of 40 turns: the rest could not be scored."
)
UNASKED_NOTE = (
    "Images are missing. The released scripts have the judge look at what is left; a run with --official asks as they "
    "do, and has the official numbers that are not here."
)
SLOPE_NOTE = (
    "Avg: over all turns, text and images, as in Table 2. "
    "`per turn`: by how many points of a hundred a reply changes from one turn to the next of the same dialogue (least "
    "squares within dialogues); below zero, quality falls as a dialogue goes on."
)
PER_TURN = "per turn"
RELEASED_DIGITS = 2  # decimals to which the released scripts round
TURNS = 6  # of a dialogue, in the paper's Table 3
METRIC_COLUMNS = {"Und.": "choice", "Gen.": "points"}
MODALITIES = {"text": "choice", "image": "points"}
PERCENT = (0.0, 100.0)
# what a table of several runs shows by axis: all turns, text and images, as the paper's Figures 6 to 8 by domain
SHOWN_BY_AXIS = {
    "class": ("Avg",),
    "turn": ("Avg",),
    "domain": ("Avg", "Und.", "Gen."),
    "task": ("Avg", "Und.", "Gen."),
}


def percent(verdict: Verdict, *, official: bool) -> float | None:
    """Return a verdict's score in percent, by the scripts' arithmetic or ours; None if it has none."""
    if official:
        return score_or_none(OFFICIAL.score(verdict))
    if verdict.value is None:
        return None
    return 100 * verdict.value


def build_cell(verdicts: Iterable[Verdict], *, official: bool) -> Cell:
    """Build the cell of a mean over turns. Turns that the scripts leave out are not expected in their cells."""
    counted = _select_expected(verdicts, official=official)
    scores: dict[str, list[float]] = {}
    for verdict in counted:
        value = percent(verdict, official=official)
        if value is not None:
            scores.setdefault(verdict.sample, []).append(value)
    values = list(itertools.chain.from_iterable(scores.values()))
    if not values or _lacks_question(counted, official=official):
        return _finish_cell(Cell(None, len(values), len(counted), verdicts=counted), official=official)
    mean = sum(values) / len(values)
    if official:
        mean = round(mean, RELEASED_DIGITS)
    low, high = mean_interval([(1.0, scores)], PERCENT) or (None, None)
    cell = Cell(mean, len(values), len(counted), low, high, verdicts=counted)
    return _finish_cell(cell, official=official)


def _select_expected(verdicts: Iterable[Verdict], *, official: bool) -> list[Verdict]:
    """Return the verdicts that a cell is about: all, or those that the scripts do not leave out."""
    if official:
        return list(filter(OFFICIAL.expects, verdicts))
    return list(verdicts)


def _lacks_question(verdicts: Iterable[Verdict], *, official: bool) -> bool:
    """Whether the scripts ask their judge something that was not asked: there is no number of theirs then."""
    return official and any(map(OFFICIAL.lacks_official_question, verdicts))


def _finish_cell(cell: Cell, *, official: bool) -> Cell:
    if official:
        return with_official_counts(cell, OFFICIAL)
    return cell


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield Tables 2, 3, 6 and 4 with our rows before the published ones, then the runs by group."""
    paper: Mapping[str, Any] = {}
    dataset = "Tabletop in IMUG-Bench's format"
    if all(run.dataset != "tabletop" for run in runs):
        paper = read_published("weft.benchmarks.imug")
        dataset = "IMUG-Bench"
    yield _build_main_table(runs, paper, f"{dataset}: by class and modality (paper, Table 2)")
    yield _build_turn_table(runs, paper, f"{dataset}: by turn (paper, Table 3)")
    yield _build_choice_table(runs, paper, f"{dataset}: static against dynamic questions (paper, Table 6)")
    yield _build_strategy_table(runs, paper, f"{dataset}: images, under a strategy or none (paper, Table 4)")
    for axis, shown in SHOWN_BY_AXIS.items():
        breakdown = functools.partial(_cells_by_group, axis)
        columns = ("Und.", "Gen.", "Avg")
        yield from build_breakdowns(runs, dataset, f"by {axis}", columns, breakdown, 1, RELEASED_DIGITS, shown)


def _build_main_table(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    keys: dict[str, str] = {}
    for class_name in CLASSES:
        for column in METRIC_COLUMNS:
            keys[f"{class_name} {column}"] = f"{SHORT_NAMES[class_name]}_{column.rstrip('.')}"
    keys["Avg"] = "Avg"

    def build_cells(run: RunResults, official: bool) -> dict[str, Cell]:
        cells: dict[str, Cell] = {}
        for class_name in CLASSES:
            verdicts = _select_class(run, run.verdicts, class_name)
            for column, cell in _cells_by_metric(verdicts, official).items():
                cells[f"{class_name} {column}"] = cell
        cells["Avg"] = build_cell(run.verdicts, official=official)
        return cells

    published = _build_published(paper, "table2", "{model}", keys)
    notes: list[str] = []
    if any(any(map(OFFICIAL.lacks_official_question, run.verdicts)) for run in runs):
        notes.append(UNASKED_NOTE)
    if published:
        notes.append(NOTE)
    rows = build_rows(runs, build_cells, paper=published, released_digits=RELEASED_DIGITS)
    return Table(title, tuple(keys), rows, " ".join(notes), 1)


def _build_turn_table(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    columns = [f"T{number}" for number in range(1, TURNS + 1)]
    rows: list[Row] = []
    for modality, metric in MODALITIES.items():

        def build_cells(run: RunResults, official: bool, metric: str = metric) -> dict[str, Cell]:
            verdicts = _select_metric(run.verdicts, metric)
            cells: dict[str, Cell] = {}
            for turn, column in enumerate(columns):
                of_turn = (verdict for verdict in verdicts if verdict.turn == turn)
                cells[column] = build_cell(of_turn, official=official)
            cells["Avg"] = build_cell(run.verdicts, official=official)
            cells[PER_TURN] = _build_slope_cell(verdicts, official=official)
            return cells

        rows += build_rows(runs, build_cells, of=modality, released_digits=RELEASED_DIGITS)
    keys = {**dict(zip(columns, columns, strict=True)), "Avg": "Avg_all_modalities"}
    published = _build_published(paper, "table3", "{model}", keys)
    for printed, row in zip(paper.get("table3", {}).get("rows", ()), published, strict=True):
        rows.append(replace(row, subset=printed["modality"]))
    return Table(title, (*columns, "Avg", PER_TURN), tuple(rows), SLOPE_NOTE, 1, "parts", unranked=(PER_TURN,))


def _build_slope_cell(verdicts: Sequence[Verdict], *, official: bool) -> Cell:
    """Build the cell of the points of a hundred that a reply gains or loses with each turn of its dialogue."""
    expected = _select_expected(verdicts, official=official)
    points: dict[str, list[tuple[float, float]]] = {}
    scored = 0
    for verdict in expected:
        value = percent(verdict, official=official)
        if value is not None:
            points.setdefault(verdict.sample, []).append((verdict.turn, value))
            scored += 1
    slope = estimate_slope(points, PERCENT)
    lacks_question = _lacks_question(expected, official=official)
    if slope is None and scored == len(expected) and not lacks_question:
        return Cell(None)
    if slope is None or lacks_question:
        return _finish_cell(Cell(None, scored, len(expected), verdicts=expected), official=official)
    low: float | None = None
    high: float | None = None
    if not math.isnan(slope.low):
        low = slope.low
        high = slope.high
    cell = Cell(slope.value, scored, len(expected), low, high, verdicts=expected)
    return _finish_cell(cell, official=official)


def _build_choice_table(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    keys = {"Static MCQ": "StaticMCQ", "Dynamic MCQ": "DynamicMCQ"}

    def build_cells(run: RunResults, official: bool) -> dict[str, Cell]:
        choices = _select_metric(run.verdicts, "choice")
        static = [verdict for verdict in choices if not is_dynamic(verdict)]
        return {
            "Static MCQ": build_cell(static, official=official),
            "Dynamic MCQ": build_cell(filter(is_dynamic, choices), official=official),
        }

    published = _build_published(paper, "table6", "{model}", keys)
    rows = build_rows(runs, build_cells, paper=published, released_digits=RELEASED_DIGITS)
    return Table(title, tuple(keys), rows, "", 1)


def _build_strategy_table(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    """Build the table of image turns alone, as the paper reports its strategies."""

    def build_cells(run: RunResults, official: bool) -> dict[str, Cell]:
        images = _select_metric(run.verdicts, "points")
        cells: dict[str, Cell] = {}
        for class_name in CLASSES:
            cells[class_name] = build_cell(_select_class(run, images, class_name), official=official)
        cells["Average"] = build_cell(images, official=official)
        return cells

    keys = {**SHORT_NAMES, "Average": "Average"}
    published = _build_published(paper, "table4", "{base_model}, {method}", keys)
    rows = build_rows(runs, build_cells, paper=published, released_digits=RELEASED_DIGITS)
    return Table(title, tuple(keys), rows, "", 1)


def _build_published(paper: Mapping[str, Any], table: str, name: str, keys: Mapping[str, str]) -> list[Row]:
    """Build the rows of a paper's table; `name` is a format of a row's fields."""
    return build_published_rows(paper.get(table, {}), lambda row: name.format(**row), keys, JUDGE)


def _cells_by_group(axis: str, run: RunResults, official: bool) -> dict[str, dict[str, Cell]]:
    """Build the cells of each group of an axis, or of each turn."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        group = f"turn {verdict.turn + 1}"
        if axis != "turn":
            group = run.groups[verdict.sample][axis]
        groups.setdefault(group, []).append(verdict)
    if axis == "turn":
        groups = dict(sorted(groups.items()))
    cells: dict[str, dict[str, Cell]] = {}
    for group, verdicts in groups.items():
        cells[group] = _cells_by_metric(verdicts, official)
        cells[group]["Avg"] = build_cell(verdicts, official=official)
    return cells


def _cells_by_metric(verdicts: Sequence[Verdict], official: bool) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for column, metric in METRIC_COLUMNS.items():
        cells[column] = build_cell(_select_metric(verdicts, metric), official=official)
    return cells


def _select_metric(verdicts: Sequence[Verdict], metric: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.metric == metric]


def _select_class(run: RunResults, verdicts: Sequence[Verdict], class_name: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if run.groups[verdict.sample]["class"] == class_name]
