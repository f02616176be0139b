"""GEdit-Bench's numbers, from 0 to 10: for each language the overall score by task, then SC, PQ and O of the full set
and of the intersection, and breakdowns.

Avg and the numbers of a set are plain means over its tasks, whatever their size (calculate_statistics.py).
`strict`: a model's failure is zero, an edit that could not be scored is in no mean. `official`: edits without an image
are skipped, and an edit counts only if both of its replies could be read.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.edits.counting import count_verdicts, select_metric
from weft.benchmarks.gedit.data import LANGUAGES, TASKS
from weft.benchmarks.gedit.official import MAX_SCORE, OFFICIAL
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
from weft.types import Cell, Row, Table, Verdict

TASK_COLUMNS = dict(
    zip(
        TASKS,
        ("BG", "Color", "Mat.", "Motion", "Port.", "Style", "Add", "Remove", "Replace", "Text", "Tone"),
        strict=True,
    )
)
TASK_MEANINGS = {
    "BG": "Background change",
    "Color": "Color alteration",
    "Mat.": "Material alteration",
    "Motion": "Motion change",
    "Port.": "Portrait beautification (ps_human)",
    "Style": "Style change",
    "Add": "Subject addition",
    "Remove": "Subject removal",
    "Replace": "Subject replacement",
    "Text": "Text change",
    "Tone": "Tone transfer",
}
SCORE_COLUMNS = {"SC": "sc", "PQ": "pq", "O": "overall"}
INTERSECTION = "intersection "
SET_COLUMNS = (*SCORE_COLUMNS, *(f"{INTERSECTION}{column}" for column in SCORE_COLUMNS))
DATA_TITLES = {"gedit": "GEdit-Bench", "tabletop": "Tabletop in GEdit-Bench's format"}
LANGUAGE_TITLES = {"en": "EN", "cn": "CN"}
NOTE = (
    "0 to 10. Each number is the plain mean over tasks, whatever their size. A cell `6.52 (37/40)` rests on 37 of 40 "
    "edits: the rest could not be scored."
)
WEAVE_NOTE = "Published rows: WEAVE, Table 3, which does not name its judge."
WEAVER_NOTE = (
    "Published rows: Wan-Weaver, Table 3, which does not name its judge. WEAVE prints other numbers for the same "
    "models (OmniGen2 5.57 there, 6.42 here): the two papers' columns are not one."
)


def overall_terms(verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
    """Return the weighted terms of the mean of languages, each of which is the mean of its tasks."""
    by_language: dict[str, dict[str, list[Verdict]]] = {}
    for verdict in select_metric(verdicts, "overall"):
        own_groups = groups[verdict.sample]
        by_language.setdefault(own_groups["language"], {}).setdefault(own_groups["task"], []).append(verdict)
    terms: list[tuple[float, Sequence[Verdict]]] = []
    for by_task in by_language.values():
        weight = 1 / len(by_language) / len(by_task)
        terms += [(weight, own_verdicts) for own_verdicts in by_task.values()]
    return terms


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield both tables of each language, and each run's breakdowns. Without runs these are the published tables."""
    published: Mapping[str, Any] = {}
    if all(run.dataset == "gedit" for run in runs):
        published = read_published("weft.benchmarks.gedit")
    data = "GEdit-Bench"
    if runs:
        data = DATA_TITLES.get(runs[0].dataset, "Own edits in GEdit-Bench's format")
    for language in LANGUAGES:
        with_language = [run for run in runs if _select(run.verdicts, run.groups, language=language)]
        rows_of_papers = published if language == "en" else {}
        if with_language or (not runs and rows_of_papers):
            yield _build_task_table(with_language, rows_of_papers, data, language)
            yield _build_set_table(with_language, rows_of_papers, data, language)
        yield from _build_breakdowns(with_language, data, language)


def _build_task_table(runs: Sequence[RunResults], published: Mapping[str, Any], data: str, language: str) -> Table:
    columns = (*TASK_COLUMNS.values(), "Avg")

    def cells(run: RunResults, official: bool) -> dict[str, Cell]:
        counted = select_metric(_count(run, official, language), "overall")
        built = {
            column: _build_cell([counted_of], official)
            for column, counted_of in zip(TASK_COLUMNS.values(), _split(run, counted), strict=True)
        }
        return {**built, "Avg": _build_cell(_split_present(run, counted, language=language), official)}

    paper = build_published_rows(published.get("weave_table3", {}), _name, {column: column for column in columns}, "")
    note = f"{NOTE} {WEAVE_NOTE}" if paper else NOTE
    title = f"{data} {LANGUAGE_TITLES[language]}: overall score by task"
    return Table(title, columns, build_rows(runs, cells, paper=paper), note, 2)


def _build_set_table(runs: Sequence[RunResults], published: Mapping[str, Any], data: str, language: str) -> Table:
    def cells(run: RunResults, official: bool) -> dict[str, Cell]:
        counted = _count(run, official, language)
        common = [one for one in counted if run.groups[one.sample].get("subset") == "intersection"]
        built: dict[str, Cell] = {}
        for column, metric in SCORE_COLUMNS.items():
            whole = _split_present(run, select_metric(counted, metric), language=language)
            part = _split_present(run, select_metric(common, metric), language=language, subset="intersection")
            built[column] = _build_cell(whole, official)
            built[f"{INTERSECTION}{column}"] = _build_cell(part, official)
        return {column: built[column] for column in SET_COLUMNS}

    paper: list[Row] = []
    for row in build_published_rows(published.get("weaver_table3", {}), _name, {"O": "O"}, ""):
        empty = {column: Cell(None) for column in SET_COLUMNS}
        paper.append(replace(row, cells={**empty, **row.cells}))
    note = f"{NOTE} {WEAVER_NOTE}" if paper else NOTE
    title = f"{data} {LANGUAGE_TITLES[language]}: semantics, quality and overall"
    return Table(title, SET_COLUMNS, build_rows(runs, cells, paper=paper), note, 2)


def _build_breakdowns(runs: Sequence[RunResults], data: str, language: str) -> Iterator[Table]:
    def breakdown(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
        counted = _count(run, official, language)
        rows: dict[str, Mapping[str, Cell]] = {}
        for task in TASKS:
            own = [one for one in counted if run.groups[one.sample]["task"] == task]
            if own:
                rows[task] = {
                    column: _build_cell([select_metric(own, metric)], official)
                    for column, metric in SCORE_COLUMNS.items()
                }
        return rows

    title = f"by task, {LANGUAGE_TITLES[language]}"
    if runs:
        yield from build_breakdowns(runs, data, title, tuple(SCORE_COLUMNS), breakdown, 2, shown=("O",))


def _name(row: Mapping[str, Any]) -> str:
    return row["model"]


def _select(verdicts: Sequence[Verdict], groups: SampleGroups, **wanted: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if wanted.items() <= groups[verdict.sample].items()]


def _count(run: RunResults, official: bool, language: str) -> list[CountedVerdict]:
    """Return what counts of a language. For the released scripts an edit has all of its scores or none."""
    verdicts = _select(run.verdicts, run.groups, language=language)
    if not official:
        return count_verdicts(verdicts, None)
    counted = count_verdicts(verdicts, OFFICIAL)
    complete = {one.sample for one in select_metric(counted, "overall") if one.value is not None}
    return [one if one.sample in complete else replace(one, value=None) for one in counted]


def _split(run: RunResults, counted: Sequence[CountedVerdict]) -> list[list[CountedVerdict]]:
    """Split verdicts by task, in the order of the tasks."""
    by_task: dict[str, list[CountedVerdict]] = {task: [] for task in TASKS}
    for one in counted:
        by_task[run.groups[one.sample]["task"]].append(one)
    return list(by_task.values())


def _split_present(run: RunResults, counted: Sequence[CountedVerdict], **wanted: str) -> list[list[CountedVerdict]]:
    """Split verdicts by task, for the tasks of which the run has samples in these groups."""
    present = {groups["task"] for groups in run.groups.values() if wanted.items() <= groups.items()}
    return [own for task, own in zip(TASKS, _split(run, counted), strict=True) if task in present]


def _build_cell(parts: Sequence[Sequence[CountedVerdict]], official: bool) -> Cell:
    """Return the plain mean of the means of the parts."""
    if not any(parts):
        return Cell(None)
    cell = build_mean_cell([(1 / len(parts), part) for part in parts], scale=MAX_SCORE)
    if official:
        return with_official_counts(cell, OFFICIAL, flatten_verdicts(parts))
    return cell
