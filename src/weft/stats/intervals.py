"""95% intervals by the cluster bootstrap: whole dialogues are drawn again with replacement, never single turns.

A number in a table is a weighted sum of means (one mean for most, four for WEAVE's Avg), and all of them are drawn from the same dialogues.
`slope` is the change per turn within a dialogue: which dialogues happen to be long does not move it.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS = 2000
Clusters = Mapping[str, Sequence[float]]  # values by dialogue


class Estimate(Struct, frozen=True):
    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean(clusters: Clusters, *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """The mean over all values, with a percentile interval over resampled clusters."""
    values = [value for some in clusters.values() for value in some]
    if not values:
        raise ValueError("there is nothing to average")
    found = spread([(1.0, clusters)], draws=draws, seed=seed)
    point = sum(values) / len(values)
    return Estimate(point, *(found or (point, point)), len(values))


def spread(terms: Sequence[tuple[float, Clusters]], *, draws: int = DRAWS, seed: int = 0) -> tuple[float, float] | None:
    """Between which values a weighted sum of means lies; None where there are not two dialogues to draw from."""
    import numpy as np

    names = list(dict.fromkeys(name for _, clusters in terms for name, values in clusters.items() if values))
    if len(names) < 2:
        return None
    sums = np.array([[sum(clusters.get(name, ())) for _, clusters in terms] for name in names], dtype=np.float64)
    counts = np.array([[len(clusters.get(name, ())) for _, clusters in terms] for name in names], dtype=np.float64)
    times = weights(len(names), draws, seed).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (times @ sums) / (times @ counts) @ np.array([weight for weight, _ in terms])
    return _middle(drawn)


def slope(points: Mapping[str, Sequence[tuple[float, float]]], *, draws: int = DRAWS, seed: int = 0) -> Estimate | None:
    """The change of y with x within a cluster; None where no cluster has two different x. One cluster alone has no interval: NaN."""
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
    times = weights(len(products), draws, seed).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (times @ np.array(products)) / (times @ np.array(squares))
    return Estimate(value, *(_middle(drawn) or (value, value)), count)


@functools.lru_cache(maxsize=48)
def weights(clusters: int, draws: int, seed: int) -> "NDArray[np.uint8]":
    """How often each cluster is drawn, by draw: (draws, clusters). Kept small: there are as many as dialogues times draws."""
    import numpy as np

    chance = np.random.default_rng(seed)
    made = np.empty((draws, clusters), np.uint8)
    for draw in range(draws):
        made[draw] = np.bincount(chance.integers(0, clusters, size=clusters), minlength=clusters)
    return made


def _middle(drawn: Any) -> tuple[float, float] | None:
    """The middle 95%; draws in which a mean had nothing to average are left out."""
    import numpy as np

    kept = drawn[np.isfinite(drawn)]
    if not len(kept):
        return None
    low, high = np.quantile(kept, [0.025, 0.975])
    return float(low), float(high)
