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
from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import MissingScore, score_or_none
from weft.benchmarks.rover.official import RoverOfficial, SummaryStops
from weft.stats.intervals import mean_interval, mix_means
from weft.types import Cell, OfficialReading, Verdict

PERCENT = (0.0, 100.0)
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
    is_expected: bool = True  # whether official cells are about it
    is_unusable: bool = False  # whether only the released code could read it

    def value(self, *, official: bool) -> float | None:
        if official:
            return score_or_none(self.official)
        return self.strict


GroupKey = Callable[[RoverEntry], str]


def build_entry(verdict: Verdict, official: RoverOfficial, metric: str = "") -> RoverEntry:
    """Return the entry of a verdict, under its own metric or under another."""
    strict = None
    if verdict.value is not None:
        strict = 100 * verdict.value
    return RoverEntry(
        verdict,
        metric or verdict.metric,
        strict,
        official.score(verdict),
        lacks_official_question=official.lacks_official_question(verdict),
        is_expected=official.expects(verdict),
        is_unusable=official.reads_unusable(verdict),
    )


def build_official_entry(
    verdict: Verdict, metric: str, reading: OfficialReading, official: RoverOfficial
) -> RoverEntry:
    """Return the entry of a text that a model does not have, as the released code reads it. It is stored with the
    verdict on the model's image."""
    return RoverEntry(verdict, metric, None, official.to_points(reading), lacks_official_question=False)


def stops_summary(entries: Iterable[RoverEntry]) -> bool:
    """Whether the released summary stops at one of them."""
    return any(isinstance(entry.official, SummaryStops) for entry in entries)


def _select_expected(entries: Iterable[RoverEntry], official: bool) -> list[RoverEntry]:
    """Return the entries that a cell is about: all, or those that the released code does not leave out."""
    return [entry for entry in entries if entry.is_expected or not official]


def _with_official_counts(cell: Cell, entries: Iterable[RoverEntry], official: bool) -> Cell:
    """Return an official cell that says what only the released code could read, or that it has no value since some of
    its questions were not asked."""
    if not official:
        return cell
    not_asked = sum(entry.lacks_official_question for entry in entries)
    if not_asked:
        return replace(cell, value=None, low=None, high=None, not_asked=not_asked)
    if cell.value is None:
        return cell
    return replace(cell, unusable=sum(entry.is_unusable for entry in entries))


def build_micro_cell(entries: Sequence[RoverEntry], *, official: bool) -> Cell:
    """Return the mean over tasks."""
    if official and stops_summary(entries):
        return Cell(None)
    expected = _select_expected(entries, official)
    scores = _group_scores(expected, official)
    values = _flatten(scores)
    verdicts = [entry.verdict for entry in expected]
    if not values:
        return _with_official_counts(Cell(None, 0, len(verdicts), verdicts=verdicts), expected, official)
    low, high = mean_interval([(1.0, scores)], PERCENT) or (None, None)
    cell = Cell(sum(values) / len(values), len(values), len(verdicts), low, high, verdicts=verdicts)
    return _with_official_counts(cell, expected, official)


def build_macro_cell(groups: Sequence[Sequence[RoverEntry]], *, official: bool) -> Cell:
    """Return the plain mean of the groups' means; without a value if a group has none."""
    non_empty = [group for group in groups if group]
    expected = [_select_expected(group, official) for group in non_empty]
    if not all(expected) or (official and any(map(stops_summary, non_empty))):
        return Cell(None)
    clusters: list[tuple[float, dict[str, list[float]]]] = []
    entries: list[RoverEntry] = []
    for group in expected:
        clusters.append((1 / len(expected), _group_scores(group, official)))
        entries += group
    verdicts = [entry.verdict for entry in entries]
    count = sum(len(_flatten(scores)) for _, scores in clusters)
    if not clusters or not all(scores for _, scores in clusters):
        return _with_official_counts(Cell(None, count, len(verdicts), verdicts=verdicts), entries, official)
    mean = mix_means((weight, statistics.fmean(_flatten(scores))) for weight, scores in clusters)
    low, high = mean_interval(clusters, PERCENT) or (None, None)
    cell = Cell(mean, count, len(verdicts), low, high, verdicts=verdicts)
    return _with_official_counts(cell, entries, official)


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
    return Cell(sum(printed) / len(printed))


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
    return Cell(value, len(row_values), len(row_values), verdicts=verdicts)
