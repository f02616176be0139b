"""Is one run better than another on the same dialogues? Paired differences with a bootstrap interval, and a permutation
test in which each dialogue's two results may as well have been the other way round. `holm` corrects for how many such
questions are asked at once.

With few dialogues every way round is tried, and p is exact; else it comes from so many random ones, and is never zero.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from weft.stats.intervals import bootstrap_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT = 14
DRAWS = 9999
CHUNK = 500
Clusters = Mapping[str, Sequence[float]]  # differences by dialogue


class Difference(Struct, frozen=True):
    value: float
    low: float | None  # with `high` the 95% interval; none where there is one dialogue
    high: float | None
    p: float
    pairs: int
    dialogues: int


def compare_paired(terms: Sequence[tuple[float, Clusters]], *, draws: int = DRAWS, seed: int = 0) -> Difference | None:
    """Of a weighted sum of means of differences; None where nothing is paired."""
    import numpy as np

    names = list(dict.fromkeys(name for _, clusters in terms for name, values in clusters.items() if values))
    totals = [sum(len(values) for values in clusters.values()) for _, clusters in terms]
    if not names or not all(totals):
        return None
    shares = np.array(
        [
            sum(
                weight * sum(clusters.get(name, ())) / total
                for (weight, clusters), total in zip(terms, totals, strict=True)
            )
            for name in names
        ]
    )
    value = float(shares.sum())
    low, high = bootstrap_interval(terms, seed=seed) or (None, None)
    return Difference(value, low, high, permutation_p_value(shares, draws=draws, seed=seed), sum(totals), len(names))


def permutation_p_value(shares: "Sequence[float] | NDArray[np.float64]", *, draws: int = DRAWS, seed: int = 0) -> float:
    """Two-sided: how often a sum with random signs is as far from zero as the one that was found."""
    import numpy as np

    values = np.asarray(shares, dtype=np.float64)
    values = values[values != 0]
    if not len(values):
        return 1.0
    found = abs(values.sum()) * (1 - 1e-9)
    if len(values) <= EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(values))))
        return float((np.abs(signs @ values) >= found).mean())
    chance = np.random.default_rng(seed)
    as_far = 0
    for start in range(0, draws, CHUNK):
        count = min(CHUNK, draws - start)
        signs = chance.integers(0, 2, size=(count, len(values)), dtype=np.int8).astype(np.float64) * 2 - 1
        as_far += int((np.abs(signs @ values) >= found).sum())
    return (as_far + 1) / (draws + 1)


def holm_adjust(values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order given."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    corrected = [1.0] * len(values)
    highest = 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[at]))
        corrected[at] = highest
    return corrected
