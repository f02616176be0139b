"""IMUG-Bench's numbers in percent, micro over turns: Und. (text) and Gen. (image) by class, by turn, static against
dynamic, by domain, by task.

`strict`: the paper's formulas; a model's failure is zero. `official`: what the released scripts compute from the same
replies: letters read one by one, points averaged as they came, grids by their own reader. They have the judge look at
what is left where a picture is missing: that is known only where it was asked so (a run with `official`); else the
cells that the picture belongs to have no value."""

import functools
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
    "Percent. Published rows were judged by Qwen3-VL-235B-A22B-Thinking with the authors' prompts, and scored by a script that gives 0 to "
    "every multi-letter key; compare runs with the same judge. A cell `81.2 (37/40)` rests on 37 of 40 turns: the rest could not be scored."
)
UNASKED = (
    "Pictures are missing. The released scripts have the judge look at what is left; a run with --official asks as they do, and has the "
    "official numbers that are not here."
)
SLOPE = (
    "`per turn`: by how many points of a hundred a reply changes from one turn to the next of the same dialogue (least squares within "
    "dialogues); below zero, quality falls as a dialogue goes on."
)
PER_TURN = "per turn"
METRIC_COLUMNS = {"Und.": "choice", "Gen.": "points"}
MODALITIES = {"text": "choice", "image": "points"}


def percent(verdict: Verdict, *, by_script: bool) -> float | None:
    """Of a hundred; None where there is nothing."""
    if by_script:
        return score_or_none(OFFICIAL.score(verdict))
    if verdict.value is None:
        return None
    return 100 * verdict.value


def build_cell(verdicts: Iterable[Verdict], *, by_script: bool) -> Cell:
    due = list(verdicts)
    values = [percent(verdict, by_script=by_script) for verdict in due]
    kept = [
        (verdict, value)
        for verdict, value in zip(due, values, strict=True)
        if not by_script or value is not None or verdict.value is None
    ]
    scored: dict[str, list[float]] = {}
    for verdict, value in kept:
        if value is not None:
            scored.setdefault(verdict.sample, []).append(value)
    found = [value for some in scored.values() for value in some]
    if not found or (by_script and any(map(OFFICIAL.lacks_official_question, due))):
        return Cell(None, len(found), len(due), verdicts=due)
    bounds = bootstrap_interval([(1.0, scored)])
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    if len(kept) == len(due):
        behind = due
    else:
        behind = [verdict for verdict, _ in kept]
    return Cell(round(sum(found) / len(found), 2), len(found), len(kept), low, high, verdicts=behind)


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Tables 2, 3, 4 and 6 with our rows before the published ones, then our domains and tasks."""
    if all(run.dataset != "tabletop" for run in runs):
        paper: Mapping[str, Any] = read_published("weft.benchmarks.imug")
    else:
        paper = {}
    if paper:
        data = "IMUG-Bench"
    else:
        data = "Tabletop in IMUG-Bench's format"
    yield _main(runs, paper, f"{data}: by class and modality (paper, Table 2)")
    yield _by_turn(runs, paper, f"{data}: by turn (paper, Table 3)")
    yield _kinds(runs, paper, f"{data}: static against dynamic questions (paper, Table 6)")
    yield _scaling(runs, paper, f"{data}: pictures, under a strategy or none (paper, Table 4)")
    for run in runs:
        for group in ("class", "turn", "domain", "task"):
            yield from build_breakdown(run, f"by {group}", ("Und.", "Gen.", "Avg"), functools.partial(_parts, group), 1)


def _main(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    keys = {f"{name} {way}": f"{SHORT_NAMES[name]}_{way.rstrip('.')}" for name in CLASSES for way in METRIC_COLUMNS}

    def cells(run: RunResults, by_script: bool) -> dict[str, Cell]:
        made: dict[str, Cell] = {}
        for name in CLASSES:
            for way, metric in METRIC_COLUMNS.items():
                mine = [v for v in run.verdicts if v.metric == metric and run.groups[v.sample]["class"] == name]
                made[f"{name} {way}"] = build_cell(mine, by_script=by_script)
        return {**made, "Avg": build_cell(run.verdicts, by_script=by_script)}

    theirs = _theirs(paper, "table2", "{model}", {**keys, "Avg": "Avg"})
    unasked = any(OFFICIAL.lacks_official_question(verdict) for run in runs for verdict in run.verdicts)
    note = " ".join([*([UNASKED] if unasked else []), *([NOTE] if theirs else [])])
    return Table(title, (*keys, "Avg"), build_rows(runs, cells, paper=theirs), note, 1)


def _by_turn(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    rows: list[Row] = []
    for modality, metric in MODALITIES.items():

        def cells(run: RunResults, by_script: bool, metric: str = metric) -> dict[str, Cell]:
            mine = [verdict for verdict in run.verdicts if verdict.metric == metric]
            turns = {
                f"T{turn + 1}": build_cell((v for v in mine if v.turn == turn), by_script=by_script)
                for turn in range(6)
            }
            return {**turns, PER_TURN: _slope(mine, by_script=by_script)}

        rows += build_rows(runs, cells, of=modality)
    turns = {f"T{turn}": f"T{turn}" for turn in range(1, 7)}
    theirs = _theirs(paper, "table3", "{model}, {modality}", turns)
    return Table(title, (*turns, PER_TURN), (*rows, *theirs), SLOPE, 1, "mixed")


def _slope(verdicts: Iterable[Verdict], *, by_script: bool) -> Cell:
    """Points of a hundred that a reply loses or gains with each turn of its dialogue."""
    points: dict[str, list[tuple[float, float]]] = {}
    behind: list[Verdict] = []
    due = list(verdicts)
    for verdict in due if not (by_script and any(map(OFFICIAL.lacks_official_question, due))) else ():
        value = percent(verdict, by_script=by_script)
        if value is not None:
            points.setdefault(verdict.sample, []).append((verdict.turn, value))
            behind.append(verdict)
    found = estimate_slope(points)
    if found is None:
        return Cell(None)
    if math.isnan(found.low):
        bounds = (None, None)
    else:
        bounds = (round(found.low, 2), round(found.high, 2))
    return Cell(round(found.value, 2), len(behind), len(behind), *bounds, verdicts=behind)


def _kinds(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    keys = {"Static MCQ": "StaticMCQ", "Dynamic MCQ": "DynamicMCQ"}

    def cells(run: RunResults, by_script: bool) -> dict[str, Cell]:
        asked = [verdict for verdict in run.verdicts if verdict.metric == "choice"]
        return {
            name: build_cell((verdict for verdict in asked if is_dynamic(verdict) == dynamic), by_script=by_script)
            for name, dynamic in zip(keys, (False, True), strict=True)
        }

    return Table(title, tuple(keys), build_rows(runs, cells, paper=_theirs(paper, "table6", "{model}", keys)), "", 1)


def _scaling(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    """Pictures alone, as the paper reports its strategies."""

    def cells(run: RunResults, by_script: bool) -> dict[str, Cell]:
        drawn = [verdict for verdict in run.verdicts if verdict.metric == "points"]
        made = {
            name: build_cell((v for v in drawn if run.groups[v.sample]["class"] == name), by_script=by_script)
            for name in CLASSES
        }
        return {**made, "Average": build_cell(drawn, by_script=by_script)}

    keys = {**{name: SHORT_NAMES[name] for name in CLASSES}, "Average": "Average"}
    return Table(
        title,
        tuple(keys),
        build_rows(runs, cells, paper=_theirs(paper, "table4", "{base_model}, {method}", keys)),
        "",
        1,
    )


def _theirs(paper: Mapping[str, Any], table: str, name: str, keys: Mapping[str, str]) -> list[Row]:
    return build_published_rows(paper.get(table, {}), lambda row: name.format(**row), keys, JUDGE)


def _parts(group: str, run: RunResults, by_script: bool) -> dict[str, dict[str, Cell]]:
    parts: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        parts.setdefault(
            f"turn {verdict.turn + 1}" if group == "turn" else run.groups[verdict.sample][group], []
        ).append(verdict)
    made: dict[str, dict[str, Cell]] = {}
    for name, mine in sorted(parts.items()) if group == "turn" else parts.items():
        by_way = {
            way: build_cell((v for v in mine if v.metric == metric), by_script=by_script)
            for way, metric in METRIC_COLUMNS.items()
        }
        made[name] = {**by_way, "Avg": build_cell(mine, by_script=by_script)}
    return made
