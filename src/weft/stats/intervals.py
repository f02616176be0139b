"""95% intervals by the cluster bootstrap: whole dialogues are drawn again with replacement, never single turns.

A number in a table is a weighted sum of means (one mean for most, four for WEAVE's Avg), and all of them are drawn from
the same dialogues. `slope` is the change per turn within a dialogue: which dialogues happen to be long does not move
it."""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS = 2000
KEPT = 4096  # dialogues up to which a table of draws is kept: 8 MB
ROOM = 500_000  # numbers that are multiplied at a time
Clusters = Mapping[str, Sequence[float]]  # values by dialogue


class Estimate(Struct, frozen=True):
    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate_mean(clusters: Clusters, *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """The mean over all values, with a percentile interval over resampled clusters."""
    values = [value for some in clusters.values() for value in some]
    if not values:
        raise ValueError("there is nothing to average")
    found = bootstrap_interval([(1.0, clusters)], draws=draws, seed=seed)
    point = sum(values) / len(values)
    return Estimate(point, *(found or (point, point)), len(values))


def bootstrap_interval(
    terms: Sequence[tuple[float, Clusters]], *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float] | None:
    """Between which values a weighted sum of means lies; None where there are not two dialogues to draw from."""
    import numpy as np

    names = list(dict.fromkeys(name for _, clusters in terms for name, values in clusters.items() if values))
    if len(names) < 2:
        return None
    sums = np.empty((len(names), len(terms)))
    counts = np.empty((len(names), len(terms)))
    for at, (_, clusters) in enumerate(terms):
        sums[:, at] = np.fromiter((sum(clusters.get(name, ())) for name in names), np.float64, len(names))
        counts[:, at] = np.fromiter((len(clusters.get(name, ())) for name in names), np.float64, len(names))
    drawn_sums, drawn_counts = _drawn(draws, seed, sums, counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = drawn_sums / drawn_counts @ np.array([weight for weight, _ in terms])
    return _middle(drawn)


def estimate_slope(
    points: Mapping[str, Sequence[tuple[float, float]]], *, draws: int = DRAWS, seed: int = 0
) -> Estimate | None:
    """The change of y with x within a cluster; None where no cluster has two different x. One cluster alone has no
    interval: NaN."""
    import numpy as np

    products: list[float] = []
    squares: list[float] = []
    count = 0
    for pairs in points.values():
        if not pairs:
            continue
        x0, y0 = (sum(axis) / len(pairs) for axis in zip(*pairs, strict=True))
        products.append(sum((x - x0) * (y - y0) for x, y in pairs))
        squares.append(sum((x - x0) ** 2 for x, _ in pairs))
        count += len(pairs)
    if not sum(squares):
        return None
    value = sum(products) / sum(squares)
    if sum(square > 0 for square in squares) < 2:
        return Estimate(value, math.nan, math.nan, count)
    drawn_products, drawn_squares = _drawn(draws, seed, np.array([products]).T, np.array([squares]).T)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (drawn_products / drawn_squares)[:, 0]
    return Estimate(value, *(_middle(drawn) or (value, value)), count)


@functools.lru_cache(maxsize=48)
def bootstrap_weights(clusters: int, draws: int, seed: int) -> "NDArray[np.uint8]":
    """How often each cluster is drawn, by draw: (draws, clusters)."""
    import numpy as np

    return np.concatenate(list(_weights(clusters, draws, seed)))


def _weights(clusters: int, draws: int, seed: int) -> "Iterator[NDArray[np.uint8]]":
    """The same, some draws at a time."""
    import numpy as np

    chance = np.random.default_rng(seed)
    rows = max(1, ROOM // clusters)
    for start in range(0, draws, rows):
        made = np.empty((min(rows, draws - start), clusters), np.uint8)
        for row in made:
            row[:] = np.bincount(chance.integers(0, clusters, size=clusters), minlength=clusters)
        yield made


def _drawn(draws: int, seed: int, first: "NDArray[np.float64]", second: "NDArray[np.float64]") -> tuple[Any, Any]:
    """Both sums in every draw. Those of many dialogues are drawn again each time: kept, they would take a gigabyte for
    half a million."""
    import numpy as np

    clusters = len(first)
    if clusters <= KEPT:
        times = [bootstrap_weights(clusters, draws, seed)]
    else:
        times = _weights(clusters, draws, seed)
    both = np.ascontiguousarray(np.hstack([first, second]).T)
    made = np.hstack([both @ some.astype(np.float64).T for some in times]).T
    return made[:, : first.shape[1]], made[:, first.shape[1] :]


def _middle(drawn: Any) -> tuple[float, float] | None:
    """The middle 95%; draws in which a mean had nothing to average are left out."""
    import numpy as np

    kept = drawn[np.isfinite(drawn)]
    if not len(kept):
        return None
    low, high = np.quantile(kept, [0.025, 0.975])
    return float(low), float(high)
