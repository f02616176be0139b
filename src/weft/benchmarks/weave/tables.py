"""WEAVE's arithmetic (section 3.3, Tables 2 and 7-10; released `summarize.py`).

A metric is the mean over turns (micro), divided by 10 and rounded to 3 decimals; Avg is computed from the rounded metrics:
0.5 KP + 0.2 VC + 0.3 IQ without text turns, 0.4 KP + 0.1 VC + 0.2 IQ + 0.3 ACC with them, the plain mean of what there is otherwise.
`strict` counts a model's failure as zero; `official` leaves it out, as the released scripts and the paper do. Unscored items are in
neither.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import Finished
from weft.benchmarks.rows import published, published_rows, rows_of
from weft.benchmarks.weave.domains import CLASSES
from weft.stats.intervals import spread
from weft.types import Cell, Row, Table, Verdict

SHORT = {"key_point": "KP", "visual_consistency": "VC", "image_quality": "IQ", "accuracy": "ACC"}
COLUMNS = ("KP", "VC", "IQ", "ACC", "Avg")
JUDGE = "gpt-4o"  # of the published rows
PAPER_TABLE = {"Science": "table7", "Creation": "table8", "Logic": "table9", "Game": "table10"}
LABEL: Callable[[Mapping[str, Any]], str] = lambda row: (  # noqa: E731
    f"{row['model']}{' ' + str(row['params']) if row.get('params') else ''} [{row['in_context']}, {row['modality']}, {row['image_format']}]"
)
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


def metrics(verdicts: Sequence[Verdict], *, official: bool) -> Mapping[str, Cell]:
    """KP, VC, IQ, ACC and Avg of one group of turns. A metric that is due but has no scored item leaves Avg without a value."""
    cells: dict[str, Cell] = {}
    scores: dict[str, dict[str, list[float]]] = {}
    for metric, short in SHORT.items():
        due = [verdict for verdict in verdicts if verdict.metric == metric]
        if official:
            due = [verdict for verdict in due if verdict.by != "failure" or verdict.value is None]
        points = [found for verdict in due if (found := points_of(verdict)) is not None]
        if due:
            scores[short] = by_dialogue(due)
            value = round(sum(points) / len(points) / 10, 3) if points else None
            cells[short] = Cell(value, len(points), len(due))
    scored, due_all = sum(cell.scored for cell in cells.values()), sum(cell.due for cell in cells.values())
    complete = all(cell.value is not None for cell in cells.values())
    value = average({name: cell.value for name, cell in cells.items()}) if complete else None
    terms = [(weight, scores[name]) for name, weight in weights(cells).items()] if complete else []
    cells["Avg"] = Cell(value, scored, due_all)
    return {name: _with_interval(cell, terms if name == "Avg" else [(1.0, scores[name])]) for name, cell in cells.items()}


def points_of(verdict: Verdict) -> float | None:
    """Out of ten, as the judge gave them: a mean of tens of shares is not rounded as a mean of points is."""
    return verdict.score if verdict.score is not None or verdict.value is None else 10 * verdict.value


def by_dialogue(verdicts: Sequence[Verdict]) -> dict[str, list[float]]:
    made: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.value is not None:
            made.setdefault(verdict.sample, []).append(verdict.value)
    return made


def _with_interval(cell: Cell, terms: Sequence[tuple[float, Mapping[str, Sequence[float]]]]) -> Cell:
    found = spread(terms)
    return cell if found is None else replace(cell, low=round(found[0], 3), high=round(found[1], 3))


def tables(runs: Sequence[Finished]) -> Iterator[Table]:
    """Table 2 and Tables 7-10 with our rows before the published ones, then our domains."""
    paper: Mapping[str, Any] = published("weft.benchmarks.weave") if all(run.dataset != "tabletop" for run in runs) else {}
    data = "WEAVEBench" if paper else "Tabletop in WEAVEBench's format"
    columns = (*CLASSES, "Avg")
    theirs = published_rows(paper.get("table2", {}), LABEL, {column: column for column in columns}, JUDGE)
    title = f"{data}: Avg by class and overall (paper, Table 2)"
    yield Table(title, columns, rows_of(runs, _by_class, paper=theirs), NOTE if theirs else "")
    for name, number in PAPER_TABLE.items():
        theirs = published_rows(paper.get(number, {}), LABEL, {column: column for column in COLUMNS}, JUDGE)
        ours = rows_of(runs, lambda run, official, name=name: metrics(_part(run, "class", name), official=official), paper=theirs)
        yield Table(f"{data}: {name} (paper, Table {number.removeprefix('table')})", COLUMNS, ours)
    for run in runs:
        parts = {f"{domain} ({name})": _part(run, "domain", domain) for name, domains in CLASSES.items() for domain in domains}
        parts = {**{name: some for name, some in parts.items() if some}, "overall": run.verdicts}
        rows = [Row(name, metrics(some, official=False), kind="part", run=run.run, judge=run.judge) for name, some in parts.items()]
        yield Table(f"{run.name}: by domain", COLUMNS, tuple(rows), rows_are="parts")


def _by_class(run: Finished, official: bool) -> dict[str, Cell]:
    parts = {name: _part(run, "class", name) for name in CLASSES}
    by_class = {name: metrics(some, official=official)["Avg"] for name, some in parts.items() if some}
    return {**by_class, "Avg": metrics(run.verdicts, official=official)["Avg"]}


def _part(run: Finished, group: str, name: str) -> Sequence[Verdict]:
    return [verdict for verdict in run.verdicts if run.groups[verdict.sample][group] == name]
