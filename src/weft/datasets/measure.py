"""A dataset read once for its statistics.

report = measure_dataset(load_format("weave"), Path("data/weave"))
for table in report.tables:
    print(table)
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.benchmarks.data_format import load_format
from weft.datasets.counts import DatasetCounts
from weft.datasets.image_hashes import ImageHashes, MeasuringBlobs
from weft.datasets.repeat_tables import build_repeat_tables
from weft.datasets.repeats import RepeatFinder, Repeats
from weft.datasets.tables import build_tables
from weft.errors import UserError
from weft.types import Problem, Table

OnProgress = Callable[[int, int], None]  # records so far, of how many


class DatasetReport(Struct, frozen=True):
    """The statistics of one dataset."""

    counts: DatasetCounts
    repeats: Repeats | None  # None if they were not looked for
    problems: Sequence[Problem]
    records: int  # in its files, usable or not

    @property
    def tables(self) -> list[Table]:
        tables = build_tables(self.counts)
        if self.repeats is not None:
            tables += build_repeat_tables(self.counts.title, self.repeats)
        return tables

    def __str__(self) -> str:
        """Return all tables as text."""
        return "\n\n".join(map(str, self.tables))

    @property
    def left_out(self) -> int:
        """Records that cannot be used."""
        return self.records - self.counts.total.dialogues


def measure_dataset(
    benchmark: Any, data: str | Path, *, repeats: bool = True, on_progress: OnProgress | None = None
) -> DatasetReport:
    """Read a dataset and count it. Nothing is written.

    `benchmark`: its name, file.py:Name or object, or `weave-100k`. `repeats`: decode images, to find those that look
    alike. Raises UserError if there is no such dataset.
    """
    data_format = load_format(benchmark)
    hashes = ImageHashes()
    dataset = data_format.load(Path(data), MeasuringBlobs(Path(), hashes if repeats else None))
    counts = DatasetCounts(data_format)
    finder = RepeatFinder(hashes)
    for sample in dataset.samples:
        counts.add(sample)
        if repeats:
            finder.add(sample, counts.path(sample))
        if on_progress is not None:
            on_progress(counts.total.dialogues, dataset.records)
    if dataset.records and not counts.total.dialogues:
        first = next(iter(dataset.problems), "")
        raise UserError(f"none of the {dataset.records} records of {data} can be used, the first for this: {first}")
    found = finder.find() if repeats else None
    return DatasetReport(counts, found, tuple(dataset.problems), dataset.records)
