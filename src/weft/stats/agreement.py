"""How far two agree who judged the same: a judge and the truth, a judge and people, people among themselves.

Pairs are (judge, truth), by dialogue. Correlations, the mean absolute error and the bias (judge minus truth) have 95%
intervals for which whole dialogues are drawn again with replacement. What is undefined is None, never a number: a
correlation of fewer than two points, or of values that are all the same.

Krippendorff's alpha is for any number of raters of whom each rated what they rated: 1 - observed / expected
disagreement (Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011). A unit that has one rating alone says
nothing, and is left out."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from weft.stats.intervals import bootstrap_weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pairs = Mapping[str, Sequence[tuple[float, float]]]  # (judge, truth), by dialogue
Unit = Mapping[str, float]  # what was rated, by rater
MeasurementLevel = Literal["nominal", "ordinal", "interval", "ratio"]
DRAWS = 1000
ROOM = 4_000_000  # numbers at a time
FLAT = 1e-12  # a share of variance that is rounding


class NullableEstimate(Struct, frozen=True):
    """A value with its 95% interval; None is undefined, and there is no interval of fewer than two dialogues."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            told = "-"
        else:
            told = f"{self.value:.3f}"
        if self.low is None or self.high is None:
            return told
        return f"{told} [{self.low:.3f}, {self.high:.3f}]"


class Agreement(Struct, frozen=True):
    n: int  # pairs
    clusters: int  # dialogues
    judge: NullableEstimate  # the mean of each
    reference: NullableEstimate
    pearson: NullableEstimate
    spearman: NullableEstimate
    kendall: NullableEstimate
    mae: NullableEstimate
    bias: NullableEstimate


class ReliabilityBin(NamedTuple):
    """What a judge says, on average, of items whose truth lies in one bin."""

    reference: float
    judge: float
    n: int
    low: float | None
    high: float | None


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    return _one(_pearson, x, y)


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation of ranks; equal values share the mean of their ranks."""
    return _one(_spearman, x, y)


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Tau-b, which allows for ties."""
    return _one(_kendall, x, y)


def mae(x: Sequence[float], y: Sequence[float]) -> float | None:
    """The mean absolute difference, item by item."""
    if x:
        return statistics.fmean(abs(a - b) for a, b in zip(x, y, strict=True))
    return None


def bias(x: Sequence[float], y: Sequence[float]) -> float | None:
    """How much higher the first is, on average."""
    if x:
        return statistics.fmean(a - b for a, b in zip(x, y, strict=True))
    return None


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """The coefficient of variation: standard deviation over mean."""
    if len(values) > 1:
        mean = statistics.fmean(values)
    else:
        mean = 0.0
    if mean:
        return statistics.stdev(values) / mean
    return None


def measure_agreement(pairs: Pairs, *, draws: int = DRAWS, seed: int = 0) -> Agreement:
    """All of it, of (judge, truth) by dialogue."""
    import numpy as np

    some = [values for values in pairs.values() if values]
    flat = np.array([pair for values in some for pair in values], dtype=np.float64).reshape(-1, 2)
    of = np.repeat(np.arange(len(some)), [len(values) for values in some])
    cells = _Cells(flat)
    counts = len(some)

    def measured(what: Any) -> NullableEstimate:
        if not len(flat):
            return NullableEstimate(None)
        value = _number(what(cells.x, cells.y, cells.times(np.ones((1, len(flat)))))[0])
        if counts < 2 or value is None:
            return NullableEstimate(value)
        drawn = [what(cells.x, cells.y, cells.times(times)) for times in _drawn(of, counts, draws, seed, len(flat))]
        return NullableEstimate(value, *_middle(np.concatenate(drawn)))

    wanted = (_mean_first, _mean_second, _pearson, _spearman, _kendall, _mae, _bias)
    return Agreement(len(flat), counts, *(measured(what) for what in wanted))


def reliability_curve(
    pairs: Pairs, bins: int | Sequence[float] = 5, *, draws: int = DRAWS, seed: int = 0
) -> list[ReliabilityBin]:
    """A reliability curve: the judge's mean over bins of the truth, with intervals by dialogue. `bins` are edges, or
    how many of equal width there are from 0 to 1. A bin without items is left out."""
    if isinstance(bins, int):
        edges = [at / bins for at in range(bins + 1)]
    else:
        edges = list(bins)
    made: list[ReliabilityBin] = []
    for at, (low, high) in enumerate(pairwise(edges)):
        last = at == len(edges) - 2
        inside = {
            name: [pair for pair in some if low <= pair[1] < high or (last and pair[1] == high)]
            for name, some in pairs.items()
        }
        found = summarize_bin({name: some for name, some in inside.items() if some}, draws=draws, seed=seed)
        if found is not None:
            made.append(found)
    return made


def summarize_bin(pairs: Pairs, *, draws: int = DRAWS, seed: int = 0) -> ReliabilityBin | None:
    """The two means, with the interval of the judge's; None where there is nothing."""
    from weft.stats.intervals import estimate_mean

    if not any(pairs.values()):
        return None
    judged = estimate_mean({name: [judge for judge, _ in some] for name, some in pairs.items()}, draws=draws, seed=seed)
    truth = statistics.fmean(right for some in pairs.values() for _, right in some)
    several = sum(bool(some) for some in pairs.values()) > 1
    return ReliabilityBin(
        truth, judged.value, judged.n, judged.low if several else None, judged.high if several else None
    )


def krippendorff_alpha(units: Sequence[Unit], level: MeasurementLevel) -> float | None:
    """Krippendorff's alpha; None where nothing was rated twice, or all ratings are the same."""
    return estimate_alpha({str(at): [unit] for at, unit in enumerate(units)}, level, draws=0).value


def estimate_alpha(
    units: Mapping[str, Sequence[Unit]], level: MeasurementLevel, *, draws: int = DRAWS, seed: int = 0
) -> NullableEstimate:
    """The same with its interval, of units by dialogue."""
    import numpy as np

    kept = [[list(unit.values()) for unit in some if len(unit) > 1] for some in units.values()]
    kept = [some for some in kept if some]
    if not kept:
        return NullableEstimate(None)
    levels, places = np.unique([value for some in kept for unit in some for value in unit], return_inverse=True)
    first: list[int] = []
    second: list[int] = []
    heavy: list[float] = []
    of: list[int] = []
    start = 0
    for cluster, some in enumerate(kept):
        for unit in some:
            mine = range(start, start + len(unit))
            start += len(unit)
            both = [(a, b) for a in mine for b in mine if a != b]
            first += [int(places[a]) for a, _ in both]
            second += [int(places[b]) for _, b in both]
            heavy += [1 / (len(unit) - 1)] * len(both)
            of += [cluster] * len(both)
    found = _Coincidences(levels, np.array(first), np.array(second), level)
    weight = np.array(heavy)
    owner = np.array(of)
    value = _number(found.alphas(weight[None, :])[0])
    if value is None or len(kept) < 2 or not draws:
        return NullableEstimate(value)
    drawn = [found.alphas(times * weight) for times in _drawn(owner, len(kept), draws, seed, len(weight))]
    return NullableEstimate(value, *_middle(np.concatenate(drawn)))


class _Coincidences:
    """Ordered pairs of ratings of one unit, by the places of their values among `levels`."""

    def __init__(self, levels: Any, first: Any, second: Any, level: MeasurementLevel) -> None:
        import numpy as np

        self.levels = levels
        self.first = first
        self.second = second
        self.level = level
        self.order = np.argsort(first, kind="stable")
        self.starts = np.searchsorted(first[self.order], np.arange(len(levels)))

    def alphas(self, times: Any) -> Any:
        """One for each row of weights of the pairs; not a number where all ratings are the same."""
        import numpy as np

        counts = np.add.reduceat(times[:, self.order], self.starts, axis=1)  # of each value among pairable ones
        total = counts.sum(axis=1)
        if self.level in ("ordinal", "interval"):
            if self.level == "ordinal":
                at = counts.cumsum(axis=1) - counts / 2
            else:
                at = np.broadcast_to(self.levels, counts.shape)
            at = at - ((counts * at).sum(axis=1) / total)[:, None]
            observed = (times * (at[:, self.first] - at[:, self.second]) ** 2).sum(axis=1)
            expected = 2 * total * (counts * at**2).sum(axis=1)
        else:
            apart = self._apart()
            observed = times @ apart[self.first, self.second]
            expected = ((counts @ apart) * counts).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)

    def _apart(self) -> Any:
        import numpy as np

        a = self.levels[:, None]
        b = self.levels[None, :]
        if self.level == "nominal":
            return (a != b).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a == b, 0.0, ((a - b) / (a + b)) ** 2)


# Statistics of different pairs of values (x, y), each there so many times: (draws, pairs) -> (draws,).

_Statistic = Callable[[Any, Any, Any], Any]


class _Cells:
    """The different pairs among all: scores are few, so that they are far fewer than items."""

    def __init__(self, flat: Any) -> None:
        import numpy as np

        cells, place = np.unique(flat, axis=0, return_inverse=True)
        self.x = cells[:, 0]
        self.y = cells[:, 1]
        self.order = np.argsort(place.reshape(-1), kind="stable")
        self.starts = np.searchsorted(place.reshape(-1)[self.order], np.arange(len(cells)))

    def times(self, items: Any) -> Any:
        """How often each is there, from how often each item is."""
        import numpy as np

        return np.add.reduceat(items[:, self.order], self.starts, axis=1)


def _drawn(of: Any, clusters: int, draws: int, seed: int, wide: int) -> "Iterator[NDArray[np.float64]]":
    """How often each item is there, some draws at a time."""
    import numpy as np

    every = bootstrap_weights(clusters, draws, seed)
    step = max(1, ROOM // max(1, wide))
    for start in range(0, draws, step):
        yield every[start : start + step][:, of].astype(np.float64)


def _one(what: _Statistic, x: Sequence[float], y: Sequence[float]) -> float | None:
    import numpy as np

    flat = np.array(list(zip(x, y, strict=True)), dtype=np.float64).reshape(-1, 2)
    if len(flat) < 2:
        return None
    cells = _Cells(flat)
    return _number(what(cells.x, cells.y, cells.times(np.ones((1, len(flat)))))[0])


def _number(value: Any) -> float | None:
    if value == value:
        return float(value)
    return None


def _middle(drawn: Any) -> tuple[float | None, float | None]:
    """The middle 95%; draws in which it is undefined are left out."""
    import numpy as np

    kept = drawn[np.isfinite(drawn)]
    if not len(kept):
        return None, None
    low, high = np.quantile(kept, [0.025, 0.975])
    return float(low), float(high)


def _mean_first(x: Any, y: Any, times: Any) -> Any:
    return times @ x / times.sum(axis=1)


def _mean_second(x: Any, y: Any, times: Any) -> Any:
    return times @ y / times.sum(axis=1)


def _mae(x: Any, y: Any, times: Any) -> Any:
    return times @ abs(x - y) / times.sum(axis=1)


def _bias(x: Any, y: Any, times: Any) -> Any:
    return times @ (x - y) / times.sum(axis=1)


def _pearson(x: Any, y: Any, times: Any) -> Any:
    import numpy as np

    return _correlation(np.broadcast_to(x, times.shape), np.broadcast_to(y, times.shape), times)


def _spearman(x: Any, y: Any, times: Any) -> Any:
    return _correlation(_ranks(x, times), _ranks(y, times), times)


def _ranks(values: Any, times: Any) -> Any:
    """Mean ranks of each value, as often as it is there."""
    counts, place = _counts(values, times)
    return (counts.cumsum(axis=1) - (counts - 1) / 2)[:, place]


def _counts(values: Any, times: Any) -> tuple[Any, Any]:
    """How often each different value is there, in rising order; and which of them each value is."""
    import numpy as np

    levels, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    return np.add.reduceat(times[:, order], np.searchsorted(place[order], np.arange(len(levels))), axis=1), place


def _correlation(x: Any, y: Any, times: Any) -> Any:
    import numpy as np

    total = times.sum(axis=1)[:, None]
    dx = x - (times * x).sum(axis=1)[:, None] / total
    dy = y - (times * y).sum(axis=1)[:, None] / total
    xx = (times * dx * dx).sum(axis=1)
    yy = (times * dy * dy).sum(axis=1)
    flat = (xx <= FLAT * (times * x * x).sum(axis=1)) | (yy <= FLAT * (times * y * y).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (times * dx * dy).sum(axis=1) / np.sqrt(xx) / np.sqrt(yy)
    return np.where(flat, np.nan, np.clip(found, -1, 1))


def _kendall(x: Any, y: Any, times: Any) -> Any:
    """Concordant less discordant pairs, over the root of those that are no tie in x times those that are none in y.
    What is there twice is a tie with itself. Pairs are met in the order of x; a tree of sums (Fenwick 1994) knows how
    many were met below and above a y."""
    import numpy as np

    many = times.T.copy()
    draws = len(times)
    rank: Any = np.unique(y, return_inverse=True)[1] + 1
    order = np.argsort(x, kind="stable")
    size = int(rank.max(initial=0))
    tree: Any = np.zeros((size + 1, draws))
    met = np.zeros(draws)
    same = np.zeros(draws)
    for some in np.split(order, np.flatnonzero(np.diff(x[order])) + 1):
        for at in some:
            below = _until(tree, rank[at] - 1)
            same += many[at] * (below - (met - _until(tree, rank[at])))
        for at in some:
            met += many[at]
            place = int(rank[at])
            while place <= size:
                tree[place] += many[at]
                place += place & -place
    apart = np.sqrt(_untied(x, times)) * np.sqrt(_untied(y, times))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(apart > 0, np.clip(same / apart, -1, 1), np.nan)


def _until(tree: Any, place: int) -> Any:
    import numpy as np

    found = np.zeros(tree.shape[1])
    while place > 0:
        found += tree[place]
        place -= place & -place
    return found


def _untied(values: Any, times: Any) -> Any:
    """Pairs whose values differ."""
    counts = _counts(values, times)[0]
    return (times.sum(axis=1) ** 2 - (counts**2).sum(axis=1)) / 2
