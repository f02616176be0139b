"""What both subsets do with scores: 1 to 5 become 0 to 100; means over tasks (micro) and means of group means (macro).

`strict`: a model's failure is 0, an unscored verdict is in no mean. `official`: what the released code computes of the
same replies: tasks without an image are in no mean, a score counts as (s - 1) * 25 whatever it is, and AVG pools all
scores of all metrics. If it stored a score that is no number, its summary stops, and there is no official number at
all.
"""

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import score_or_none
from weft.benchmarks.rover.official import RoverOfficial, SummaryStops
from weft.stats.intervals import bootstrap_interval
from weft.types import Cell, MissingScore, OfficialReading, Verdict

NOT_ASKED_NOTE = (
    "Thinking is outside of whole <think> tags, where the released code does not see it; a run with --official asks "
    "the judge as the released code does, and has the official numbers that are missing here."
)
SUMMARY_STOPS_NOTE = (
    "The released summary stops at a score that is no number, which the judge gave here: there is no official row "
    "then. The strict rows leave such replies unscored."
)


class RoverEntry(Struct, frozen=True):
    """A verdict as both arithmetics count it, from 0 to 100, under the metric of a table's column."""

    verdict: Verdict
    metric: str
    strict: float | None
    official: float | MissingScore
    lacks_official_question: bool  # whether the released code asks its judge something that was not asked here

    def value(self, *, official: bool) -> float | None:
        if official:
            return score_or_none(self.official)
        return self.strict

    @property
    def is_left_out(self) -> bool:
        """Whether the released code leaves out what weft scores."""
        return self.verdict.value is not None and isinstance(self.official, MissingScore)


GroupKey = Callable[[RoverEntry], str]


def build_entry(verdict: Verdict, official: RoverOfficial, metric: str = "") -> RoverEntry:
    """Return the entry of a verdict, under its own metric or under another."""
    strict = None
    if verdict.value is not None:
        strict = 100 * verdict.value
    lacks_question = official.lacks_official_question(verdict)
    return RoverEntry(verdict, metric or verdict.metric, strict, official.score(verdict), lacks_question)


def build_official_entry(
    verdict: Verdict, metric: str, reading: OfficialReading, official: RoverOfficial
) -> RoverEntry:
    """Return the entry of a text that a model does not have, as the released code reads it. It is stored with the
    verdict on the model's image."""
    return RoverEntry(verdict, metric, None, official.to_points(reading), lacks_official_question=False)


def stops_summary(entries: Iterable[RoverEntry]) -> bool:
    """Whether the released summary stops at one of them."""
    return any(isinstance(entry.official, SummaryStops) for entry in entries)


def has_no_official_score(entries: Sequence[RoverEntry]) -> bool:
    return stops_summary(entries) or any(entry.lacks_official_question for entry in entries)


def build_micro_cell(entries: Sequence[RoverEntry], *, official: bool) -> Cell:
    """Return the mean over tasks."""
    scores = _group_scores(entries, official)
    values = _flatten(scores)
    if official:
        if not values or has_no_official_score(entries):
            return Cell(None)
        entries = [entry for entry in entries if not entry.is_left_out]
    verdicts = [entry.verdict for entry in entries]
    if not values:
        return Cell(None, 0, len(verdicts), verdicts=verdicts)
    low, high = _round_interval([(1.0, scores)])
    return Cell(round(sum(values) / len(values), 2), len(values), len(verdicts), low, high, verdicts=verdicts)


def build_macro_cell(groups: Sequence[Sequence[RoverEntry]], *, official: bool) -> Cell:
    """Return the plain mean of the groups' means; without a value if a group has none."""
    non_empty = [group for group in groups if group]
    clusters: list[tuple[float, dict[str, list[float]]]] = []
    verdicts: list[Verdict] = []
    for group in non_empty:
        clusters.append((1 / len(non_empty), _group_scores(group, official)))
        verdicts += [entry.verdict for entry in group if not official or entry.value(official=True) is not None]
    is_complete = bool(clusters) and all(scores for _, scores in clusters)
    if official and (not is_complete or any(map(has_no_official_score, non_empty))):
        return Cell(None)
    count = sum(len(_flatten(scores)) for _, scores in clusters)
    if not is_complete:
        return Cell(None, count, len(verdicts), verdicts=verdicts)
    mean = sum(weight * statistics.fmean(_flatten(scores)) for weight, scores in clusters)
    low, high = _round_interval(clusters)
    return Cell(round(mean, 2), count, len(verdicts), low, high, verdicts=verdicts)


def _round_interval(
    clusters: Sequence[tuple[float, dict[str, list[float]]]],
) -> tuple[float, float] | tuple[None, None]:
    bounds = bootstrap_interval(clusters)
    if not bounds:
        return (None, None)
    return (round(bounds[0], 2), round(bounds[1], 2))


def _group_scores(entries: Iterable[RoverEntry], official: bool) -> dict[str, list[float]]:
    """Return the scores by sample."""
    scores: dict[str, list[float]] = {}
    for entry in entries:
        value = entry.value(official=official)
        if value is not None:
            scores.setdefault(entry.verdict.sample, []).append(value)
    return scores


def _flatten(scores: Mapping[str, Sequence[float]]) -> list[float]:
    return list(itertools.chain.from_iterable(scores.values()))


def build_printed_macro_cell(values: Sequence[float | None]) -> Cell | None:
    """Return the plain mean of a paper's cells; None if one is not printed."""
    printed = [value for value in values if value is not None]
    if len(printed) < len(values):
        return None
    return Cell(round(sum(printed) / len(printed), 2))


def group_entries(entries: Iterable[RoverEntry], key: GroupKey) -> dict[str, list[RoverEntry]]:
    groups: dict[str, list[RoverEntry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return groups


def select_metrics(entries: Iterable[RoverEntry], *names: str) -> list[RoverEntry]:
    return [entry for entry in entries if entry.metric in names]


def build_group_key(run: RunResults, axis: str) -> GroupKey:
    """Return a function from an entry to the group of its sample."""
    return lambda entry: run.groups[entry.verdict.sample][axis]


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Pearson's r; None for fewer than three pairs, or where a side does not vary."""
    if len(first) < 3 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return statistics.correlation(first, second)


def build_correlation_cells(
    names: Sequence[str], scores: Mapping[str, Mapping[str, Cell]]
) -> dict[str, dict[str, Cell]]:
    """Return the correlation between each two names, over all models that have a score in both.

    `scores` maps models to their cells by name. `expected` counts models.
    """
    cells: dict[str, dict[str, Cell]] = {}
    for row in names:
        cells[row] = {column: _correlate(row, column, scores) for column in names}
    return cells


def _correlate(row: str, column: str, scores: Mapping[str, Mapping[str, Cell]]) -> Cell:
    row_values: list[float] = []
    column_values: list[float] = []
    verdicts: list[Verdict] = []
    for model_cells in scores.values():
        if row not in model_cells or column not in model_cells:
            continue
        row_values.append(model_cells[row].value or 0.0)
        column_values.append(model_cells[column].value or 0.0)
        verdicts += model_cells[row].verdicts
        if column != row:
            verdicts += model_cells[column].verdicts
    value = pearson(row_values, column_values)
    if value is not None:
        value = round(value, 3)
    return Cell(value, len(row_values), len(row_values), verdicts=verdicts)
