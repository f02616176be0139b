"""Scores of single answers, 0 to 10: seven respects and their mean, as OpenING's summary has them, with published rows beside.

`strict`: a model's failure is zero; what is unscored is in no mean. `official`: answers that are missing, or lack a score, are left out
whole; each mean is rounded to two digits, and Overall is the mean of the rounded ones."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import Finished
from weft.benchmarks.opening.official import OFFICIAL
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.rows import Counted, both_ways, cell_of, published, published_rows, rows_of, verdict_of, verdicts_of
from weft.types import Cell, Missing, Table

JUDGE = OFFICIAL.published_judge
COLUMNS = (*CRITERIA, "Overall")


def strict(counted: Sequence[Counted]) -> dict[str, Cell]:
    of = {name: [one for one in counted if one.metric == name] for name in CRITERIA}
    cells = {name: cell_of(some, digits=4, scale=10) if some else Cell(None) for name, some in of.items()}
    whole = all(of.values())
    return {**cells, "Overall": cell_of([(1 / len(CRITERIA), some) for some in of.values()], digits=4, scale=10) if whole else Cell(None)}


def left_out(counted: Sequence[Counted]) -> set[str]:
    """The answers that the released summary leaves out whole, since one of their scores is missing."""
    return {one.sample for one in counted if isinstance(OFFICIAL.score(verdict_of(one)), Missing)}


def official(counted: Sequence[Counted]) -> dict[str, Cell]:
    """`due` of Overall counts answers, each of which has a verdict for each respect."""
    left = left_out(counted)
    kept = [one for one in counted if one.sample not in left]
    cells = {name: cell_of([one for one in kept if one.metric == name], digits=2, scale=10) for name in CRITERIA}
    values = [cell.value for cell in cells.values() if cell.value is not None]
    if len(values) < len(CRITERIA):
        return {**cells, "Overall": Cell(None)}
    count = len({one.sample for one in kept})
    return {**cells, "Overall": Cell(round(sum(values) / len(values), 2), count, count, verdicts=verdicts_of([kept]))}


def tables(runs: Sequence[Finished]) -> Iterator[Table]:
    paper: Mapping[str, Any] = published("weft.benchmarks.opening") if all(run.dataset == "opening" for run in runs) else {}
    theirs = published_rows(paper.get("scores", {}), lambda row: row["Model_Name"], {name: name for name in COLUMNS}, JUDGE)
    note = "0 to 10. Overall: the mean of the seven. Win rates are fought for in the arena: `weft arena run`."
    yield Table("OpenING: single answers", COLUMNS, rows_of(runs, _cells, paper=theirs), note, 2)
    for run in runs:
        yield from both_ways(run, "by task", COLUMNS, _parts, 2)


def _cells(run: Finished, way: bool) -> dict[str, Cell]:
    """Where nothing was left out, rounding before the last mean is no second number."""
    return official(run.verdicts) if way and left_out(run.verdicts) else strict(run.verdicts)


def _parts(run: Finished, way: bool) -> dict[str, Mapping[str, Cell]]:
    made: dict[str, Mapping[str, Cell]] = {}
    for group in sorted({groups.get("task", "") for groups in run.groups.values()}):
        some = [one for one in run.verdicts if run.groups[one.sample].get("task", "") == group]
        if group and some:
            made[group] = strict(some)
    return made
