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

DRAWS, CHUNK, MANY = 2000, 128, 512
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
    drawn_sums, drawn_counts = _drawn(weights(len(names), draws, seed), sums, counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = drawn_sums / drawn_counts @ np.array([weight for weight, _ in terms])
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
    drawn_products, drawn_squares = _drawn(weights(len(products), draws, seed), np.array([products]).T, np.array([squares]).T)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (drawn_products / drawn_squares)[:, 0]
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


def _drawn(times: "NDArray[np.uint8]", first: Any, second: Any) -> tuple[Any, Any]:
    """Both sums in every draw. Of many dialogues, some draws at a time: the whole table would be fifty megabytes."""
    import numpy as np

    if times.shape[1] <= MANY:
        every = times.astype(np.float64)
        return every @ first, every @ second
    both = np.hstack([first, second]).astype(np.float64)
    made = np.empty((len(times), both.shape[1]))
    room = np.empty((CHUNK, times.shape[1]))
    for start in range(0, len(times), CHUNK):
        some = times[start : start + CHUNK]
        np.copyto(room[: len(some)], some)
        made[start : start + CHUNK] = room[: len(some)] @ both
    return made[:, : first.shape[1]], made[:, first.shape[1] :]


def _middle(drawn: Any) -> tuple[float, float] | None:
    """The middle 95%; draws in which a mean had nothing to average are left out."""
    import numpy as np

    kept = drawn[np.isfinite(drawn)]
    if not len(kept):
        return None
    low, high = np.quantile(kept, [0.025, 0.975])
    return float(low), float(high)
