"""GenEval's numbers: the share of right images by task and their mean, then images and prompts as a whole.

`strict`: an image that the model did not make is wrong, one that could not be judged is in no mean. `official`: an
image that is not there is in no mean, as in the released script, which goes through the files.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from weft.benchmarks.base import RunResults, SampleGroups
from weft.benchmarks.edits.counting import count_verdicts
from weft.benchmarks.geneval.data import TAGS, PromptForm
from weft.benchmarks.geneval.official import OFFICIAL
from weft.benchmarks.official import with_official_counts
from weft.benchmarks.rows import (
    CountedVerdict,
    build_mean_cell,
    build_published_rows,
    build_rows,
    flatten_verdicts,
    read_published,
)
from weft.types import Cell, Row, Table, Verdict

T = TypeVar("T", bound=Verdict | CountedVerdict)
COLUMNS = dict(zip(("Single", "Two", "Counting", "Colors", "Position", "Attributes"), TAGS, strict=True))
OVERALL = "Overall"
WHOLE = (OVERALL, "Images", "Prompts")
DATA_TITLES = {
    "geneval": "GenEval",
    "geneval-long": "GenEval, long prompts",
    "tabletop": "Tabletop in GenEval's format",
}
NOTE = "Share of right images by task; Overall is the mean of the tasks."
WHOLE_NOTE = "Images: right ones of all. Prompts: with at least one right image."
DETECTOR_NOTE = (
    "Published rows ({source}) are by mmdet's weights of Mask2Former, and scores moved even between GPUs; another "
    "detector gives other numbers: compare rows by the same detector alone."
)
LONG_NOTE = "Each paper's own rewriter made the long prompts of its rows."


def build_tables(runs: Sequence[RunResults], form: PromptForm) -> Iterator[Table]:
    """Yield the tables of the runs. Without runs these are the published ones."""
    published: Mapping[str, Any] = {}
    if all(run.dataset == form.name for run in runs):
        published = read_published("weft.benchmarks.geneval")
    data = DATA_TITLES[form.name]
    if runs:
        data = DATA_TITLES.get(runs[0].dataset, "Own prompts in GenEval's format")
    by_task = [] if form.is_long else _read_rows(published.get("weave_table4", {}), (*COLUMNS, OVERALL))
    if runs or by_task:
        note = _add_notes(NOTE, by_task, "WEAVE, Table 4")
        yield Table(f"{data}: by task", (*COLUMNS, OVERALL), build_rows(runs, _build_task_cells, paper=by_task), note)
    whole = _read_rows(published.get("weaver_table3_long" if form.is_long else "weaver_table3", {}), WHOLE)
    note = _add_notes(WHOLE_NOTE, whole, "Wan-Weaver, Table 3")
    if form.is_long and whole:
        note = f"{note} {LONG_NOTE}"
    yield Table(f"{data}: images and prompts", WHOLE, build_rows(runs, _build_whole_cells, paper=whole), note)


def _read_rows(table: Mapping[str, Any], columns: Sequence[str]) -> list[Row]:
    """Return a paper's rows; what it does not print is empty."""
    rows: list[Mapping[str, Any]] = [{**dict.fromkeys(columns), **row} for row in table.get("rows", ())]
    keys = {column: column for column in columns}
    return build_published_rows({"rows": rows}, lambda row: row["model"], keys, OFFICIAL.published_judge)


def _add_notes(note: str, paper: Sequence[Row], source: str) -> str:
    if paper:
        return f"{note} {DETECTOR_NOTE.format(source=source)}"
    return note


def group_by_tag(verdicts: Sequence[T], groups: SampleGroups) -> dict[str, list[T]]:
    """Return the verdicts by task, in the order of the tasks; a task without any is left out."""
    by_tag: dict[str, list[T]] = {tag: [] for tag in TAGS}
    for verdict in verdicts:
        by_tag[groups[verdict.sample]["tag"]].append(verdict)
    return {tag: own for tag, own in by_tag.items() if own}


def _build_task_cells(run: RunResults, is_official: bool) -> dict[str, Cell]:
    by_tag = group_by_tag(_count(run, is_official), run.groups)
    cells: dict[str, Cell] = {}
    for column, tag in COLUMNS.items():
        cells[column] = _build_cell([(1.0, by_tag[tag])] if tag in by_tag else [], is_official)
    return {**cells, OVERALL: _build_overall_cell(by_tag, is_official)}


def _build_whole_cells(run: RunResults, is_official: bool) -> dict[str, Cell]:
    counted = _count(run, is_official)
    return {
        OVERALL: _build_overall_cell(group_by_tag(counted, run.groups), is_official),
        "Images": _build_cell([(1.0, counted)], is_official),
        "Prompts": _build_cell([(1.0, _best_of_prompts(counted))], is_official),
    }


def _count(run: RunResults, is_official: bool) -> list[CountedVerdict]:
    return count_verdicts(run.verdicts, OFFICIAL if is_official else None)


def _build_overall_cell(by_tag: Mapping[str, Sequence[CountedVerdict]], is_official: bool) -> Cell:
    return _build_cell([(1 / len(by_tag), own) for own in by_tag.values()], is_official)


def _best_of_prompts(counted: Sequence[CountedVerdict]) -> list[CountedVerdict]:
    """Return one verdict of each prompt: right if one of its images is, and open if one may be."""
    by_prompt: dict[str, list[CountedVerdict]] = {}
    for one in counted:
        by_prompt.setdefault(one.sample, []).append(one)
    return [max(own, key=_rank) for own in by_prompt.values()]


def _rank(one: CountedVerdict) -> float:
    if one.value is None:
        return 0.5  # it may be right: below a right image, above a wrong one
    return one.value


def _build_cell(terms: Sequence[tuple[float, Sequence[CountedVerdict]]], is_official: bool) -> Cell:
    if not any(own for _, own in terms):
        return Cell(None)
    cell = build_mean_cell(terms)
    if is_official:
        return with_official_counts(cell, OFFICIAL, flatten_verdicts([own for _, own in terms]))
    return cell
