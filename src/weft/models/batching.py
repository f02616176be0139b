"""Calls that come one by one, worked on together. A model that writes a picture token by token takes as long for one as
for sixty-four, so turns of many dialogues are one batch wherever a model can do that.

One thread does the work, and makes what works (loads weights) when the first call comes. A batch is of one kind: what
the oldest call is of, and as many of those that wait as fit. If they are fewer than fit, the thread waits a moment for
more: a small share of what the last batch took, since calls that came back together are soon followed by the next turns
of their dialogues. Who gives up waiting leaves the queue. A batch that does not fit in memory is halved, and later ones
of its kind are no larger; what else goes wrong with a batch is tried one by one, so that a call's trouble is its own.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from weft.errors import TRACE_ATTRIBUTE, format_trace
from weft.models.endpoint import NO_RETRY, CallError

# of the last batch's time that is waited for more, and seconds that it is at least and at most
WAIT_SHARE = 0.05
LEAST = 0.005
LONGEST = 1.0
PATIENCE = 2.0  # seconds that a batch which is at work has to end when all is over
READY = object()  # the kind of a call that only waits until work can begin
NAME = "gatherer of"
A = TypeVar("A")
B = TypeVar("B")
Asked = TypeVar("Asked", contravariant=True)
Made = TypeVar("Made", covariant=True)


class BatchWorker(Protocol[Asked, Made]):
    """What works on batches."""

    def run_batch(self, batch: Sequence[Asked]) -> Sequence[Made]:
        """One answer for each, in their order."""
        ...

    def is_out_of_memory(self, error: Exception) -> bool:
        """Whether it says that there was no memory for so many."""
        ...

    def free_memory(self) -> None:
        """Let go of what such a batch left behind."""
        ...


@dataclass
class BatchCounts:
    """What was done so far, for those who measure."""

    batches: int = 0
    calls: int = 0
    largest: int = 0
    seconds: float = 0.0  # at work


@dataclass(eq=False)
class QueuedCall(Generic[A, B]):
    kind: Hashable
    most: int  # of this kind in a batch
    asked: A
    answer: Future[B] = field(default_factory=Future)


class BatchQueue(Generic[A, B]):
    def __init__(self, name: str, make: Callable[[], BatchWorker[A, B]]) -> None:
        self.name = name
        self._make = make
        # by kind: how many fit, where that was found to be fewer than were tried
        self.counts = BatchCounts()
        self.fitting_sizes = dict[Hashable, int]()
        self._changed = threading.Condition()
        self._queue: list[QueuedCall[A, B]] = []
        self._thread: threading.Thread | None = None
        self._broken: Exception | None = None
        self._closed = False
        self._took: dict[Hashable, float] = {}

    async def call(self, asked: A, kind: Hashable = "", most: int = 1) -> B:
        """An answer, worked on with others of this kind, at most so many at a time."""
        waiting: QueuedCall[A, B] = QueuedCall(kind, most, asked)
        with self._changed:
            if self._broken is not None:
                raise self._broken
            if self._closed:
                raise CallError(f"{self.name} is closed", NO_RETRY)
            self._queue.append(waiting)
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name=f"{NAME} {self.name}", daemon=True)
                self._thread.start()
            self._changed.notify()
        return await asyncio.wrap_future(waiting.answer)

    async def wait_until_loaded(self) -> None:
        """Wait until what works is made."""
        nothing: Any = None
        await self.call(nothing, READY)

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
                if isinstance(error, Exception):
                    self._broken = error
                else:
                    self._broken = RuntimeError(f"{type(error).__name__}: {error}")
                waiting, self._queue = self._queue, []
            for one in waiting:
                _tell(one.answer, self._broken)
            return
        while batch := self._next():
            try:
                self._done(batch, self._answers(work, batch))
            except BaseException as error:  # whatever else: nobody waits for ever
                self._done(batch, [_bare(error)] * len(batch))
            del batch  # with what is in it, before the next is waited for

    def _answers(self, work: BatchWorker[A, B], batch: "Sequence[QueuedCall[A, B]]") -> "list[B | Exception]":
        kind = batch[0].kind
        began = time.monotonic()
        if kind is READY:
            nothing: Any = None
            return [nothing] * len(batch)
        answers = self._worked(work, kind, [one.asked for one in batch])
        self._took[kind] = took = time.monotonic() - began
        done = self.counts
        self.counts = BatchCounts(
            done.batches + 1, done.calls + len(batch), max(done.largest, len(batch)), done.seconds + took
        )
        return answers

    def _done(self, batch: "Sequence[QueuedCall[A, B]]", answers: "Sequence[B | Exception]") -> None:
        for one, made in zip(batch, answers, strict=True):
            _tell(one.answer, made)

    def _next(self) -> list[QueuedCall[A, B]]:
        """The next batch, once there is one; none when all is over."""
        with self._changed:
            while not self._closed:
                self._queue = [one for one in self._queue if not one.answer.cancelled()]
                if not self._queue:
                    self._changed.wait()
                    continue
                first = self._queue[0]
                most = min(first.most, self.fitting_sizes.get(first.kind, first.most))
                until = time.monotonic() + min(LONGEST, max(LEAST, WAIT_SHARE * self._took.get(first.kind, 0.0)))
                while self._of(first.kind) < most and (left := until - time.monotonic()) > 0 and not self._closed:
                    self._changed.wait(left)
                same = [one for one in self._queue if one.kind == first.kind][:most]
                self._queue = [one for one in self._queue if one not in same]
                if batch := [one for one in same if one.answer.set_running_or_notify_cancel()]:
                    return batch
        return []

    def _of(self, kind: Hashable) -> int:
        return sum(one.kind == kind and not one.answer.cancelled() for one in self._queue)

    def _worked(self, work: BatchWorker[A, B], kind: Hashable, batch: Sequence[A]) -> list[B | Exception]:
        made = _tried(work, batch)
        if not isinstance(made, BatchFailure):
            return made
        with contextlib.suppress(Exception):
            work.free_memory()
        if made.full and len(batch) == 1:
            return [CallError(f"{self.name}: there is no memory for even one call at a time: {made.line}", NO_RETRY)]
        if len(batch) == 1:
            return [made.error]
        if made.full:
            self.fitting_sizes[kind] = min(self.fitting_sizes.get(kind, len(batch)), (len(batch) + 1) // 2)
        answers: list[B | Exception] = []
        while len(answers) < len(batch):  # in smaller ones; one by one, where it is another's trouble
            if made.full:
                size = self.fitting_sizes[kind]
            else:
                size = 1
            answers += self._worked(work, kind, batch[len(answers) : len(answers) + size])
        return answers


@dataclass
class BatchFailure:
    """`error` without what it held: the frames of a batch that did not fit are what did not fit."""

    error: Exception
    full: bool
    line: str


def is_batch_running() -> bool:
    """Whether a batch has outlived its gatherer: a process that ends in the ordinary way would break off in the middle
    of a library's code, and end badly."""
    return any(thread.name.startswith(NAME) for thread in threading.enumerate())


def _tried(work: BatchWorker[A, B], batch: Sequence[A]) -> list[B | Exception] | BatchFailure:
    try:
        made = list(work.run_batch(batch))
    except BaseException as error:
        full = False
        with contextlib.suppress(Exception):
            full = isinstance(error, Exception) and work.is_out_of_memory(error)
        bare = _bare(error)
        return BatchFailure(bare, full, (str(bare).splitlines() or [""])[0])
    if len(made) != len(batch):
        return BatchFailure(ValueError(f"{len(made)} answers came of a batch of {len(batch)}"), False, "")
    return cast(list[B | Exception], made)


def _bare(error: BaseException) -> Exception:
    """An error that can be handed on: an ordinary one (a StopIteration would stop who waits for it), which says what it
    says, and holds nothing but its traceback as text."""
    made = _emptied(error)
    with contextlib.suppress(Exception):
        setattr(made, TRACE_ATTRIBUTE, format_trace(error))
    return made


def _emptied(error: BaseException) -> Exception:
    if isinstance(error, CallError):
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)
    try:
        told = str(error)
    except Exception:
        told = "(it cannot say what it is)"
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        with contextlib.suppress(Exception):
            made = type(error)(told)
            if str(made) == told:
                return made
    return RuntimeError(f"{type(error).__name__}: {told}")


def _tell(answer: "Future[B]", made: B | Exception) -> None:
    with contextlib.suppress(InvalidStateError):  # nobody waits any more
        if isinstance(made, Exception):
            answer.set_exception(made)
        else:
            answer.set_result(made)
