"""Is one run better than another on the same dialogues? Paired differences, with an interval and a permutation test.

The test supposes that each dialogue's two results could as well be swapped. With few dialogues every combination of
swaps is tried, and p is exact; else p comes from random ones, and is never zero. `holm_adjust` corrects for several
comparisons.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from weft.stats.intervals import bootstrap_interval, list_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_EXACT = 14  # dialogues up to which every combination is tried
DRAWS = 9999
CHUNK_DRAWS = 500
Clusters = Mapping[str, Sequence[float]]  # differences by dialogue


class Difference(Struct, frozen=True):
    """A mean difference between two runs."""

    value: float
    low: float | None  # with `high` the 95% interval; None for one dialogue alone
    high: float | None
    p: float
    pairs: int  # values that both runs have
    dialogues: int


def compare_paired(terms: Sequence[tuple[float, Clusters]], *, draws: int = DRAWS, seed: int = 0) -> Difference | None:
    """Test a weighted sum of means of differences; None where a mean has no pairs."""
    import numpy as np

    names = list_clusters(clusters for _, clusters in terms)
    totals = [sum(map(len, clusters.values())) for _, clusters in terms]
    if not names or not all(totals):
        return None
    contributions = np.zeros(len(names))
    for (weight, clusters), total in zip(terms, totals, strict=True):
        contributions += [weight * sum(clusters.get(name, ())) / total for name in names]
    low, high = bootstrap_interval(terms, seed=seed) or (None, None)
    p = permutation_p_value(contributions, draws=draws, seed=seed)
    return Difference(float(contributions.sum()), low, high, p, sum(totals), len(names))


def permutation_p_value(
    contributions: "Sequence[float] | NDArray[np.float64]", *, draws: int = DRAWS, seed: int = 0
) -> float:
    """Return the two-sided p: how often a sum with random signs is as far from zero as the observed one."""
    import numpy as np

    values = np.asarray(contributions, dtype=np.float64)
    values = values[values != 0]
    if not len(values):
        return 1.0
    observed = abs(values.sum()) * (1 - 1e-9)
    if len(values) <= MAX_EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(values))))
        return float((np.abs(signs @ values) >= observed).mean())
    generator = np.random.default_rng(seed)
    as_extreme = 0
    for start in range(0, draws, CHUNK_DRAWS):
        count = min(CHUNK_DRAWS, draws - start)
        signs = generator.integers(0, 2, size=(count, len(values)), dtype=np.int8).astype(np.float64) * 2 - 1
        as_extreme += int((np.abs(signs @ values) >= observed).sum())
    return (as_extreme + 1) / (draws + 1)


def holm_adjust(values: Sequence[float]) -> list[float]:
    """Return p values after Holm's step-down correction, in the order of the input."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    adjusted = [1.0] * len(values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = highest
    return adjusted
