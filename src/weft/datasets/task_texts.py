"""Texts of tasks that say nearly the same: the share of word 5-grams that two of them have in common (Jaccard).

Candidates come from min-hashes in bands, so that 100,000 texts are compared in seconds.
"""

import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

GRAM = 5  # words
MIN_SIMILARITY = 0.8  # share of common 5-grams from which two texts are nearly the same
BAND_COUNT = 16
BAND_ROWS = 4  # min-hashes of a band
MAX_NEIGHBOURS = 5  # texts of one bucket that each is compared with
MAX_CACHED_WORDS = 1_000_000
WORD = re.compile(r"\w+")
FACTOR = np.uint64(0x9E3779B97F4A7C15)
RANDOM: Any = np.random.default_rng(0).integers(1, 2**63, size=(BAND_COUNT * BAND_ROWS, 2), dtype=np.uint64) | 1


class TaskTexts:
    """The texts of tasks, as hashes of their 5-grams."""

    def __init__(self) -> None:
        self._word_hashes: dict[str, int] = {}
        self._grams: list[Any] = []
        self._whole = array("Q")  # a hash of each text, words and order

    def __len__(self) -> int:
        return len(self._grams)

    def add(self, text: str) -> None:
        """Add a text. Case, punctuation and white space do not count."""
        words = WORD.findall(text.lower())
        hashes = np.fromiter(map(self._hash_word, words), dtype=np.uint64, count=len(words))
        if len(hashes) < GRAM:
            hashes = np.concatenate([np.zeros(GRAM - len(hashes), dtype=np.uint64), hashes])
        count = len(hashes) - GRAM + 1
        grams = np.zeros(count, dtype=np.uint64)
        for offset in range(GRAM):
            grams = (grams + hashes[offset : offset + count] + np.uint64(offset + 1)) * FACTOR
            grams ^= grams >> np.uint64(29)
        self._whole.append(_hash_sequence(grams))
        self._grams.append(np.unique((grams >> np.uint64(32)).astype(np.uint32)))

    def _hash_word(self, word: str) -> int:
        value = self._word_hashes.get(word)
        if value is None:
            value = zlib.crc32(word.encode("utf-8", "replace"))
            if len(self._word_hashes) < MAX_CACHED_WORDS:
                self._word_hashes[word] = value
        return value

    def whole(self, text: int) -> int:
        """Return a number that texts of the same words have in common."""
        return self._whole[text]

    def similarity(self, first: int, second: int) -> float:
        """Return the share of 5-grams that two texts have in common, of all that either has."""
        left = self._grams[first]
        right = self._grams[second]
        common = len(np.intersect1d(left, right, assume_unique=True))
        return common / (len(left) + len(right) - common)

    def candidates(self, texts: Sequence[int], keys: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield pairs of these texts that may be nearly the same and have the same key."""
        numbers = np.asarray(texts, dtype=np.int64)
        salts = np.asarray([key & 0xFFFFFFFFFFFFFFFF for key in keys], dtype=np.uint64)
        bands = np.array([self._bands(text) for text in texts], dtype=np.uint64).reshape(len(texts), BAND_COUNT)
        for band in range(BAND_COUNT):
            buckets = bands[:, band] ^ salts * FACTOR
            order = np.argsort(buckets, kind="stable")
            ordered = buckets[order]
            for step in range(1, min(MAX_NEIGHBOURS + 1, len(ordered))):
                for place in np.flatnonzero(ordered[step:] == ordered[:-step]):
                    yield int(numbers[order[place]]), int(numbers[order[place + step]])

    def _bands(self, text: int) -> Any:
        """Return a hash of each band of min-hashes."""
        grams = self._grams[text].astype(np.uint64)
        mixed = (grams[None, :] * RANDOM[:, :1] + RANDOM[:, 1:]) >> np.uint64(16)
        rows = mixed.min(axis=1).reshape(BAND_COUNT, BAND_ROWS)
        bands = np.zeros(BAND_COUNT, dtype=np.uint64)
        for row in range(BAND_ROWS):
            bands = (bands + rows[:, row]) * FACTOR
        return bands


def _hash_sequence(grams: Any) -> int:
    powers = np.arange(1, len(grams) + 1, dtype=np.uint64) * FACTOR | np.uint64(1)
    return int((grams * powers).sum(dtype=np.uint64))
