"""PlanScore's numbers, from 0 to 1: Tables 3 to 5 of the paper with our rows before the published ones, then
breakdowns, distributions, and the study of wordings where tasks were given in several.

Avg of a sub-task is the mean of its Cor, Vis and Ef; Overall the mean of the sub-tasks' Avgs (paper, section 4).
`strict`: a model's failure is zero, an unscored task is in no mean. `official`: what the released scorer computes of
the same replies: tasks without an image, and replies that do not end in a digit, are in no mean, and nothing keeps a
score within its scale.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.official import score_or_none, with_official_counts
from weft.benchmarks.planviz.data import QUESTION_TYPES, SUBTASKS, TASKS
from weft.benchmarks.planviz.facts import read_plan_facts
from weft.benchmarks.planviz.official import OFFICIAL
from weft.benchmarks.planviz.rubric import COLUMNS
from weft.benchmarks.planviz.style_tables import build_style_tables, is_study
from weft.benchmarks.rows import (
    CountedVerdict,
    VerdictT,
    WeightedTerms,
    build_breakdown,
    build_breakdowns,
    build_mean_cell,
    build_published_rows,
    build_rows,
    describe_published,
    flatten_verdicts,
    read_published,
)
from weft.stats.distributions import find_bin, name_bins
from weft.types import Cell, Row, Table, Verdict

JUDGE = OFFICIAL.published_judge
SUBTASK_TITLES = {"route": "Route", "workflow": "Workflow", "ui": "Web&UI"}
PUBLISHED_SUBTASKS = {"route": "Route", "workflow": "Workflow", "ui": "WebUI"}
TASK_NAMES = {"gen": "generation", "edit": "editing"}
PUBLISHED_TABLES = {"edit": "table3", "gen": "table4"}
DATA_TITLES = {"planviz": "PlanViz", "tabletop": "Tabletop in PlanViz's format"}
SCORE_COLUMNS = (*COLUMNS, "Avg")
BINS = name_bins()
NOTE = (
    "0 to 1. Avg: the mean of Cor, Vis and Ef. Over several sub-tasks each column is the plain mean of the sub-tasks, "
    "whatever their size. A cell `0.81 (37/40)` rests on 37 of 40 tasks: the rest could not be scored."
)
PUBLISHED_NOTE = (
    "Published rows were judged by Qwen3-VL-235B-A22B-Instruct with the authors' prompts. `Overall as printed` is not "
    "always the mean."
)
NOT_ASKED_NOTE = (
    "The released code judges a workflow's image together with the page it is drawn from, and judges copies of a "
    "source like any other image; a run with --official also asks so, and has the official numbers that are missing "
    "here."
)


def overall_terms(verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
    """Return the weighted terms of the mean of the Avgs of all pairs of task and sub-task that have verdicts."""
    by_pair: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        own_groups = groups[verdict.sample]
        by_pair.setdefault((own_groups["task"], own_groups["subtask"]), []).append(verdict)
    if not by_pair:
        return []
    terms: list[tuple[float, Sequence[Verdict]]] = []
    weight = 1 / len(COLUMNS) / len(by_pair)
    for pair in by_pair.values():
        terms += [(weight, _select_metric(pair, name)) for name in COLUMNS]
    return terms


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield the overall table, the paper's Tables 3 to 5, the study of wordings, and each run's breakdowns.

    Without runs these are the published tables."""
    published: Mapping[str, Any] = {}
    if all(run.dataset == "planviz" for run in runs):
        published = read_published("weft.benchmarks.planviz")
    data = "PlanViz"
    if runs:
        data = DATA_TITLES.get(runs[0].dataset, "Own tasks in PlanViz's format")
    yield _build_overall_table(runs, published, f"{data}: overall")
    for task, number in (("edit", 3), ("gen", 4)):
        with_task = _select_runs(runs, task=task)
        if with_task or not runs:
            title = f"{data}: {TASK_NAMES[task]} (paper, Table {number})"
            yield _build_subtask_table(with_task, published.get(PUBLISHED_TABLES[task], {}), task, title)
    if not runs or any(_select_runs(runs, ended=question_type) for question_type in QUESTION_TYPES):
        title = f"{data}: open-ended against closed-ended tasks (paper, Table 5)"
        yield _build_question_type_table(runs, published.get("table5", {}), title)
    studies = [(run, _count_verdicts(run, False)) for run in runs if is_study(run.groups)]
    yield from build_style_tables(studies, f"{data}: prompt styles")
    by_subtask = "by sub-task and task"
    yield from build_breakdowns(runs, data, by_subtask, SCORE_COLUMNS, _build_breakdown_cells)
    for run in runs:
        title = "how scores are distributed, percent of tasks"
        yield from build_breakdown(run, title, BINS, _build_distribution_cells, 1)


def _count_verdicts(run: RunResults, official: bool, **groups: str) -> list[CountedVerdict]:
    """Return the verdicts of a run in some groups, with the values that the arithmetic counts.

    Wordings of one task count as one sample.
    """
    counted: list[CountedVerdict] = []
    for verdict in run.verdicts:
        own_groups = run.groups[verdict.sample]
        if not groups.items() <= own_groups.items():
            continue
        value = verdict.value
        if official:
            value = score_or_none(OFFICIAL.score(verdict))
            if not OFFICIAL.expects(verdict):
                continue
        counted.append(CountedVerdict(verdict, value, verdict.metric, own_groups.get("of", verdict.sample)))
    return counted


def _count_by_subtask(run: RunResults, official: bool, **groups: str) -> list[list[CountedVerdict]]:
    return [_count_verdicts(run, official, subtask=subtask, **groups) for subtask in SUBTASKS]


def _select_runs(runs: Sequence[RunResults], **groups: str) -> list[RunResults]:
    """Return the runs that have verdicts in these groups."""
    return [run for run in runs if _count_verdicts(run, False, **groups)]


def _select_metric(verdicts: Sequence[VerdictT], name: str) -> list[VerdictT]:
    return [verdict for verdict in verdicts if verdict.metric == COLUMNS[name]]


def _build_cell(terms: WeightedTerms, official: bool) -> Cell:
    """Return a mean.

    There is no official number if the released code asks its judge something that was not asked here, or leaves a
    whole term out.
    """
    if not terms:
        return Cell(None)
    cell = build_mean_cell(terms)
    if not official:
        return cell
    if any(map(OFFICIAL.lacks_official_question, cell.verdicts)):
        cell = replace(cell, value=None, low=None, high=None)
    elif cell.value is None and cell.scored == cell.expected:
        return Cell(None)
    return with_official_counts(cell, OFFICIAL)


def _build_cells(groups: Sequence[Sequence[CountedVerdict]], official: bool) -> dict[str, Cell]:
    """Return the cells of one sub-task, or the plain means over several."""
    non_empty = [group for group in groups if group]
    cells: dict[str, Cell] = {}
    average_terms: list[tuple[float, Sequence[CountedVerdict]]] = []
    for name in COLUMNS:
        terms = [(1 / len(non_empty), _select_metric(group, name)) for group in non_empty]
        cells[name] = _build_cell(terms, official)
    for group in non_empty:
        weight = 1 / len(non_empty) * (1 / len(COLUMNS))
        average_terms += [(weight, _select_metric(group, name)) for name in COLUMNS]
    cells["Avg"] = _build_cell(average_terms, official)
    return cells


def _build_overall_table(runs: Sequence[RunResults], published: Mapping[str, Any], title: str) -> Table:
    rows: list[Row] = []
    for task in ("edit", "gen"):

        def build_cells(run: RunResults, official: bool, task: str = task) -> dict[str, Cell]:
            return _build_cells(_count_by_subtask(run, official, task=task), official)

        rows += build_rows(_select_runs(runs, task=task), build_cells, TASK_NAMES[task])
    for task in ("edit", "gen"):
        published_rows = published.get(PUBLISHED_TABLES[task], {}).get("rows", ())
        rows += [_build_published_row(row, task) for row in published_rows]
    notes = [NOTE]
    if any(_lacks_official_question(run) for run in runs):
        notes.append(NOT_ASKED_NOTE)
    notes += _describe_undecided_points(runs)
    columns = SCORE_COLUMNS
    if published:
        notes.append(PUBLISHED_NOTE)
        columns = (*SCORE_COLUMNS, "Overall as printed")
    return Table(title, columns, tuple(rows), " ".join(notes), 2, "parts")


def _lacks_official_question(run: RunResults) -> bool:
    return any(map(OFFICIAL.lacks_official_question, run.verdicts))


def _describe_undecided_points(runs: Sequence[RunResults]) -> list[str]:
    """Return how many key points the OCR judge could decide, for each run that has undecided ones."""
    notes: list[str] = []
    for run in runs:
        decided = 0
        expected = 0
        has_undecided = False
        for verdict in _select_metric(run.verdicts, "Cor"):
            facts = read_plan_facts(verdict)
            decided += len(facts.points)
            expected += len(facts.points) + len(facts.undecided) or facts.expected
            has_undecided = has_undecided or bool(facts.undecided)
        if has_undecided:
            notes.append(f"{run.name}: Cor rests on the {decided} of {expected} key points that are plain words.")
    return notes


def _build_published_row(row: Mapping[str, Any], task: str) -> Row:
    """Return a model of the paper: plain means of what is printed for the sub-tasks, and Overall as it is printed."""
    cells: dict[str, Cell] = {}
    for name in SCORE_COLUMNS:
        printed = [row[f"{PUBLISHED_SUBTASKS[subtask]}_{name}"] for subtask in SUBTASKS]
        cells[name] = Cell(statistics.fmean(printed))
    cells["Overall as printed"] = Cell(row["Overall"])
    about = describe_published(row)
    return Row(row["model"], cells, kind="published", subset=TASK_NAMES[task], judge=JUDGE, about=about)


def _build_subtask_table(runs: Sequence[RunResults], published: Mapping[str, Any], task: str, title: str) -> Table:
    keys: dict[str, str] = {}
    for subtask in SUBTASKS:
        for name in SCORE_COLUMNS:
            keys[f"{SUBTASK_TITLES[subtask]} {name}"] = f"{PUBLISHED_SUBTASKS[subtask]}_{name}"
    keys["Overall"] = "Overall"

    def build_cells(run: RunResults, official: bool) -> dict[str, Cell]:
        cells: dict[str, Cell] = {}
        groups = _count_by_subtask(run, official, task=task)
        for subtask, group in zip(SUBTASKS, groups, strict=True):
            for name, cell in _build_cells([group], official).items():
                cells[f"{SUBTASK_TITLES[subtask]} {name}"] = cell
        cells["Overall"] = _build_cells(groups, official)["Avg"]
        return cells

    published_rows = build_published_rows(published, lambda row: row["model"], keys, JUDGE)
    return Table(title, tuple(keys), build_rows(runs, build_cells, paper=published_rows), "", 2)


def _build_question_type_table(runs: Sequence[RunResults], published: Mapping[str, Any], title: str) -> Table:
    """Return open-ended against closed-ended tasks; each column is the plain mean of the sub-tasks."""
    columns: list[str] = []
    for task in TASKS:
        for question_type in QUESTION_TYPES:
            columns += [f"{question_type} {task} {name}" for name in COLUMNS]

    def build_cells(run: RunResults, official: bool) -> dict[str, Cell]:
        cells: dict[str, Cell] = {}
        for task in TASKS:
            for question_type in QUESTION_TYPES:
                groups = _count_by_subtask(run, official, ended=question_type, task=task)
                means = _build_cells(groups, official)
                cells |= {f"{question_type} {task} {name}": means[name] for name in COLUMNS}
        return cells

    task_keys = {name: task for task, name in TASK_NAMES.items()}
    cells_by_model: dict[str, dict[str, Cell]] = {}
    doubts: dict[str, dict[str, str]] = {}
    for row in published.get("rows", ()):
        cells = cells_by_model.setdefault(row["model"], {})
        prefix = f"{row['question_type']} {task_keys[row['task']]}"
        for name in COLUMNS:
            cells[f"{prefix} {name}"] = Cell(row[name])
        if "doubt" in row:
            doubts.setdefault(row["model"], {})[f"{prefix} Cor"] = row["doubt"]
    published_rows = [
        Row(model, cells, kind="published", judge=JUDGE, notes=doubts.get(model, {}))
        for model, cells in cells_by_model.items()
    ]
    note = "Tasks that are marked as neither are in no column."
    return Table(title, tuple(columns), build_rows(runs, build_cells, paper=published_rows), note, 2)


def _build_breakdown_cells(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    cells: dict[str, Mapping[str, Cell]] = {}
    for task in TASKS:
        for subtask in SUBTASKS:
            if _count_verdicts(run, False, task=task, subtask=subtask):
                group = _count_verdicts(run, official, task=task, subtask=subtask)
                cells[f"{SUBTASK_TITLES[subtask]}, {TASK_NAMES[task]}"] = _build_cells([group], official)
    return cells


def _build_distribution_cells(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    cells: dict[str, Mapping[str, Cell]] = {}
    for task in TASKS:
        for subtask, group in zip(SUBTASKS, _count_by_subtask(run, official, task=task), strict=True):
            for name in COLUMNS:
                counted = _select_metric(group, name)
                if any(verdict.value is not None for verdict in counted):
                    row = f"{SUBTASK_TITLES[subtask]}, {TASK_NAMES[task]}, {name}"
                    cells[row] = _build_bin_cells(counted, official)
    return cells


def _build_bin_cells(counted: Sequence[CountedVerdict], official: bool) -> dict[str, Cell]:
    """Return what percentage of the scored tasks is in each bin. At least one must be scored."""
    counts: dict[str, int] = dict.fromkeys(BINS, 0)
    for verdict in counted:
        if verdict.value is not None:
            counts[BINS[find_bin(verdict.value)]] += 1
    total = sum(counts.values())
    verdicts = flatten_verdicts([counted])
    cells: dict[str, Cell] = {}
    for name, count in counts.items():
        cells[name] = Cell(100 * count / total, total, len(counted), verdicts=verdicts)
        if official:
            cells[name] = with_official_counts(cells[name], OFFICIAL)
    return cells
