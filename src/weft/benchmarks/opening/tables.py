"""Scores of single answers, 0 to 10: seven respects and their mean, as OpenING's summary has them, with published rows
beside.

`strict`: a model's failure is zero; what is unscored is in no mean. `official`: answers that are missing, or lack a
score, are left out whole; each mean is rounded to two digits, and Overall is the mean of the rounded ones."""

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


def build_strict_cells(counted: Sequence[AnyVerdict]) -> dict[str, Cell]:
    of = {name: [one for one in counted if one.metric == name] for name in CRITERIA}
    cells = {name: build_mean_cell(some, digits=4, scale=10) if some else Cell(None) for name, some in of.items()}
    whole = all(of.values())
    return {
        **cells,
        "Overall": build_mean_cell([(1 / len(CRITERIA), some) for some in of.values()], digits=4, scale=10)
        if whole
        else Cell(None),
    }


def find_incomplete_samples(counted: Sequence[AnyVerdict]) -> set[str]:
    """The answers that the released summary leaves out whole, since one of their scores is missing."""
    return {one.sample for one in counted if isinstance(OFFICIAL.score(unwrap_verdict(one)), MissingScore)}


def build_official_cells(counted: Sequence[AnyVerdict]) -> dict[str, Cell]:
    """`due` of Overall counts answers, each of which has a verdict for each respect."""
    left = find_incomplete_samples(counted)
    kept = [one for one in counted if one.sample not in left]
    cells = {
        name: build_mean_cell([one for one in kept if one.metric == name], digits=2, scale=10) for name in CRITERIA
    }
    values = [cell.value for cell in cells.values() if cell.value is not None]
    if len(values) < len(CRITERIA):
        return {**cells, "Overall": Cell(None)}
    count = len({one.sample for one in kept})
    return {
        **cells,
        "Overall": Cell(round(sum(values) / len(values), 2), count, count, verdicts=flatten_verdicts([kept])),
    }


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    if all(run.dataset == "opening" for run in runs):
        paper: Mapping[str, Any] = read_published("weft.benchmarks.opening")
    else:
        paper = {}
    theirs = build_published_rows(
        paper.get("scores", {}), lambda row: row["Model_Name"], {name: name for name in COLUMNS}, JUDGE
    )
    note = "0 to 10. Overall: the mean of the seven. Win rates are fought for in the arena: `weft arena run`."
    yield Table("OpenING: single answers", COLUMNS, build_rows(runs, _cells, paper=theirs), note, 2)
    for run in runs:
        yield from build_breakdown(run, "by task", COLUMNS, _parts, 2)


def _cells(run: RunResults, way: bool) -> dict[str, Cell]:
    """Where nothing was left out, rounding before the last mean is no second number."""
    if way and find_incomplete_samples(run.verdicts):
        return build_official_cells(run.verdicts)
    return build_strict_cells(run.verdicts)


def _parts(run: RunResults, way: bool) -> dict[str, Mapping[str, Cell]]:
    made: dict[str, Mapping[str, Cell]] = {}
    for group in sorted({groups.get("task", "") for groups in run.groups.values()}):
        some = [one for one in run.verdicts if run.groups[one.sample].get("task", "") == group]
        if group and some:
            made[group] = build_strict_cells(some)
    return made
