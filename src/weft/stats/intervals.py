"""95% intervals and p-values of means of bounded scores. One rule for all tables.

A number in a table is a weighted sum of means (one mean for most, four for WEAVE's Avg) on a scale with two ends. Whole
dialogues are independent, turns of one are not. The rule is Wilson's score interval (1927), for dialogues:

    (estimate - mean)^2 <= t^2 (mean (1 - mean) + 1 / (4 n)) / n        on a scale from 0 to 1

- `n` is the number of right-or-wrong answers, independent of each other, that would vary as much as the estimate does.
  Its variance is the jackknife's over dialogues (CR3: Cameron and Miller, A Practitioner's Guide to Cluster-Robust
  Inference, 2015), and a part for what was not seen.
- t is Student's, with as many degrees of freedom as there are dialogues of equal weight, less one: (sum v)^2 / sum v^2
  of what each dialogue adds to the variance (Carter, Schnepel and Steigerwald 2017). v is the dialogue's part of the
  mean to the power of 1.5: turns of one dialogue are neither independent (1) nor all alike (2).
- Not seen: one dialogue at each end of the scale where all dialogues are alike, next to nothing where several differ
  (Agresti and Coull 1998 add such answers). Without it, twenty right answers of twenty would show no variance at all.
- 1 / (4 n) adds half an answer: Wilson's own interval covers 85% where a mean is as near to the end as 1 / (5 n).

The interval is never without width, contains the estimate, and stays on the scale. A mean is outside exactly where its
p-value is under .05. Nothing is drawn at random. `python bench/coverage.py` measures coverage.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.rounding import format_bounds, format_number
from weft.stats.student_t import student_t_quantile, two_sided_p

UNSEEN = 1.0  # dialogues at each end of the scale, where all dialogues are alike
HALF_AN_ANSWER = 0.25  # squared
DEPENDENCE = 1.5  # the variance of a dialogue grows by this power of its turns: 1 if they are independent, 2 if alike
LONE_INFLUENCE = 0.5  # of a dialogue on which a mean rests alone: no scores from 0 to 1 have a larger deviation
ROUNDING = 1e-9  # of a dialogue's share: a smaller difference is a rounding error
TINY = 1e-300
SHARE = (0.0, 1.0)
Clusters = Mapping[str, Sequence[float]]  # values by dialogue
Scale = tuple[float, float]  # the least and the greatest value that one item can have


class Estimate(Struct, frozen=True):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float
    n: int  # values that it was computed from

    def __str__(self) -> str:
        return f"{format_number(self.value, 3)} {format_bounds(self.low, self.high, 3)}"


class ScoredMean(Struct, frozen=True):
    """A weighted sum of means, moved to a scale from 0 to 1, and how sure it is."""

    share: float
    answers: float  # right-or-wrong answers, independent of each other, that would vary as much: n of the rule
    freedom: float  # degrees of freedom
    scale: Scale  # of the sum

    def interval(self) -> tuple[float, float]:
        """Return the 95% interval on the scale of the sum."""
        t = student_t_quantile(self.freedom)
        shrinkage = t * t / self.answers
        centre = (self.share + shrinkage / 2) / (1 + shrinkage)
        spread = self.share * (1 - self.share) + shrinkage / 4 + HALF_AN_ANSWER * (1 + shrinkage) / self.answers
        radius = math.sqrt(shrinkage * spread) / (1 + shrinkage)
        low, high = self.scale
        return (
            low + (high - low) * max(0.0, min(self.share, centre - radius)),
            low + (high - low) * min(1.0, max(self.share, centre + radius)),
        )

    def p_value(self, mean: float) -> float:
        """Return the two-sided p of a true mean: under .05 where it is outside of the interval."""
        low, high = self.scale
        share = (mean - low) / (high - low)
        variance = (share * (1 - share) + HALF_AN_ANSWER / self.answers) / self.answers
        return two_sided_p(abs(self.share - share) / math.sqrt(variance), self.freedom)


def estimate_mean(clusters: Clusters, scale: Scale = SHARE) -> Estimate:
    """Return the mean over all values, with its interval. `scale` is that of the values.

    One cluster alone has an interval without width. Raises ValueError for no values.
    """
    values: list[float] = []
    for cluster in clusters.values():
        values += cluster
    if not values:
        raise ValueError("there is nothing to average")
    mean = sum(values) / len(values)
    low, high = mean_interval([(1.0, clusters)], scale) or (mean, mean)
    return Estimate(mean, low, high, len(values))


def mix_means(weighted: Iterable[tuple[float, float]]) -> float:
    """Return the weighted mean of means, given as (weight, mean).

    Thirds and ninths do not add up to one exactly. So differences to the first mean are weighed: of equal means the
    result is that mean, and full marks stay full marks.
    """
    pairs = list(weighted)
    first = pairs[0][1]
    difference = math.fsum(weight * (mean - first) for weight, mean in pairs)
    return first + difference / math.fsum(weight for weight, _ in pairs)


def mean_interval(terms: Sequence[tuple[float, Clusters]], scale: Scale = SHARE) -> tuple[float, float] | None:
    """Return the 95% interval of a weighted sum of means; None for one dialogue, or a mean of nothing.

    `scale` is that of the values; where a value lies beyond, the scale ends there.
    """
    scored = score_terms(terms, scale)
    if scored is None:
        return None
    return scored.interval()


def score_terms(terms: Sequence[tuple[float, Clusters]], scale: Scale = SHARE) -> ScoredMean | None:
    """Return a weighted sum of means with what its interval and p-values come from; None as in `mean_interval`."""
    import numpy as np

    names = list_clusters(clusters for _, clusters in terms)
    sums = np.empty((len(names), len(terms)))
    counts = np.empty((len(names), len(terms)))
    low, high = scale
    for column, (_, clusters) in enumerate(terms):
        values = [clusters.get(name, ()) for name in names]
        sums[:, column] = list(map(sum, values))
        counts[:, column] = list(map(len, values))
        low = min(low, min(map(min, filter(None, values)), default=low))
        high = max(high, max(map(max, filter(None, values)), default=high))
    return score_sums(sums, counts, [weight for weight, _ in terms], (low, high))


def score_sums(sums: Any, counts: Any, weights: Sequence[float], scale: Scale) -> ScoredMean | None:
    """Return a weighted sum of means from the sums and counts of each dialogue: (dialogues, means)."""
    totals = counts.sum(axis=0)
    if len(sums) < 2 or not totals.all():
        return None
    low, high = scale
    parts = counts / totals  # the dialogue's part of each mean
    shares = (sums - low * counts) / (high - low) / totals  # what it adds to each mean, from 0 to 1
    for column, weight in enumerate(weights):
        if weight < 0:
            shares[:, column] = parts[:, column] - shares[:, column]
    weight = _normalise(weights)
    means = shares.sum(axis=0)
    influence = _leave_out(shares, parts)
    unseen = count_unseen(influence)
    if low == -high:
        unseen = unseen * _scale_unseen(shares, parts)
    dialogues = 1 / float(((parts @ weight) ** 2).sum())  # of equal size
    at_top = parts @ (weight * unseen**0.5 * means)
    at_bottom = parts @ (weight * unseen**0.5 * (1 - means))
    variance = float(((influence @ weight) ** 2).sum() + (at_top**2 + at_bottom**2).sum() / dialogues)
    share = min(1.0, max(0.0, float(means @ weight)))
    answers = (share * (1 - share) + float(unseen @ weight) / dialogues) / variance
    ends = [sorted((weight * low, weight * high)) for weight in weights]
    freedom = _count_freedom(parts @ weight)
    return ScoredMean(share, answers, freedom, (sum(least for least, _ in ends), sum(most for _, most in ends)))


def _normalise(weights: Sequence[float]) -> Any:
    import numpy as np

    sizes = np.abs(np.array(weights, dtype=np.float64))
    return sizes / sizes.sum()


def _count_freedom(parts: Any) -> float:
    """Return the degrees of freedom of a mean of dialogues, of which each is a part."""
    added = parts**DEPENDENCE
    return max(1.0, round(float(added.sum() ** 2 / (added**2).sum()) - 1, 2))


def _leave_out(shares: Any, parts: Any) -> Any:
    """Return by how much leaving out each dialogue moves each mean."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        moved = (shares - shares.sum(axis=0) * parts) / (1 - parts)
    return np.where(parts < 1, moved, LONE_INFLUENCE)


def count_unseen(influence: Any) -> Any:
    """Return how many dialogues at each end of the scale to add, for influences by dialogue on a share."""
    return UNSEEN / (1 + _count_carriers(influence)) ** 3


def _scale_unseen(shares: Any, parts: Any) -> Any:
    """Return the squared size of an unseen difference, where the middle of the scale is no difference.

    It is that of the differences which were seen, and of one from end to end: twenty runs that are all better by a
    hundredth do not become uncertain by a whole.
    """
    differences = (2 * shares - parts) / (parts**2).sum(axis=0)
    size = ((differences**2).sum(axis=0) + 1) / (_count_carriers(differences) + 1)
    return size.clip(max=1.0)


def _count_carriers(values: Any) -> Any:
    """Return how many dialogues carry the sum of squares: 0 where all are zero, 1 where one is an exception."""
    import numpy as np

    squares = (values**2).sum(axis=0)
    carriers = squares**2 / np.maximum((values**4).sum(axis=0), TINY)
    return np.where(squares > (ROUNDING / len(values)) ** 2, carriers, 0.0)


def list_clusters(samples: Iterable[Mapping[str, Sequence[Any]]]) -> list[str]:
    """Return the names of all clusters that have a value in any of the samples, in order of appearance."""
    names: dict[str, None] = {}
    for clusters in samples:
        names.update(dict.fromkeys(name for name, values in clusters.items() if values))
    return list(names)


def estimate_slope(points: Mapping[str, Sequence[tuple[float, float]]], scale: Scale = SHARE) -> Estimate | None:
    """Return the change of y with x within a cluster; None where no cluster has two different x.

    It does not depend on which dialogues are long. `scale` is that of y, as in `mean_interval`. Where only one cluster
    has two different x there is no interval: its bounds are NaN.
    """
    products: list[float] = []
    squares: list[float] = []
    reach = 0.0
    count = 0
    bottom, top = scale
    for pairs in points.values():
        if not pairs:
            continue
        mean_x = sum(x for x, _ in pairs) / len(pairs)
        mean_y = sum(y for _, y in pairs) / len(pairs)
        products.append(sum((x - mean_x) * (y - mean_y) for x, y in pairs))
        squares.append(sum((x - mean_x) ** 2 for x, _ in pairs))
        reach += sum(abs(x - mean_x) for x, _ in pairs)
        count += len(pairs)
        bottom = min(bottom, *(y for _, y in pairs))
        top = max(top, *(y for _, y in pairs))
    if not sum(squares):
        return None
    value = sum(products) / sum(squares)
    if sum(square > 0 for square in squares) < 2:
        return Estimate(value, math.nan, math.nan, count)
    low, high = slope_interval(products, squares, (top - bottom) * reach) or (value, value)
    return Estimate(value, low, high, count)


def variance_interval(clusters: Clusters) -> tuple[float, float] | None:
    """Return the 95% interval of a mean variance, which has no upper end: Student's interval of its logarithm.

    None for one dialogue, or where nothing varies.
    """
    import numpy as np

    members = [values for values in clusters.values() if values]
    total = sum(map(sum, members))
    if len(members) < 2 or not total:
        return None
    parts = np.array([[len(values)] for values in members]) / sum(map(len, members))
    influence = _leave_out(np.array([[sum(values)] for values in members]) / total, parts)  # relative to the mean
    dialogues = 1 / float((parts**2).sum())
    variance = float((influence**2).sum() + 2 * count_unseen(influence)[0] / dialogues**2)
    factor = math.exp(student_t_quantile(_count_freedom(parts[:, 0])) * math.sqrt(variance))
    mean = total / sum(map(len, members))
    return mean / factor, mean * factor


def slope_interval(products: Sequence[float], squares: Sequence[float], reach: float) -> tuple[float, float] | None:
    """Return the 95% interval of the slope of y on x, from the sums of each cluster; None for one cluster.

    `products` are of the distances of x and y from their means, `squares` those of x. `reach` is the sum of all
    distances of x, times the width of y's scale: no slope is steeper than where y jumps from end to end.
    """
    import numpy as np

    steepest = max(reach / 2, abs(sum(products))) / sum(squares)
    scored = score_sums(np.array([products]).T, np.array([squares]).T, [1.0], (-steepest, steepest))
    if scored is None:
        return None
    return scored.interval()
