"""Which samples of a dataset a run asks about: those of some groups, the first so many, so many at random, or one of
several shards.

Samples are streamed: whoever asks about them takes one when there is room for it, and the files are read a few samples
ahead. Only a random sample and a shard need a look at all ids before the first is asked about."""

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
# so many samples are read at a time, or as many as can be in so many seconds
AHEAD = 256
MOMENT = 0.05


def load_dataset(
    benchmark: Benchmark, data: Path, blobs: Blobs, where: Mapping[str, str], limit: int | None
) -> Dataset:
    """The first `limit` samples of the groups asked for; they must be some, each with an id of its own."""
    try:
        dataset = benchmark.load(data, blobs)
        if isinstance(dataset.samples, Iterator):  # it can be read once alone, and a run may read it twice
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
    """Samples of a dataset, read anew with each iteration. Raises UserError in the end where none was left, and says
    why."""

    def __init__(self, dataset: Dataset, what: str, data: str, where: Mapping[str, str], limit: int | None) -> None:
        """`what` is done when a benchmark raises something of its own."""
        self._dataset = dataset
        self._what = what
        self._data = data
        self._where = where
        self._limit = limit
        self.stopped = False  # whether nobody wants any more of them

    def __iter__(self) -> Iterator[Sample]:
        try:
            yield from self._chosen()
        except (WeftError, OSError):
            raise
        except Exception as error:
            raise wrap_error(self._what, error) from error

    def _chosen(self) -> Iterator[Sample]:
        count = 0
        known = set[str]()
        others: dict[str, set[str]] = {}  # the groups of samples that are not wanted, by axis
        for sample in self._dataset.samples if self._limit != 0 else ():
            if self.stopped or (self._limit is not None and count >= self._limit):
                return
            if any(sample.groups.get(axis) != name for axis, name in self._where.items()):
                for axis, name in sample.groups.items():
                    others.setdefault(axis, set()).add(name)
                continue
            if sample.id in known:
                raise UserError(f"{self._data}: two samples are called {sample.id!r}; every id must be its own")
            known.add(sample.id)
            count += 1
            yield sample
        if not count:
            raise UserError(self._none_left(others))

    def _none_left(self, others: Mapping[str, set[str]]) -> str:
        for axis, name in self._where.items():
            there = sorted(others.get(axis, ()))
            if name not in there:
                if there:
                    has = f"there is {', '.join(there)}"
                else:
                    has = f"there is no such group; there is {', '.join(others) or 'none'}"
                return f"{self._data}: no sample is left: none has {axis} {name!r}; {has}"
        if self._where or self._limit == 0:
            return f"{self._data}: no sample is left by what was asked for ({self._dataset.records} records)"
        errors = [problem for problem in self._dataset.problems if problem.severity == "error"]
        if errors:
            first = f"; the first problem: {errors[0]}"
        else:
            first = ""
        return f"{self._data}: none of its {self._dataset.records} records can be used{first}"


def draw_samples(dataset: Dataset, count: int, seed: int) -> tuple[LoadedDataset, bool]:
    """So many samples at random, in their order: the same on every machine, whatever else is in the dataset's files.
    And whether that is fewer than there are."""
    numbered = CountingIterable(dataset.samples)
    kept = heapq.nsmallest(
        count, ((_place(f"sample {seed}", sample.id), at, sample) for at, sample in enumerate(numbered))
    )
    samples = tuple(sample for _, sample in sorted(((at, sample) for _, at, sample in kept), key=lambda one: one[0]))
    return LoadedDataset(
        dataset.name, dataset.digest, samples, tuple(dataset.problems), dataset.records
    ), numbered.count > count


def stop_reading(dataset: Dataset) -> None:
    """Nobody wants any more of it: a thread that reads it comes to an end."""
    if isinstance(dataset.samples, SelectedSamples):
        dataset.samples.stopped = True


class CountingIterable(Generic[T]):
    """What is iterated over, and how many there were."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items
        self.count = 0

    def __iter__(self) -> Iterator[T]:
        for one in self._items:
            self.count += 1
            yield one


def parse_shard(text: str) -> Shard:
    """`2/8`."""
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= 10_000):
        raise UserError(f"shard {text!r}: write which of how many, from 1 up, such as 2/8")
    return Shard(int(number), int(of))


def assign_samples(ids: Sequence[str], shard: Shard) -> Shard:
    """With its samples: the same on every machine, about as many in each."""
    ordered = sorted(ids, key=lambda one: _place("shard", one))
    found = Shard(shard.number, shard.count, tuple(ordered[shard.number - 1 :: shard.count]))
    if not found.samples:
        raise UserError(f"shard {shard}: the run has {len(ids)} samples, and none is left for it")
    return found


def _place(chance: str, sample: str) -> str:
    return hashlib.sha256(f"{chance}\n{sample}".encode("utf-8", "replace")).hexdigest()


def check_ids(samples: Sequence[Sample], where: str) -> None:
    ids = [sample.id for sample in samples]
    if len(set(ids)) < len(ids):
        raise UserError(
            f"{where}: two samples are called {next(one for one in ids if ids.count(one) > 1)!r}; every id must be its own"
        )


class ReadAhead(Generic[T]):
    """Items of an iterable that reads files, a few ahead, in a thread. It is iterated over once; `close` ends it
    early."""

    def __init__(self, items: Iterable[T]) -> None:
        self._rest = iter(items)
        self._ahead: asyncio.Future[list[T]] | None = None
        self._over = False
        self._error: Exception | None = None  # that came while the last items were read

    async def start(self) -> None:
        """Wait for the first item. Raises what reading it raises."""
        self._ahead = asyncio.ensure_future(asyncio.to_thread(self._some, 1))
        await asyncio.shield(self._ahead)

    async def __aiter__(self) -> AsyncIterator[T]:
        if self._ahead is None:
            await self.start()
        assert self._ahead is not None
        while some := await self._ahead:
            self._ahead = asyncio.ensure_future(asyncio.to_thread(self._some, AHEAD))
            for one in some:
                yield one

    def _some(self, most: int) -> list[T]:
        if self._error is not None:
            raise self._error
        began = time.perf_counter()
        made = list[T]()
        try:
            for one in self._rest:
                made.append(one)
                if len(made) >= most or time.perf_counter() - began > MOMENT or self._over:
                    break
        except Exception as error:
            if not made:
                raise
            self._error = error  # what was read before it is not lost
        return made

    async def close(self) -> None:
        """Nothing is read any more; what a thread is reading is waited for."""
        self._over = True
        if self._ahead is not None:
            await asyncio.gather(self._ahead, return_exceptions=True)
        if isinstance(self._rest, Generator):
            # a thread that was not waited for still reads an item, and then comes to its end
            with contextlib.suppress(ValueError):
                cast(Generator[T], self._rest).close()
