"""Is one run better than another on the same dialogues? Paired differences, with an interval and a p-value.

Both come from the rule of `intervals`: zero is outside of the interval exactly where p is under .05. `holm_adjust`
corrects for several comparisons. `compare_relative` has the difference as a part of the second run's mean.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from weft.stats.intervals import ScoredMean, list_clusters, mix_means, score_sums, score_terms

Clusters = Mapping[str, Sequence[float]]  # differences by dialogue
Pairs = Mapping[str, Sequence[tuple[float, float]]]  # the values of both runs by dialogue
PairedTerms = Sequence[tuple[float, Pairs]]  # (weight, pairs whose means are weighted)
SIGNIFICANCE = 0.05
MAX_RATIO = 1e4  # a mean that may be this many times the other has no upper bound
BISECTIONS = 40


class Difference(Struct, frozen=True):
    """A mean difference between two runs."""

    value: float
    low: float | None  # with `high` the 95% interval; None for one dialogue alone
    high: float | None
    p: float
    pairs: int  # values that both runs have
    dialogues: int


def compare_paired(terms: Sequence[tuple[float, Clusters]], full: float = 1.0) -> Difference | None:
    """Test a weighted sum of means of differences; None where a mean has no pairs. `full` is the full marks of a run.

    One dialogue alone shows nothing: it has no interval, and p is 1.
    """
    names = list_clusters(clusters for _, clusters in terms)
    totals = [sum(map(len, clusters.values())) for _, clusters in terms]
    if not names or not all(totals):
        return None
    value = 0.0
    for (weight, clusters), total in zip(terms, totals, strict=True):
        value += weight * sum(map(sum, clusters.values())) / total
    scored = score_terms(terms, (-full, full))
    if scored is None:
        return Difference(value, None, None, 1.0, sum(totals), len(names))
    low, high = scored.interval()
    return Difference(value, low, high, scored.p_value(0.0), sum(totals), len(names))


def compare_pairs(terms: PairedTerms, full: float = 1.0) -> Difference | None:
    """Test the difference of two weighted sums of means, the first run minus the second, as `compare_paired` does."""
    differences: list[tuple[float, Clusters]] = []
    for weight, pairs in terms:
        by_dialogue = {name: [first - second for first, second in values] for name, values in pairs.items()}
        differences.append((weight, by_dialogue))
    return compare_paired(differences, full)


class RelativeChange(Struct, frozen=True):
    """By which part of the second run's mean the first run's mean is above it: 0.1 is a tenth more."""

    value: float
    low: float | None  # with `high` the 95% interval; None for one dialogue alone, or if it has no upper end
    high: float | None


def compare_relative(terms: PairedTerms, full: float = 1.0) -> RelativeChange | None:
    """Return the relative difference of two weighted sums of means; None without pairs, or above a mean of zero.

    Its interval reaches as far as Fieller's (1954), which has every ratio that the pairs do not rule out by the rule of
    `intervals`, and as far as that of the difference does above the second run's mean. Zero is outside of it exactly
    where it is outside of that of the difference.
    """
    import numpy as np

    names = list_clusters(pairs for _, pairs in terms)
    first = np.zeros((len(names), len(terms)))
    second = np.zeros((len(names), len(terms)))
    counts = np.zeros((len(names), len(terms)))
    for column, (_, pairs) in enumerate(terms):
        for row, name in enumerate(names):
            values = pairs.get(name, ())
            first[row, column] = sum(value for value, _ in values)
            second[row, column] = sum(value for _, value in values)
            counts[row, column] = len(values)
    totals = counts.sum(axis=0)
    if not names or not totals.all():
        return None
    weights = [weight for weight, _ in terms]
    mean = _weigh(weights, first.sum(axis=0) / totals)
    base = _weigh(weights, second.sum(axis=0) / totals)
    if base <= 0:
        return None
    ratio = mean / base
    if len(names) < 2:
        return RelativeChange(ratio - 1, None, None)

    def test_ratio(candidate: float) -> ScoredMean | None:
        size = full * max(1.0, candidate)
        return score_sums(first - candidate * second, counts, weights, (-size, size))

    def is_possible(candidate: float) -> bool:
        scored = test_ratio(candidate)
        return scored is not None and scored.p_value(0.0) >= SIGNIFICANCE

    difference = test_ratio(1.0)
    if difference is None or is_possible(MAX_RATIO):
        return RelativeChange(ratio - 1, None, None)
    low = 0.0
    if not is_possible(0.0):
        low = _find_bound(is_possible, ratio, 0.0)
    high = _find_bound(is_possible, ratio, MAX_RATIO)
    below, above = difference.interval()
    return RelativeChange(ratio - 1, max(-1.0, min(low - 1, below / base)), max(high - 1, above / base))


def _weigh(weights: Sequence[float], means: Sequence[float]) -> float:
    return mix_means(zip(weights, map(float, means), strict=True)) * sum(weights)


def _find_bound(is_possible: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where ratios stop being possible, between one that is and one that is not."""
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        if outside > 2 * inside > 0:
            middle = (inside * outside) ** 0.5
        if is_possible(middle):
            inside = middle
        else:
            outside = middle
    return inside


def holm_adjust(values: Sequence[float]) -> list[float]:
    """Return p values after Holm's step-down correction, in the order of the input."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    adjusted = [1.0] * len(values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = highest
    return adjusted
