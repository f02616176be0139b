"""Calls that come one by one, run in batches.

A model that writes an image token by token takes as long for one as for sixty-four, so turns of many dialogues form one
batch wherever a model supports that.

One thread does all the work, and creates the worker (loads weights) when the first call comes. All calls of a batch
have the same kind: that of the oldest call in the queue. If fewer calls wait than fit, the thread waits a moment for
more: a small share of the last batch's duration, because calls that returned together are soon followed by the next
turns of their dialogues. A caller that gives up leaves the queue. A batch that does not fit in memory is halved, and
later batches of its kind stay that small; after any other error the calls are run one by one, so that one call's error
does not fail the others.
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

WAIT_SHARE = 0.05  # of the last batch's duration, spent waiting for more calls
MIN_WAIT_S = 0.005
MAX_WAIT_S = 1.0
SHUTDOWN_GRACE_S = 2.0  # a batch that runs may finish when the queue is closed
LOAD_ONLY = object()  # the kind of a call that only waits until the worker is loaded
THREAD_NAME = "batch queue of"
Item = TypeVar("Item")
Result = TypeVar("Result")
CallIn = TypeVar("CallIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)


class BatchWorker(Protocol[CallIn, ResultOut]):
    """Runs batches of calls."""

    def run_batch(self, batch: Sequence[CallIn]) -> Sequence[ResultOut]:
        """Return one result for each call, in their order."""
        ...

    def is_out_of_memory(self, error: Exception) -> bool:
        """Return whether the error says that the batch did not fit in memory."""
        ...

    def free_memory(self) -> None:
        """Release what a failed batch left behind."""
        ...


@dataclass
class BatchCounts:
    """What a queue has run so far."""

    batches: int = 0
    calls: int = 0
    largest: int = 0  # calls in the largest batch
    seconds: float = 0.0  # spent running batches


@dataclass(eq=False)
class QueuedCall(Generic[Item, Result]):
    """A call that waits for its batch."""

    kind: Hashable
    max_batch: int  # calls of this kind in one batch, at most
    call: Item
    result: Future[Result] = field(default_factory=Future)


class BatchQueue(Generic[Item, Result]):
    """Gathers calls into batches and runs them on a worker in one thread."""

    def __init__(self, name: str, make: Callable[[], BatchWorker[Item, Result]]) -> None:
        """`make` creates the worker; it is called in the queue's thread when the first call comes."""
        self.name = name
        self._make = make
        self.counts = BatchCounts()
        self.fitting_sizes: dict[Hashable, int] = {}  # by kind: the batch size that fits in memory, once one did not
        self._changed = threading.Condition()
        self._queue: list[QueuedCall[Item, Result]] = []
        self._thread: threading.Thread | None = None
        self._load_error: Exception | None = None
        self._closed = False
        self._last_seconds: dict[Hashable, float] = {}  # by kind: the duration of the last batch

    async def call(self, call: Item, kind: Hashable = "", max_batch: int = 1) -> Result:
        """Return the result of a call that runs with others of its kind, at most `max_batch` at once."""
        queued: QueuedCall[Item, Result] = QueuedCall(kind, max_batch, call)
        with self._changed:
            if self._load_error is not None:
                raise self._load_error
            if self._closed:
                raise CallError(f"{self.name} is closed", NO_RETRY)
            self._queue.append(queued)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"{THREAD_NAME} {self.name}", daemon=True)
                self._thread.start()
            self._changed.notify()
        return await asyncio.wrap_future(queued.result)

    async def wait_until_loaded(self) -> None:
        """Wait until the worker is created."""
        nothing: Any = None
        await self.call(nothing, LOAD_ONLY)

    async def close(self) -> None:
        """Cancel what waits, and let the running batch finish."""
        with self._changed:
            self._closed = True
            waiting = self._queue
            self._queue = []
            self._changed.notify()
        for queued in waiting:
            queued.result.cancel()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, SHUTDOWN_GRACE_S)

    def _run(self) -> None:
        """Create the worker and run batches until the queue is closed. This is the thread's main function."""
        try:
            worker = self._make()
        except BaseException as error:  # also SystemExit: callers would wait forever for a thread that ended
            self._fail_all(error)
            return
        while batch := self._next_batch():
            try:
                _deliver_all(batch, self._run_and_count(worker, batch))
            except BaseException as error:
                _deliver_all(batch, [_detach(error)] * len(batch))
            del batch  # free its images before waiting for the next batch

    def _fail_all(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            error = RuntimeError(f"{type(error).__name__}: {error}")
        with self._changed:
            self._load_error = error
            waiting = self._queue
            self._queue = []
        for queued in waiting:
            _deliver(queued.result, error)

    def _run_and_count(
        self, worker: BatchWorker[Item, Result], batch: "Sequence[QueuedCall[Item, Result]]"
    ) -> "list[Result | Exception]":
        kind = batch[0].kind
        if kind is LOAD_ONLY:
            nothing: Any = None
            return [nothing] * len(batch)
        start = time.monotonic()
        results = self._run_batch(worker, kind, [queued.call for queued in batch])
        seconds = time.monotonic() - start
        self._last_seconds[kind] = seconds
        counts = self.counts
        self.counts = BatchCounts(
            batches=counts.batches + 1,
            calls=counts.calls + len(batch),
            largest=max(counts.largest, len(batch)),
            seconds=counts.seconds + seconds,
        )
        return results

    def _next_batch(self) -> list[QueuedCall[Item, Result]]:
        """Wait for the next batch and return it; an empty list once the queue is closed."""
        with self._changed:
            while not self._closed:
                self._queue = [queued for queued in self._queue if not queued.result.cancelled()]
                if not self._queue:
                    self._changed.wait()
                    continue
                batch = self._take_batch(self._queue[0])
                if batch:
                    return batch
        return []

    def _take_batch(self, first: QueuedCall[Item, Result]) -> list[QueuedCall[Item, Result]]:
        """Wait a moment for calls of the first one's kind, and take as many as fit. The lock is held."""
        size = min(first.max_batch, self.fitting_sizes.get(first.kind, first.max_batch))
        wait = min(MAX_WAIT_S, max(MIN_WAIT_S, WAIT_SHARE * self._last_seconds.get(first.kind, 0.0)))
        deadline = time.monotonic() + wait
        while self._count_waiting(first.kind) < size and not self._closed:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            self._changed.wait(remaining)
        same_kind = [queued for queued in self._queue if queued.kind == first.kind][:size]
        self._queue = [queued for queued in self._queue if queued not in same_kind]
        return [queued for queued in same_kind if queued.result.set_running_or_notify_cancel()]

    def _count_waiting(self, kind: Hashable) -> int:
        return sum(queued.kind == kind and not queued.result.cancelled() for queued in self._queue)

    def _run_batch(
        self, worker: BatchWorker[Item, Result], kind: Hashable, batch: Sequence[Item]
    ) -> list[Result | Exception]:
        """Return a result or an error for each call; a batch that fails is split."""
        results = _try_batch(worker, batch)
        if not isinstance(results, BatchFailure):
            return results
        failure = results
        with contextlib.suppress(Exception):
            worker.free_memory()
        if failure.out_of_memory and len(batch) == 1:
            return [CallError(f"{self.name}: there is no memory for even one call at a time: {failure.line}", NO_RETRY)]
        if len(batch) == 1:
            return [failure.error]
        if failure.out_of_memory:
            self.fitting_sizes[kind] = min(self.fitting_sizes.get(kind, len(batch)), (len(batch) + 1) // 2)
        answers: list[Result | Exception] = []
        while len(answers) < len(batch):
            size = 1
            if failure.out_of_memory:
                size = self.fitting_sizes[kind]  # may shrink further inside the loop
            answers += self._run_batch(worker, kind, batch[len(answers) : len(answers) + size])
        return answers


@dataclass
class BatchFailure:
    """Why a batch failed. The error holds no frames: the tensors of a batch that did not fit would stay in memory."""

    error: Exception
    out_of_memory: bool
    line: str  # the first line of the error's message


def is_batch_running() -> bool:
    """Return whether a batch has outlived its queue.

    A process that then exits in the ordinary way would stop a library in the middle of its code, and crash.
    """
    return any(thread.name.startswith(THREAD_NAME) for thread in threading.enumerate())


def _try_batch(worker: BatchWorker[Item, Result], batch: Sequence[Item]) -> list[Result | Exception] | BatchFailure:
    try:
        results = list(worker.run_batch(batch))
    except BaseException as error:
        out_of_memory = False
        with contextlib.suppress(Exception):
            out_of_memory = isinstance(error, Exception) and worker.is_out_of_memory(error)
        detached = _detach(error)
        lines = str(detached).splitlines() or [""]
        return BatchFailure(detached, out_of_memory, lines[0])
    if len(results) != len(batch):
        return BatchFailure(ValueError(f"a batch of {len(batch)} returned {len(results)} results"), False, "")
    return cast(list[Result | Exception], results)


def _detach(error: BaseException) -> Exception:
    """Return an ordinary error with the same message, and its traceback as text only."""
    detached = _copy_error(error)
    with contextlib.suppress(Exception):
        setattr(detached, TRACE_ATTRIBUTE, format_trace(error))
    return detached


def _copy_error(error: BaseException) -> Exception:
    """Return the error without frames; as a RuntimeError if it cannot be copied, or would stop whoever awaits it."""
    if isinstance(error, CallError):
        error.__cause__ = None
        error.__context__ = None
        return error.with_traceback(None)
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be formatted)"
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        with contextlib.suppress(Exception):
            copy = type(error)(message)
            if str(copy) == message:
                return copy
    return RuntimeError(f"{type(error).__name__}: {message}")


def _deliver_all(batch: "Sequence[QueuedCall[Item, Result]]", results: "Sequence[Result | Exception]") -> None:
    for queued, result in zip(batch, results, strict=True):
        _deliver(queued.result, result)


def _deliver(future: "Future[Result]", result: Result | Exception) -> None:
    with contextlib.suppress(InvalidStateError):  # the caller has given up
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
