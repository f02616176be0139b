"""Selects the samples of a dataset that a run asks about: some groups, the first ones, a random subset, or one shard.

Samples are streamed: a consumer takes one when there is room for it, and the files are read a few samples ahead. Only a
random subset and a shard need all ids before the first sample is asked about.
"""

import asyncio
import contextlib
import hashlib
import heapq
import time
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar, cast

from msgspec.structs import replace

from weft.benchmarks.base import Benchmark
from weft.errors import UserError, WeftError, wrap_error
from weft.store.blobs import Blobs
from weft.store.records import Shard
from weft.types import Dataset, LoadedDataset, Sample

T = TypeVar("T")
READ_AHEAD_SAMPLES = 256  # are read at a time,
READ_AHEAD_S = 0.05  # or as many as can be read in this time


def load_dataset(
    benchmark: Benchmark, data: Path, blobs: Blobs, where: Mapping[str, str], limit: int | None
) -> Dataset:
    """Load a benchmark's dataset, restricted to some groups and to the first `limit` samples.

    Raises WeftError if the benchmark's code fails, and UserError if two samples share an id.
    """
    try:
        dataset = benchmark.load(data, blobs)
        if isinstance(dataset.samples, Iterator):  # it could be read only once, and a run may read it twice
            dataset = replace(dataset, samples=tuple(dataset.samples))
    except OSError:
        raise
    except Exception as error:
        raise wrap_error(f"benchmark {benchmark.name}: loading {data}", error) from error
    if isinstance(dataset.samples, (tuple, list)):
        check_ids(dataset.samples, str(data))
    selected = SelectedSamples(dataset, f"benchmark {benchmark.name}: reading {data}", str(data), where, limit)
    return Dataset(dataset.name, dataset.digest, selected, dataset.problems, dataset.records)


class SelectedSamples:
    """The selected samples of a dataset, read anew with each iteration. Raises UserError at the end if there is
    none."""

    def __init__(self, dataset: Dataset, what: str, data: str, where: Mapping[str, str], limit: int | None) -> None:
        """`what` describes the work for errors that the benchmark's code raises."""
        self._dataset = dataset
        self._what = what
        self._data = data
        self._where = where
        self._limit = limit
        self.stopped = False  # no more samples are needed

    def __iter__(self) -> Iterator[Sample]:
        try:
            yield from self._select()
        except (WeftError, OSError):
            raise
        except Exception as error:
            raise wrap_error(self._what, error) from error

    def _select(self) -> Iterator[Sample]:
        if self._limit == 0:
            raise UserError(self._explain_empty({}))
        ids: set[str] = set()
        other_groups: dict[str, set[str]] = {}  # of samples that are not selected, by axis
        for sample in self._dataset.samples:
            if self.stopped or (self._limit is not None and len(ids) >= self._limit):
                return
            if any(sample.groups.get(axis) != name for axis, name in self._where.items()):
                for axis, name in sample.groups.items():
                    other_groups.setdefault(axis, set()).add(name)
                continue
            if sample.id in ids:
                raise UserError(f"{self._data}: two samples are called {sample.id!r}; every id must be unique")
            ids.add(sample.id)
            yield sample
        if not ids:
            raise UserError(self._explain_empty(other_groups))

    def _explain_empty(self, other_groups: Mapping[str, set[str]]) -> str:
        for axis, name in self._where.items():
            present = sorted(other_groups.get(axis, ()))
            if name in present:
                continue
            if present:
                groups = f"there is {', '.join(present)}"
            else:
                groups = f"there is no such group; there is {', '.join(other_groups) or 'none'}"
            return f"{self._data}: no sample is left: none has {axis} {name!r}; {groups}"
        if self._where or self._limit == 0:
            return f"{self._data}: no sample is left by what was asked for ({self._dataset.records} records)"
        first = ""
        for problem in self._dataset.problems:
            if problem.severity == "error":
                first = f"; the first problem: {problem}"
                break
        return f"{self._data}: none of its {self._dataset.records} records can be used{first}"


def draw_samples(dataset: Dataset, count: int, seed: int) -> tuple[LoadedDataset, bool]:
    """Return a random subset in the dataset's order, and whether it is smaller than the dataset.

    The same samples are drawn on every machine, whatever else is in the dataset's files.
    """
    samples = CountingIterable(dataset.samples)
    ranked = ((_rank(f"sample {seed}", sample.id), position, sample) for position, sample in enumerate(samples))
    drawn = sorted(heapq.nsmallest(count, ranked), key=lambda entry: entry[1])
    subset = tuple(sample for _, _, sample in drawn)
    loaded = LoadedDataset(dataset.name, dataset.digest, subset, tuple(dataset.problems), dataset.records)
    return loaded, samples.count > count


def stop_reading(dataset: Dataset) -> None:
    """End a thread that reads the dataset, after its current sample."""
    if isinstance(dataset.samples, SelectedSamples):
        dataset.samples.stopped = True


class CountingIterable(Generic[T]):
    """Iterates over items, and counts them."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items
        self.count = 0

    def __iter__(self) -> Iterator[T]:
        for item in self._items:
            self.count += 1
            yield item


def parse_shard(text: str) -> Shard:
    """Parse `2/8`: which shard, of how many. Raises UserError for anything else."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 10_000):
        raise UserError(f"shard {text!r}: write which of how many, from 1 up, such as 2/8")
    return Shard(int(number), int(count))


def assign_samples(ids: Sequence[str], shard: Shard) -> Shard:
    """Return the shard with its samples: the same on every machine, and about equally many in each."""
    ordered = sorted(ids, key=lambda sample: _rank("shard", sample))
    samples = tuple(ordered[shard.number - 1 :: shard.count])
    if not samples:
        raise UserError(f"shard {shard}: the run has {len(ids)} samples, and none is left for it")
    return Shard(shard.number, shard.count, samples)


def _rank(purpose: str, sample: str) -> str:
    """Return a pseudo-random sort key for a sample."""
    return hashlib.sha256(f"{purpose}\n{sample}".encode("utf-8", "replace")).hexdigest()


def check_ids(samples: Sequence[Sample], where: str) -> None:
    """Raise UserError if two samples share an id."""
    ids: set[str] = set()
    for sample in samples:
        if sample.id in ids:
            raise UserError(f"{where}: two samples are called {sample.id!r}; every id must be unique")
        ids.add(sample.id)


class ReadAhead(Generic[T]):
    """Iterates once over items that are read from files, a few ahead, in a thread. `close` ends it early."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._next: asyncio.Future[list[T]] | None = None
        self._closed = False
        self._error: Exception | None = None  # raised after the last items that were read

    async def start(self) -> None:
        """Wait for the first item. Raises what reading it raises."""
        self._next = asyncio.ensure_future(asyncio.to_thread(self._read, 1))
        await asyncio.shield(self._next)

    async def __aiter__(self) -> AsyncIterator[T]:
        if self._next is None:
            await self.start()
        assert self._next is not None
        while True:
            items = await self._next
            if not items:
                return
            self._next = asyncio.ensure_future(asyncio.to_thread(self._read, READ_AHEAD_SAMPLES))
            for item in items:
                yield item

    def _read(self, max_items: int) -> list[T]:
        if self._error is not None:
            raise self._error
        began = time.perf_counter()
        items: list[T] = []
        try:
            for item in self._items:
                items.append(item)
                if len(items) >= max_items or time.perf_counter() - began > READ_AHEAD_S or self._closed:
                    break
        except Exception as error:
            if not items:
                raise
            self._error = error  # what was read before it is not lost
        return items

    async def close(self) -> None:
        """Stop reading, once the thread has read its current item."""
        self._closed = True
        if self._next is not None:
            await asyncio.gather(self._next, return_exceptions=True)
        if isinstance(self._items, Generator):
            with contextlib.suppress(ValueError):  # a cancelled thread may still be reading its last item
                cast(Generator[T], self._items).close()
