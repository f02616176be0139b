"""The keeper: one actor on the head of a Ray cluster that owns the journal, the budget and the limits of a build.

Workers ask it for every answer. It gives the one in the journal, waits for the same call in flight, or has the call
made; an answer is on disk before anyone gets it. So a worker that dies costs its calls in flight, and nothing is paid
for twice. Servers are called from here, which alone needs their keys. Models that are programs (`file.py:NAME`, `hf/`,
`tabletop/`) answer in the workers, each of which has its own.
"""

import asyncio
import itertools
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any

import msgspec
from msgspec import Struct

from weft.building.preparation import prepare
from weft.building.request import BuildRequest, limits_of
from weft.calls.roles import ModelsByRole
from weft.calls.sending import EndpointDown, RunHalted
from weft.errors import BudgetReached, StoreError, UnusableJudge, UserError, WeftError, message_of
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, Endpoint, EndpointReply, Retry, TaskEndpoint
from weft.ray_cluster import import_ray_errors, is_running
from weft.types import Message, Reply, Request, Takes

MAX_ANSWER_BYTES = 64 * 2**20  # of one call in a worker; images travel by their digests
MAX_DEATHS = 3  # workers that one call, or one row, may take with it
RESTART_CHECK_S = 0.2
RESTART_TIMEOUT_S = 300.0  # in which a worker that died is there again
CALLER: ContextVar[int] = ContextVar("CALLER", default=-1)  # the worker that asked for the call of this task


class PlayerCard(Struct, frozen=True):
    """What a worker must know of a model that it asks through the keeper."""

    name: str
    takes: Takes


class Failure(Struct, frozen=True):
    """A CallError on its way from a worker."""

    message: str
    retry: Retry
    unreachable: bool
    billed: bool
    timed_out: bool
    trace: str

    @staticmethod
    def of(error: CallError) -> "Failure":
        flags = (bool(error.unreachable), bool(error.billed), bool(error.timed_out))
        return Failure(str(error), error.retry, *flags, str(error.trace))

    def to_error(self) -> CallError:
        error = CallError(
            self.message, self.retry, unreachable=self.unreachable, billed=self.billed, timed_out=self.timed_out
        )
        error.trace = self.trace
        return error


class Answer(Struct, frozen=True):
    """What came of a call in a worker, as JSON: no object of a model's code gets into another process."""

    reply: EndpointReply | None = None
    failure: Failure | None = None
    disk: str = ""  # why nothing can be written any more, which ends the build


class Tally(Struct, frozen=True):
    """What the build has called so far, and why it ends, if it does."""

    made: int
    cached: int
    cost: float
    reason: WeftError | None


def is_program(endpoint: Endpoint) -> bool:
    """Return whether a model answers in the process that asks it."""
    return not endpoint.address.startswith("http") and not isinstance(endpoint, TaskEndpoint)


def to_portable(error: WeftError) -> WeftError:
    """Return an error of weft's own that can be sent to another process; its type and message stay."""
    for kind in (RunHalted, BudgetReached, StoreError, UnusableJudge):
        if isinstance(error, kind):
            return kind(message_of(error))
    if isinstance(error, EndpointDown):
        return EndpointDown(message_of(error), user_fault=bool(error.user_fault))
    return UserError(message_of(error)) if isinstance(error, UserError) else WeftError(message_of(error))


class WorkerEndpoint(Endpoint):
    """A model that is a program: it answers in the worker that asked, or in the next one if that has died."""

    def __init__(self, role: str, inner: Endpoint, workers: Sequence[Any]) -> None:
        super().__init__(inner.name, address=inner.address)
        self.identity = inner.identity
        self.previous_identities = inner.previous_identities
        self.cacheable = inner.cacheable
        self.output_checked = inner.output_checked
        self.initial_concurrency = inner.initial_concurrency
        self.wants_batches = inner.wants_batches
        self.takes = inner.takes
        self.gives = inner.gives
        self.may_leave_undecided = inner.may_leave_undecided
        self.usual_price_share = inner.usual_price_share
        if inner.concurrency is not None:
            self.concurrency = inner.concurrency * len(workers)
        self._inner = inner
        self._role = role
        self._workers = workers
        self._turn = itertools.count()

    @property
    def missing_setup(self) -> str:
        return self._inner.missing_setup

    def price_share(self, messages: tuple[Message, ...], request: Request) -> float:
        return self._inner.price_share(messages, request)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        RayActorError, RayError = import_ray_errors()

        first = CALLER.get()
        if first < 0:
            first = next(self._turn)
        worker = self._workers[first % len(self._workers)]
        for death in range(MAX_DEATHS):
            if death:
                worker = await find_worker(self._workers)
            try:
                answer: Any = await worker.answer.remote(self._role, messages, request, self.max_reply_tokens)
            except RayActorError:
                continue
            except RayError as error:
                raise CallError(f"{self.name}: {type(error).__name__}", TRANSIENT) from None
            return _read_answer(answer, self.name)
        raise CallError(f"{self.name}: {MAX_DEATHS} workers died while they answered this", NO_RETRY)


def _read_answer(answer: object, name: str) -> EndpointReply:
    """Return the reply in what a worker sent. Raises CallError where there is none."""
    problem = f"{name}: a worker sent what is no answer"
    if not isinstance(answer, bytes) or len(answer) > MAX_ANSWER_BYTES:
        raise CallError(problem, NO_RETRY, billed=True)
    try:
        decoded = msgspec.json.decode(answer, type=Answer)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise CallError(problem, NO_RETRY, billed=True) from None
    if decoded.disk:
        raise StoreError(decoded.disk)
    if decoded.failure is not None:
        raise decoded.failure.to_error()
    if decoded.reply is None:
        raise CallError(problem, NO_RETRY, billed=True)
    return decoded.reply


async def find_worker(workers: Sequence[Any]) -> Any:
    """Return the first worker that is there. Those of a machine that has left may never be there again.

    Raises Ray's error if no worker will be.
    """
    RayActorError, _ = import_ray_errors()

    waiting = {asyncio.ensure_future(wait_for_worker(worker)): worker for worker in workers}
    open_tasks = set(waiting)
    try:
        while open_tasks:
            done, open_tasks = await asyncio.wait(open_tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.exception() is None and task.result() is None:
                    return waiting[task]
    finally:
        for task in open_tasks:
            task.cancel()
    raise RayActorError(None, "no worker is left")


async def wait_for_worker(worker: Any) -> WeftError | None:
    """Return when a worker is there, also after it died: why it can make no row, if so.

    Raises Ray's error if it never will be.
    """
    RayActorError, _ = import_ray_errors()

    for _ in range(int(RESTART_TIMEOUT_S / RESTART_CHECK_S)):
        try:
            return await worker.is_ready.remote()
        except RayActorError as error:
            if not _may_restart(error):
                raise
            await asyncio.sleep(RESTART_CHECK_S)
    raise RayActorError(None, "a worker that died was not started again in time")


def _may_restart(error: Exception) -> bool:
    """Return whether Ray may start a worker again: one that could not even be made is not."""
    return "creation task" not in str(error) and "restarts" not in str(error).lower()


class Keeper:
    """A Ray actor: the models of a build by role, for all its workers.

    Ray ends some time after a command that was killed. Until then the keeper calls nothing more: the same command may
    go on meanwhile, and would pay for these calls as well.
    """

    async def open(self, request: BuildRequest, run: str, folder: str, workers: Sequence[Any], command: int) -> Any:
        """Open journal and models. Return cards of the players and rows in flight, or the error.

        `command` is the process that builds, on this machine.
        """
        self._closing = AsyncExitStack()
        self._command = str(command)
        self._sees_command = is_running(self._command)  # not from within a container of its own
        try:
            os.chdir(folder)
            _, workspace, endpoints, _ = prepare(request)
            played: dict[str, Endpoint] = {}
            for role, endpoint in endpoints.items():
                played[role] = WorkerEndpoint(role, endpoint, workers) if is_program(endpoint) else endpoint
            self._models: ModelsByRole = await self._closing.enter_async_context(
                workspace.open(played, limits_of(request), composed=True)
            )
        except WeftError as error:
            return to_portable(error)
        for caller in self._models.callers.values():
            caller.book_under(run)
        cards = {role: PlayerCard(caller.name, caller.takes) for role, caller in self._models.callers.items()}
        return cards, self._models.samples_in_flight

    async def reply(self, role: str, messages: tuple[Message, ...], request: Request, worker: int) -> Any:
        """Return the reply, or the error that ends the build."""
        CALLER.set(worker)
        if self._sees_command and not is_running(self._command):
            self._models.halt.stop(StoreError("the command that asked for this build has ended"))
        try:
            reply: Reply = await self._models.callers[role].reply(messages, request)
        except RunHalted as error:
            return to_portable(error)
        except WeftError as error:
            self._models.halt.stop(error)
            return to_portable(error)
        return reply

    async def find_feature(self, digest: str, kind: str, version: str) -> str | None:
        return self._models.journal.find_feature(digest, kind, version)

    async def keep_feature(self, digest: str, kind: str, version: str, value: str) -> None:
        self._models.journal.put_feature(digest, kind, version, value)

    async def tally(self) -> Tally:
        callers = self._models.callers.values()
        reason = self._models.halt.reason
        return Tally(
            sum(caller.tally.calls for caller in callers),
            sum(caller.tally.cached for caller in callers),
            sum(caller.tally.cost for caller in callers),
            None if reason is None else to_portable(reason),
        )

    async def stop(self, reason: WeftError) -> None:
        """Send no new call."""
        self._models.halt.stop(reason)

    async def close(self) -> None:
        """Close the journal: what was answered is on disk."""
        await self._closing.aclose()
