"""WEAVE's arithmetic (section 3.3, Tables 2 and 7-10; released `summarize.py`).

A metric is the mean over turns (micro), divided by 10 and rounded to 3 decimals; Avg is computed from the rounded metrics:
0.5 KP + 0.2 VC + 0.3 IQ without text turns, 0.4 KP + 0.1 VC + 0.2 IQ + 0.3 ACC with them, the plain mean of what there is otherwise.
`strict` counts a model's failure as zero; `official` leaves it out, as the released scripts and the paper do. Unscored items are in
neither.
"""

import importlib.resources
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from weft.benchmarks import Finished
from weft.benchmarks.weave.domains import CLASSES
from weft.stats.intervals import spread
from weft.types import Cell, Table, Verdict

SHORT = {"key_point": "KP", "visual_consistency": "VC", "image_quality": "IQ", "accuracy": "ACC"}
COLUMNS = ("KP", "VC", "IQ", "ACC", "Avg")
PAPER_TABLE = {"Science": "table7", "Creation": "table8", "Logic": "table9", "Game": "table10"}
NOTE = (
    "Published rows were judged by GPT-4o with the authors' prompts; compare only runs with the same judge and prompts. "
    "A cell `0.512 (37/40)` rests on 37 of 40 items: the rest could not be scored, and the run can be repeated to ask for them again."
)


def weights(measured: Collection[str]) -> dict[str, float]:
    """How the paper's Avg weighs the metrics that were measured, by their short names."""
    have = [name for name in COLUMNS[:4] if name in measured]
    if have == ["KP", "VC", "IQ"]:
        return {"KP": 0.5, "VC": 0.2, "IQ": 0.3}
    if len(have) == 4:
        return {"KP": 0.4, "VC": 0.1, "IQ": 0.2, "ACC": 0.3}
    return dict.fromkeys(have, 1 / len(have)) if have else {}


def average(values: Mapping[str, float | None]) -> float | None:
    """The paper's Avg from rounded metrics by their short names; absent or None means not measured."""
    have = {name: value for name in COLUMNS[:4] if (value := values.get(name)) is not None}
    return round(sum(weight * have[name] for name, weight in weights(have).items()), 3) if have else None


def metrics(verdicts: Sequence[Verdict], *, official: bool) -> dict[str, Cell]:
    """KP, VC, IQ, ACC and Avg of one group of turns. A metric that is due but has no scored item leaves Avg without a value."""
    cells: dict[str, Cell] = {}
    scores: dict[str, dict[str, list[float]]] = {}
    for metric, short in SHORT.items():
        due = [verdict for verdict in verdicts if verdict.metric == metric]
        if official:
            due = [verdict for verdict in due if verdict.by != "failure" or verdict.value is None]
        values = [verdict.value for verdict in due if verdict.value is not None]
        if due:
            scores[short] = by_dialogue(due)
            value = round(sum(values) / len(values) / 10, 3) if values else None
            cells[short] = Cell(value, len(values), len(due), *interval([(1.0, scores[short])]))
    scored, due_all = sum(cell.scored for cell in cells.values()), sum(cell.due for cell in cells.values())
    complete = all(cell.value is not None for cell in cells.values())
    value = average({name: cell.value for name, cell in cells.items()}) if complete else None
    bounds = interval([(weight, scores[name]) for name, weight in weights(cells).items()]) if complete else (None, None)
    cells["Avg"] = Cell(value, scored, due_all, *bounds)
    return cells


def headline(verdicts: Sequence[Verdict]) -> list[tuple[float, Sequence[Verdict]]]:
    """Avg as weighted means."""
    parts = {short: [verdict for verdict in verdicts if verdict.metric == metric] for metric, short in SHORT.items()}
    return [(weight, parts[name]) for name, weight in weights([name for name, some in parts.items() if some]).items()]


def by_dialogue(verdicts: Sequence[Verdict]) -> dict[str, list[float]]:
    made: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.value is not None:
            made.setdefault(verdict.sample, []).append(verdict.value / 10)
    return made


def interval(terms: Sequence[tuple[float, Mapping[str, Sequence[float]]]]) -> tuple[float | None, float | None]:
    found = spread(terms)
    return (round(found[0], 3), round(found[1], 3)) if found else (None, None)


def tables(runs: Sequence[Finished]) -> list[Table]:
    """Table 2 and Tables 7-10 with our rows before the published ones, then our domains."""
    own = all(run.dataset != "tabletop" for run in runs)
    published: Mapping[str, Any] = _published() if own else {}
    made = [_main(runs, published)]
    made += [_class(name, runs, published) for name in CLASSES]
    made += [_domains(run) for run in runs]
    return made


def _main(runs: Sequence[Finished], published: Mapping[str, Any]) -> Table:
    rows = _rows(runs, lambda verdicts, groups, official: _by_class(verdicts, groups, official=official))
    theirs = {_label(row): {column: Cell(row[column]) for column in (*CLASSES, "Avg")} for row in _rows_of(published, "table2")}
    title = f"{_data(published)}: Avg by class and overall (paper, Table 2)"
    return Table(title, (*CLASSES, "Avg"), {**rows, **theirs}, frozenset(theirs), NOTE if theirs else "")


def _by_class(verdicts: Sequence[Verdict], groups: Mapping[str, Mapping[str, str]], *, official: bool) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for name in CLASSES:
        mine = [verdict for verdict in verdicts if groups[verdict.sample]["class"] == name]
        if mine:
            cells[name] = metrics(mine, official=official)["Avg"]
    cells["Avg"] = metrics(verdicts, official=official)["Avg"]
    return cells


def _class(name: str, runs: Sequence[Finished], published: Mapping[str, Any]) -> Table:
    def cells(verdicts: Sequence[Verdict], groups: Mapping[str, Mapping[str, str]], official: bool) -> dict[str, Cell]:
        mine = [verdict for verdict in verdicts if groups[verdict.sample]["class"] == name]
        return metrics(mine, official=official) if mine else {}

    theirs = {_label(row): {column: Cell(row[column]) for column in COLUMNS} for row in _rows_of(published, PAPER_TABLE[name])}
    number = PAPER_TABLE[name].removeprefix("table")
    return Table(f"{_data(published)}: {name} (paper, Table {number})", COLUMNS, {**_rows(runs, cells), **theirs}, frozenset(theirs))


def _domains(run: Finished) -> Table:
    rows: dict[str, Mapping[str, Cell]] = {}
    for name, domains in CLASSES.items():
        for domain in domains:
            mine = [verdict for verdict in run.verdicts if run.groups[verdict.sample]["domain"] == domain]
            if mine:
                rows[f"{domain} ({name})"] = metrics(mine, official=False)
    rows["overall"] = metrics(run.verdicts, official=False)
    return Table(f"{run.name}: by domain", COLUMNS, rows, rows_are="parts")


def _rows(
    runs: Sequence[Finished],
    cells: Callable[[Sequence[Verdict], Mapping[str, Mapping[str, str]], bool], Mapping[str, Cell]],
) -> dict[str, Mapping[str, Cell]]:
    """A row for each run; two where strict and official differ."""
    rows: dict[str, Mapping[str, Cell]] = {}
    for run in runs:
        strict, official = (cells(run.verdicts, run.groups, way) for way in (False, True))
        if {name: cell.value for name, cell in strict.items()} == {name: cell.value for name, cell in official.items()}:
            rows[run.name] = strict
        else:
            rows[f"{run.name} (strict)"], rows[f"{run.name} (official)"] = strict, official
    return rows


def _rows_of(published: Mapping[str, Any], table: str) -> list[Mapping[str, Any]]:
    return published[table]["rows"] if published else []


def _data(published: Mapping[str, Any]) -> str:
    return "WEAVEBench" if published else "Tabletop in WEAVEBench's format"


def _label(row: Mapping[str, Any]) -> str:
    size = f" {row['params']}" if row.get("params") else ""
    return f"{row['model']}{size} [{row['in_context']}, {row['modality']}, {row['image_format']}]"


def _published() -> Mapping[str, Any]:
    text = importlib.resources.files("weft.benchmarks.weave").joinpath("published.json").read_bytes()
    return msgspec.json.decode(text)
