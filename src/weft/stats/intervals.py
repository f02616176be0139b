"""95% intervals by the cluster bootstrap: whole dialogues are drawn again with replacement, never single turns."""

from collections.abc import Mapping, Sequence

from msgspec import Struct


class Estimate(Struct, frozen=True):
    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean(clusters: Mapping[str, Sequence[float]], *, draws: int = 2000, seed: int = 0) -> Estimate:
    """The mean over all values, with a percentile interval over resampled clusters."""
    import numpy as np

    sums = np.array([sum(values) for values in clusters.values() if values])
    counts = np.array([len(values) for values in clusters.values() if values])
    if not len(sums):
        raise ValueError("there is nothing to average")
    chance = np.random.default_rng(seed)
    picked = chance.integers(0, len(sums), size=(draws, len(sums)))
    means = sums[picked].sum(axis=1) / counts[picked].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(sums.sum() / counts.sum()), float(low), float(high), int(counts.sum()))
