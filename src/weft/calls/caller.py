"""A model under its role in a run: the cache in front of every call, and the journal behind it.

A call's cache key is a digest of everything that can change its answer: endpoint, model, every parameter, the messages
with image digests, what is wanted, the draw number. An answer is in the journal before anyone gets it; the same call is
never made twice, not even by two tasks at the same moment. A call that fails is journalled as failed, comes back as a
`failed` reply, and is made again by the next command. How a call that must be made is sent, and tried again, is in
`sending.py`."""

import asyncio
import hashlib
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from weft.calls.limiter import build_limiter
from weft.calls.prices import Budget, Price
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

MAX_CONSECUTIVE_FAILURES = 25  # failed calls in a row after which an address is taken to be gone
PROBE_RUN = "probe"  # the run of calls that only try an endpoint out
BeforeCall = Callable[[], Awaitable[None]]  # awaited before a call goes out


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
        """`concurrency` is the most calls in flight, found by trying where it is not given. `kept`: calls are
        journalled even where they cost nothing, since what stands behind a composed reply is worth a look."""
        self.name, self.takes, self.may_leave_undecided, self.endpoint, self.role = (
            endpoint.name,
            endpoint.takes,
            endpoint.may_leave_undecided,
            endpoint,
            role,
        )
        self.run = run
        self.round = round
        self.tally = CallTally()
        self.limiter = build_limiter(endpoint, concurrency)
        # requests that were handed in there and are not back
        self.open_tickets = journal.count_tickets(endpoint.address)
        self.before_call: BeforeCall | None = None
        self._is_cached = endpoint.cacheable or always_record or isinstance(endpoint, TaskEndpoint)
        self._mark = hashlib.sha256(
            msgspec.json.encode(endpoint.identity, order="deterministic", enc_hook=str)
        ).hexdigest()[:16]
        self._journal = journal
        self._halt = halt or Halt()
        paid = budget.limit is not None and price is not None and price != Price(0, 0)
        self._checked = EndpointLink(endpoint, journal, self._halt, self._mark)
        budgeted = BudgetLink(self._checked, endpoint, journal, budget, price, self._halt, is_first=paid)
        limited = LimiterLink(budgeted, self.limiter, self._halt, retry_policy.max_wait)
        retried = RetryLink(limited, retry_policy, self.tally, f"{role} {endpoint.name}")
        self._recorded = RecorderLink(
            retried,
            endpoint,
            role,
            journal,
            may_have_ticket=self.open_tickets > 0 or isinstance(endpoint, TaskEndpoint),
        )
        self._memoised = CacheLink(
            self._recorded, endpoint, journal, blobs, self.tally, before_call=lambda: self.before_call
        )

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        """The cached answer, or a new one that is in the journal. Trouble with this one request is a `failed` reply."""
        if lacks := self.endpoint.gives.unsupported_reason(want.modality):  # nobody is asked for what they cannot send
            return Reply("empty", reason=lacks)
        messages = strip_foreign_state(messages, self._mark)
        if not self._is_cached:
            return await self._uncached(messages, want)
        return await self._memoised.send(self._call(messages, want))

    async def ask_uncached(self, messages: tuple[Message, ...], want: Request) -> Reply:
        """How the endpoint answers at this moment, whatever is cached. It is in the journal like any call, under no
        run."""
        request, key = build_request(self.endpoint.identity, messages, want)
        return await self._recorded.send(Call(key, request, messages, want, PROBE_RUN, is_probe=True))

    def book_under(self, run: str, round: int = 1) -> None:
        """From now on its calls are booked under this run."""
        self.run = run
        self.round = round

    def find_cached(self, messages: tuple[Message, ...], want: Request) -> Reply | None:
        """The cached answer, if there is one; makes no call."""
        if self._is_cached:
            return self._memoised.find_cached(self._call(strip_foreign_state(messages, self._mark), want))
        return None

    def flush_batches(self) -> None:
        """No more questions are to come but those that follow from others."""
        if isinstance(self.endpoint, TaskEndpoint):
            self.endpoint.flush_soon()

    def void(self, keys: tuple[str, ...], reason: str) -> None:
        """These answers led to nothing usable: ask again next time."""
        for key in keys:
            self._journal.void_calls(key, self.run, self.round, reason)

    def _call(self, messages: tuple[Message, ...], want: Request) -> Call:
        request, key = build_request(self.endpoint.identity, messages, want)
        return Call(key, request, messages, want, self.run, self.round)

    async def _uncached(self, messages: tuple[Message, ...], want: Request) -> Reply:
        """Nothing to wait for, so nothing to remember: one try, for nothing."""
        async with self.limiter.slot():
            self._halt.check()
            try:
                sent = await self._checked.send(Call("", b"", messages, want))
            except CallError as error:
                if error.retry.kind == "fatal":
                    raise EndpointDown(str(error), user_fault=True) from None
                sent = EndpointReply((), "failed", str(error))
        self.tally.calls += 1
        return Reply(sent.outcome, sent.parts, sent.reason, sent.usage, stop_cause=sent.stop_cause, notes=sent.notes)


@dataclass
class CacheLink:
    """A call comes in; out comes the cached answer, the answer that another task is waiting for already, or a new one.
    The same call is never made twice. A failed reply is no answer: the next command asks again. Raises EndpointDown
    once an address is gone."""

    inner: "RecorderLink"
    endpoint: Endpoint
    journal: Journal
    blobs: Blobs | None
    tally: CallTally
    before_call: Callable[[], BeforeCall | None]  # the caller's, as it is by then
    in_flight: dict[str, asyncio.Future[Reply]] = field(default_factory=dict[str, "asyncio.Future[Reply]"])
    failed_in_a_row: int = 0

    async def send(self, call: Call) -> Reply:
        if call.key in self.in_flight:
            return await asyncio.shield(self.in_flight[call.key])
        flying: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.in_flight[call.key] = flying
        try:
            reply = await self._answer(call)
            flying.set_result(reply)
            return reply
        except BaseException as error:
            flying.set_exception(error if isinstance(error, Exception) else WeftError("stopped"))
            flying.exception()  # marks it as seen: nobody may be waiting
            raise
        finally:
            del self.in_flight[call.key]

    async def _answer(self, call: Call) -> Reply:
        known = self.find_cached(call)
        if known is not None:
            self.tally.cached += 1
            return known
        if (gate := self.before_call()) is not None:
            await gate()
        reply = await self.inner.send(call)
        self.tally.calls += 1
        self.tally.cost += reply.usage.cost or 0.0
        if reply.outcome == "failed":
            self.failed_in_a_row = self.failed_in_a_row + 1
        else:
            self.failed_in_a_row = 0
        # of a batch all fail together
        counts = self.endpoint.usual_price_share == 1.0 and self.endpoint.address.startswith("http")
        # going on would only fail everything that is left
        if self.failed_in_a_row >= MAX_CONSECUTIVE_FAILURES and counts:
            raise EndpointDown(
                f"{self.failed_in_a_row} calls in a row failed; the last: {reply.reason}", user_fault=False
            )
        return reply

    def find_cached(self, call: Call) -> Reply | None:
        """The answer under a key, or under what it would have been before the endpoint came to be called otherwise. An
        answer whose images are gone from the store is none."""
        former = (build_call_key(identity, call.request_json) for identity in self.endpoint.previous_identities)
        for key in itertools.chain([call.key], former):
            found = self.journal.find_reply(key, call.run, call.round)
            if found is not None and (self.blobs is None or all(self.blobs.has(image) for image in found[1].images)):
                return found[1]
        return None


@dataclass
class RecorderLink:
    """A call comes in and is made; out comes its reply, once it is on disk. An answer that has come is kept, whatever
    happens to whoever asked for it. The ticket of a task is dropped with the record of its answer, never before."""

    inner: Link
    endpoint: Endpoint
    role: str
    journal: Journal
    may_have_ticket: bool  # whether there may be tickets

    async def send(self, call: Call) -> Reply:
        began = time.time()
        sent = await self.inner.send(call)
        seconds = time.perf_counter() - call.sent_at
        reply = Reply(sent.outcome, sent.parts, sent.reason, call.usage, (call.key,), sent.stop_cause, sent.notes)
        record = CallRecord(
            key=call.key,
            request_digest=hashlib.sha256(call.request_json).hexdigest(),
            run=call.run,
            role=self.role,
            endpoint=self.endpoint.address,
            model=str(self.endpoint.identity.get("model", self.endpoint.name)),
            served=sent.served_model,
            request=call.request_json.decode(),
            outcome=sent.outcome,
            reply=msgspec.json.encode(reply).decode(),
            raw=sent.raw,
            tokens_in=call.usage.tokens_in,
            tokens_out=call.usage.tokens_out,
            cost=call.usage.cost,
            latency=seconds,
            attempts=call.tries,
            at=began,
        )
        await asyncio.shield(asyncio.wrap_future(self.journal.put_call(record, drop_ticket=self.may_have_ticket)))
        return reply


def strip_foreign_state(messages: tuple[Message, ...], mark: str) -> tuple[Message, ...]:
    """The messages as an endpoint may have them: another's state is not for it, and thoughts go back only to who wants
    them back."""
    if not any(isinstance(part, Thought) or part.state for message in messages for part in message.parts):
        return messages
    kept = [
        replace(message, parts=tuple(one for part in message.parts if (one := _own(part, mark)) is not None))
        for message in messages
    ]
    return tuple(message for message in kept if message.parts)


def _own(part: Part, mark: str) -> Part | None:
    if part.state is not None and part.state.endpoint_digest == mark:
        return part
    empty = isinstance(part, Text) and not part.text and part.state is not None  # it was there for its state alone
    if isinstance(part, Thought) or empty:
        return None
    return replace(part, state=None)


def build_request(identity: Mapping[str, Any], messages: tuple[Message, ...], want: Request) -> tuple[bytes, str]:
    """The request as it is journalled, and the call's key."""
    asked: dict[str, Any] = {"messages": messages, "want": want.modality, "schema": want.schema, "draw": want.draw}
    asked |= {"size": want.size} if want.size else {}
    request = msgspec.json.encode(asked, order="deterministic")
    return request, build_call_key(identity, request)


def build_call_key(identity: Mapping[str, Any], request: bytes) -> str:
    digest = hashlib.sha256(msgspec.json.encode(identity, order="deterministic"))
    digest.update(b"\n" + request)
    return digest.hexdigest()
