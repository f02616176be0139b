"""Scores of single answers, 0 to 10: seven criteria and their mean, as in OpenING's summary, with the published rows.

`strict`: a model's failure is zero; an unscored answer is in no mean. `official`: an answer that is missing, or has no
verdict, is left out as a whole, of others each number counts that a reply contains; each mean is rounded to two digits,
and Overall is the mean of the rounded ones.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import NO_SCORE, score_or_none
from weft.benchmarks.opening.official import OFFICIAL
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.rows import (
    AnyVerdict,
    CountedVerdict,
    build_breakdowns,
    build_mean_cell,
    build_published_rows,
    build_rows,
    flatten_verdicts,
    read_published,
    unwrap_verdict,
)
from weft.types import Cell, MissingScore, Table, Verdict

JUDGE = OFFICIAL.published_judge
COLUMNS = (*CRITERIA, "Overall")
RELEASED_DIGITS = 2  # decimals to which the released summary rounds
NOTE = "0 to 10. Overall: the mean of the seven. Win rates come from the arena: `weft arena run`."


def build_strict_cells(counted: Sequence[AnyVerdict]) -> dict[str, Cell]:
    """Return a cell for each criterion, and Overall if all seven have verdicts."""
    cells: dict[str, Cell] = {}
    terms: list[tuple[float, Sequence[AnyVerdict]]] = []
    for name in CRITERIA:
        verdicts = [verdict for verdict in counted if verdict.metric == name]
        if verdicts:
            cells[name] = build_mean_cell(verdicts, scale=10)
            terms.append((1 / len(CRITERIA), verdicts))
        else:
            cells[name] = Cell(None)
    if len(terms) == len(CRITERIA):
        cells["Overall"] = build_mean_cell(terms, scale=10)
    else:
        cells["Overall"] = Cell(None)
    return cells


def find_incomplete_samples(counted: Sequence[AnyVerdict]) -> set[str]:
    """Return the samples that the released summary leaves out as a whole, since they have no answer or no reply."""
    samples: set[str] = set()
    for verdict in counted:
        score = OFFICIAL.score(unwrap_verdict(verdict))
        if isinstance(score, MissingScore) and score != NO_SCORE:
            samples.add(verdict.sample)
    return samples


def find_expected_samples(counted: Sequence[AnyVerdict]) -> set[str]:
    """Return the samples that official cells are about, scored or not: those that the model answered."""
    return {verdict.sample for verdict in counted if OFFICIAL.expects(unwrap_verdict(verdict))}


def build_official_cells(counted: Sequence[AnyVerdict]) -> dict[str, Cell]:
    """Return the cells of the released summary. An answer that we could not score as a whole is expected in them; a
    single criterion that is no number to the summary is not.

    `expected` of Overall counts answers, each of which has a verdict for each criterion.
    """
    incomplete = find_incomplete_samples(counted)
    expected_samples = find_expected_samples(counted)
    expected: list[CountedVerdict] = []
    for verdict in counted:
        if OFFICIAL.expects(unwrap_verdict(verdict)):
            value: float | None = None
            if verdict.sample not in incomplete:
                value = score_or_none(OFFICIAL.score(unwrap_verdict(verdict)))
            expected.append(CountedVerdict(unwrap_verdict(verdict), value, verdict.metric, verdict.sample))
    cells: dict[str, Cell] = {}
    means: list[float] = []
    for name in CRITERIA:
        verdicts = [verdict for verdict in expected if verdict.metric == name]
        cell = build_mean_cell(verdicts, scale=10)
        if cell.value is not None:
            means.append(round(cell.value, RELEASED_DIGITS))
            cell = replace(cell, value=means[-1])
        cells[name] = cell
    answers = len(expected_samples - incomplete)
    overall = None
    if len(means) == len(CRITERIA):
        overall = round(sum(means) / len(means), RELEASED_DIGITS)
    cells["Overall"] = Cell(None)
    if overall is not None or answers < len(expected_samples):
        cells["Overall"] = Cell(overall, answers, len(expected_samples), verdicts=flatten_verdicts([expected]))
    return cells


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield the main table, then each run's scores by task."""
    published: Mapping[str, Any] = {}
    if all(run.dataset == "opening" for run in runs):
        published = read_published("weft.benchmarks.opening")
    keys = {name: name for name in COLUMNS}
    published_rows = build_published_rows(published.get("scores", {}), lambda row: row["Model_Name"], keys, JUDGE)
    yield Table("OpenING: single answers", COLUMNS, build_rows(runs, _build_cells, paper=published_rows), NOTE, 2)
    yield from build_breakdowns(runs, "OpenING", "by task", COLUMNS, _build_task_cells, 2, shown=COLUMNS[-1:])


def _build_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    # Where all scores count as they are, rounding before the last mean does not make a second row.
    if official and any(map(_counts_otherwise, run.verdicts)):
        return build_official_cells(run.verdicts)
    return build_strict_cells(run.verdicts)


def _counts_otherwise(verdict: Verdict) -> bool:
    """Whether the released summary averages another score than ours, or none."""
    score = OFFICIAL.score(verdict)
    if isinstance(score, MissingScore) or verdict.value is None:
        return True
    return not math.isclose(score, verdict.value, abs_tol=1e-9)  # means over repeats are rounded differently


def _build_task_cells(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    cells: dict[str, Mapping[str, Cell]] = {}
    for task in sorted({groups.get("task", "") for groups in run.groups.values()}):
        verdicts = [verdict for verdict in run.verdicts if run.groups[verdict.sample].get("task", "") == task]
        if task and verdicts:
            cells[task] = build_strict_cells(verdicts)
    return cells
