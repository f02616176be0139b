"""The records of several files, one after the other, as if they were one file."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from weft.benchmarks.record_files import RecordRows


class JoinedRows(RecordRows):
    """Records of several files. Two files with the same records in another order are another dataset."""

    def __init__(self, rows: Sequence[RecordRows], names: Sequence[str]) -> None:
        self._rows = rows
        self._names = names
        self._ends = list(accumulate(part.count for part in rows))
        digest = rows[0].digest
        if len(rows) > 1:
            lines = [f"{name} {part.digest}" for name, part in zip(names, rows, strict=True)]
            digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        images = [image for part in rows for image in part.images]
        super().__init__(digest, sum(part.count for part in rows), images)

    def __iter__(self) -> Iterator[Any]:
        for part in self._rows:
            yield from part

    def locate(self, index: int) -> tuple[str, int]:
        """Return the file of a record, and its index there."""
        file = bisect_right(self._ends, index)
        start = self._ends[file] - self._rows[file].count
        return self._names[file], index - start
