"""Draws of whole dialogues with replacement, for what has no formula: correlations, alpha, and ratings of models.

Means and differences need none: see `intervals`.
"""

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@functools.lru_cache(maxsize=48)
def bootstrap_weights(clusters: int, draws: int, seed: int) -> "NDArray[np.uint8]":
    """Return how often each cluster is drawn, by draw: (draws, clusters)."""
    import numpy as np

    generator = np.random.default_rng(seed)
    weights = np.empty((draws, clusters), np.uint8)
    for row in weights:
        row[:] = np.bincount(generator.integers(0, clusters, size=clusters), minlength=clusters)
    return weights
