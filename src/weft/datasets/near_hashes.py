"""Pairs of perceptual hashes that differ in few bits, without comparing all with all.

A hash is cut into six bands. Two hashes that differ in at most four bits agree in at least two bands, so hashes are
sorted by each pair of bands, and only neighbours are compared.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.datasets.perceptual_hash import MAX_DISTANCE

BANDS = ((0, 11), (11, 11), (22, 11), (33, 11), (44, 10), (54, 10))  # first bit and number of bits
MAX_NEIGHBOURS = 256  # hashes of one bucket that each is compared with; buckets are far smaller unless images are alike
MAX_ALL_PAIRS = 1500  # so many hashes are quickly compared with one another
Hashes = "np.ndarray[Any, Any]"


def find_near_pairs(hashes: Any) -> Iterator[tuple[int, int]]:
    """Yield pairs of indices whose hashes differ in at most `MAX_DISTANCE` bits; equal hashes are chained in pairs.

    Every two hashes that are near are connected by the pairs, unless over `MAX_NEIGHBOURS` others share their bands.
    """
    values = np.asarray(hashes, dtype=np.uint64)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    for place in np.flatnonzero(ordered[1:] == ordered[:-1]):
        yield int(order[place]), int(order[place + 1])
    unique, firsts = np.unique(values, return_index=True)
    for left, right in _near_places(unique):
        yield int(firsts[left]), int(firsts[right])


def _near_places(unique: Any) -> Iterator[tuple[int, int]]:
    places = np.arange(len(unique))
    if len(unique) <= MAX_ALL_PAIRS:
        yield from _compare(unique, places, None, len(unique))
        return
    for (start, bits), (other_start, other_bits) in itertools.combinations(BANDS, 2):
        key = (_band(unique, start, bits) << np.uint64(16)) | _band(unique, other_start, other_bits)
        order = np.argsort(key, kind="stable")  # within a key by the hash, since `unique` is sorted
        yield from _compare(unique[order], places[order], key[order], MAX_NEIGHBOURS)


def _band(values: Any, start: int, bits: int) -> Any:
    return (values >> np.uint64(start)) & np.uint64((1 << bits) - 1)


def _compare(values: Any, places: Any, keys: Any, neighbours: int) -> Iterator[tuple[int, int]]:
    """Compare each value with those that follow it, as far as their keys are equal."""
    for step in range(1, min(neighbours + 1, len(values))):
        near = np.bitwise_count(values[step:] ^ values[:-step]) <= MAX_DISTANCE
        if keys is not None:
            same = keys[step:] == keys[:-step]
            if not same.any():
                return
            near &= same
        for place in np.flatnonzero(near):
            yield int(places[place]), int(places[place + step])
