"""A judge whose questions are handed in as batches, for half the price: the same model, the same requests, the same
answers, later.

Questions are gathered until none has come for a while, or a file is full; the file is handed in, which costs nothing;
every ticket is in the journal; only then the batch is begun. A command that is killed anywhere in between is followed
by one that finds the batch by its file, or, where there is none, hands in anew: nothing is paid for twice. What must
not wait another day goes live at the full price: the first question of all (so that a wrong key or an unknown field is
found out at once), objections to an answer, and what a batch answered with an error. A call's key is the same either
way, so live answers and those of batches are one memory."""

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, BatchService, CallError, Endpoint, EndpointReply, TaskEndpoint, TicketExpired
from weft.models.http import base64_size
from weft.types import Image, Message, Request

HALF = 0.5  # of the usual price, at OpenAI and at Google
# seconds without a new question after which a file is handed in; where no more are to come
QUIET_PERIOD_S = 60.0
SOON = 1.0
POLL = 20.0
MANY = 20_000  # questions in flight
LIVE = 16  # of those that go live
LOST = 3600.0  # seconds for which a batch may not be looked at
OVERHEAD = 4000  # bytes around a text or a picture, at the most


class BatchEndpoint(TaskEndpoint):
    def __init__(self, endpoint: Endpoint, service: BatchService) -> None:
        self._inner = endpoint
        self._service = service
        self.name, self.address, self.identity = endpoint.name, endpoint.address, endpoint.identity
        self.takes, self.gives, self.may_leave_undecided, self.phrasing = (
            endpoint.takes,
            endpoint.gives,
            endpoint.may_leave_undecided,
            endpoint.phrasing,
        )
        self.concurrency = MANY
        self.poll_interval = POLL
        self.usual_price_share = HALF
        self._quiet = QUIET_PERIOD_S
        self.max_wait = None
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._handing: set[asyncio.Task[None]] = set()
        self._batches: dict[str, _Batch] = {}
        self._again: set[str] = set()  # what a batch did not answer
        # the first question goes live: what it is answered, all others would be
        self._scout = ""
        self._scouted = asyncio.Event()
        self._live = asyncio.Semaphore(LIVE)

    # at once

    def answers_immediately(self, messages: tuple[Message, ...], want: Request) -> bool:
        """An objection, what a batch did not answer, and the first question of all."""
        name = _name(messages, want)
        self._scout = self._scout or name
        return name == self._scout or name in self._again or any(message.role == "assistant" for message in messages)

    def price_share(self, messages: tuple[Message, ...], want: Request) -> float:
        if not self._scout or self.answers_immediately(messages, want):
            return 1.0
        return HALF

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        self._limit()
        async with self._live:
            try:
                return await self._inner.send(messages, want)
            finally:
                self._scouted.set()

    def _limit(self) -> None:
        """A budget's limit of a reply, unless the model has been found to have a lower one."""
        known = self._inner.max_reply_tokens
        told = self.max_reply_tokens
        if known is None or told is None:
            self._inner.max_reply_tokens = told
        else:
            self._inner.max_reply_tokens = min(known, told)

    # handed in

    def flush_soon(self) -> None:
        self._quiet = min(self._quiet, SOON)
        if self._waiting:
            self._later()

    async def submit(self, messages: tuple[Message, ...], want: Request) -> str:
        texts = sum(
            len(part.text.encode()) + OVERHEAD for m in messages for part in m.parts if not isinstance(part, Image)
        )
        size = (
            OVERHEAD
            + texts
            + sum(base64_size(part) + OVERHEAD for m in messages for part in m.parts if isinstance(part, Image))
        )
        if self._waiting and sum(one.size for one in self._waiting) + size > self._service.max_bytes:
            self._flush()
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        one = _Waiting(_name(messages, want), messages, want, size, future)
        self._waiting.append(one)
        if len(self._waiting) >= self._service.max_requests:
            self._flush()
        else:
            self._later()
        return f"{await future} {one.name}"

    def _later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._quiet, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        gathered, self._waiting, self._timer = [one for one in self._waiting if not one.future.done()], [], None
        if gathered:
            task = asyncio.get_running_loop().create_task(self._hand_in(gathered))
            self._handing.add(task)
            task.add_done_callback(self._handing.discard)

    async def _hand_in(self, gathered: "list[_Waiting]") -> None:
        """Once the first question is back: a server that does not know a field has said so by then."""
        await self._scouted.wait()
        self._limit()
        try:
            file = await self._service.upload(
                [self._service.build_line(one.name, one.messages, one.want) for one in gathered]
            )
        except Exception as error:  # of all of them, each of which may try again
            for one in gathered:
                if not one.future.done():
                    one.future.set_exception(
                        error if isinstance(error, CallError) else CallError(f"{self.name}: {error}", NO_RETRY)
                    )
            return
        self._batches[file] = _Batch(file, self._service, {one.name for one in gathered if not one.future.done()})
        for one in gathered:
            if not one.future.done():
                one.future.set_result(file)

    # collected

    async def collect(self, ticket: str, want: Request) -> EndpointReply | None:
        file, _, name = ticket.rpartition(" ")
        batch = self._batches.setdefault(file, _Batch(file, self._service))
        answers = await batch.answers(name, self.poll_interval)
        if answers is None:
            return None
        if name not in answers:
            if batch.state == "cancelled":
                raise CallError(f"{self.name}: the batch was cancelled before this was answered", NO_RETRY)
            # of a day that was too short another may be long enough
            self._again |= {name} if batch.state != "expired" else set()
            raise TicketExpired(f"{self.name}: the batch ended ({batch.state}) without an answer to this")
        try:
            sent = await self._service.parse_result(answers[name], want)
        except CallError as error:  # whatever it is, it stands in a file, and will never be otherwise there
            self._again.add(name)
            raise TicketExpired(str(error)) from None
        self._again |= {name} if sent.retry_advised else set()
        return sent

    def release(self, ticket: str) -> None:
        file, _, name = ticket.rpartition(" ")
        if file in self._batches:
            self._batches[file].released(name)

    @property
    def missing_setup(self) -> str:
        return self._inner.missing_setup

    @property
    def missing_key(self) -> str:
        return self._inner.missing_key

    @property
    def status_line(self) -> str:
        return ", ".join(f"batch {one.state} {one.done}/{one.due}" for one in self._batches.values() if not one.over)

    async def close(self) -> None:
        for task in self._handing:
            task.cancel()
        await self._inner.close()


@dataclass
class _Waiting:
    """A question that is to be handed in."""

    name: str
    messages: tuple[Message, ...]
    want: Request
    size: int
    future: "asyncio.Future[str]"


class _Batch:
    """One file and the batch that works on it. Where it was handed in by this command, `names` must all have come for
    their answers, which they do once their tickets are kept, before the work is begun."""

    def __init__(self, file: str, service: BatchService, names: set[str] | None = None) -> None:
        self._file = file
        self._service = service
        self._due = set(names or ())
        self._fresh = names is not None
        self._id = ""
        self._began = False
        self._lock = asyncio.Lock()
        self._looked = 0.0
        self._troubled = 0.0
        self._answers: Mapping[str, Any] | None = None
        self._final: CallError | None = None  # what became of the whole, where nothing did
        self.state = "waiting"
        self.done = 0
        self.due = len(self._due)
        self.over = False

    async def answers(self, name: str, poll: float) -> Mapping[str, Any] | None:
        """All of them, once they are there. What came of the whole is told to everybody who comes for a part."""
        self._due.discard(name)
        async with self._lock:
            if self._final is not None:
                raise (
                    TicketExpired(str(self._final))
                    if isinstance(self._final, TicketExpired)
                    else CallError(str(self._final), self._final.retry)
                )
            if self._answers is not None or (self._fresh and self._due):
                return self._answers
            if self._looked and time.monotonic() - self._looked < poll * 0.9:
                return None
            try:
                return await self._look()
            except CallError as error:
                if error.retry.kind == "no" or isinstance(error, TicketExpired):
                    self._final = error
                    self.over = True
                raise

    async def _look(self) -> Mapping[str, Any] | None:
        """Trouble with the looking is none of the batch's: it is looked at again later, for as long as anyone would
        wait."""
        self._looked = time.monotonic()
        try:
            self._id = self._id or await self._found()
            look = await self._service.get_status(self._id)
            self.state, self.done, self.due = look.state, look.completed, look.total or self.due
            if look.is_finished and not (look.error and not look.result_files):
                self._answers = await self._service.fetch_results(look)
        except CallError as error:
            self._troubled = self._troubled or self._looked
            lasting = (
                isinstance(error, TicketExpired)
                or error.retry.kind in ("denied", "fatal")
                or (error.retry.kind == "no" and not self._id)
            )
            if lasting or time.monotonic() - self._troubled > LOST:
                raise
            self.state = f"cannot be looked at ({str(error)[:100]})"
            return None
        self._troubled = 0.0
        self.over = look.is_finished
        if look.is_finished and self._answers is None:
            raise CallError(f"the batch {self._id} failed: {look.error}", NO_RETRY)
        return self._answers

    def released(self, name: str) -> None:
        self._due.discard(name)

    async def _found(self) -> str:
        """The batch that there is; a new one only for a file of this command's, which nobody else can have begun."""
        if self._began or not self._fresh:
            found = await self._service.find_batch(self._file)
        else:
            found = ""
        if not found and not self._fresh:
            raise TicketExpired("it was handed in, and the work was never begun")
        self._began = True
        return found or await self._service.start_batch(self._file)


def _name(messages: tuple[Message, ...], want: Request) -> str:
    """What a line is called by: the same request has the same name, in any command."""
    return hashlib.sha256(
        msgspec.json.encode([messages, want.modality, want.schema, want.draw], order="deterministic")
    ).hexdigest()[:40]


def build_batch_endpoint(endpoint: Endpoint) -> BatchEndpoint:
    service = endpoint.batch_service()
    if service is None:
        raise UserError(f"{endpoint.name} takes no batches; openai/NAME, openai-chat/NAME@URL and gemini/NAME do")
    return BatchEndpoint(endpoint, service)
