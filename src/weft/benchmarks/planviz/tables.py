"""PlanScore's numbers, from 0 to 1: Tables 3 to 5 of the paper with our rows before the published ones, then what is
behind ours: parts, distributions, and wordings where a task was given in several.

Avg of a sub-task is the mean of its Cor, Vis and Ef; Overall the mean of the sub-tasks' Avgs (paper, section 4).
`strict`: a model's failure is zero, what is unscored is in no mean. `official`: what the released scorer computes of
the same replies: tasks without a picture, and replies that do not end in a digit, are in no mean, and nothing keeps a
score within its scale."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.official import score_or_none
from weft.benchmarks.planviz.data import QUESTION_TYPES, SUBTASKS, TASKS
from weft.benchmarks.planviz.facts import read_plan_facts
from weft.benchmarks.planviz.official import OFFICIAL
from weft.benchmarks.planviz.rubric import COLUMNS as COLUMNS
from weft.benchmarks.planviz.style_tables import build_style_tables, is_study
from weft.benchmarks.rows import (
    CountedVerdict,
    VerdictT,
    WeightedTerms,
    build_breakdown,
    build_mean_cell,
    build_published_rows,
    build_rows,
    flatten_verdicts,
    read_published,
)
from weft.types import Cell, Row, Table, Verdict

JUDGE = OFFICIAL.published_judge
TITLES = {"route": "Route", "workflow": "Workflow", "ui": "Web&UI"}
PRINTED = {"route": "Route", "workflow": "Workflow", "ui": "WebUI"}
NAMES = {"gen": "generation", "edit": "editing"}
NUMBERS = {"edit": "table3", "gen": "table4"}
BINS = ("0", "to 0.2", "to 0.4", "to 0.6", "to 0.8", "below 1", "1")
NOTE = (
    "0 to 1. Avg: the mean of Cor, Vis and Ef. Over several sub-tasks each column is the plain mean of the sub-tasks, whatever their size. "
    "A cell `0.81 (37/40)` rests on 37 of 40 tasks: the rest could not be scored."
)
PAPER = "Published rows were judged by Qwen3-VL-235B-A22B-Instruct with the authors' prompts; `Overall as printed` is not always the mean."
UNASKED = (
    "The released code judges a workflow's picture beside the page it is drawn from, and copies of a source like all else; a run with "
    "--official asks so as well, and has the official numbers that are not here."
)


def overall_terms(verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
    """The mean of the Avgs of the cells that are there."""
    cells: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        of = groups[verdict.sample]
        cells.setdefault((of["task"], of["subtask"]), []).append(verdict)
    return [(weight / len(cells), some) for cell in cells.values() for weight, some in _average(cell)]


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    if all(run.dataset == "planviz" for run in runs):
        paper: Mapping[str, Any] = read_published("weft.benchmarks.planviz")
    else:
        paper = {}
    whose = {"planviz": "PlanViz", "tabletop": "Tabletop in PlanViz's format"}
    if runs:
        data = whose.get(runs[0].dataset, "Tasks of one's own in PlanViz's format")
    else:
        data = "PlanViz"
    yield _overall(runs, paper, f"{data}: overall")
    for task, number in (("edit", 3), ("gen", 4)):
        if any(_of(run, False, task=task) for run in runs):
            yield _by_subtask(
                runs, paper.get(NUMBERS[task], {}), task, f"{data}: {NAMES[task]} (paper, Table {number})"
            )
    if any(_of(run, False, ended=ended) for run in runs for ended in QUESTION_TYPES):
        yield _open_closed(
            runs, paper.get("table5", {}), f"{data}: open-ended against closed-ended tasks (paper, Table 5)"
        )
    yield from build_style_tables(
        [(run, _entries(run, False)) for run in runs if is_study(run.groups)], f"{data}: prompt styles"
    )
    for run in runs:
        yield from build_breakdown(run, "by sub-task and task", (*COLUMNS, "Avg"), _parts)
        yield from build_breakdown(run, "how scores are distributed, percent of tasks", BINS, _distributions, 1)


def _entries(run: RunResults, official: bool) -> list[CountedVerdict]:
    """A run's verdicts, as the arithmetic takes them; those of several wordings are of one task."""
    made: list[CountedVerdict] = []
    for one in run.verdicts:
        if official:
            value = score_or_none(OFFICIAL.score(one))
        else:
            value = one.value
        if value is not None or not official:
            made.append(CountedVerdict(one, value, one.metric, run.groups[one.sample].get("of", one.sample)))
    return made


def _of(run: RunResults, official: bool, **groups: str) -> list[CountedVerdict]:
    """Those of some groups."""
    given = [all(run.groups[one.sample].get(name) == value for name, value in groups.items()) for one in run.verdicts]
    some = replace(run, verdicts=[one for one, kept in zip(run.verdicts, given, strict=True) if kept])
    return _entries(some, official)


def _metric(verdicts: Sequence[VerdictT], name: str) -> list[VerdictT]:
    return [one for one in verdicts if one.metric == COLUMNS[name]]


def _average(verdicts: Sequence[VerdictT]) -> list[tuple[float, Sequence[VerdictT]]]:
    return [(1 / len(COLUMNS), _metric(verdicts, name)) for name in COLUMNS]


def _cell(terms: WeightedTerms, official: bool) -> Cell:
    """Four digits are kept, of which tables show two. Official numbers that nobody asked for as the released code does
    are none."""
    if official and any(map(OFFICIAL.lacks_official_question, flatten_verdicts([some for _, some in terms]))):
        return Cell(None)
    if terms:
        return build_mean_cell(terms, digits=4)
    return Cell(None)


def _cells(groups: Sequence[Sequence[CountedVerdict]], official: bool) -> dict[str, Cell]:
    """Of one sub-task, or the plain means of several."""
    there = [some for some in groups if some]
    if there:
        share = 1 / len(there)
    else:
        share = 1.0
    made = {name: _cell([(share, _metric(some, name)) for some in there], official) for name in COLUMNS}
    return {**made, "Avg": _cell([(share * weight, of) for some in there for weight, of in _average(some)], official)}


def _overall(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    rows: list[Row] = []
    for task in ("edit", "gen"):
        some = [run for run in runs if _of(run, False, task=task)]

        def cells(run: RunResults, official: bool, task: str = task) -> dict[str, Cell]:
            made = _cells([_of(run, official, task=task, subtask=subtask) for subtask in SUBTASKS], official)
            if not official or any(cell.value is not None for cell in made.values()):
                return made
            return cells(run, False)

        rows += build_rows(some, cells, of=NAMES[task])
    for task in ("edit", "gen"):
        rows += [_published(row, task) for row in paper.get(NUMBERS[task], {}).get("rows", ())]
    columns = (*COLUMNS, "Avg", *(("Overall as printed",) if paper else ()))
    unasked = any(OFFICIAL.lacks_official_question(one) for run in runs for one in run.verdicts)
    note = " ".join([NOTE, *([UNASKED] if unasked else []), *_left(runs), *([PAPER] if paper else [])])
    return Table(title, columns, tuple(rows), note, 2, "mixed")


def _left(runs: Sequence[RunResults]) -> list[str]:
    """How many key points a judge that reads words alone could decide."""
    told: list[str] = []
    for run in runs:
        facts = [read_plan_facts(one) for one in run.verdicts if one.metric == COLUMNS["Cor"]]
        if any(one.undecided for one in facts):
            decided = sum(len(one.points) for one in facts)
            due = sum(len(one.points) + len(one.undecided) or one.expected for one in facts)
            told.append(f"{run.name}: Cor rests on the {decided} of {due} key points that are plain words.")
    return told


def _published(row: Mapping[str, Any], task: str) -> Row:
    """The paper's model: plain means of what is printed for the sub-tasks, and Overall as it is printed."""
    cells = {
        name: Cell(round(statistics.fmean(row[f"{PRINTED[one]}_{name}"] for one in SUBTASKS), 4))
        for name in (*COLUMNS, "Avg")
    }
    return Row(
        f"{row['model']}, {NAMES[task]}",
        {**cells, "Overall as printed": Cell(row["Overall"])},
        kind="published",
        judge=JUDGE,
    )


def _by_subtask(runs: Sequence[RunResults], paper: Mapping[str, Any], task: str, title: str) -> Table:
    keys = {f"{TITLES[one]} {name}": f"{PRINTED[one]}_{name}" for one in SUBTASKS for name in (*COLUMNS, "Avg")}

    def found(run: RunResults, official: bool) -> dict[str, Cell]:
        groups = {one: _of(run, official, task=task, subtask=one) for one in SUBTASKS}
        cells = {
            f"{TITLES[one]} {name}": cell
            for one, some in groups.items()
            for name, cell in _cells([some], official).items()
        }
        made = {**cells, "Overall": _cells(list(groups.values()), official)["Avg"]}
        if not official or any(cell.value is not None for cell in made.values()):
            return made
        return found(run, False)

    theirs = build_published_rows(paper, lambda row: row["model"], {**keys, "Overall": "Overall"}, JUDGE)
    some = [run for run in runs if _of(run, False, task=task)]
    return Table(title, (*keys, "Overall"), build_rows(some, found, paper=theirs), "", 2)


def _open_closed(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    """Each column is the plain mean of the sub-tasks."""
    places = {
        f"{ended} {task} {name}": (ended, task, name) for task in TASKS for ended in QUESTION_TYPES for name in COLUMNS
    }

    def found(run: RunResults, official: bool) -> dict[str, Cell]:
        made: dict[tuple[str, str], dict[str, Cell]] = {}
        for ended in QUESTION_TYPES:
            for task in TASKS:
                groups = [_of(run, official, ended=ended, task=task, subtask=one) for one in SUBTASKS]
                made[ended, task] = _cells(groups, official)
        return {column: made[ended, task][name] for column, (ended, task, name) in places.items()}

    rows: dict[str, dict[str, Cell]] = {}
    for row in paper.get("rows", ()):
        task = next(short for short, name in NAMES.items() if name == row["task"])
        of = rows.setdefault(row["model"], {})
        of.update({f"{row['question_type']} {task} {name}": Cell(row[name]) for name in COLUMNS})
    theirs = [Row(model, cells, kind="published", judge=JUDGE) for model, cells in rows.items()]
    note = "Tasks that are marked as neither are in no column."
    return Table(title, tuple(places), build_rows(runs, found, paper=theirs), note, 2)


def _parts(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    made: dict[str, Mapping[str, Cell]] = {}
    for task in TASKS:
        for subtask in SUBTASKS:
            if _of(run, False, task=task, subtask=subtask):
                made[f"{TITLES[subtask]}, {NAMES[task]}"] = _cells(
                    [_of(run, official, task=task, subtask=subtask)], official
                )
    return made


def _distributions(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    made: dict[str, Mapping[str, Cell]] = {}
    for task in TASKS:
        for subtask in SUBTASKS:
            some = _of(run, official, task=task, subtask=subtask)
            for name in COLUMNS:
                scored = [one for one in _metric(some, name) if one.value is not None]
                if scored:
                    made[f"{TITLES[subtask]}, {NAMES[task]}, {name}"] = _binned(scored)
    return made


def _binned(scored: Sequence[CountedVerdict]) -> dict[str, Cell]:
    counts: dict[str, int] = dict.fromkeys(BINS, 0)
    for value in (one.value or 0.0 for one in scored):
        inner = next((name for name, top in zip(BINS[1:5], (0.2, 0.4, 0.6, 0.8), strict=True) if value <= top), BINS[5])
        counts["0" if value <= 0 else "1" if value >= 1 else inner] += 1
    total = len(scored)
    behind = flatten_verdicts([scored])
    return {name: Cell(round(100 * count / total, 1), total, total, verdicts=behind) for name, count in counts.items()}
