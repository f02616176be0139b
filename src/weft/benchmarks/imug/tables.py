"""IMUG-Bench's numbers in percent, micro over turns: Und. (text) and Gen. (image) by class, by turn, static against dynamic, by domain,
by task.

`strict`: the paper's formulas; a model's failure is zero. `official`: what the released scripts compute from the same replies: letters read
one by one, points averaged as they came, grids by their own reader. They have the judge look at what is left where a picture is missing:
that is known only where it was asked so (a run with `official`); else the cells that the picture belongs to have no value.
"""

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import Finished
from weft.benchmarks.imug.classes import CLASSES
from weft.benchmarks.imug.facts import is_dynamic
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.official import or_none
from weft.benchmarks.rows import both_ways, published, published_rows, rows_of
from weft.stats.intervals import slope, spread
from weft.types import Cell, Row, Table, Verdict

JUDGE = OFFICIAL.published_judge
SHORT = {"Static Spatial": "StaticSpatial", "Temporal Causal": "TemporalCausal", "Hybrid": "Hybrid"}
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
WAYS = {"Und.": "choice", "Gen.": "points"}
MODALITIES = {"text": "choice", "image": "points"}


def percent(verdict: Verdict, *, by_script: bool) -> float | None:
    """Of a hundred; None where there is nothing."""
    if by_script:
        return or_none(OFFICIAL.score(verdict))
    return None if verdict.value is None else 100 * verdict.value


def cell(verdicts: Iterable[Verdict], *, by_script: bool) -> Cell:
    due = list(verdicts)
    values = [percent(verdict, by_script=by_script) for verdict in due]
    kept = [
        (verdict, value) for verdict, value in zip(due, values, strict=True) if not by_script or value is not None or verdict.value is None
    ]
    scored: dict[str, list[float]] = {}
    for verdict, value in kept:
        if value is not None:
            scored.setdefault(verdict.sample, []).append(value)
    found = [value for some in scored.values() for value in some]
    if not found or (by_script and any(map(OFFICIAL.is_unasked, due))):
        return Cell(None, len(found), len(due), verdicts=due)
    bounds = spread([(1.0, scored)])
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    behind = due if len(kept) == len(due) else [verdict for verdict, _ in kept]
    return Cell(round(sum(found) / len(found), 2), len(found), len(kept), low, high, verdicts=behind)


def tables(runs: Sequence[Finished]) -> Iterator[Table]:
    """Tables 2, 3, 4 and 6 with our rows before the published ones, then our domains and tasks."""
    paper: Mapping[str, Any] = published("weft.benchmarks.imug") if all(run.dataset != "tabletop" for run in runs) else {}
    data = "IMUG-Bench" if paper else "Tabletop in IMUG-Bench's format"
    yield _main(runs, paper, f"{data}: by class and modality (paper, Table 2)")
    yield _by_turn(runs, paper, f"{data}: by turn (paper, Table 3)")
    yield _kinds(runs, paper, f"{data}: static against dynamic questions (paper, Table 6)")
    yield _scaling(runs, paper, f"{data}: pictures, under a strategy or none (paper, Table 4)")
    for run in runs:
        for group in ("class", "turn", "domain", "task"):
            yield from both_ways(run, f"by {group}", ("Und.", "Gen.", "Avg"), functools.partial(_parts, group), 1)


def _main(runs: Sequence[Finished], paper: Mapping[str, Any], title: str) -> Table:
    keys = {f"{name} {way}": f"{SHORT[name]}_{way.rstrip('.')}" for name in CLASSES for way in WAYS}

    def cells(run: Finished, by_script: bool) -> dict[str, Cell]:
        made: dict[str, Cell] = {}
        for name in CLASSES:
            for way, metric in WAYS.items():
                mine = [v for v in run.verdicts if v.metric == metric and run.groups[v.sample]["class"] == name]
                made[f"{name} {way}"] = cell(mine, by_script=by_script)
        return {**made, "Avg": cell(run.verdicts, by_script=by_script)}

    theirs = _theirs(paper, "table2", "{model}", {**keys, "Avg": "Avg"})
    unasked = any(OFFICIAL.is_unasked(verdict) for run in runs for verdict in run.verdicts)
    note = " ".join([*([UNASKED] if unasked else []), *([NOTE] if theirs else [])])
    return Table(title, (*keys, "Avg"), rows_of(runs, cells, paper=theirs), note, 1)


def _by_turn(runs: Sequence[Finished], paper: Mapping[str, Any], title: str) -> Table:
    rows: list[Row] = []
    for modality, metric in MODALITIES.items():

        def cells(run: Finished, by_script: bool, metric: str = metric) -> dict[str, Cell]:
            mine = [verdict for verdict in run.verdicts if verdict.metric == metric]
            turns = {f"T{turn + 1}": cell((v for v in mine if v.turn == turn), by_script=by_script) for turn in range(6)}
            return {**turns, PER_TURN: _slope(mine, by_script=by_script)}

        rows += rows_of(runs, cells, of=modality)
    turns = {f"T{turn}": f"T{turn}" for turn in range(1, 7)}
    theirs = _theirs(paper, "table3", "{model}, {modality}", turns)
    return Table(title, (*turns, PER_TURN), (*rows, *theirs), SLOPE, 1, "mixed")


def _slope(verdicts: Iterable[Verdict], *, by_script: bool) -> Cell:
    """Points of a hundred that a reply loses or gains with each turn of its dialogue."""
    points: dict[str, list[tuple[float, float]]] = {}
    behind: list[Verdict] = []
    due = list(verdicts)
    for verdict in due if not (by_script and any(map(OFFICIAL.is_unasked, due))) else ():
        value = percent(verdict, by_script=by_script)
        if value is not None:
            points.setdefault(verdict.sample, []).append((verdict.turn, value))
            behind.append(verdict)
    found = slope(points)
    if found is None:
        return Cell(None)
    bounds = (None, None) if math.isnan(found.low) else (round(found.low, 2), round(found.high, 2))
    return Cell(round(found.value, 2), len(behind), len(behind), *bounds, verdicts=behind)


def _kinds(runs: Sequence[Finished], paper: Mapping[str, Any], title: str) -> Table:
    keys = {"Static MCQ": "StaticMCQ", "Dynamic MCQ": "DynamicMCQ"}

    def cells(run: Finished, by_script: bool) -> dict[str, Cell]:
        asked = [verdict for verdict in run.verdicts if verdict.metric == "choice"]
        return {
            name: cell((verdict for verdict in asked if is_dynamic(verdict) == dynamic), by_script=by_script)
            for name, dynamic in zip(keys, (False, True), strict=True)
        }

    return Table(title, tuple(keys), rows_of(runs, cells, paper=_theirs(paper, "table6", "{model}", keys)), "", 1)


def _scaling(runs: Sequence[Finished], paper: Mapping[str, Any], title: str) -> Table:
    """Pictures alone, as the paper reports its strategies."""

    def cells(run: Finished, by_script: bool) -> dict[str, Cell]:
        drawn = [verdict for verdict in run.verdicts if verdict.metric == "points"]
        made = {name: cell((v for v in drawn if run.groups[v.sample]["class"] == name), by_script=by_script) for name in CLASSES}
        return {**made, "Average": cell(drawn, by_script=by_script)}

    keys = {**{name: SHORT[name] for name in CLASSES}, "Average": "Average"}
    return Table(title, tuple(keys), rows_of(runs, cells, paper=_theirs(paper, "table4", "{base_model}, {method}", keys)), "", 1)


def _theirs(paper: Mapping[str, Any], table: str, name: str, keys: Mapping[str, str]) -> list[Row]:
    return published_rows(paper.get(table, {}), lambda row: name.format(**row), keys, JUDGE)


def _parts(group: str, run: Finished, by_script: bool) -> dict[str, dict[str, Cell]]:
    parts: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        parts.setdefault(f"turn {verdict.turn + 1}" if group == "turn" else run.groups[verdict.sample][group], []).append(verdict)
    made: dict[str, dict[str, Cell]] = {}
    for name, mine in sorted(parts.items()) if group == "turn" else parts.items():
        by_way = {way: cell((v for v in mine if v.metric == metric), by_script=by_script) for way, metric in WAYS.items()}
        made[name] = {**by_way, "Avg": cell(mine, by_script=by_script)}
    return made
