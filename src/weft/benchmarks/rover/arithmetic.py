"""What both halves do with scores: 1 to 5 become 0 to 100; means over tasks (micro) and means of group means (macro).

`strict`: a model's failure is 0, what is unscored is in no mean. `official`: what the released code has of the same replies: tasks without
a picture are in no mean, a score counts as (s - 1) * 25 whatever it is, and AVG pools all scores of all metrics. Where it kept a score
that is no number its summary stops, and there is no official number at all."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import Finished
from weft.benchmarks.official import or_none
from weft.benchmarks.rover.official import RoverOfficial, Stops
from weft.stats.intervals import spread
from weft.types import Cell, Missing, Reading, Verdict

UNASKED = (
    "Thinking stands outside of whole <think> tags, where the released code does not see it; a run with --official asks the judge as it "
    "does, and has the official numbers that are not here."
)
STOPS = (
    "The released summary stops at a score that is no number, which the judge gave here: there is no official row then. "
    "The strict rows leave such replies unscored."
)


class Entry(Struct, frozen=True):
    """A verdict as both arithmetics count it, from 0 to 100, under the metric of a table's column."""

    verdict: Verdict
    metric: str
    strict: float | None
    official: float | Missing
    unasked: bool

    def value(self, *, official: bool) -> float | None:
        return or_none(self.official) if official else self.strict

    @property
    def is_left_out(self) -> bool:
        """Whether the released code leaves out what is scored by ours."""
        return self.verdict.value is not None and isinstance(self.official, Missing)


Of = Callable[[Entry], str]


def entry(verdict: Verdict, official: RoverOfficial, metric: str = "") -> Entry:
    strict = None if verdict.value is None else 100 * verdict.value
    return Entry(verdict, metric or verdict.metric, strict, official.score(verdict), official.is_unasked(verdict))


def unsaid_entry(verdict: Verdict, metric: str, kept: Reading, official: RoverOfficial) -> Entry:
    """What the released code has of words that a model does not have, which stands with the verdict on its picture."""
    return Entry(verdict, metric, None, official.points(kept), unasked=False)


def stops(entries: Iterable[Entry]) -> bool:
    return any(isinstance(one.official, Stops) for one in entries)


def is_unknown(entries: Sequence[Entry]) -> bool:
    """Whether there is no official number of them."""
    return stops(entries) or any(one.unasked for one in entries)


def cell(entries: Sequence[Entry], *, official: bool) -> Cell:
    """The mean over tasks."""
    scored = _by_sample(entries, official)
    values = [value for some in scored.values() for value in some]
    behind = [one.verdict for one in entries if not (official and one.is_left_out)]
    if official and (not values or is_unknown(entries)):
        return Cell(None)
    if not values:
        return Cell(None, 0, len(behind), verdicts=behind)
    bounds = spread([(1.0, scored)])
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    return Cell(round(sum(values) / len(values), 2), len(values), len(behind), low, high, verdicts=behind)


def macro(groups: Sequence[Sequence[Entry]], *, official: bool) -> Cell:
    """The plain mean of the groups' means; without a value where a group has none."""
    there = [group for group in groups if group]
    clusters = [(1 / len(there), _by_sample(group, official)) for group in there]
    every = [one for group in there for one in group]
    behind = [one.verdict for one in every if not official or one.value(official=True) is not None]
    whole = bool(there) and all(scored for _, scored in clusters)
    if official and (not whole or any(map(is_unknown, there))):
        return Cell(None)
    count = sum(len(some) for _, scored in clusters for some in scored.values())
    if not whole:
        return Cell(None, count, len(behind), verdicts=behind)
    value = sum(weight * statistics.fmean([one for some in scored.values() for one in some]) for weight, scored in clusters)
    bounds = spread(clusters)
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    return Cell(round(value, 2), count, len(behind), low, high, verdicts=behind)


def _by_sample(entries: Iterable[Entry], official: bool) -> dict[str, list[float]]:
    scored: dict[str, list[float]] = {}
    for one in entries:
        found = one.value(official=official)
        if found is not None:
            scored.setdefault(one.verdict.sample, []).append(found)
    return scored


def macro_of_printed(values: Sequence[float | None]) -> Cell | None:
    """The same of a paper's cells."""
    there = [value for value in values if value is not None]
    return Cell(round(sum(there) / len(there), 2)) if len(there) == len(values) else None


def parts(entries: Iterable[Entry], of: Of) -> dict[str, list[Entry]]:
    made: dict[str, list[Entry]] = {}
    for one in entries:
        made.setdefault(of(one), []).append(one)
    return made


def metric(entries: Iterable[Entry], *names: str) -> list[Entry]:
    return [one for one in entries if one.metric in names]


def group_of(run: Finished, name: str) -> Of:
    return lambda one: run.groups[one.verdict.sample][name]


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """None where one of them does not vary."""
    if len(first) < 3 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return statistics.correlation(first, second)


def correlation(names: Sequence[str], scores: Mapping[str, Mapping[str, Cell]]) -> dict[str, dict[str, Cell]]:
    """Between each two of some names, over all who have a score in both; `scores` by who, then by name. `due` counts those."""
    made: dict[str, dict[str, Cell]] = {}
    for row in names:
        made[row] = {}
        for column in names:
            both = [(some[row], some[column]) for some in scores.values() if row in some and column in some]
            found = pearson([one.value or 0.0 for one, _ in both], [one.value or 0.0 for _, one in both]) if both else None
            behind = [one for pair in both for of in (pair[:1] if row == column else pair) for one in of.verdicts]
            made[row][column] = Cell(None if found is None else round(found, 3), len(both), len(both), verdicts=behind)
    return made
