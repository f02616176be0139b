"""One call, from the first try to the last: a chain of links, each with one `send`. A call goes down the chain and its
reply comes up.

    Retried      tries again, until there is an answer or patience ends
      Limited    waits for a slot: so many calls are in flight at one endpoint
        Budgeted reserves money for the try, and books what it cost
          Checked    asks the endpoint, and lets nothing up that is not what it says it is

A link gets a `Call`, gives a `Sent`, and raises `CallError` for a try that failed; `Retried` turns the last of those
into a `failed` reply. One request's trouble is one request's: only what makes every further call pointless
(`EndpointDown`), the budget, a full disk and the end of the run (`Halted`) are raised through the whole chain. The
cache in front of it is in `caller.py`."""

import asyncio
import math
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.calls.limiter import Limiter
from weft.calls.prices import BillingExcess, Budget, Charge, Price, Reservation, add_usage, build_reservation
from weft.calls.tickets import submit_and_collect
from weft.errors import StoreError, WeftError, format_trace
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, Endpoint, EndpointReply, Retry, TaskEndpoint
from weft.secrets import scrub
from weft.store.journal import Journal
from weft.types import Image, Message, Part, Request, Usage, outcome_of

LONG = 200_000  # characters of a reply that are checked in a thread, not in the event loop
MAX_DENIALS = 3  # requests that are turned away, before any is answered, after which all would be


class RetryPolicy(Struct, frozen=True):
    """How often and how long to try again. Waits are drawn from [0, base * 2^n] up to `cap` (full jitter)."""

    tries: int = 6
    rate_limit_tries: int = 30
    empty_tries: int = 3
    unreachable_tries: int = 4
    base: float = 0.5
    cap: float = 30.0
    max_wait: float = 600.0

    def choose_wait(self, retry: Retry, tried: int) -> float:
        if retry.delay is not None:
            return retry.delay + random.uniform(0, min(1.0, self.base))
        return random.uniform(0, min(self.cap, self.base * 2**tried))


class EndpointDown(WeftError):
    """No further call can succeed: wrong key, no such model, no quota, nobody there. `user` tells whose move it is."""

    def __init__(self, message: str, *, user_fault: bool) -> None:
        super().__init__(message)
        self.user_fault = user_fault


@dataclass
class Halt:
    """Shared by all callers of a run: once it has a reason, no new call goes out; calls in flight come back."""

    reason: WeftError | None = None

    def stop(self, reason: WeftError) -> None:
        self.reason = self.reason or reason

    def check(self) -> None:
        if self.reason is not None:
            raise RunHalted(str(self.reason))


class RunHalted(WeftError):
    """No call was made: the run is ending."""


@dataclass
class CallTally:
    """What has happened so far, for progress displays and reports."""

    calls: int = 0
    cached: int = 0
    cost: float = 0.0  # as the journal has it
    retries: Counter[str] = field(default_factory=Counter[str])


@dataclass(slots=True)
class Call:
    """One request, and what its tries have come to so far."""

    key: str
    request_json: bytes  # as it is journalled
    messages: tuple[Message, ...]
    request: Request
    run: str = ""  # what it is booked under
    round: int = 1
    is_probe: bool = False  # whether it only tries the endpoint out
    tries: int = 0
    usage: Usage = field(default_factory=Usage)  # by all tries together
    sent_at: float = 0.0  # when the last try got its slot, by `time.perf_counter`


class Link(Protocol):
    """What a link of the chain stands on."""

    async def send(self, call: Call) -> EndpointReply: ...


@dataclass
class RetryLink:
    """A call comes in; out comes an answer, or a `failed` reply with the reason once patience has ended. Raises
    EndpointDown where every further call would fail as well. A refusal is an answer, and is never tried again; what
    another try cannot change is not either."""

    inner: Link
    retry_policy: RetryPolicy
    tally: CallTally
    label: str  # role and name, for messages
    answered: bool = False  # whether any call was, by this command
    denied: int = 0

    async def send(self, call: Call) -> EndpointReply:
        failed = 0
        pushed = 0
        empty = 0
        while True:
            call.tries += 1
            try:
                sent = await self.inner.send(call)
            except CallError as error:
                retry = error.retry
                why = error.retry.kind
                if retry.kind == "fatal":
                    raise EndpointDown(
                        f"{self.label}: {error}; no further call would be answered", user_fault=True
                    ) from None
                if retry.kind == "denied":
                    self._count_denial(call, error)
                if retry.kind in ("no", "denied"):
                    return EndpointReply((), "failed", str(error), scrub_message(error.trace))
                if retry.kind == "rate_limit":
                    pushed += 1
                    over = pushed >= self.retry_policy.rate_limit_tries
                else:
                    failed += 1
                    over = failed >= self.retry_policy.tries
                if error.unreachable and not self.answered and (over or failed >= self.retry_policy.unreachable_tries):
                    raise EndpointDown(str(error), user_fault=True) from None
                if over:
                    return EndpointReply((), "failed", f"{error} (after {call.tries} tries)")
                tried = failed + pushed
            else:
                self.answered = True
                empty += 1
                if not sent.retry_advised or empty >= self.retry_policy.empty_tries:
                    return sent
                retry = TRANSIENT
                why = "empty"
                tried = empty
            self.tally.retries[why] += 1
            await asyncio.sleep(self.retry_policy.choose_wait(retry, tried))

    def _count_denial(self, call: Call, denial: CallError) -> None:
        """A request was turned away. Where any other is answered, now or before, that is its own trouble; where several
        are turned away and none is answered, all would be. Of those that only try the endpoint out one is enough, and
        it does not count for others."""
        self.denied += not call.is_probe
        if (call.is_probe or self.denied >= MAX_DENIALS) and not self.answered and not self.tally.cached:
            raise EndpointDown(str(denial), user_fault=True) from None


@dataclass
class LimiterLink:
    """A try comes in and goes out once a slot is free; an endpoint that pushes back, or takes too long, gets fewer at
    once from then on. No try goes out once the run is halted, and none holds its slot while it waits to be made
    again."""

    inner: Link
    limiter: Limiter
    halt: Halt
    max_wait: float

    async def send(self, call: Call) -> EndpointReply:
        async with self.limiter.slot(call.request.modality) as began:
            self.halt.check()
            call.sent_at = time.perf_counter()
            try:
                return await self.inner.send(call)
            except CallError as error:
                delay = error.retry.delay
                if error.retry.kind == "rate_limit":
                    if (delay or 0) > self.max_wait:  # before anyone is held back for so long
                        raise EndpointDown(f"{error}; it asks to wait {delay:.0f} s", user_fault=False) from None
                    self.limiter.back_off(began, delay)
                elif error.timed_out:
                    self.limiter.back_off(began)
                raise


@dataclass
class BudgetLink:
    """A try comes in and goes out once the most it can cost is reserved; what it used and cost is added to `call.used`,
    also where it failed and may be billed all the same. The budget is never passed: BudgetReached is raised instead,
    and a reply that does not say what it used counts at the most. The first try goes alone, since what it is billed at
    says how much to reserve for the others."""

    inner: Link
    endpoint: Endpoint
    journal: Journal
    budget: Budget
    price: Price | None
    halt: Halt
    is_first: bool  # whether the first try has still to come back
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    excess: BillingExcess = field(default_factory=BillingExcess)

    async def send(self, call: Call) -> EndpointReply:
        handed_in = isinstance(self.endpoint, TaskEndpoint) and self.journal.find_ticket(call.key) is not None
        if self.is_first and not handed_in:
            async with self.first:
                if self.is_first:
                    try:
                        return await self._reserved(call, handed_in)
                    finally:
                        self.is_first = False
        return await self._reserved(call, handed_in)

    async def _reserved(self, call: Call, handed_in: bool) -> EndpointReply:
        price = self.price
        if price is not None:
            price = price.scaled_by(
                self.endpoint.usual_price_share if handed_in else self.endpoint.price_share(call.messages, call.request)
            )
            call.usage = add_usage(call.usage, Usage(cost=0.0))  # nothing yet, but at a known price
        reserved = build_reservation(call.messages, call.request, self.endpoint, price, self.excess)
        async with self.budget.reserve(reserved.max_cost) as spent:
            self.halt.check()
            try:
                sent = await self.inner.send(call)
            except CallError as error:
                if error.billed:
                    spent.cost = reserved.max_cost
                    call.usage = add_usage(call.usage, Usage(cost=reserved.expected))
                raise
            call.usage = add_usage(call.usage, self._booked(sent, reserved, spent))
            return sent

    def _booked(self, sent: EndpointReply, reserved: Reservation, spent: Charge) -> Usage:
        """What a reply used, with its cost: as it says, else by its tokens and images, else as expected."""
        usage = sent.usage
        price = reserved.price
        if price is not None and price.image:
            usage = replace(usage, images=sum(isinstance(part, Image) for part in sent.parts))
        cost = usage.cost
        if cost is None and price is not None and (usage.tokens_in or usage.tokens_out or usage.images):
            cost = price.cost_of(usage)
        if cost is None:  # it does not say
            if price is None:
                spent.cost = None
            else:
                spent.cost = reserved.max_cost
            return replace(usage, cost=reserved.expected)
        spent.cost = cost
        if price is not None:
            self.excess.update(reserved.bound, usage, price, cost)
        return replace(usage, cost=cost)


@dataclass
class EndpointLink:
    """A try comes in and is sent to the endpoint; out comes a reply that is what it says it is, without any key in it,
    with its outcome decided by what was asked for. Whatever foreign code does wrong, in the way it raises or in what it
    returns, is a CallError: it neither ends the run nor gets into the journal. StoreError, Halted and weft's own
    cancelling pass."""

    endpoint: Endpoint
    journal: Journal
    halt: Halt
    mark: str  # of the endpoint, on states that only it may have back

    async def send(self, call: Call) -> EndpointReply:
        sent = await self._asked(call)
        if not isinstance(sent, EndpointReply):
            raise CallError(
                f"{self.endpoint.name} sent {type(sent).__name__} where a Sent was due", NO_RETRY, billed=True
            )
        if self.endpoint.output_checked:
            if len(sent.raw) > LONG:
                sent = await asyncio.to_thread(self._valid, sent)
            else:
                sent = self._valid(sent)
        if any(part.state for part in sent.parts):
            marked = (
                part if part.state is None else replace(part, state=replace(part.state, endpoint_digest=self.mark))
                for part in sent.parts
            )
            sent = replace(sent, parts=tuple(marked))
        if sent.outcome == "answered":
            outcome, reason = outcome_of(sent.parts, call.request.modality)
            return replace(sent, outcome=outcome, reason=reason or sent.reason)
        return sent

    async def _asked(self, call: Call) -> Any:
        """What the endpoint returns. What it raises is a CallError, scrubbed."""
        process = os.getpid()
        task = asyncio.current_task()
        try:
            if isinstance(self.endpoint, TaskEndpoint):
                return await submit_and_collect(
                    self.endpoint, self.journal, call.key, call.messages, call.request, self.halt.check
                )
            return await self.endpoint.send(call.messages, call.request)
        except CallError as error:
            error.args = (scrub_message(error), *error.args[1:])
            raise
        except (StoreError, RunHalted):
            raise
        # CancelledError, SystemExit and the like as well, unless it is weft that cancels
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            made = CallError(
                scrub_message(f"{self.endpoint.name} raised {type(error).__name__}: {error}"), NO_RETRY, billed=True
            )
            made.trace = format_trace(error)
            raise made from error
        finally:
            if os.getpid() != process:  # it forked, and this is the other one
                os._exit(0)

    def _valid(self, sent: EndpointReply) -> EndpointReply:
        """The reply with every field of its type and scrubbed; a usage that cannot be is none."""
        try:
            sent = msgspec.convert(msgspec.to_builtins(sent), EndpointReply)
            msgspec.json.encode(sent)
        except (msgspec.ValidationError, UnicodeError, OverflowError, TypeError, RecursionError) as error:
            raise CallError(
                scrub_message(f"{self.endpoint.name} sent a reply that is no reply: {error}"), NO_RETRY, billed=True
            ) from None
        parts = tuple(_scrubbed(part) for part in sent.parts)
        usage = sent.usage
        if usage.tokens_in < 0 or usage.tokens_out < 0 or not (usage.cost is None or 0 <= usage.cost < math.inf):
            usage = Usage()
        return replace(
            sent,
            parts=parts,
            reason=scrub(sent.reason),
            raw=scrub(sent.raw),
            served_model=scrub(sent.served_model),
            usage=usage,
        )


def scrub_message(what: object) -> str:
    """What went wrong, as it may be kept: without a key, and text (headers may hold bytes that are none)."""
    return scrub(str(what).encode("utf-8", "replace").decode())


def _scrubbed(part: Part) -> Part:
    if part.state is not None:
        part = replace(part, state=replace(part.state, data=scrub(part.state.data)))
    if isinstance(part, Image):
        return part
    return replace(part, text=scrub(part.text))
