"""A model under its role in a run: the cache in front of every call, and the journal behind it.

A call's cache key is a digest of everything that can change its answer: endpoint, model, every parameter, the messages
with image digests, the request, the draw number. An answer is in the journal before anyone gets it; the same call is
never made twice, not even by two tasks at the same moment. A call that fails is journalled as failed, returns a
`failed` reply, and is made again by the next command. How a call is sent and retried is in `sending.py`.
"""

import asyncio
import hashlib
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from weft.calls.budget import Account, Budget
from weft.calls.limiter import build_limiter
from weft.calls.prices import Price
from weft.calls.sending import (
    BudgetLink,
    Call,
    CallTally,
    EndpointDown,
    EndpointLink,
    Halt,
    LimiterLink,
    Link,
    RetryLink,
    RetryPolicy,
    RunHalted,
)
from weft.errors import WeftError
from weft.models.endpoint import CallError, Endpoint, EndpointReply, TaskEndpoint
from weft.store.blobs import Blobs
from weft.store.journal import CallRecord, Journal
from weft.store.records import read_clock
from weft.types import Message, Part, Reply, Request, Text, Thought

__all__ = [
    "CacheLink",
    "CallTally",
    "Caller",
    "EndpointDown",
    "Halt",
    "RecorderLink",
    "RetryPolicy",
    "RunHalted",
    "build_call_key",
    "build_request",
    "strip_foreign_state",
]

MAX_CONSECUTIVE_FAILURES = 25  # failed calls in a row after which an address counts as gone
PREFLIGHT_RUN = "preflight"  # the run of the calls of a preflight check
BeforeCall = Callable[[], Awaitable[None]]  # awaited before a call is sent


class Caller:
    """An endpoint made into a `Model`, under its role in a run."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        role: str,
        journal: Journal,
        budget: Budget,
        concurrency: int | None = None,
        price: Price | None = None,
        retry_policy: RetryPolicy = RetryPolicy(),
        halt: Halt | None = None,
        blobs: Blobs | None = None,
        run: str = "",
        round: int = 1,
        always_record: bool = False,
    ) -> None:
        """`concurrency` is the maximum of calls in flight; without it the limit is found by trying. `always_record`:
        also journal calls that cost nothing, so that one can see what a composed reply was made from."""
        self.name = endpoint.name
        self.takes = endpoint.takes
        self.may_leave_undecided = endpoint.may_leave_undecided
        self.endpoint = endpoint
        self.role = role
        self.run = run
        self.round = round
        self.tally = CallTally()
        self.limiter = build_limiter(endpoint, concurrency)
        self.open_tickets = journal.count_tickets(endpoint.address)  # requests submitted there and not answered yet
        self.before_call: BeforeCall | None = None
        is_task = isinstance(endpoint, TaskEndpoint)
        self._is_cached = endpoint.cacheable or always_record or is_task
        identity = msgspec.json.encode(endpoint.identity, order="deterministic", enc_hook=str)
        self._endpoint_digest = hashlib.sha256(identity).hexdigest()[:16]
        self._journal = journal
        self._halt = halt or Halt()
        self._endpoint_link = EndpointLink(endpoint, journal, self._halt, self._endpoint_digest)
        account = Account(endpoint, price, budget)
        budget_link = BudgetLink(self._endpoint_link, endpoint, journal, account, self._halt)
        limiter_link = LimiterLink(budget_link, self.limiter, self._halt, retry_policy.max_wait)
        retry_link = RetryLink(limiter_link, retry_policy, self.tally, f"{role} {endpoint.name}")
        may_have_ticket = self.open_tickets > 0 or is_task
        self._recorder = RecorderLink(retry_link, endpoint, role, journal, may_have_ticket)
        self._cache = CacheLink(
            self._recorder, endpoint, journal, blobs, self.tally, before_call=lambda: self.before_call
        )

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        """Return the cached answer, or a new one that is in the journal. A call that failed is a `failed` reply."""
        reason = self.endpoint.gives.unsupported_reason(request.modality)
        if reason:
            return Reply("empty", reason=reason)
        messages = strip_foreign_state(messages, self._endpoint_digest)
        if not self._is_cached:
            return await self._call_uncached(messages, request)
        return await self._cache.send(self._build_call(messages, request))

    async def ask_uncached(self, messages: tuple[Message, ...], request: Request) -> Reply:
        """Make the call whatever is cached. It is journalled like any other, under no run."""
        request_json, key = build_request(self.endpoint.identity, messages, request)
        return await self._recorder.send(Call(key, request_json, messages, request, PREFLIGHT_RUN, is_preflight=True))

    def book_under(self, run: str, round: int = 1) -> None:
        """Journal calls under this run from now on."""
        self.run = run
        self.round = round

    def find_cached(self, messages: tuple[Message, ...], request: Request) -> Reply | None:
        """Return the cached answer, if there is one. Never makes a call."""
        if not self._is_cached:
            return None
        messages = strip_foreign_state(messages, self._endpoint_digest)
        return self._cache.find_cached(self._build_call(messages, request))

    def flush_batches(self) -> None:
        """Tell a batch endpoint that only calls that follow from others are still to come."""
        if isinstance(self.endpoint, TaskEndpoint):
            self.endpoint.flush_soon()

    def void(self, keys: tuple[str, ...], reason: str) -> None:
        """Mark cached answers as unusable: other runs make the calls again, as does this run's next round.

        A round begins when a finished run is started again: after a kill the round is the same, and asks nothing again.
        """
        for key in keys:
            self._journal.void_calls(key, self.run, self.round, reason)

    def _build_call(self, messages: tuple[Message, ...], request: Request) -> Call:
        request_json, key = build_request(self.endpoint.identity, messages, request)
        return Call(key, request_json, messages, request, self.run, self.round)

    async def _call_uncached(self, messages: tuple[Message, ...], request: Request) -> Reply:
        """Try once, at no cost, and record nothing."""
        async with self.limiter.slot():
            self._halt.check()
            try:
                answer = await self._endpoint_link.send(Call("", b"", messages, request))
            except CallError as error:
                if error.retry.kind == "fatal":
                    raise EndpointDown(str(error), user_fault=True) from None
                answer = EndpointReply((), "failed", str(error))
        self.tally.calls += 1
        return Reply(
            answer.outcome,
            answer.parts,
            answer.reason,
            answer.usage,
            stop_cause=answer.stop_cause,
            notes=answer.notes,
        )


@dataclass
class CacheLink:
    """Answers a call from the cache, from the same call in flight, or by making it. No call is ever made twice.

    A failed reply is no answer: the next command makes the call again. Raises EndpointDown once an address is gone.
    """

    inner: "RecorderLink"
    endpoint: Endpoint
    journal: Journal
    blobs: Blobs | None
    tally: CallTally
    before_call: Callable[[], BeforeCall | None]  # the caller's, which may be set later
    in_flight: dict[str, asyncio.Future[Reply]] = field(default_factory=dict[str, "asyncio.Future[Reply]"])
    failed_in_a_row: int = 0

    async def send(self, call: Call) -> Reply:
        if call.key in self.in_flight:
            return await asyncio.shield(self.in_flight[call.key])
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.in_flight[call.key] = future
        try:
            reply = await self._answer(call)
            future.set_result(reply)
            return reply
        except BaseException as error:
            future.set_exception(error if isinstance(error, Exception) else WeftError("stopped"))
            future.exception()  # marks it as retrieved: nobody may be waiting
            raise
        finally:
            del self.in_flight[call.key]

    async def _answer(self, call: Call) -> Reply:
        cached = self.find_cached(call)
        if cached is not None:
            self.tally.cached += 1
            return cached
        before_call = self.before_call()
        if before_call is not None:
            await before_call()
        reply = await self.inner.send(call)
        self.tally.calls += 1
        self.tally.cost += reply.usage.cost or 0.0
        self._count_failures(reply)
        return reply

    def _count_failures(self, reply: Reply) -> None:
        """Raise EndpointDown after too many failures in a row: everything that is left would fail as well."""
        if reply.outcome != "failed":
            self.failed_in_a_row = 0
            return
        self.failed_in_a_row += 1
        is_batch = self.endpoint.usual_price_share != 1.0  # whose calls all fail together
        if is_batch or not self.endpoint.address.startswith("http"):
            return
        if self.failed_in_a_row >= MAX_CONSECUTIVE_FAILURES:
            raise EndpointDown(
                f"{self.failed_in_a_row} calls in a row failed; the last: {reply.reason}", user_fault=False
            )

    def find_cached(self, call: Call) -> Reply | None:
        """Return the answer under the call's key, or under the key that a previous identity of the endpoint gives.

        An answer whose images are gone from the store does not count.
        """
        previous = (build_call_key(identity, call.request_json) for identity in self.endpoint.previous_identities)
        for key in itertools.chain([call.key], previous):
            row = self.journal.find_reply(key, call.run, call.round)
            if row is not None and self._has_images(row[1]):
                return row[1]
        return None

    def _has_images(self, reply: Reply) -> bool:
        if self.blobs is None:
            return True
        return all(self.blobs.has(image) for image in reply.images)


@dataclass
class RecorderLink:
    """Makes a call and returns its reply once it is on disk.

    An answer is recorded whatever happens to whoever asked. A ticket is dropped together with the record of its answer,
    never before.
    """

    inner: Link
    endpoint: Endpoint
    role: str
    journal: Journal
    may_have_ticket: bool

    async def send(self, call: Call) -> Reply:
        began = read_clock()
        answer = await self.inner.send(call)
        seconds = time.perf_counter() - call.sent_at
        reply = Reply(
            answer.outcome, answer.parts, answer.reason, call.usage, (call.key,), answer.stop_cause, answer.notes
        )
        record = CallRecord(
            key=call.key,
            request_digest=hashlib.sha256(call.request_json).hexdigest(),
            run=call.run,
            role=self.role,
            endpoint=self.endpoint.address,
            model=str(self.endpoint.identity.get("model", self.endpoint.name)),
            served=answer.served_model,
            request=call.request_json.decode(),
            outcome=answer.outcome,
            reply=msgspec.json.encode(reply).decode(),
            raw=answer.raw,
            tokens_in=call.usage.tokens_in,
            tokens_out=call.usage.tokens_out,
            cost=call.usage.cost,
            latency=seconds,
            attempts=call.tries,
            at=began,
        )
        await asyncio.shield(asyncio.wrap_future(self.journal.put_call(record, drop_ticket=self.may_have_ticket)))
        return reply


def strip_foreign_state(messages: tuple[Message, ...], endpoint_digest: str) -> tuple[Message, ...]:
    """Remove the state and the thoughts that came from other endpoints."""
    if not any(isinstance(part, Thought) or part.state for message in messages for part in message.parts):
        return messages
    stripped: list[Message] = []
    for message in messages:
        own = [_strip_part(part, endpoint_digest) for part in message.parts]
        parts = tuple(part for part in own if part is not None)
        if parts:
            stripped.append(replace(message, parts=parts))
    return tuple(stripped)


def _strip_part(part: Part, endpoint_digest: str) -> Part | None:
    if part.state is not None and part.state.endpoint_digest == endpoint_digest:
        return part
    if isinstance(part, Thought):
        return None
    if isinstance(part, Text) and not part.text and part.state is not None:  # it was there only for its state
        return None
    return replace(part, state=None)


def build_request(identity: Mapping[str, Any], messages: tuple[Message, ...], request: Request) -> tuple[bytes, str]:
    """Return the request as it is journalled, and the cache key."""
    content: dict[str, Any] = {
        "messages": messages,
        "want": request.modality,
        "schema": request.schema,
        "draw": request.draw,
    }
    if request.size:
        content["size"] = request.size
    request_json = msgspec.json.encode(content, order="deterministic")
    return request_json, build_call_key(identity, request_json)


def build_call_key(identity: Mapping[str, Any], request_json: bytes) -> str:
    """Return the cache key: a digest of the endpoint's identity and the request."""
    digest = hashlib.sha256(msgspec.json.encode(identity, order="deterministic"))
    digest.update(b"\n" + request_json)
    return digest.hexdigest()
