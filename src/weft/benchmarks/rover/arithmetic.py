"""What both halves do with scores: 1 to 5 become 0 to 100; means over tasks (micro) and means of group means (macro).

`strict`: a model's failure is 0, what is unscored is in no mean. `official`: what the released code has of the same replies: tasks without
a picture are in no mean, a score counts as (s - 1) * 25 whatever it is, and AVG pools all scores of all metrics. Where it kept a score
that is no number its summary stops, and there is no official number at all."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from weft.benchmarks.base import Finished, detail_of
from weft.benchmarks.rover import released
from weft.stats.intervals import spread
from weft.types import Cell, Verdict

Of = Callable[[Verdict], str]
UNASKED = (
    "Thinking stands outside of whole <think> tags, where the released code does not see it; a run with --official asks the judge as it "
    "does, and has the official numbers that are not here."
)
STOPS = (
    "The released summary stops at a score that is no number, which the judge gave here: there is no official row then. "
    "The strict rows leave such replies unscored."
)


def points(verdict: Verdict, *, official: bool) -> float | None:
    """From 0 to 100, or what the released code makes of it; None where there is nothing."""
    if official:
        found = released_score(verdict)
        return None if found is None or isinstance(found, str) else released.points(found)
    return None if verdict.value is None else 100 * verdict.value


def released_score(verdict: Verdict) -> float | str | None:
    """What it keeps: a score, a text that is none, or nothing."""
    detail = detail_of(verdict)
    if detail.get("no picture") or verdict.by == "failure":
        return None
    if "asked" in detail:
        return detail["asked"]
    if verdict.behind:
        found = [one for one in map(released_score, verdict.behind) if one is not None]
        texts = [one for one in found if isinstance(one, str)]
        numbers = [one for one in found if not isinstance(one, str)]
        return texts[0] if texts else statistics.fmean(numbers) if numbers else None
    if "official" in detail:
        return detail["official"]
    if verdict.by == "judge":
        return None
    return None if verdict.value is None else 1 + 4 * verdict.value


def is_unasked(verdict: Verdict) -> bool:
    """Whether the released code would show its judge something else, and nobody was asked about that."""
    return any(map(is_unasked, verdict.behind)) if verdict.behind else bool(detail_of(verdict).get("elsewhere"))


def stops(verdicts: Iterable[Verdict]) -> bool:
    return any(isinstance(released_score(verdict), str) for verdict in verdicts)


def cell(verdicts: Sequence[Verdict], *, official: bool) -> Cell:
    """The mean over tasks."""
    scored: dict[str, list[float]] = {}
    for verdict in verdicts:
        found = points(verdict, official=official)
        if found is not None:
            scored.setdefault(verdict.sample, []).append(found)
    values = [value for some in scored.values() for value in some]
    due = len(verdicts) if not official else len([one for one in verdicts if one.value is None or points(one, official=True) is not None])
    if not values or (official and (stops(verdicts) or any(map(is_unasked, verdicts)))):
        return Cell(None, 0, 0) if official else Cell(None, len(values), due)
    bounds = spread([(1.0, scored)])
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    return Cell(round(sum(values) / len(values), 2), len(values), max(due, len(values)), low, high)


def macro(groups: Sequence[Sequence[Verdict]], *, official: bool) -> Cell:
    """The plain mean of the groups' means; without a value where a group has none."""
    there = [group for group in groups if group]
    clusters: list[tuple[float, dict[str, list[float]]]] = []
    for group in there:
        scored: dict[str, list[float]] = {}
        for verdict in group:
            found = points(verdict, official=official)
            if found is not None:
                scored.setdefault(verdict.sample, []).append(found)
        clusters.append((1 / len(there), scored))
    count, due = sum(len(some) for _, scored in clusters for some in scored.values()), sum(map(len, there))
    unknown = official and any(stops(group) or any(map(is_unasked, group)) for group in there)
    if not there or not all(scored for _, scored in clusters) or unknown:
        return Cell(None, 0, 0) if official else Cell(None, count, due)
    value = sum(weight * statistics.fmean([one for some in scored.values() for one in some]) for weight, scored in clusters)
    bounds = spread(clusters)
    low, high = (round(bounds[0], 2), round(bounds[1], 2)) if bounds else (None, None)
    return Cell(round(value, 2), count, due if not official else count, low, high)


def macro_of_printed(values: Sequence[float | None]) -> Cell | None:
    """The same of a paper's cells."""
    there = [value for value in values if value is not None]
    return Cell(round(sum(there) / len(there), 2)) if len(there) == len(values) else None


def parts(verdicts: Iterable[Verdict], of: Of) -> dict[str, list[Verdict]]:
    made: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        made.setdefault(of(verdict), []).append(verdict)
    return made


def metric(verdicts: Iterable[Verdict], *names: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.metric in names]


def group_of(run: Finished, name: str) -> Of:
    return lambda verdict: run.groups[verdict.sample][name]


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """None where one of them does not vary."""
    if len(first) < 3 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return statistics.correlation(first, second)


def correlation(names: Sequence[str], scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, Cell]]:
    """Between each two of some names, over all who have a score in both; `scores` by who, then by name."""
    made: dict[str, dict[str, Cell]] = {}
    for row in names:
        made[row] = {}
        for column in names:
            both = [(some[row], some[column]) for some in scores.values() if row in some and column in some]
            found = pearson([one for one, _ in both], [one for _, one in both]) if both else None
            made[row][column] = Cell(None if found is None else round(found, 3), len(both), len(both))
    return made
