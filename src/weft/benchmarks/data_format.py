"""What `weft data check|stats|view` can read: every benchmark's data, and training data, which have no protocol.

data_format = load_format("weave-100k")
dataset = data_format.load(folder, blobs)
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.benchmarks.base import TRAINING_DATA, Benchmark, is_known, list_benchmarks, load_benchmark
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.statistics import DatasetStatistics
from weft.errors import UserError
from weft.plugins import load_target, suggest_name
from weft.store.blobs import Blobs
from weft.types import Dataset


class DataFormat(Struct, frozen=True, kw_only=True):
    """How the records of one kind of dataset are read, grouped and counted."""

    name: str
    load: Callable[[Path, Blobs], Dataset]
    axes: tuple[str, ...] = ()
    presentation: Presentation = Presentation()
    statistics: DatasetStatistics = DatasetStatistics()
    benchmark: Benchmark | None = None  # None for training data, which nothing can be evaluated on

    @property
    def title(self) -> str:
        return self.presentation.title or self.name


def load_format(name: Any) -> DataFormat:
    """Return how a dataset is read: of a benchmark (a name, file.py:Name or the object), or of training data.

    Raises UserError for an unknown name.
    """
    if isinstance(name, str) and name in TRAINING_DATA:
        return load_target(TRAINING_DATA[name])
    if isinstance(name, str) and ".py:" not in name and not is_known(name):
        known = [*sorted(list_benchmarks()), *TRAINING_DATA]
        raise UserError(
            f"unknown dataset {name!r}; {suggest_name(name, known)}known: {', '.join(known)}; "
            "or file.py:NAME for a benchmark of your own"
        )
    benchmark = load_benchmark(name)
    return DataFormat(
        name=benchmark.name,
        load=benchmark.load,
        axes=benchmark.axes,
        presentation=benchmark.presentation,
        statistics=benchmark.preparation.statistics,
        benchmark=benchmark,
    )
