"""How two numbers of several models go together, and how far apart two groups of models are, with 95% intervals.

A point is a model. There are few, so that intervals have formulas: Fisher's for Pearson's r, with Bonett and Wright's
variance for Spearman's (Sample size requirements for estimating Pearson, Kendall and Spearman correlations, 2000), and
Welch's for a difference of means. What is undefined is None, never a number."""

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from weft.stats.agreement import pearson, spearman
from weft.stats.student_t import student_t_quantile

Method = Literal["pearson", "spearman"]
MIN_POINTS = 3  # two points are always on a line
MIN_FOR_INTERVAL = 4
Z = 1.959963984540054  # of a normal distribution, two-sided 95%
PERFECT = 1 - 1e-9  # from which on Fisher's transformation has no end


class PointEstimate(Struct, frozen=True):
    """A correlation or a difference, and how many models it rests on."""

    value: float | None
    n: int
    low: float | None = None  # with `high` the 95% interval
    high: float | None = None


def correlate(x: Sequence[float], y: Sequence[float], method: Method = "pearson") -> PointEstimate:
    """Return the correlation of two numbers of the same models. A perfect one, or one of three models, has no
    interval."""
    n = len(x)
    if n < MIN_POINTS:
        return PointEstimate(None, n)
    value = spearman(x, y) if method == "spearman" else pearson(x, y)
    if value is None or n < MIN_FOR_INTERVAL or abs(value) >= PERFECT:
        return PointEstimate(value, n)
    variance = 1 / (n - 3)
    if method == "spearman":
        variance *= 1 + value * value / 2
    radius = Z * math.sqrt(variance)
    middle = math.atanh(value)
    return PointEstimate(value, n, math.tanh(middle - radius), math.tanh(middle + radius))


def difference_of_means(first: Sequence[float], second: Sequence[float]) -> PointEstimate:
    """Return the mean of one group of models minus that of another. It has an interval if both have two models or more
    that are not all alike."""
    n = len(first) + len(second)
    if not first or not second:
        return PointEstimate(None, n)
    value = statistics.fmean(first) - statistics.fmean(second)
    if len(first) < 2 or len(second) < 2:
        return PointEstimate(value, n)
    variances = [statistics.variance(values) / len(values) for values in (first, second)]
    total = sum(variances)
    if not total:
        return PointEstimate(value, n)
    weights = [variance**2 / (len(values) - 1) for variance, values in zip(variances, (first, second), strict=True)]
    radius = student_t_quantile(total**2 / sum(weights)) * math.sqrt(total)
    return PointEstimate(value, n, value - radius, value + radius)
