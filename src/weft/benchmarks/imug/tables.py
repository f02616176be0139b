"""IMUG-Bench's numbers in percent, micro over turns: Und. (text) and Gen. (image) by class, by turn, static against dynamic, by domain,
by task.

`strict`: the paper's formulas; a model's failure is zero. `official`: what the released scripts compute from the same replies: letters read
one by one, points averaged as they came, a missing picture left out.
"""

import importlib.resources
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from weft.benchmarks import Finished
from weft.benchmarks.imug import mcq
from weft.benchmarks.imug.classes import CLASSES
from weft.stats.intervals import slope, spread
from weft.types import Cell, Table, Verdict

SHORT = {"Static Spatial": "StaticSpatial", "Temporal Causal": "TemporalCausal", "Hybrid": "Hybrid"}
NOTE = (
    "Percent. Published rows were judged by Qwen3-VL-235B-A22B-Thinking with the authors' prompts, and scored by a script that gives 0 to "
    "every multi-letter key; compare runs with the same judge. A cell `81.2 (37/40)` rests on 37 of 40 turns: the rest could not be scored."
)
SLOPE = (
    "`per turn`: by how many points of a hundred a reply changes from one turn to the next of the same dialogue (least squares within "
    "dialogues); below zero, quality falls as a dialogue goes on."
)
PER_TURN = "per turn"
WAYS = {"Und.": "choice", "Gen.": "points"}
MODALITIES = {"text": "choice", "image": "points"}


def official(verdict: Verdict) -> float | None:
    """The released scorers' number for the same reply; None where they have none."""
    detail: Mapping[str, Any] = verdict.detail or {}
    if verdict.metric == "choice":
        if verdict.value is None:
            return None
        if verdict.by == "failure":  # an empty reply is counted, whatever its key
            return 0.0
        return mcq.official(str(detail.get("response") or ""), str(detail.get("union") or detail.get("key") or ""))
    if verdict.value is None or verdict.by == "failure":
        return None
    points: Sequence[int] = detail["points"]
    return sum(points) / len(points) / 5


def cell(verdicts: Iterable[Verdict], *, by_script: bool) -> Cell:
    due = list(verdicts)
    values = [official(verdict) if by_script else verdict.value for verdict in due]
    kept = [
        (verdict, value) for verdict, value in zip(due, values, strict=True) if not by_script or value is not None or verdict.value is None
    ]
    scored: dict[str, list[float]] = {}
    for verdict, value in kept:
        if value is not None:
            scored.setdefault(verdict.sample, []).append(100 * value)
    found = [value for some in scored.values() for value in some]
    bounds = spread([(1.0, scored)])
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    return Cell(round(sum(found) / len(found), 2) if found else None, len(found), len(kept), low, high)


def tables(runs: Sequence[Finished]) -> list[Table]:
    """Tables 2, 3, 4 and 6 with our rows before the published ones, then our domains and tasks."""
    own = all(run.dataset != "tabletop" for run in runs)
    text = importlib.resources.files("weft.benchmarks.imug").joinpath("published.json").read_bytes()
    published: Mapping[str, Any] = msgspec.json.decode(text) if own else {}
    made = [make(runs, published) for make in (_main, _by_turn, _kinds, _scaling)]
    for run in runs:
        made.append(_groups(run, "domain", f"{run.name}: by domain"))
        made.append(_groups(run, "task", f"{run.name}: by task"))
    return made


def _main(runs: Sequence[Finished], published: Mapping[str, Any]) -> Table:
    columns = (*(f"{name} {way}" for name in CLASSES for way in ("Und.", "Gen.")), "Avg")

    def cells(run: Finished, by_script: bool) -> dict[str, Cell]:
        made: dict[str, Cell] = {}
        for name in CLASSES:
            for way, metric in WAYS.items():
                mine = [v for v in run.verdicts if v.metric == metric and run.groups[v.sample]["class"] == name]
                made[f"{name} {way}"] = cell(mine, by_script=by_script)
        return {**made, "Avg": cell(run.verdicts, by_script=by_script)}

    theirs = {
        str(row["model"]): {
            **{f"{name} {way}": Cell(row[f"{SHORT[name]}_{way.rstrip('.')}"]) for name in CLASSES for way in WAYS},
            "Avg": Cell(row["Avg"]),
        }
        for row in _rows_of(published, "table2")
    }
    title = f"{_data(published)}: by class and modality (paper, Table 2)"
    return Table(title, columns, {**_ours(runs, cells), **theirs}, frozenset(theirs), NOTE if theirs else "", 1)


def _by_turn(runs: Sequence[Finished], published: Mapping[str, Any]) -> Table:
    made: dict[str, Mapping[str, Cell]] = {}
    for modality, metric in MODALITIES.items():

        def cells(run: Finished, by_script: bool, metric: str = metric) -> dict[str, Cell]:
            mine = [verdict for verdict in run.verdicts if verdict.metric == metric]
            turns = {f"T{turn + 1}": cell((v for v in mine if v.turn == turn), by_script=by_script) for turn in range(6)}
            return {**turns, PER_TURN: _slope(mine, by_script=by_script)}

        made.update({f"{name}, {modality}": row for name, row in _ours(runs, cells).items()})
    theirs = {
        f"{row['model']}, {row['modality']}": {f"T{turn}": Cell(row[f"T{turn}"]) for turn in range(1, 7)}
        for row in _rows_of(published, "table3")
    }
    columns = (*(f"T{turn}" for turn in range(1, 7)), PER_TURN)
    return Table(f"{_data(published)}: by turn (paper, Table 3)", columns, {**made, **theirs}, frozenset(theirs), SLOPE, 1, "mixed")


def _slope(verdicts: Iterable[Verdict], *, by_script: bool) -> Cell:
    """Points of a hundred that a reply loses or gains with each turn of its dialogue."""
    points: dict[str, list[tuple[float, float]]] = {}
    for verdict in verdicts:
        value = official(verdict) if by_script else verdict.value
        if value is not None:
            points.setdefault(verdict.sample, []).append((verdict.turn, 100 * value))
    found = slope(points)
    count = sum(map(len, points.values()))
    if found is None:
        return Cell(None)
    bounds = (None, None) if math.isnan(found.low) else (round(found.low, 2), round(found.high, 2))
    return Cell(round(found.value, 2), count, count, *bounds)


def _kinds(runs: Sequence[Finished], published: Mapping[str, Any]) -> Table:
    def cells(run: Finished, by_script: bool) -> dict[str, Cell]:
        asked = [verdict for verdict in run.verdicts if verdict.metric == "choice"]
        return {
            name: cell((verdict for verdict in asked if _is_dynamic(verdict) == dynamic), by_script=by_script)
            for name, dynamic in (("Static MCQ", False), ("Dynamic MCQ", True))
        }

    theirs = {
        str(row["model"]): {"Static MCQ": Cell(row["StaticMCQ"]), "Dynamic MCQ": Cell(row["DynamicMCQ"])}
        for row in _rows_of(published, "table6")
    }
    title = f"{_data(published)}: static against dynamic questions (paper, Table 6)"
    return Table(title, ("Static MCQ", "Dynamic MCQ"), {**_ours(runs, cells), **theirs}, frozenset(theirs), "", 1)


def _scaling(runs: Sequence[Finished], published: Mapping[str, Any]) -> Table:
    """Pictures alone, as the paper reports its strategies."""

    def cells(run: Finished, by_script: bool) -> dict[str, Cell]:
        drawn = [verdict for verdict in run.verdicts if verdict.metric == "points"]
        made = {name: cell((v for v in drawn if run.groups[v.sample]["class"] == name), by_script=by_script) for name in CLASSES}
        return {**made, "Average": cell(drawn, by_script=by_script)}

    theirs = {
        f"{row['base_model']}, {row['method']}": {
            **{name: Cell(row[SHORT[name]]) for name in CLASSES},
            "Average": Cell(row["Average"]),
        }
        for row in _rows_of(published, "table4")
    }
    title = f"{_data(published)}: pictures, under a strategy or none (paper, Table 4)"
    return Table(title, (*CLASSES, "Average"), {**_ours(runs, cells), **theirs}, frozenset(theirs), "", 1)


def _rows_of(published: Mapping[str, Any], table: str) -> Sequence[Mapping[str, Any]]:
    return published[table]["rows"] if published else ()


def _data(published: Mapping[str, Any]) -> str:
    return "IMUG-Bench" if published else "Tabletop in IMUG-Bench's format"


def _is_dynamic(verdict: Verdict) -> bool:
    detail: dict[str, Any] = verdict.detail or {}
    return bool(detail.get("dynamic"))


def _groups(run: Finished, group: str, title: str) -> Table:
    names = list(dict.fromkeys(groups[group] for groups in run.groups.values()))
    rows: dict[str, Mapping[str, Cell]] = {}
    for name in names:
        mine = [verdict for verdict in run.verdicts if run.groups[verdict.sample][group] == name]
        rows[name] = {
            "Und.": cell((v for v in mine if v.metric == "choice"), by_script=False),
            "Gen.": cell((v for v in mine if v.metric == "points"), by_script=False),
            "Avg": cell(mine, by_script=False),
        }
    return Table(title, ("Und.", "Gen.", "Avg"), rows, digits=1, rows_are="parts")


def _ours(runs: Sequence[Finished], cells: Callable[[Finished, bool], Mapping[str, Cell]]) -> dict[str, Mapping[str, Cell]]:
    """A row for each run; two where strict and official differ."""
    rows: dict[str, Mapping[str, Cell]] = {}
    for run in runs:
        strict, by_script = cells(run, False), cells(run, True)
        if {name: one.value for name, one in strict.items()} == {name: one.value for name, one in by_script.items()}:
            rows[run.name] = strict
        else:
            rows[f"{run.name} (strict)"], rows[f"{run.name} (official)"] = strict, by_script
    return rows
