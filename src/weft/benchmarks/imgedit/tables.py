"""ImgEdit-Bench's numbers, from 1 to 5, where a missing image is 0: the basic suite by type, UGE, dialogues by turn.

Overall is the plain mean of the nine types: no released script computes it, and the published rows agree with it.
`strict`: a model's failure is zero, an edit that could not be scored is in no mean. `official`: the average of what the
released scripts read in each reply, rounded to two decimals, as are means; replies without a score are in no mean. They
stop at a missing image: then there is no official number.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.edits.counting import count_verdicts, select_metric
from weft.benchmarks.imgedit.data import BASIC, MULTI_TURN, TYPES, UGE
from weft.benchmarks.imgedit.official import OFFICIAL, RELEASED_DIGITS, STOPS
from weft.benchmarks.imgedit.official_reading import MAX_SCORE
from weft.benchmarks.official import with_official_counts
from weft.benchmarks.rows import (
    CountedVerdict,
    build_breakdowns,
    build_mean_cell,
    build_published_rows,
    build_rows,
    flatten_verdicts,
    read_published,
)
from weft.types import Cell, Table, Verdict

SCORE = "score"
COLUMNS = {name: name.capitalize() for name in TYPES}
METRIC_COLUMNS = {"Compliance": "compliance", "Seamlessness": "seamlessness", "Detail": "detail", "Score": SCORE}
DATA_TITLES = {"imgedit": "ImgEdit", "tabletop": "Tabletop in ImgEdit's format"}
NOTE = (
    "1 to 5; an edit without an image is 0. Overall: the plain mean of the types. A cell `3.06 (37/40)` rests on 37 of "
    "40 edits: the rest could not be scored."
)
PUBLISHED_NOTE = "Published rows: Wan-Weaver, Table 3, which does not name its judge."
DIALOGUE_NOTE = "The model's own images are fed back. People judge dialogues for the authors: there is no official row."
STOPS_NOTE = "The released scripts stop at an edit without an image: there is no official number then."


def overall_terms(verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
    """Return the weighted terms of the mean over types: of the basic suite, or of what there is without it."""
    by_suite: dict[str, dict[str, list[Verdict]]] = {}
    for verdict in select_metric(verdicts, SCORE):
        own_groups = groups[verdict.sample]
        by_suite.setdefault(own_groups["suite"], {}).setdefault(own_groups["type"], []).append(verdict)
    by_type: dict[str, list[Verdict]] = {}
    if BASIC in by_suite:
        by_type = by_suite[BASIC]
    else:
        for types in by_suite.values():
            by_type.update(types)
    return [(1 / len(by_type), own_verdicts) for own_verdicts in by_type.values()]


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield the table of each suite, and each run's breakdowns. Without runs these are the published tables."""
    published: Mapping[str, Any] = {}
    if all(run.dataset == "imgedit" for run in runs):
        published = read_published("weft.benchmarks.imgedit")
    data = "ImgEdit"
    if runs:
        data = DATA_TITLES.get(runs[0].dataset, "Own edits in ImgEdit's format")
    basic = _select_runs(runs, BASIC)
    if basic or not runs:
        yield _build_basic_table(basic, published, f"{data}: basic edits by type")
    uge = _select_runs(runs, UGE)
    if uge:
        rows = build_rows(uge, _build_uge_cells, released_digits=RELEASED_DIGITS)
        yield Table(f"{data}: hard edits (UGE)", ("Score",), rows, _note(uge, NOTE), 2)
    dialogues = _select_runs(runs, MULTI_TURN)
    if dialogues:
        columns = _list_turn_columns(dialogues)

        def cells(run: RunResults, official: bool) -> dict[str, Cell]:
            return _build_turn_cells(run, columns)

        yield Table(f"{data}: dialogues by turn", (*columns, "All"), build_rows(dialogues, cells), DIALOGUE_NOTE, 2)
    if runs:
        by_type = tuple(METRIC_COLUMNS)
        yield from build_breakdowns(runs, data, "by type", by_type, _break_down, 2, RELEASED_DIGITS, shown=("Score",))


def _select_runs(runs: Sequence[RunResults], suite: str) -> list[RunResults]:
    return [run for run in runs if any(groups["suite"] == suite for groups in run.groups.values())]


def _note(runs: Sequence[RunResults], *notes: str) -> str:
    if any(map(_stops, runs)):
        notes = (*notes, STOPS_NOTE)
    return " ".join(notes)


def _build_basic_table(runs: Sequence[RunResults], published: Mapping[str, Any], title: str) -> Table:
    columns = (*COLUMNS.values(), "Overall")
    empty = {column: Cell(None) for column in columns}
    table = published.get("weaver_table3", {})
    printed = build_published_rows(table, lambda row: row["model"], {"Overall": "Overall"}, "")
    paper = [replace(row, cells={**empty, **row.cells}) for row in printed]
    notes = (NOTE, PUBLISHED_NOTE) if paper else (NOTE,)
    rows = build_rows(runs, _build_basic_cells, paper=paper, released_digits=RELEASED_DIGITS)
    return Table(title, columns, rows, _note(runs, *notes), 2)


def _build_basic_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    counted = _count(run, BASIC, official)
    by_type: dict[str, list[CountedVerdict]] = {name: [] for name in TYPES}
    for one in counted:
        by_type[run.groups[one.sample]["type"]].append(one)
    present = {groups["type"] for groups in run.groups.values() if groups["suite"] == BASIC}
    cells = {COLUMNS[name]: _build_cell(run, [own], official) for name, own in by_type.items()}
    overall = _build_cell(run, [own for name, own in by_type.items() if name in present], official)
    if official and overall.value is not None:  # over means that are rounded already
        means = [cells[COLUMNS[name]].value or 0.0 for name in TYPES if name in present]
        overall = replace(overall, value=sum(means) / len(means))
    return {**cells, "Overall": overall}


def _build_uge_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    return {"Score": _build_cell(run, [_count(run, UGE, official)], official)}


def _list_turn_columns(runs: Sequence[RunResults]) -> list[str]:
    most = 0
    for run in runs:
        for verdict in run.verdicts:
            if run.groups[verdict.sample]["suite"] == MULTI_TURN:
                most = max(most, verdict.turn + 1)
    return [f"Turn {number + 1}" for number in range(most)]


def _build_turn_cells(run: RunResults, columns: Sequence[str]) -> dict[str, Cell]:
    counted = _count(run, MULTI_TURN, False)
    cells: dict[str, Cell] = {}
    for number, column in enumerate(columns):
        cells[column] = _build_cell(run, [[one for one in counted if one.verdict.turn == number]], False)
    return {**cells, "All": _build_cell(run, [counted], False)}


def _break_down(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    """By suite and type; the released scripts have no numbers of single criteria, nor of dialogues."""
    rows: dict[str, Mapping[str, Cell]] = {}
    for suite, name in sorted({(groups["suite"], groups["type"]) for groups in run.groups.values()}):
        cells: dict[str, Cell] = {}
        for column, metric in METRIC_COLUMNS.items():
            is_official = official and metric == SCORE and suite != MULTI_TURN
            own = [one for one in _count(run, suite, is_official, metric) if run.groups[one.sample]["type"] == name]
            cells[column] = _build_cell(run, [own], is_official)
        rows[name if suite == name else f"{suite}: {name}"] = cells
    return rows


def _count(run: RunResults, suite: str, official: bool, metric: str = SCORE) -> list[CountedVerdict]:
    verdicts = [
        verdict for verdict in run.verdicts if verdict.metric == metric and run.groups[verdict.sample]["suite"] == suite
    ]
    return count_verdicts(verdicts, OFFICIAL if official else None)


def _stops(run: RunResults) -> bool:
    """Whether the released scripts have no numbers of this run."""
    for verdict in select_metric(run.verdicts, SCORE):
        if run.groups[verdict.sample]["suite"] == MULTI_TURN:
            continue
        for one in verdict.merged_from or (verdict,):
            if one.by == "failure" or (one.reading is not None and one.reading.text == STOPS):
                return True
    return False


def _build_cell(run: RunResults, parts: Sequence[Sequence[CountedVerdict]], official: bool) -> Cell:
    """Return the plain mean of the means of the parts; official ones of one part are rounded."""
    if not any(parts) or (official and _stops(run)):
        return Cell(None)
    cell = build_mean_cell([(1 / len(parts), part) for part in parts], scale=MAX_SCORE)
    if not official:
        return cell
    if cell.value is not None and len(parts) == 1:
        cell = replace(cell, value=round(cell.value, RELEASED_DIGITS))
    return with_official_counts(cell, OFFICIAL, flatten_verdicts(parts))
