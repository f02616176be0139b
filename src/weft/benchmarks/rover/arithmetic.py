"""What both halves do with scores: 1 to 5 become 0 to 100; means over tasks (micro) and means of group means (macro).

`strict`: a model's failure is 0, what is unscored is in no mean. `official`: what the released code has of the same
replies: tasks without a picture are in no mean, a score counts as (s - 1) * 25 whatever it is, and AVG pools all scores
of all metrics. Where it kept a score that is no number its summary stops, and there is no official number at all."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import score_or_none
from weft.benchmarks.rover.official import RoverOfficial, SummaryStops
from weft.stats.intervals import bootstrap_interval
from weft.types import Cell, MissingScore, OfficialReading, Verdict

NOT_ASKED_NOTE = (
    "Thinking stands outside of whole <think> tags, where the released code does not see it; a run with --official asks the judge as it "
    "does, and has the official numbers that are not here."
)
SUMMARY_STOPS_NOTE = (
    "The released summary stops at a score that is no number, which the judge gave here: there is no official row then. "
    "The strict rows leave such replies unscored."
)


class RoverEntry(Struct, frozen=True):
    """A verdict as both arithmetics count it, from 0 to 100, under the metric of a table's column."""

    verdict: Verdict
    metric: str
    strict: float | None
    official: float | MissingScore
    lacks_official_question: bool

    def value(self, *, official: bool) -> float | None:
        if official:
            return score_or_none(self.official)
        return self.strict

    @property
    def is_left_out(self) -> bool:
        """Whether the released code leaves out what is scored by ours."""
        return self.verdict.value is not None and isinstance(self.official, MissingScore)


Of = Callable[[RoverEntry], str]


def build_entry(verdict: Verdict, official: RoverOfficial, metric: str = "") -> RoverEntry:
    if verdict.value is None:
        strict = None
    else:
        strict = 100 * verdict.value
    return RoverEntry(
        verdict, metric or verdict.metric, strict, official.score(verdict), official.lacks_official_question(verdict)
    )


def build_official_entry(verdict: Verdict, metric: str, kept: OfficialReading, official: RoverOfficial) -> RoverEntry:
    """What the released code has of words that a model does not have, which stands with the verdict on its picture."""
    return RoverEntry(verdict, metric, None, official.to_points(kept), lacks_official_question=False)


def stops_summary(entries: Iterable[RoverEntry]) -> bool:
    return any(isinstance(one.official, SummaryStops) for one in entries)


def has_no_official_score(entries: Sequence[RoverEntry]) -> bool:
    """Whether there is no official number of them."""
    return stops_summary(entries) or any(one.lacks_official_question for one in entries)


def build_micro_cell(entries: Sequence[RoverEntry], *, official: bool) -> Cell:
    """The mean over tasks."""
    scored = _by_sample(entries, official)
    values = [value for some in scored.values() for value in some]
    behind = [one.verdict for one in entries if not (official and one.is_left_out)]
    if official and (not values or has_no_official_score(entries)):
        return Cell(None)
    if not values:
        return Cell(None, 0, len(behind), verdicts=behind)
    bounds = bootstrap_interval([(1.0, scored)])
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    return Cell(round(sum(values) / len(values), 2), len(values), len(behind), low, high, verdicts=behind)


def build_macro_cell(groups: Sequence[Sequence[RoverEntry]], *, official: bool) -> Cell:
    """The plain mean of the groups' means; without a value where a group has none."""
    there = [group for group in groups if group]
    clusters = [(1 / len(there), _by_sample(group, official)) for group in there]
    every = [one for group in there for one in group]
    behind = [one.verdict for one in every if not official or one.value(official=True) is not None]
    whole = bool(there) and all(scored for _, scored in clusters)
    if official and (not whole or any(map(has_no_official_score, there))):
        return Cell(None)
    count = sum(len(some) for _, scored in clusters for some in scored.values())
    if not whole:
        return Cell(None, count, len(behind), verdicts=behind)
    value = sum(
        weight * statistics.fmean([one for some in scored.values() for one in some]) for weight, scored in clusters
    )
    bounds = bootstrap_interval(clusters)
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    return Cell(round(value, 2), count, len(behind), low, high, verdicts=behind)


def _by_sample(entries: Iterable[RoverEntry], official: bool) -> dict[str, list[float]]:
    scored: dict[str, list[float]] = {}
    for one in entries:
        found = one.value(official=official)
        if found is not None:
            scored.setdefault(one.verdict.sample, []).append(found)
    return scored


def build_printed_macro_cell(values: Sequence[float | None]) -> Cell | None:
    """The same of a paper's cells."""
    there = [value for value in values if value is not None]
    if len(there) == len(values):
        return Cell(round(sum(there) / len(there), 2))
    return None


def group_entries(entries: Iterable[RoverEntry], of: Of) -> dict[str, list[RoverEntry]]:
    made: dict[str, list[RoverEntry]] = {}
    for one in entries:
        made.setdefault(of(one), []).append(one)
    return made


def select_metrics(entries: Iterable[RoverEntry], *names: str) -> list[RoverEntry]:
    return [one for one in entries if one.metric in names]


def build_group_key(run: RunResults, name: str) -> Of:
    return lambda one: run.groups[one.verdict.sample][name]


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """None where one of them does not vary."""
    if len(first) < 3 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return statistics.correlation(first, second)


def build_correlation_cells(
    names: Sequence[str], scores: Mapping[str, Mapping[str, Cell]]
) -> dict[str, dict[str, Cell]]:
    """Between each two of some names, over all who have a score in both; `scores` by who, then by name. `due` counts
    those."""
    made: dict[str, dict[str, Cell]] = {}
    for row in names:
        made[row] = {}
        for column in names:
            both = [(some[row], some[column]) for some in scores.values() if row in some and column in some]
            if both:
                found = pearson([one.value or 0.0 for one, _ in both], [one.value or 0.0 for _, one in both])
            else:
                found = None
            behind = [one for pair in both for of in (pair[:1] if row == column else pair) for one in of.verdicts]
            made[row][column] = Cell(None if found is None else round(found, 3), len(both), len(both), verdicts=behind)
    return made
