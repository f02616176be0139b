"""95% intervals by the cluster bootstrap: whole dialogues are drawn again with replacement, never single turns.

A number in a table is a weighted sum of means (one mean for most, four for WEAVE's Avg), and all of them are drawn from
the same dialogues. `estimate_slope` is the change per turn within a dialogue: it does not depend on which dialogues are
long.
"""

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS = 2000
MAX_CACHED_CLUSTERS = 4096  # a table of draws for as many takes 8 MB
CHUNK_NUMBERS = 500_000  # that are drawn at a time
Clusters = Mapping[str, Sequence[float]]  # values by dialogue


class Estimate(Struct, frozen=True):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float
    n: int  # values that it was computed from

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate_mean(clusters: Clusters, *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """Return the mean over all values, with a percentile interval over resampled clusters.

    One cluster alone has an interval without width. Raises ValueError for no values.
    """
    values: list[float] = []
    for cluster in clusters.values():
        values += cluster
    if not values:
        raise ValueError("there is nothing to average")
    mean = sum(values) / len(values)
    interval = bootstrap_interval([(1.0, clusters)], draws=draws, seed=seed)
    low, high = interval or (mean, mean)
    return Estimate(mean, low, high, len(values))


def list_clusters(samples: Iterable[Mapping[str, Sequence[Any]]]) -> list[str]:
    """Return the names of all clusters that have a value in any of the samples, in order of appearance."""
    names: dict[str, None] = {}
    for clusters in samples:
        names.update(dict.fromkeys(name for name, values in clusters.items() if values))
    return list(names)


def bootstrap_interval(
    terms: Sequence[tuple[float, Clusters]], *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float] | None:
    """Return the 95% interval of a weighted sum of means; None where there are not two dialogues to draw from."""
    import numpy as np

    names = list_clusters(clusters for _, clusters in terms)
    if len(names) < 2:
        return None
    sums = np.empty((len(names), len(terms)))
    counts = np.empty((len(names), len(terms)))
    for column, (_, clusters) in enumerate(terms):
        values = [clusters.get(name, ()) for name in names]
        sums[:, column] = list(map(sum, values))
        counts[:, column] = list(map(len, values))
    drawn_sums, drawn_counts = _resample_sums(draws, seed, sums, counts)
    weights = np.array([weight for weight, _ in terms])
    with np.errstate(divide="ignore", invalid="ignore"):
        return _middle(drawn_sums / drawn_counts @ weights)


def estimate_slope(
    points: Mapping[str, Sequence[tuple[float, float]]], *, draws: int = DRAWS, seed: int = 0
) -> Estimate | None:
    """Return the change of y with x within a cluster; None where no cluster has two different x.

    Where only one cluster has two different x there is no interval: its bounds are NaN.
    """
    import numpy as np

    products: list[float] = []
    squares: list[float] = []
    count = 0
    for pairs in points.values():
        if not pairs:
            continue
        mean_x = sum(x for x, _ in pairs) / len(pairs)
        mean_y = sum(y for _, y in pairs) / len(pairs)
        products.append(sum((x - mean_x) * (y - mean_y) for x, y in pairs))
        squares.append(sum((x - mean_x) ** 2 for x, _ in pairs))
        count += len(pairs)
    if not sum(squares):
        return None
    value = sum(products) / sum(squares)
    if sum(square > 0 for square in squares) < 2:
        return Estimate(value, math.nan, math.nan, count)
    drawn_products, drawn_squares = _resample_sums(draws, seed, np.array([products]).T, np.array([squares]).T)
    with np.errstate(divide="ignore", invalid="ignore"):
        interval = _middle((drawn_products / drawn_squares)[:, 0])
    low, high = interval or (value, value)
    return Estimate(value, low, high, count)


@functools.lru_cache(maxsize=48)
def bootstrap_weights(clusters: int, draws: int, seed: int) -> "NDArray[np.uint8]":
    """Return how often each cluster is drawn, by draw: (draws, clusters)."""
    import numpy as np

    return np.concatenate(list(_draw_weights(clusters, draws, seed)))


def _draw_weights(clusters: int, draws: int, seed: int) -> "Iterator[NDArray[np.uint8]]":
    """Yield the same weights, a number of draws at a time."""
    import numpy as np

    generator = np.random.default_rng(seed)
    rows = max(1, CHUNK_NUMBERS // clusters)
    for start in range(0, draws, rows):
        chunk = np.empty((min(rows, draws - start), clusters), np.uint8)
        for row in chunk:
            row[:] = np.bincount(generator.integers(0, clusters, size=clusters), minlength=clusters)
        yield chunk


def _resample_sums(
    draws: int, seed: int, first: "NDArray[np.float64]", second: "NDArray[np.float64]"
) -> tuple[Any, Any]:
    """Return the column sums of both tables in every draw of their rows.

    Weights of many clusters are drawn again each time: for half a million, a cache would take a gigabyte.
    """
    import numpy as np

    clusters = len(first)
    if clusters <= MAX_CACHED_CLUSTERS:
        chunks = [bootstrap_weights(clusters, draws, seed)]
    else:
        chunks = _draw_weights(clusters, draws, seed)
    both = np.ascontiguousarray(np.hstack([first, second]).T)
    sums = np.hstack([both @ weights.astype(np.float64).T for weights in chunks]).T
    columns = first.shape[1]
    return sums[:, :columns], sums[:, columns:]


def _middle(drawn: Any) -> tuple[float, float] | None:
    """Return the middle 95%. Draws in which a mean had nothing to average are left out."""
    import numpy as np

    finite = drawn[np.isfinite(drawn)]
    if not len(finite):
        return None
    low, high = np.quantile(finite, [0.025, 0.975])
    return float(low), float(high)
