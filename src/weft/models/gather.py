"""Calls that come one by one, worked on together. A model that writes a picture token by token takes as long for one as for sixty-four, so
turns of many dialogues are one batch wherever a model can do that.

One thread does the work, and makes what works (loads weights) when the first call comes. A batch is of one kind: what the oldest call is
of, and as many of those that wait as fit. If they are fewer than fit, the thread waits a moment for more: a small share of what the last
batch took, since calls that came back together are soon followed by the next turns of their dialogues. Who gives up waiting leaves the
queue. A batch that does not fit in memory is halved, and later ones of its kind are no larger; what else goes wrong with a batch is tried
one by one, so that a call's trouble is its own.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from weft.models.endpoint import NO, CallError

SHARE, LEAST, LONGEST = 0.05, 0.005, 1.0  # of the last batch's time that is waited for more, and seconds that it is at least and at most
PATIENCE = 2.0  # seconds that a batch which is at work has to end when all is over
READY = object()  # the kind of a call that only waits until work can begin
NAME = "gatherer of"
A = TypeVar("A")
B = TypeVar("B")
Asked = TypeVar("Asked", contravariant=True)
Made = TypeVar("Made", covariant=True)


class Work(Protocol[Asked, Made]):
    """What works on batches."""

    def work(self, batch: Sequence[Asked]) -> Sequence[Made]:
        """One answer for each, in their order."""
        ...

    def is_full(self, error: Exception) -> bool:
        """Whether it says that there was no memory for so many."""
        ...

    def clear(self) -> None:
        """Let go of what such a batch left behind."""
        ...


@dataclass
class Done:
    """What was done so far, for those who measure."""

    batches: int = 0
    calls: int = 0
    largest: int = 0
    seconds: float = 0.0  # at work


@dataclass(eq=False)
class Waiting(Generic[A, B]):
    kind: Hashable
    most: int  # of this kind in a batch
    asked: A
    answer: Future[B] = field(default_factory=Future)


class Gatherer(Generic[A, B]):
    def __init__(self, name: str, make: Callable[[], Work[A, B]]) -> None:
        self.name, self._make = name, make
        self.done, self.smaller = Done(), dict[Hashable, int]()  # by kind: how many fit, where that was found to be fewer than were tried
        self._changed = threading.Condition()
        self._queue: list[Waiting[A, B]] = []
        self._thread: threading.Thread | None = None
        self._broken: Exception | None = None
        self._closed = False
        self._took: dict[Hashable, float] = {}

    async def ask(self, asked: A, kind: Hashable = "", most: int = 1) -> B:
        """An answer, worked on with others of this kind, at most so many at a time."""
        waiting: Waiting[A, B] = Waiting(kind, most, asked)
        with self._changed:
            if self._broken is not None:
                raise self._broken
            if self._closed:
                raise CallError(f"{self.name} is closed", NO)
            self._queue.append(waiting)
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name=f"{NAME} {self.name}", daemon=True)
                self._thread.start()
            self._changed.notify()
        return await asyncio.wrap_future(waiting.answer)

    async def begin(self) -> None:
        """Wait until what works is made."""
        nothing: Any = None
        await self.ask(nothing, READY)

    async def close(self) -> None:
        """What is at work ends; what waits is let go."""
        with self._changed:
            self._closed = True
            waiting, self._queue = self._queue, []
            self._changed.notify()
        for one in waiting:
            one.answer.cancel()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, PATIENCE)

    def _live(self) -> None:
        """The thread's life."""
        try:
            work = self._make()
        except BaseException as error:  # SystemExit as well: a thread that ends in silence would be waited for for ever
            with self._changed:
                self._broken = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
                waiting, self._queue = self._queue, []
            for one in waiting:
                _tell(one.answer, self._broken)
            return
        while batch := self._next():
            kind, began = batch[0].kind, time.monotonic()
            if kind is READY:
                answers: list[Any] = [None] * len(batch)
            else:
                answers = self._worked(work, kind, [one.asked for one in batch])
                self._took[kind] = took = time.monotonic() - began
                self.done = Done(
                    self.done.batches + 1, self.done.calls + len(batch), max(self.done.largest, len(batch)), self.done.seconds + took
                )
            for one, made in zip(batch, answers, strict=True):
                _tell(one.answer, made)

    def _next(self) -> list[Waiting[A, B]]:
        """The next batch, once there is one; none when all is over."""
        with self._changed:
            while not self._closed:
                self._queue = [one for one in self._queue if not one.answer.cancelled()]
                if not self._queue:
                    self._changed.wait()
                    continue
                first = self._queue[0]
                most = min(first.most, self.smaller.get(first.kind, first.most))
                until = time.monotonic() + min(LONGEST, max(LEAST, SHARE * self._took.get(first.kind, 0.0)))
                while self._of(first.kind) < most and (left := until - time.monotonic()) > 0 and not self._closed:
                    self._changed.wait(left)
                same = [one for one in self._queue if one.kind == first.kind][:most]
                self._queue = [one for one in self._queue if one not in same]
                if batch := [one for one in same if one.answer.set_running_or_notify_cancel()]:
                    return batch
        return []

    def _of(self, kind: Hashable) -> int:
        return sum(one.kind == kind and not one.answer.cancelled() for one in self._queue)

    def _worked(self, work: Work[A, B], kind: Hashable, batch: Sequence[A]) -> list[B | Exception]:
        made = _tried(work, batch)
        if not isinstance(made, Exception):
            return made
        if work.is_full(made):
            told = str(made).split("\n")[0]
            del made  # it holds what did not fit
            work.clear()
            if len(batch) == 1:
                return [CallError(f"{self.name}: there is no memory for even one call at a time: {told}", NO)]
            self.smaller[kind] = half = (len(batch) + 1) // 2
            return [*self._worked(work, kind, batch[:half]), *self._worked(work, kind, batch[half:])]
        if len(batch) == 1:
            return [made]
        return [one for asked in batch for one in self._worked(work, kind, [asked])]


def at_work() -> bool:
    """Whether a batch has outlived its gatherer: a process that ends in the ordinary way would break off in the middle of a library's code,
    and end badly."""
    return any(thread.name.startswith(NAME) for thread in threading.enumerate())


def _tried(work: Work[A, B], batch: Sequence[A]) -> list[B | Exception] | Exception:
    try:
        made = list(work.work(batch))
    except Exception as error:
        return error
    except BaseException as error:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return made if len(made) == len(batch) else ValueError(f"{len(made)} answers came of a batch of {len(batch)}")  # type: ignore[return-value]


def _tell(answer: "Future[B]", made: B | Exception) -> None:
    with contextlib.suppress(InvalidStateError):  # nobody waits any more
        if isinstance(made, Exception):
            answer.set_exception(made)
        else:
            answer.set_result(made)
