"""How scores are distributed: quartiles, and the share of scores in each of seven bins, of which the first and the last
are zero and full marks alone."""

import statistics
from collections.abc import Sequence

from msgspec import Struct

EDGES = (0.2, 0.4, 0.6, 0.8)  # upper ends of the bins between zero and full marks
BIN_COUNT = len(EDGES) + 3
TOLERANCE = 1e-9  # means of scores are not exact: three times 0.2 is more than 0.6


class Distribution(Struct, frozen=True):
    """A distribution of shares of full marks."""

    n: int
    mean: float
    deviation: float | None  # standard deviation; None for one score
    quartiles: tuple[float, float, float]
    bins: tuple[int, ...]  # scores in each bin


def describe_distribution(shares: Sequence[float]) -> Distribution | None:
    """Return the distribution of shares of full marks; None without any."""
    if not shares:
        return None
    counts = [0] * BIN_COUNT
    for share in shares:
        counts[find_bin(share)] += 1
    deviation = None
    quartiles = [shares[0]] * 3
    if len(shares) > 1:
        deviation = statistics.stdev(shares)
        quartiles = statistics.quantiles(shares, n=4, method="inclusive")
    first, second, third = quartiles
    return Distribution(len(shares), statistics.fmean(shares), deviation, (first, second, third), tuple(counts))


def find_bin(share: float) -> int:
    """Return the number of a share's bin."""
    if share <= TOLERANCE:
        return 0
    if share >= 1 - TOLERANCE:
        return BIN_COUNT - 1
    return 1 + sum(share > edge + TOLERANCE for edge in EDGES)


def name_bins(full: float = 1.0) -> tuple[str, ...]:
    """Return the names of the bins on a scale that ends at `full`."""
    return ("0", *(f"to {full * edge:g}" for edge in EDGES), f"below {full:g}", f"{full:g}")
