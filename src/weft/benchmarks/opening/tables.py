"""Scores of single answers, 0 to 10: seven criteria and their mean, as in OpenING's summary, with the published rows.

`strict`: a model's failure is zero; an unscored answer is in no mean. `official`: an answer that is missing, or lacks a
score, is left out as a whole; each mean is rounded to two digits, and Overall is the mean of the rounded ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import RunResults
from weft.benchmarks.opening.official import OFFICIAL
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.rows import (
    AnyVerdict,
    build_breakdown,
    build_mean_cell,
    build_published_rows,
    build_rows,
    flatten_verdicts,
    read_published,
    unwrap_verdict,
)
from weft.types import Cell, MissingScore, Table

JUDGE = OFFICIAL.published_judge
COLUMNS = (*CRITERIA, "Overall")
NOTE = "0 to 10. Overall: the mean of the seven. Win rates come from the arena: `weft arena run`."


def build_strict_cells(counted: Sequence[AnyVerdict]) -> dict[str, Cell]:
    """Return a cell for each criterion, and Overall if all seven have verdicts."""
    cells: dict[str, Cell] = {}
    terms: list[tuple[float, Sequence[AnyVerdict]]] = []
    for name in CRITERIA:
        verdicts = [verdict for verdict in counted if verdict.metric == name]
        if verdicts:
            cells[name] = build_mean_cell(verdicts, digits=4, scale=10)
            terms.append((1 / len(CRITERIA), verdicts))
        else:
            cells[name] = Cell(None)
    if len(terms) == len(CRITERIA):
        cells["Overall"] = build_mean_cell(terms, digits=4, scale=10)
    else:
        cells["Overall"] = Cell(None)
    return cells


def find_incomplete_samples(counted: Sequence[AnyVerdict]) -> set[str]:
    """Return the samples that the released summary leaves out as a whole, since one of their scores is missing."""
    samples: set[str] = set()
    for verdict in counted:
        if isinstance(OFFICIAL.score(unwrap_verdict(verdict)), MissingScore):
            samples.add(verdict.sample)
    return samples


def build_official_cells(counted: Sequence[AnyVerdict]) -> dict[str, Cell]:
    """Return the cells of the released summary.

    `expected` of Overall counts answers, each of which has a verdict for each criterion.
    """
    incomplete = find_incomplete_samples(counted)
    complete = [verdict for verdict in counted if verdict.sample not in incomplete]
    cells: dict[str, Cell] = {}
    means: list[float] = []
    for name in CRITERIA:
        verdicts = [verdict for verdict in complete if verdict.metric == name]
        cell = build_mean_cell(verdicts, digits=2, scale=10)
        cells[name] = cell
        if cell.value is not None:
            means.append(cell.value)
    if len(means) < len(CRITERIA):
        cells["Overall"] = Cell(None)
        return cells
    answers = len({verdict.sample for verdict in complete})
    overall = round(sum(means) / len(means), 2)
    cells["Overall"] = Cell(overall, answers, answers, verdicts=flatten_verdicts([complete]))
    return cells


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield the main table, then each run's scores by task."""
    published: Mapping[str, Any] = {}
    if all(run.dataset == "opening" for run in runs):
        published = read_published("weft.benchmarks.opening")
    keys = {name: name for name in COLUMNS}
    published_rows = build_published_rows(published.get("scores", {}), lambda row: row["Model_Name"], keys, JUDGE)
    yield Table("OpenING: single answers", COLUMNS, build_rows(runs, _build_cells, paper=published_rows), NOTE, 2)
    for run in runs:
        yield from build_breakdown(run, "by task", COLUMNS, _build_task_cells, 2)


def _build_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    # Where no answer is left out, rounding before the last mean does not make a second row.
    if official and find_incomplete_samples(run.verdicts):
        return build_official_cells(run.verdicts)
    return build_strict_cells(run.verdicts)


def _build_task_cells(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    cells: dict[str, Mapping[str, Cell]] = {}
    for task in sorted({groups.get("task", "") for groups in run.groups.values()}):
        verdicts = [verdict for verdict in run.verdicts if run.groups[verdict.sample].get("task", "") == task]
        if task and verdicts:
            cells[task] = build_strict_cells(verdicts)
    return cells
