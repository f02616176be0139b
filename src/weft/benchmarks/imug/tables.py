"""IMUG-Bench's numbers in percent, micro over turns: Und. (text) and Gen. (image) by class, by turn, static against dynamic, by domain,
by task.

`strict`: the paper's formulas; a model's failure is zero. `official`: what the released scripts compute from the same replies: letters read
one by one, points averaged as they came, a missing picture left out.
"""

import importlib.resources
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from weft.benchmarks import Finished
from weft.benchmarks.imug import mcq
from weft.benchmarks.imug.classes import CLASSES
from weft.types import Cell, Table, Verdict

SHORT = {"Static Spatial": "StaticSpatial", "Temporal Causal": "TemporalCausal", "Hybrid": "Hybrid"}
NOTE = (
    "Percent. Published rows were judged by Qwen3-VL-235B-A22B-Thinking with the authors' prompts, and scored by a script that gives 0 to "
    "every multi-letter key; compare runs with the same judge. A cell `81.2 (37/40)` rests on 37 of 40 turns: the rest could not be scored."
)
Pick = Callable[[Verdict], bool]


def official(verdict: Verdict) -> float | None:
    """The released scorers' number for the same reply; None where they have none."""
    detail: Mapping[str, Any] = verdict.detail or {}
    if verdict.metric == "choice":
        if verdict.value is None or (detail.get("dynamic") and verdict.by == "failure"):
            return None
        return mcq.official(str(detail.get("response") or ""), str(detail.get("key") or ""))
    if verdict.value is None or verdict.by == "failure":
        return None
    points: Sequence[int] = detail["points"]
    return sum(points) / len(points) / 5


def cell(verdicts: Iterable[Verdict], *, by_script: bool) -> Cell:
    due = list(verdicts)
    values = [official(verdict) if by_script else verdict.value for verdict in due]
    if by_script:
        values = [value for value, verdict in zip(values, due, strict=True) if value is not None or verdict.value is None]
    scored = [value for value in values if value is not None]
    return Cell(round(100 * sum(scored) / len(scored), 2) if scored else None, len(scored), len(values))


def tables(runs: Sequence[Finished]) -> list[Table]:
    published = msgspec.json.decode(importlib.resources.files("weft.benchmarks.imug").joinpath("published.json").read_bytes())
    made = [
        _main(runs, published["table2"]["rows"]),
        _by_turn(runs, published["table3"]["rows"]),
        _kinds(runs, published["table6"]["rows"]),
    ]
    for run in runs:
        made.append(_groups(run, "domain", f"{run.name}: by domain"))
        made.append(_groups(run, "task", f"{run.name}: by task"))
    return made


def _main(runs: Sequence[Finished], rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = (*(f"{name} {way}" for name in CLASSES for way in ("Und.", "Gen.")), "Avg")

    def cells(run: Finished, by_script: bool) -> dict[str, Cell]:
        made = {
            f"{name} {way}": cell(
                _where(run, lambda v, n=name, m=metric: run.groups[v.sample]["class"] == n and v.metric == m), by_script=by_script
            )
            for name in CLASSES
            for way, metric in (("Und.", "choice"), ("Gen.", "points"))
        }
        return {**made, "Avg": cell(run.verdicts, by_script=by_script)}

    theirs = {
        str(row["model"]): {
            **{f"{name} {way}": Cell(row[f"{SHORT[name]}_{way.rstrip('.')}"]) for name in CLASSES for way in ("Und.", "Gen.")},
            "Avg": Cell(row["Avg"]),
        }
        for row in rows
    }
    return Table(
        "IMUG-Bench: by class and modality (paper, Table 2)", columns, {**_ours(runs, cells), **theirs}, frozenset(theirs), NOTE, 1
    )


def _by_turn(runs: Sequence[Finished], rows: Sequence[Mapping[str, Any]]) -> Table:
    made: dict[str, Mapping[str, Cell]] = {}
    for modality, metric in (("text", "choice"), ("image", "points")):

        def cells(run: Finished, by_script: bool, metric: str = metric) -> dict[str, Cell]:
            return {
                f"T{turn + 1}": cell(_where(run, lambda v, t=turn: v.turn == t and v.metric == metric), by_script=by_script)
                for turn in range(6)
            }

        made.update({f"{name}, {modality}": row for name, row in _ours(runs, cells).items()})
    theirs = {f"{row['model']}, {row['modality']}": {f"T{turn}": Cell(row[f"T{turn}"]) for turn in range(1, 7)} for row in rows}
    columns = tuple(f"T{turn}" for turn in range(1, 7))
    return Table("IMUG-Bench: by turn (paper, Table 3)", columns, {**made, **theirs}, frozenset(theirs), "", 1)


def _kinds(runs: Sequence[Finished], rows: Sequence[Mapping[str, Any]]) -> Table:
    def cells(run: Finished, by_script: bool) -> dict[str, Cell]:
        asked = [verdict for verdict in run.verdicts if verdict.metric == "choice"]
        return {
            name: cell((verdict for verdict in asked if _is_dynamic(verdict) == dynamic), by_script=by_script)
            for name, dynamic in (("Static MCQ", False), ("Dynamic MCQ", True))
        }

    theirs = {str(row["model"]): {"Static MCQ": Cell(row["StaticMCQ"]), "Dynamic MCQ": Cell(row["DynamicMCQ"])} for row in rows}
    title = "IMUG-Bench: static against dynamic questions (paper, Table 6)"
    return Table(title, ("Static MCQ", "Dynamic MCQ"), {**_ours(runs, cells), **theirs}, frozenset(theirs), "", 1)


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
    return Table(title, ("Und.", "Gen.", "Avg"), rows, digits=1)


def _where(run: Finished, pick: Pick) -> list[Verdict]:
    return [verdict for verdict in run.verdicts if pick(verdict)]


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
