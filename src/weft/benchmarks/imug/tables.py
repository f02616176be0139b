"""IMUG-Bench's numbers in percent, averaged over turns (micro).

Und. (text) and Gen. (image) by class, by turn, static against dynamic questions, by domain, by task.

`strict` is the paper's formulas; a model's failure is zero. `official` is what the released scripts compute from the
same replies: letters that stand alone, points averaged as they come back, grids by their own reader. If an image is
missing, the scripts have the judge look at the remaining ones: the score is known only if the judge was asked so (a run
with `official`), else the cells that need it have no value.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import RunResults
from weft.benchmarks.imug.classes import CLASSES
from weft.benchmarks.imug.facts import is_dynamic
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.official import score_or_none
from weft.benchmarks.rows import build_breakdown, build_published_rows, build_rows, read_published
from weft.stats.intervals import bootstrap_interval, estimate_slope
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
    "`per turn`: by how many points of a hundred a reply changes from one turn to the next of the same dialogue (least "
    "squares within dialogues); below zero, quality falls as a dialogue goes on."
)
PER_TURN = "per turn"
TURNS = 6  # of a dialogue, in the paper's Table 3
METRIC_COLUMNS = {"Und.": "choice", "Gen.": "points"}
MODALITIES = {"text": "choice", "image": "points"}


def percent(verdict: Verdict, *, by_script: bool) -> float | None:
    """Return a verdict's score in percent, by the scripts' arithmetic or ours; None if it has none."""
    if by_script:
        return score_or_none(OFFICIAL.score(verdict))
    if verdict.value is None:
        return None
    return 100 * verdict.value


def build_cell(verdicts: Iterable[Verdict], *, by_script: bool) -> Cell:
    """Build the cell of a mean over turns. Turns that the scripts leave out are not expected in their cells."""
    expected = list(verdicts)
    counted: list[Verdict] = []
    scores: dict[str, list[float]] = {}
    for verdict in expected:
        value = percent(verdict, by_script=by_script)
        if value is not None:
            scores.setdefault(verdict.sample, []).append(value)
        if value is not None or verdict.value is None or not by_script:
            counted.append(verdict)
    values = list(itertools.chain.from_iterable(scores.values()))
    if not values or (by_script and any(map(OFFICIAL.lacks_official_question, expected))):
        return Cell(None, len(values), len(expected), verdicts=expected)
    low: float | None = None
    high: float | None = None
    interval = bootstrap_interval([(1.0, scores)])
    if interval:
        low = round(interval[0], 2)
        high = round(interval[1], 2)
    return Cell(round(sum(values) / len(values), 2), len(values), len(counted), low, high, verdicts=counted)


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield Tables 2, 3, 6 and 4 with our rows before the published ones, then each run's breakdowns."""
    paper: Mapping[str, Any] = {}
    dataset = "Tabletop in IMUG-Bench's format"
    if all(run.dataset != "tabletop" for run in runs):
        paper = read_published("weft.benchmarks.imug")
        dataset = "IMUG-Bench"
    yield _build_main_table(runs, paper, f"{dataset}: by class and modality (paper, Table 2)")
    yield _build_turn_table(runs, paper, f"{dataset}: by turn (paper, Table 3)")
    yield _build_choice_table(runs, paper, f"{dataset}: static against dynamic questions (paper, Table 6)")
    yield _build_strategy_table(runs, paper, f"{dataset}: images, under a strategy or none (paper, Table 4)")
    for run in runs:
        for axis in ("class", "turn", "domain", "task"):
            breakdown = functools.partial(_cells_by_group, axis)
            yield from build_breakdown(run, f"by {axis}", ("Und.", "Gen.", "Avg"), breakdown, 1)


def _build_main_table(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    keys: dict[str, str] = {}
    for class_name in CLASSES:
        for column in METRIC_COLUMNS:
            keys[f"{class_name} {column}"] = f"{SHORT_NAMES[class_name]}_{column.rstrip('.')}"
    keys["Avg"] = "Avg"

    def build_cells(run: RunResults, by_script: bool) -> dict[str, Cell]:
        cells: dict[str, Cell] = {}
        for class_name in CLASSES:
            verdicts = _select_class(run, run.verdicts, class_name)
            for column, cell in _cells_by_metric(verdicts, by_script).items():
                cells[f"{class_name} {column}"] = cell
        cells["Avg"] = build_cell(run.verdicts, by_script=by_script)
        return cells

    published = _build_published(paper, "table2", "{model}", keys)
    notes: list[str] = []
    if any(any(map(OFFICIAL.lacks_official_question, run.verdicts)) for run in runs):
        notes.append(UNASKED_NOTE)
    if published:
        notes.append(NOTE)
    return Table(title, tuple(keys), build_rows(runs, build_cells, paper=published), " ".join(notes), 1)


def _build_turn_table(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    columns = [f"T{number}" for number in range(1, TURNS + 1)]
    rows: list[Row] = []
    for modality, metric in MODALITIES.items():

        def build_cells(run: RunResults, by_script: bool, metric: str = metric) -> dict[str, Cell]:
            verdicts = _select_metric(run.verdicts, metric)
            cells: dict[str, Cell] = {}
            for turn, column in enumerate(columns):
                of_turn = (verdict for verdict in verdicts if verdict.turn == turn)
                cells[column] = build_cell(of_turn, by_script=by_script)
            cells[PER_TURN] = _build_slope_cell(verdicts, by_script=by_script)
            return cells

        rows += build_rows(runs, build_cells, of=modality)
    rows += _build_published(paper, "table3", "{model}, {modality}", dict(zip(columns, columns, strict=True)))
    return Table(title, (*columns, PER_TURN), tuple(rows), SLOPE_NOTE, 1, "mixed")


def _build_slope_cell(verdicts: Sequence[Verdict], *, by_script: bool) -> Cell:
    """Build the cell of the points of a hundred that a reply gains or loses with each turn of its dialogue."""
    if by_script and any(map(OFFICIAL.lacks_official_question, verdicts)):
        return Cell(None)
    points: dict[str, list[tuple[float, float]]] = {}
    scored: list[Verdict] = []
    for verdict in verdicts:
        value = percent(verdict, by_script=by_script)
        if value is not None:
            points.setdefault(verdict.sample, []).append((verdict.turn, value))
            scored.append(verdict)
    slope = estimate_slope(points)
    if slope is None:
        return Cell(None)
    low: float | None = None
    high: float | None = None
    if not math.isnan(slope.low):
        low = round(slope.low, 2)
        high = round(slope.high, 2)
    return Cell(round(slope.value, 2), len(scored), len(scored), low, high, verdicts=scored)


def _build_choice_table(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    keys = {"Static MCQ": "StaticMCQ", "Dynamic MCQ": "DynamicMCQ"}

    def build_cells(run: RunResults, by_script: bool) -> dict[str, Cell]:
        choices = _select_metric(run.verdicts, "choice")
        static = [verdict for verdict in choices if not is_dynamic(verdict)]
        return {
            "Static MCQ": build_cell(static, by_script=by_script),
            "Dynamic MCQ": build_cell(filter(is_dynamic, choices), by_script=by_script),
        }

    published = _build_published(paper, "table6", "{model}", keys)
    return Table(title, tuple(keys), build_rows(runs, build_cells, paper=published), "", 1)


def _build_strategy_table(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    """Build the table of image turns alone, as the paper reports its strategies."""

    def build_cells(run: RunResults, by_script: bool) -> dict[str, Cell]:
        images = _select_metric(run.verdicts, "points")
        cells: dict[str, Cell] = {}
        for class_name in CLASSES:
            cells[class_name] = build_cell(_select_class(run, images, class_name), by_script=by_script)
        cells["Average"] = build_cell(images, by_script=by_script)
        return cells

    keys = {**SHORT_NAMES, "Average": "Average"}
    published = _build_published(paper, "table4", "{base_model}, {method}", keys)
    return Table(title, tuple(keys), build_rows(runs, build_cells, paper=published), "", 1)


def _build_published(paper: Mapping[str, Any], table: str, name: str, keys: Mapping[str, str]) -> list[Row]:
    """Build the rows of a paper's table; `name` is a format of a row's fields."""
    return build_published_rows(paper.get(table, {}), lambda row: name.format(**row), keys, JUDGE)


def _cells_by_group(axis: str, run: RunResults, by_script: bool) -> dict[str, dict[str, Cell]]:
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
        cells[group] = _cells_by_metric(verdicts, by_script)
        cells[group]["Avg"] = build_cell(verdicts, by_script=by_script)
    return cells


def _cells_by_metric(verdicts: Sequence[Verdict], by_script: bool) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for column, metric in METRIC_COLUMNS.items():
        cells[column] = build_cell(_select_metric(verdicts, metric), by_script=by_script)
    return cells


def _select_metric(verdicts: Sequence[Verdict], metric: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.metric == metric]


def _select_class(run: RunResults, verdicts: Sequence[Verdict], class_name: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if run.groups[verdict.sample]["class"] == class_name]
