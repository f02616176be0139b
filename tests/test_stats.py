import math
import random

import pytest

from weft.stats.intervals import estimate_mean


def test_the_interval_is_that_of_the_clusters_not_of_the_turns():
    """Ten turns of a dialogue that all go the same way are one observation, not ten."""
    chance = random.Random(1)
    clusters = {str(n): [float(chance.random() < 0.5)] * 10 for n in range(200)}
    found = estimate_mean(clusters)
    p = sum(values[0] for values in clusters.values()) / 200
    half = 1.96 * math.sqrt(p * (1 - p) / 200)  # the textbook interval over 200 independent dialogues
    assert found.value == pytest.approx(p) and found.n == 2000
    assert found.low == pytest.approx(p - half, abs=0.01) and found.high == pytest.approx(p + half, abs=0.01)


def test_nothing_to_average_is_an_error():
    with pytest.raises(ValueError, match="nothing to average"):
        estimate_mean({"a": []})
