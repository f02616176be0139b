"""A judge whose questions are handed in as batches, for half the price: the same model, the same requests, the same answers, later.

Questions are gathered until none has come for a while, or a file is full; the file is handed in, which costs nothing; every ticket is in
the journal; only then the batch is begun. A command that is killed anywhere in between is followed by one that finds the batch by its
file, or, where there is none, hands in anew: nothing is paid for twice. What must not wait another day goes live at the full price: the
first question of all (so that a wrong key or an unknown field is found out at once), objections to an answer, and what a batch answered
with an error. A call's key is the same either way, so live answers and those of batches are one memory.
"""

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from weft.errors import UserError
from weft.models.endpoint import NO, Batches, CallError, Endpoint, Expired, Sent, TaskEndpoint
from weft.models.http import coded_size
from weft.types import Image, Message, Want

HALF = 0.5  # of the usual price, at OpenAI and at Google
QUIET, SOON = 60.0, 1.0  # seconds without a new question after which a file is handed in; where no more are to come
POLL = 20.0
MANY = 20_000  # questions in flight
LIVE = 16  # of those that go live
LOST = 3600.0  # seconds for which a batch may not be looked at
OVERHEAD = 4000  # bytes around a text or a picture, at the most


class Batched(TaskEndpoint):
    def __init__(self, endpoint: Endpoint, service: Batches) -> None:
        self._inner, self._service = endpoint, service
        self.name, self.address, self.identity = endpoint.name, endpoint.address, endpoint.identity
        self.takes, self.gives, self.partial, self.words = endpoint.takes, endpoint.gives, endpoint.partial, endpoint.words
        self.concurrency, self.poll, self.usual_rate, self._quiet = MANY, POLL, HALF, QUIET
        self.longest_wait = None
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._handing: set[asyncio.Task[None]] = set()
        self._batches: dict[str, _Batch] = {}
        self._again: set[str] = set()  # what a batch did not answer
        self._scout, self._scouted = "", asyncio.Event()  # the first question goes live: what it is answered, all others would be
        self._live = asyncio.Semaphore(LIVE)

    # at once

    def at_once(self, messages: tuple[Message, ...], want: Want) -> bool:
        """An objection, what a batch did not answer, and the first question of all."""
        name = _name(messages, want)
        self._scout = self._scout or name
        return name == self._scout or name in self._again or any(message.role == "assistant" for message in messages)

    def rate(self, messages: tuple[Message, ...], want: Want) -> float:
        return 1.0 if not self._scout or self.at_once(messages, want) else HALF

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        self._limit()
        async with self._live:
            try:
                return await self._inner.send(messages, want)
            finally:
                self._scouted.set()

    def _limit(self) -> None:
        """A budget's limit of a reply, unless the model has been found to have a lower one."""
        known, told = self._inner.longest, self.longest
        self._inner.longest = told if known is None or told is None else min(known, told)

    # handed in

    def soon(self) -> None:
        self._quiet = min(self._quiet, SOON)
        if self._waiting:
            self._later()

    async def submit(self, messages: tuple[Message, ...], want: Want) -> str:
        texts = sum(len(part.text.encode()) + OVERHEAD for m in messages for part in m.parts if not isinstance(part, Image))
        size = OVERHEAD + texts + sum(coded_size(part) + OVERHEAD for m in messages for part in m.parts if isinstance(part, Image))
        if self._waiting and sum(one.size for one in self._waiting) + size > self._service.most_bytes:
            self._flush()
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        one = _Waiting(_name(messages, want), messages, want, size, future)
        self._waiting.append(one)
        if len(self._waiting) >= self._service.most_lines:
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
            file = await self._service.hand_in([self._service.line(one.name, one.messages, one.want) for one in gathered])
        except Exception as error:  # of all of them, each of which may try again
            for one in gathered:
                if not one.future.done():
                    one.future.set_exception(error if isinstance(error, CallError) else CallError(f"{self.name}: {error}", NO))
            return
        self._batches[file] = _Batch(file, self._service, {one.name for one in gathered if not one.future.done()})
        for one in gathered:
            if not one.future.done():
                one.future.set_result(file)

    # collected

    async def collect(self, ticket: str, want: Want) -> Sent | None:
        file, _, name = ticket.rpartition(" ")
        batch = self._batches.setdefault(file, _Batch(file, self._service))
        answers = await batch.answers(name, self.poll)
        if answers is None:
            return None
        if name not in answers:
            if batch.state == "cancelled":
                raise CallError(f"{self.name}: the batch was cancelled before this was answered", NO)
            self._again |= {name} if batch.state != "expired" else set()  # of a day that was too short another may be long enough
            raise Expired(f"{self.name}: the batch ended ({batch.state}) without an answer to this")
        try:
            sent = await self._service.read(answers[name], want)
        except CallError as error:  # whatever it is, it stands in a file, and will never be otherwise there
            self._again.add(name)
            raise Expired(str(error)) from None
        self._again |= {name} if sent.again else set()
        return sent

    def released(self, ticket: str) -> None:
        file, _, name = ticket.rpartition(" ")
        if file in self._batches:
            self._batches[file].released(name)

    @property
    def missing(self) -> str:
        return self._inner.missing

    @property
    def keyless(self) -> str:
        return self._inner.keyless

    @property
    def standing(self) -> str:
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
    want: Want
    size: int
    future: "asyncio.Future[str]"


class _Batch:
    """One file and the batch that works on it. Where it was handed in by this command, `names` must all have come for their answers, which
    they do once their tickets are kept, before the work is begun."""

    def __init__(self, file: str, service: Batches, names: set[str] | None = None) -> None:
        self._file, self._service, self._due = file, service, set(names or ())
        self._fresh, self._id, self._began = names is not None, "", False
        self._lock, self._looked, self._troubled = asyncio.Lock(), 0.0, 0.0
        self._answers: Mapping[str, Any] | None = None
        self._final: CallError | None = None  # what became of the whole, where nothing did
        self.state, self.done, self.due, self.over = "waiting", 0, len(self._due), False

    async def answers(self, name: str, poll: float) -> Mapping[str, Any] | None:
        """All of them, once they are there. What came of the whole is told to everybody who comes for a part."""
        self._due.discard(name)
        async with self._lock:
            if self._final is not None:
                raise Expired(str(self._final)) if isinstance(self._final, Expired) else CallError(str(self._final), self._final.retry)
            if self._answers is not None or (self._fresh and self._due):
                return self._answers
            if self._looked and time.monotonic() - self._looked < poll * 0.9:
                return None
            try:
                return await self._look()
            except CallError as error:
                if error.retry.kind == "no" or isinstance(error, Expired):
                    self._final, self.over = error, True
                raise

    async def _look(self) -> Mapping[str, Any] | None:
        """Trouble with the looking is none of the batch's: it is looked at again later, for as long as anyone would wait."""
        self._looked = time.monotonic()
        try:
            self._id = self._id or await self._found()
            look = await self._service.look(self._id)
            self.state, self.done, self.due = look.state, look.done, look.due or self.due
            if look.over and not (look.trouble and not look.files):
                self._answers = await self._service.answers(look)
        except CallError as error:
            self._troubled = self._troubled or self._looked
            lasting = isinstance(error, Expired) or error.retry.kind in ("denied", "fatal") or (error.retry.kind == "no" and not self._id)
            if lasting or time.monotonic() - self._troubled > LOST:
                raise
            self.state = f"cannot be looked at ({str(error)[:100]})"
            return None
        self._troubled, self.over = 0.0, look.over
        if look.over and self._answers is None:
            raise CallError(f"the batch {self._id} failed: {look.trouble}", NO)
        return self._answers

    def released(self, name: str) -> None:
        self._due.discard(name)

    async def _found(self) -> str:
        """The batch that there is; a new one only for a file of this command's, which nobody else can have begun."""
        found = await self._service.find(self._file) if self._began or not self._fresh else ""
        if not found and not self._fresh:
            raise Expired("it was handed in, and the work was never begun")
        self._began = True
        return found or await self._service.start(self._file)


def _name(messages: tuple[Message, ...], want: Want) -> str:
    """What a line is called by: the same request has the same name, in any command."""
    return hashlib.sha256(msgspec.json.encode([messages, want.kind, want.schema, want.draw], order="deterministic")).hexdigest()[:40]


def batched(endpoint: Endpoint) -> Batched:
    service = endpoint.batches()
    if service is None:
        raise UserError(f"{endpoint.name} takes no batches; openai/NAME, openai-chat/NAME@URL and gemini/NAME do")
    return Batched(endpoint, service)
