"""Agreement of two who judged the same: a judge and references, a judge and people, or people among themselves.

Pairs are (judge, reference), by dialogue. Means, the mean absolute error and the bias (judge minus reference) have the
95% intervals of `intervals`; correlations have those of resampled dialogues. What is undefined is None, never a number:
a correlation of fewer than two points, or of values that are all the same.

Krippendorff's alpha is for any number of annotators, each of whom may have annotated other items: 1 - observed /
expected disagreement (Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011). An item with one annotation is
left out.
"""

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from weft.rounding import format_bounds, format_number
from weft.stats.intervals import SHARE, Scale, estimate_mean, mean_interval
from weft.stats.resampling import bootstrap_weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pairs = Mapping[str, Sequence[tuple[float, float]]]  # (judge, reference), by dialogue
Unit = Mapping[str, float]  # the annotations of one item, by annotator
MeasurementLevel = Literal["nominal", "ordinal", "interval", "ratio"]
DRAWS = 1000
DIFFERENCE = (-1.0, 1.0)  # the scale of a difference of two shares
CHUNK_NUMBERS = 4_000_000  # that are drawn at a time
SAME = 1e-9  # draws that differ by less are the same
ROUNDING = 1e-12  # a share of variance that is rounding error


class NullableEstimate(Struct, frozen=True):
    """A value with its 95% interval. None is undefined; fewer than two dialogues have no interval."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        if self.low is None or self.high is None:
            return format_number(self.value, 3)
        return f"{format_number(self.value, 3)} {format_bounds(self.low, self.high, 3)}"


class Agreement(Struct, frozen=True):
    """How far a judge agrees with references."""

    n: int  # pairs
    clusters: int  # dialogues
    judge: NullableEstimate  # the judge's mean
    reference: NullableEstimate  # the references' mean
    pearson: NullableEstimate
    spearman: NullableEstimate
    kendall: NullableEstimate
    mae: NullableEstimate  # mean absolute error
    bias: NullableEstimate  # judge minus reference


class ReliabilityBin(NamedTuple):
    """The judge's mean over items whose reference lies in one bin."""

    reference: float  # mean
    judge: float  # mean
    n: int
    low: float | None  # with `high` the interval of the judge's mean
    high: float | None


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    return _compute(_pearson, x, y)


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return Pearson's correlation of ranks; equal values share the mean of their ranks."""
    return _compute(_spearman, x, y)


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return tau-b, which corrects for ties."""
    return _compute(_kendall, x, y)


def mae(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return the mean absolute difference, item by item."""
    if not x:
        return None
    return statistics.fmean(abs(a - b) for a, b in zip(x, y, strict=True))


def bias(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return how much higher the first is, on average."""
    if not x:
        return None
    return statistics.fmean(a - b for a, b in zip(x, y, strict=True))


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Return the standard deviation over the mean; None for fewer than two values, or a mean of zero."""
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    if not mean:
        return None
    return statistics.stdev(values) / mean


def measure_agreement(pairs: Pairs, *, draws: int = DRAWS, seed: int = 0) -> Agreement:
    """Compute all measures of agreement, with intervals over dialogues."""
    import numpy as np

    dialogues = [values for values in pairs.values() if values]
    points = np.array(list(itertools.chain.from_iterable(dialogues)), dtype=np.float64).reshape(-1, 2)
    dialogue_of = np.repeat(np.arange(len(dialogues)), list(map(len, dialogues)))
    distinct = _DistinctPairs(points)

    def estimate(statistic: _Statistic) -> NullableEstimate:
        if not len(points):
            return NullableEstimate(None)
        value = distinct.compute(statistic)
        if len(dialogues) < 2 or value is None:
            return NullableEstimate(value)
        chunks = _draw_item_weights(dialogue_of, len(dialogues), draws, seed, len(points))
        drawn = [statistic(distinct.x, distinct.y, distinct.count(weights)) for weights in chunks]
        low, high = _middle(np.concatenate(drawn))
        return NullableEstimate(value, low, high)

    def mean(measure: Callable[[float, float], float], scale: Scale = SHARE) -> NullableEstimate:
        clusters = {name: [measure(judge, reference) for judge, reference in values] for name, values in pairs.items()}
        values = list(itertools.chain.from_iterable(clusters.values()))
        if not values:
            return NullableEstimate(None)
        low, high = mean_interval([(1.0, clusters)], scale) or (None, None)
        return NullableEstimate(statistics.fmean(values), low, high)

    return Agreement(
        len(points),
        len(dialogues),
        judge=mean(lambda judge, _: judge),
        reference=mean(lambda _, reference: reference),
        pearson=estimate(_pearson),
        spearman=estimate(_spearman),
        kendall=estimate(_kendall),
        mae=mean(lambda judge, reference: abs(judge - reference)),
        bias=mean(lambda judge, reference: judge - reference, DIFFERENCE),
    )


def reliability_curve(pairs: Pairs, bins: int | Sequence[float] = 5) -> list[ReliabilityBin]:
    """Return the judge's mean over bins of the reference, with intervals over dialogues. Empty bins are left out.

    `bins` are edges, or how many bins of equal width there are from 0 to 1. The last bin includes its upper edge.
    """
    if isinstance(bins, int):
        edges = [index / bins for index in range(bins + 1)]
    else:
        edges = list(bins)
    curve: list[ReliabilityBin] = []
    for index, (low, high) in enumerate(itertools.pairwise(edges)):
        includes_high = index == len(edges) - 2
        in_bin: dict[str, list[tuple[float, float]]] = {}
        for name, values in pairs.items():
            for judge, reference in values:
                if low <= reference < high or (includes_high and reference == high):
                    in_bin.setdefault(name, []).append((judge, reference))
        summary = summarize_bin(in_bin)
        if summary is not None:
            curve.append(summary)
    return curve


def summarize_bin(pairs: Pairs) -> ReliabilityBin | None:
    """Return both means, with the interval of the judge's; None for no pairs."""
    judge: dict[str, list[float]] = {}
    references: list[float] = []
    for name, values in pairs.items():
        if values:
            judge[name] = [value for value, _ in values]
            references += [reference for _, reference in values]
    if not judge:
        return None
    estimate = estimate_mean(judge)
    reference = statistics.fmean(references)
    if len(judge) < 2:
        return ReliabilityBin(reference, estimate.value, estimate.n, None, None)
    return ReliabilityBin(reference, estimate.value, estimate.n, estimate.low, estimate.high)


def krippendorff_alpha(units: Sequence[Unit], level: MeasurementLevel) -> float | None:
    """Return Krippendorff's alpha; None where nothing was annotated twice, or all annotations are the same."""
    by_dialogue = {str(index): [unit] for index, unit in enumerate(units)}
    return estimate_alpha(by_dialogue, level, draws=0).value


def estimate_alpha(
    units: Mapping[str, Sequence[Unit]], level: MeasurementLevel, *, draws: int = DRAWS, seed: int = 0
) -> NullableEstimate:
    """Return Krippendorff's alpha of units by dialogue, with its interval over dialogues."""
    import numpy as np

    values: list[float] = []  # all annotations of units that have several
    first: list[int] = []  # ordered pairs of annotations of one unit, by their index in `values`
    second: list[int] = []
    pair_weights: list[float] = []
    dialogue_of: list[int] = []  # for each pair
    dialogues = 0
    for dialogue in units.values():
        several = [unit for unit in dialogue if len(unit) > 1]
        for unit in several:
            for a, b in itertools.permutations(range(len(values), len(values) + len(unit)), 2):
                first.append(a)
                second.append(b)
                pair_weights.append(1 / (len(unit) - 1))
                dialogue_of.append(dialogues)
            values += unit.values()
        dialogues += bool(several)
    if not values:
        return NullableEstimate(None)
    levels, level_of = np.unique(values, return_inverse=True)
    coincidences = _Coincidences(levels, level_of[first], level_of[second], level)
    weight = np.array(pair_weights)
    value = _nan_to_none(coincidences.alphas(weight[None, :])[0])
    if value is None or dialogues < 2 or not draws:
        return NullableEstimate(value)
    chunks = _draw_item_weights(np.array(dialogue_of), dialogues, draws, seed, len(weight))
    drawn = [coincidences.alphas(weights * weight) for weights in chunks]
    low, high = _middle(np.concatenate(drawn))
    return NullableEstimate(value, low, high)


class _Coincidences:
    """Ordered pairs of annotations of one unit, by the index of their values among `levels`."""

    def __init__(self, levels: Any, first: Any, second: Any, level: MeasurementLevel) -> None:
        import numpy as np

        self._levels = levels
        self._first = first
        self._second = second
        self._level = level
        self._order = np.argsort(first, kind="stable")
        self._starts = np.searchsorted(first[self._order], np.arange(len(levels)))

    def alphas(self, weights: Any) -> Any:
        """Return an alpha for each row of weights of the pairs; NaN where all annotations are the same."""
        import numpy as np

        counts = np.add.reduceat(weights[:, self._order], self._starts, axis=1)  # of each value among pairable ones
        total = counts.sum(axis=1)
        if self._level in ("ordinal", "interval"):
            position = np.broadcast_to(self._levels, counts.shape)
            if self._level == "ordinal":
                position = counts.cumsum(axis=1) - counts / 2
            position = position - ((counts * position).sum(axis=1) / total)[:, None]
            observed = (weights * (position[:, self._first] - position[:, self._second]) ** 2).sum(axis=1)
            expected = 2 * total * (counts * position**2).sum(axis=1)
        else:
            distance = self._distances()
            observed = weights @ distance[self._first, self._second]
            expected = ((counts @ distance) * counts).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)

    def _distances(self) -> Any:
        """Return the squared distances between all values, for the levels nominal and ratio."""
        import numpy as np

        a = self._levels[:, None]
        b = self._levels[None, :]
        if self._level == "nominal":
            return (a != b).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a == b, 0.0, ((a - b) / (a + b)) ** 2)


# A statistic of distinct pairs of values (x, y), of which each has a weight: (draws, pairs) -> (draws,).
_Statistic = Callable[[Any, Any, Any], Any]


class _DistinctPairs:
    """The distinct pairs among all: scores take few values, so there are far fewer of them than items."""

    def __init__(self, points: Any) -> None:
        import numpy as np

        distinct, index = np.unique(points, axis=0, return_inverse=True)
        index = index.reshape(-1)
        self._items = len(points)
        self.x = distinct[:, 0]
        self.y = distinct[:, 1]
        self._order = np.argsort(index, kind="stable")
        self._starts = np.searchsorted(index[self._order], np.arange(len(distinct)))

    def count(self, item_weights: Any) -> Any:
        """Return the weight of each distinct pair, from that of each item."""
        import numpy as np

        return np.add.reduceat(item_weights[:, self._order], self._starts, axis=1)

    def compute(self, statistic: _Statistic) -> float | None:
        """Return a statistic of all items, each with weight 1."""
        import numpy as np

        return _nan_to_none(statistic(self.x, self.y, self.count(np.ones((1, self._items))))[0])


def _draw_item_weights(
    cluster_of: Any, clusters: int, draws: int, seed: int, items: int
) -> "Iterator[NDArray[np.float64]]":
    """Yield how often each item is drawn with its cluster, a number of draws at a time."""
    import numpy as np

    weights = bootstrap_weights(clusters, draws, seed)
    step = max(1, CHUNK_NUMBERS // max(1, items))
    for start in range(0, draws, step):
        yield weights[start : start + step][:, cluster_of].astype(np.float64)


def _compute(statistic: _Statistic, x: Sequence[float], y: Sequence[float]) -> float | None:
    import numpy as np

    points = np.array(list(zip(x, y, strict=True)), dtype=np.float64).reshape(-1, 2)
    if len(points) < 2:
        return None
    return _DistinctPairs(points).compute(statistic)


def _nan_to_none(value: Any) -> float | None:
    if value != value:
        return None
    return float(value)


def _middle(drawn: Any) -> tuple[float | None, float | None]:
    """Return the middle 95%; None where all draws are the same: they cannot show what was never seen.

    Draws in which the statistic is undefined are left out.
    """
    import numpy as np

    finite = drawn[np.isfinite(drawn)]
    if not len(finite):
        return None, None
    low, high = (float(end) for end in np.quantile(finite, [0.025, 0.975]))
    if high - low < SAME:
        return None, None
    return low, high


def _pearson(x: Any, y: Any, weights: Any) -> Any:
    import numpy as np

    return _correlation(np.broadcast_to(x, weights.shape), np.broadcast_to(y, weights.shape), weights)


def _spearman(x: Any, y: Any, weights: Any) -> Any:
    return _correlation(_ranks(x, weights), _ranks(y, weights), weights)


def _ranks(values: Any, weights: Any) -> Any:
    """Return the mean rank of each value, which is there as often as its weight says."""
    counts, index = _count_values(values, weights)
    return (counts.cumsum(axis=1) - (counts - 1) / 2)[:, index]


def _count_values(values: Any, weights: Any) -> tuple[Any, Any]:
    """Return the weight of each distinct value, in rising order, and which of them each value is."""
    import numpy as np

    distinct, index = np.unique(values, return_inverse=True)
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(len(distinct)))
    return np.add.reduceat(weights[:, order], starts, axis=1), index


def _correlation(x: Any, y: Any, weights: Any) -> Any:
    import numpy as np

    total = weights.sum(axis=1)[:, None]
    dx = x - (weights * x).sum(axis=1)[:, None] / total
    dy = y - (weights * y).sum(axis=1)[:, None] / total
    xx = (weights * dx * dx).sum(axis=1)
    yy = (weights * dy * dy).sum(axis=1)
    x_is_constant = xx <= ROUNDING * (weights * x * x).sum(axis=1)
    y_is_constant = yy <= ROUNDING * (weights * y * y).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = (weights * dx * dy).sum(axis=1) / np.sqrt(xx) / np.sqrt(yy)
    return np.where(x_is_constant | y_is_constant, np.nan, np.clip(correlation, -1, 1))


def _kendall(x: Any, y: Any, weights: Any) -> Any:
    """Return concordant less discordant pairs, over the root of those not tied in x times those not tied in y.

    What is there twice is tied with itself. Pairs are visited in the order of x; a tree of sums (Fenwick 1994) has the
    weight of those visited with a lower, or with a higher y.
    """
    import numpy as np

    weight_of = weights.T.copy()
    draws = len(weights)
    rank: Any = np.unique(y, return_inverse=True)[1] + 1
    order = np.argsort(x, kind="stable")
    size = int(rank.max(initial=0))
    tree: Any = np.zeros((size + 1, draws))
    visited = np.zeros(draws)
    difference = np.zeros(draws)
    for tied in np.split(order, np.flatnonzero(np.diff(x[order])) + 1):
        for index in tied:
            below = _prefix_sum(tree, rank[index] - 1)
            above = visited - _prefix_sum(tree, rank[index])
            difference += weight_of[index] * (below - above)
        for index in tied:
            visited += weight_of[index]
            node = int(rank[index])
            while node <= size:
                tree[node] += weight_of[index]
                node += node & -node
    norm = np.sqrt(_count_untied(x, weights)) * np.sqrt(_count_untied(y, weights))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(norm > 0, np.clip(difference / norm, -1, 1), np.nan)


def _prefix_sum(tree: Any, node: int) -> Any:
    import numpy as np

    total = np.zeros(tree.shape[1])
    while node > 0:
        total += tree[node]
        node -= node & -node
    return total


def _count_untied(values: Any, weights: Any) -> Any:
    """Return how many pairs have different values."""
    counts = _count_values(values, weights)[0]
    return (weights.sum(axis=1) ** 2 - (counts**2).sum(axis=1)) / 2
