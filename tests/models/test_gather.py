"""Calls that come one by one, worked on together."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from waiting import HANGS, until_in_loop
from weft.models import batching
from weft.models.batching import BatchQueue
from weft.models.endpoint import CallError


class Machine:
    """Doubles numbers. `fits`: how many at once; negative ones are its trouble."""

    def __init__(self, fits: int = 100, seconds: float = 0.0) -> None:
        self.batches: list[list[int]] = []
        self.fits, self.seconds, self.cleared = fits, seconds, 0
        self.may_begin, self.may_end = threading.Event(), threading.Event()
        self.may_begin.set()
        self.may_end.set()

    def run_batch(self, batch: Sequence[int]) -> list[int]:
        self.batches.append(list(batch))
        time.sleep(self.seconds)
        self.may_end.wait(HANGS)
        if len(batch) > self.fits:
            raise MemoryError("no room for so many\nand a long story")
        if any(one < 0 for one in batch):
            raise ValueError("a number below nothing")
        return [2 * one for one in batch]

    def is_out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, MemoryError)

    def free_memory(self) -> None:
        self.cleared += 1


def gathered(machine: Machine) -> BatchQueue[int, int]:
    def make() -> Machine:
        machine.may_begin.wait(HANGS)
        return machine

    return BatchQueue("doubler", make)


async def together(machine: Machine, *asks: Coroutine[Any, Any, int]) -> list[int]:
    """All of them wait before any is worked on."""
    machine.may_begin.clear()
    tasks = [asyncio.ensure_future(ask) for ask in asks]
    await asyncio.sleep(0)  # each has come as far as it can
    machine.may_begin.set()
    return await asyncio.gather(*tasks)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch waits until it is full, however long its calls take to come."""
    monkeypatch.setattr(batching, "MIN_WAIT_S", HANGS)
    monkeypatch.setattr(batching, "MAX_WAIT_S", HANGS)


def test_calls_that_wait_are_one_batch_and_each_has_its_own_answer():
    machine = Machine()

    async def go() -> list[int]:
        gatherer = gathered(machine)
        return await together(machine, *(gatherer.call(number, max_batch=4) for number in range(10)))

    assert asyncio.run(go()) == [2 * number for number in range(10)]
    assert [len(batch) for batch in machine.batches] == [4, 4, 2]


def test_kinds_are_never_mixed_and_the_oldest_goes_first():
    machine = Machine()

    async def go() -> None:
        gatherer = gathered(machine)
        await together(machine, *(gatherer.call(number, number % 2, 8) for number in range(9)))

    asyncio.run(go())
    assert machine.batches == [[0, 2, 4, 6, 8], [1, 3, 5, 7]]


def test_it_waits_a_moment_for_those_who_follow_from_the_last_batch(monkeypatch: pytest.MonkeyPatch):
    """After a slow batch the next turns of its dialogues come within a share of what it took: here it took hours."""
    passed, real = [0.0], time.monotonic

    class Slow(Machine):
        def run_batch(self, batch: Sequence[int]) -> list[int]:
            passed[0] += HANGS / batching.WAIT_SHARE
            return super().run_batch(batch)

    machine = Slow()
    monkeypatch.setattr(batching, "time", SimpleNamespace(monotonic=lambda: real() + passed[0]))
    monkeypatch.setattr(batching, "MAX_WAIT_S", HANGS)

    async def go() -> None:
        gatherer = gathered(machine)

        async def dialogue(number: int) -> None:
            await asyncio.sleep(0.02 * number)  # a fit, a journal
            await gatherer.call(10 + number, max_batch=4)

        await together(machine, *(gatherer.call(number, max_batch=4) for number in range(4)))
        await asyncio.gather(*(dialogue(number) for number in range(4)))

    asyncio.run(go())
    assert [len(batch) for batch in machine.batches] == [4, 4]


@pytest.mark.usefixtures("patient")
def test_a_batch_without_room_is_halved_and_later_ones_are_no_larger():
    machine = Machine(fits=3)

    async def go() -> tuple[list[int], list[int], dict[object, int]]:
        gatherer = gathered(machine)
        first = await asyncio.gather(*(gatherer.call(number, "k", 8) for number in range(8)))
        second = await asyncio.gather(*(gatherer.call(number, "k", 8) for number in range(8)))
        return first, second, dict(gatherer.fitting_sizes)

    first, second, smaller = asyncio.run(go())
    assert first == second == [2 * number for number in range(8)]
    assert smaller == {"k": 2}
    assert [len(batch) for batch in machine.batches] == [8, 4, 2, 2, 2, 2, 2, 2, 2, 2]
    assert machine.cleared == 2


def test_no_room_for_one_is_said_in_a_line():
    async def go() -> None:
        with pytest.raises(
            CallError, match="doubler: there is no memory for even one call at a time: no room for so many$"
        ) as caught:
            await gathered(Machine(fits=0)).call(1, max_batch=4)
        assert caught.value.retry.kind == "no"

    asyncio.run(go())


def test_anothers_trouble_is_its_own():
    async def go() -> list[object]:
        gatherer = gathered(Machine())
        return await asyncio.gather(
            *(gatherer.call(number, max_batch=8) for number in (1, -1, 3)), return_exceptions=True
        )

    first, second, third = asyncio.run(go())
    assert (first, third) == (2, 6) and isinstance(second, ValueError)


def test_who_gives_up_leaves_the_queue():
    machine = Machine()
    machine.may_end.clear()

    async def go() -> None:
        gatherer = gathered(machine)
        first = asyncio.ensure_future(gatherer.call(1))
        await until_in_loop("a batch at work", lambda: machine.batches)
        others = [asyncio.ensure_future(gatherer.call(number)) for number in (2, 3)]
        await asyncio.sleep(0)  # both wait
        others[0].cancel()
        await asyncio.gather(others[0], return_exceptions=True)
        machine.may_end.set()
        assert await first == 2 and await others[1] == 6

    asyncio.run(go())
    assert machine.batches == [[1], [3]]


def test_what_cannot_be_made_is_told_to_all_and_made_once():
    made = []

    def make() -> Machine:
        made.append(1)
        raise SystemExit("no weights")

    async def go() -> list[object]:
        gatherer: BatchQueue[int, int] = BatchQueue("x", make)
        first = await asyncio.gather(gatherer.call(1), gatherer.wait_until_loaded(), return_exceptions=True)
        return [*first, *(await asyncio.gather(gatherer.call(2), return_exceptions=True))]

    told = asyncio.run(go())
    assert [str(one) for one in told] == ["SystemExit: no weights"] * 3 and made == [1]


def test_too_few_answers_are_trouble_and_no_shift():
    class Short(Machine):
        def run_batch(self, batch: Sequence[int]) -> list[int]:
            return [2 * one for one in batch][:2]

    async def go() -> list[object]:
        gatherer = gathered(Short())
        return await asyncio.gather(
            *(gatherer.call(number, max_batch=8) for number in range(4)), return_exceptions=True
        )

    assert asyncio.run(go()) == [0, 2, 4, 6]  # one by one they are whole


def test_beginning_waits_until_it_is_made():
    making, may, made = threading.Event(), threading.Event(), threading.Event()

    def make() -> Machine:
        making.set()
        may.wait(HANGS)
        made.set()
        return Machine()

    async def go() -> None:
        gatherer: BatchQueue[int, int] = BatchQueue("x", make)
        begun = asyncio.ensure_future(gatherer.wait_until_loaded())
        await until_in_loop("somebody who makes it", making.is_set)
        assert not begun.done()
        may.set()
        await begun
        assert made.is_set()
        await gatherer.close()
        with pytest.raises(CallError, match="closed"):
            await gatherer.call(1)

    asyncio.run(go())


def test_it_says_what_it_has_done():
    async def go() -> BatchQueue[int, int]:
        machine = Machine(seconds=0.01)
        gatherer = gathered(machine)
        await together(machine, *(gatherer.call(number, max_batch=3) for number in range(5)))
        return gatherer

    done = asyncio.run(go()).counts
    assert (done.batches, done.calls, done.largest) == (2, 5, 3) and done.seconds >= 0.02


@pytest.mark.parametrize("where", ["work", "is_full", "clear", "str"])
def test_whatever_goes_wrong_nobody_waits_for_ever(where: str):
    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    class Broken(Machine):
        def run_batch(self, batch: Sequence[int]) -> list[int]:
            if batch[0] == 1:
                raise StopIteration if where == "work" else Silent if where == "str" else MemoryError("full")
            return super().run_batch(batch)

        def is_out_of_memory(self, error: Exception) -> bool:
            if where == "is_full":
                raise KeyError("is_full")
            return super().is_out_of_memory(error)

        def free_memory(self) -> None:
            if where == "clear":
                raise KeyError("clear")

    async def go() -> None:
        gatherer = gathered(Broken())
        with pytest.raises(Exception):  # noqa: B017 (each in its own way)
            await asyncio.wait_for(gatherer.call(1), HANGS)
        assert await asyncio.wait_for(gatherer.call(2), HANGS) == 4

    asyncio.run(go())


@pytest.mark.usefixtures("patient")
def test_an_error_holds_nothing_of_its_batch():
    """What did not fit must be gone before less is tried."""
    import gc
    import weakref

    class Large:
        pass

    held: list[weakref.ref[Large]] = []
    alive: list[int] = []

    class Heavy(Machine):
        def run_batch(self, batch: Sequence[int]) -> list[int]:
            alive.append(sum(one() is not None for one in held))
            large = Large()
            held.append(weakref.ref(large))
            raise ValueError(f"trouble with {batch}")

        def free_memory(self) -> None:
            gc.collect()

    async def go() -> None:
        gatherer = gathered(Heavy())
        told = await asyncio.gather(
            *(gatherer.call(number, max_batch=4) for number in range(4)), return_exceptions=True
        )
        assert all(isinstance(one, ValueError) for one in told)

    asyncio.run(go())
    assert alive == [0] * 5
