"""Items that are joined into clusters pair by pair."""

from array import array
from collections.abc import Iterable


class UnionFind:
    """Clusters of the numbers from 0 to `count` - 1. A cluster is named by its smallest member."""

    def __init__(self, count: int) -> None:
        self._parents = array("q", range(count))

    def find(self, item: int) -> int:
        """Return the smallest member of an item's cluster."""
        parents = self._parents
        while parents[item] != item:
            parents[item] = parents[parents[item]]
            item = parents[item]
        return item

    def join(self, first: int, second: int) -> None:
        """Join the clusters of two items."""
        low, high = sorted((self.find(first), self.find(second)))
        self._parents[high] = low

    def join_pairs(self, pairs: Iterable[tuple[int, int]]) -> None:
        for first, second in pairs:
            self.join(first, second)
