"""One call, from the first try to the last: a chain of links, each with one `send`. A call goes down the chain and its reply comes up.

    Retried      tries again, until there is an answer or patience ends
      Limited    waits for a slot: so many calls are in flight at one endpoint
        Budgeted reserves money for the try, and books what it cost
          Checked    asks the endpoint, and lets nothing up that is not what it says it is

A link gets a `Call`, gives a `Sent`, and raises `CallError` for a try that failed; `Retried` turns the last of those into a `failed` reply.
One request's trouble is one request's: only what makes every further call pointless (`EndpointDown`), the budget, a full disk and the end
of the run (`Halted`) are raised through the whole chain. The cache in front of it is in `caller.py`.
"""

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
from weft.calls.prices import Budget, Excess, Price, Reservation, Spent, added, reservation_of
from weft.calls.tickets import collected
from weft.errors import StoreError, WeftError, trace_of
from weft.models.endpoint import NO, TRANSIENT, CallError, Endpoint, Retry, Sent, TaskEndpoint
from weft.secrets import scrub
from weft.store.journal import Journal
from weft.types import Image, Message, Part, Usage, Want, outcome_of

LONG = 200_000  # characters of a reply that are checked in a thread, not in the event loop
DENIALS = 3  # requests that are turned away, before any is answered, after which all would be


class Patience(Struct, frozen=True):
    """How often and how long to try again. Waits are drawn from [0, base * 2^n] up to `cap` (full jitter)."""

    tries: int = 6
    rate_limit_tries: int = 30
    empty_tries: int = 3
    unreachable_tries: int = 4
    base: float = 0.5
    cap: float = 30.0
    longest_wait: float = 600.0

    def wait(self, retry: Retry, tried: int) -> float:
        if retry.delay is not None:
            return retry.delay + random.uniform(0, min(1.0, self.base))
        return random.uniform(0, min(self.cap, self.base * 2**tried))


class EndpointDown(WeftError):
    """No further call can succeed: wrong key, no such model, no quota, nobody there. `user` tells whose move it is."""

    def __init__(self, message: str, *, user: bool) -> None:
        super().__init__(message)
        self.user = user


@dataclass
class Halt:
    """Shared by all callers of a run: once it has a reason, no new call goes out; calls in flight come back."""

    reason: WeftError | None = None

    def stop(self, reason: WeftError) -> None:
        self.reason = self.reason or reason

    def check(self) -> None:
        if self.reason is not None:
            raise Halted(str(self.reason))


class Halted(WeftError):
    """No call was made: the run is ending."""


@dataclass
class Tally:
    """What has happened so far, for progress displays and reports."""

    calls: int = 0
    remembered: int = 0
    cost: float = 0.0  # as the journal has it
    retries: Counter[str] = field(default_factory=Counter[str])


@dataclass(slots=True)
class Call:
    """One request, and what its tries have come to so far."""

    key: str
    request: bytes  # as it is journalled
    messages: tuple[Message, ...]
    want: Want
    run: str = ""  # what it is booked under
    round: int = 1
    probe: bool = False  # whether it only tries the endpoint out
    tries: int = 0
    used: Usage = field(default_factory=Usage)  # by all tries together
    sent_at: float = 0.0  # when the last try got its slot, by `time.perf_counter`


class Link(Protocol):
    """What a link of the chain stands on."""

    async def send(self, call: Call) -> Sent: ...


@dataclass
class Retried:
    """A call comes in; out comes an answer, or a `failed` reply with the reason once patience has ended. Raises EndpointDown where every
    further call would fail as well. A refusal is an answer, and is never tried again; what another try cannot change is not either."""

    inner: Link
    patience: Patience
    tally: Tally
    whom: str  # role and name, for messages
    answered: bool = False  # whether any call was, by this command
    denied: int = 0

    async def send(self, call: Call) -> Sent:
        failed, pushed, empty = 0, 0, 0
        while True:
            call.tries += 1
            try:
                sent = await self.inner.send(call)
            except CallError as error:
                retry, why = error.retry, error.retry.kind
                if retry.kind == "fatal":
                    raise EndpointDown(f"{self.whom}: {error}; no further call would be answered", user=True) from None
                if retry.kind == "denied":
                    self._count_denial(call, error)
                if retry.kind in ("no", "denied"):
                    return Sent((), "failed", str(error), clean(error.trace))
                if retry.kind == "rate_limit":
                    pushed += 1
                    over = pushed >= self.patience.rate_limit_tries
                else:
                    failed += 1
                    over = failed >= self.patience.tries
                if error.unreachable and not self.answered and (over or failed >= self.patience.unreachable_tries):
                    raise EndpointDown(str(error), user=True) from None
                if over:
                    return Sent((), "failed", f"{error} (after {call.tries} tries)")
                tried = failed + pushed
            else:
                self.answered = True
                empty += 1
                if not sent.again or empty >= self.patience.empty_tries:
                    return sent
                retry, why, tried = TRANSIENT, "empty", empty
            self.tally.retries[why] += 1
            await asyncio.sleep(self.patience.wait(retry, tried))

    def _count_denial(self, call: Call, denial: CallError) -> None:
        """A request was turned away. Where any other is answered, now or before, that is its own trouble; where several are turned away and
        none is answered, all would be. Of those that only try the endpoint out one is enough, and it does not count for others."""
        self.denied += not call.probe
        if (call.probe or self.denied >= DENIALS) and not self.answered and not self.tally.remembered:
            raise EndpointDown(str(denial), user=True) from None


@dataclass
class Limited:
    """A try comes in and goes out once a slot is free; an endpoint that pushes back, or takes too long, gets fewer at once from then on.
    No try goes out once the run is halted, and none holds its slot while it waits to be made again."""

    inner: Link
    limiter: Limiter
    halt: Halt
    longest_wait: float

    async def send(self, call: Call) -> Sent:
        async with self.limiter.slot(call.want.kind) as began:
            self.halt.check()
            call.sent_at = time.perf_counter()
            try:
                return await self.inner.send(call)
            except CallError as error:
                delay = error.retry.delay
                if error.retry.kind == "rate_limit":
                    if (delay or 0) > self.longest_wait:  # before anyone is held back for so long
                        raise EndpointDown(f"{error}; it asks to wait {delay:.0f} s", user=False) from None
                    self.limiter.pushed_back(began, delay)
                elif error.timed_out:
                    self.limiter.pushed_back(began)
                raise


@dataclass
class Budgeted:
    """A try comes in and goes out once the most it can cost is reserved; what it used and cost is added to `call.used`, also where it
    failed and may be billed all the same. The budget is never passed: BudgetReached is raised instead, and a reply that does not say what
    it used counts at the most. The first try goes alone, since what it is billed at says how much to reserve for the others."""

    inner: Link
    endpoint: Endpoint
    journal: Journal
    budget: Budget
    price: Price | None
    halt: Halt
    alone: bool  # whether the first try has still to come back
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    excess: Excess = field(default_factory=Excess)

    async def send(self, call: Call) -> Sent:
        handed_in = isinstance(self.endpoint, TaskEndpoint) and self.journal.ticket(call.key) is not None
        if self.alone and not handed_in:
            async with self.first:
                if self.alone:
                    try:
                        return await self._reserved(call, handed_in)
                    finally:
                        self.alone = False
        return await self._reserved(call, handed_in)

    async def _reserved(self, call: Call, handed_in: bool) -> Sent:
        price = self.price
        if price is not None:
            price = price.at(self.endpoint.usual_rate if handed_in else self.endpoint.rate(call.messages, call.want))
            call.used = added(call.used, Usage(cost=0.0))  # nothing yet, but at a known price
        reserved = reservation_of(call.messages, call.want, self.endpoint, price, self.excess)
        async with self.budget.reserved(reserved.most) as spent:
            self.halt.check()
            try:
                sent = await self.inner.send(call)
            except CallError as error:
                if error.billed:
                    spent.cost = reserved.most
                    call.used = added(call.used, Usage(cost=reserved.expected))
                raise
            call.used = added(call.used, self._booked(sent, reserved, spent))
            return sent

    def _booked(self, sent: Sent, reserved: Reservation, spent: Spent) -> Usage:
        """What a reply used, with its cost: as it says, else by its tokens and images, else as expected."""
        usage, price = sent.usage, reserved.price
        if price is not None and price.image:
            usage = replace(usage, images=sum(isinstance(part, Image) for part in sent.parts))
        cost = usage.cost
        if cost is None and price is not None and (usage.tokens_in or usage.tokens_out or usage.images):
            cost = price.of(usage)
        if cost is None:  # it does not say
            spent.cost = None if price is None else reserved.most
            return replace(usage, cost=reserved.expected)
        spent.cost = cost
        if price is not None:
            self.excess.learn(reserved.bound, usage, price, cost)
        return replace(usage, cost=cost)


@dataclass
class Checked:
    """A try comes in and is sent to the endpoint; out comes a reply that is what it says it is, without any key in it, with its outcome
    decided by what was asked for. Whatever foreign code does wrong, in the way it raises or in what it returns, is a CallError: it neither
    ends the run nor gets into the journal. StoreError, Halted and weft's own cancelling pass."""

    endpoint: Endpoint
    journal: Journal
    halt: Halt
    mark: str  # of the endpoint, on states that only it may have back

    async def send(self, call: Call) -> Sent:
        sent = await self._asked(call)
        if not isinstance(sent, Sent):
            raise CallError(f"{self.endpoint.name} sent {type(sent).__name__} where a Sent was due", NO, billed=True)
        if self.endpoint.foreign:
            sent = await asyncio.to_thread(self._valid, sent) if len(sent.raw) > LONG else self._valid(sent)
        if any(part.state for part in sent.parts):
            marked = (part if part.state is None else replace(part, state=replace(part.state, of=self.mark)) for part in sent.parts)
            sent = replace(sent, parts=tuple(marked))
        if sent.outcome == "answered":
            outcome, reason = outcome_of(sent.parts, call.want.kind)
            return replace(sent, outcome=outcome, reason=reason or sent.reason)
        return sent

    async def _asked(self, call: Call) -> Any:
        """What the endpoint returns. What it raises is a CallError, scrubbed."""
        process, task = os.getpid(), asyncio.current_task()
        try:
            if isinstance(self.endpoint, TaskEndpoint):
                return await collected(self.endpoint, self.journal, call.key, call.messages, call.want, self.halt.check)
            return await self.endpoint.send(call.messages, call.want)
        except CallError as error:
            error.args = (clean(error), *error.args[1:])
            raise
        except (StoreError, Halted):
            raise
        except BaseException as error:  # CancelledError, SystemExit and the like as well, unless it is weft that cancels
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            made = CallError(clean(f"{self.endpoint.name} raised {type(error).__name__}: {error}"), NO, billed=True)
            made.trace = trace_of(error)
            raise made from error
        finally:
            if os.getpid() != process:  # it forked, and this is the other one
                os._exit(0)

    def _valid(self, sent: Sent) -> Sent:
        """The reply with every field of its type and scrubbed; a usage that cannot be is none."""
        try:
            sent = msgspec.convert(msgspec.to_builtins(sent), Sent)
            msgspec.json.encode(sent)
        except (msgspec.ValidationError, UnicodeError, OverflowError, TypeError, RecursionError) as error:
            raise CallError(clean(f"{self.endpoint.name} sent a reply that is no reply: {error}"), NO, billed=True) from None
        parts = tuple(_scrubbed(part) for part in sent.parts)
        usage = sent.usage
        if usage.tokens_in < 0 or usage.tokens_out < 0 or not (usage.cost is None or 0 <= usage.cost < math.inf):
            usage = Usage()
        return replace(sent, parts=parts, reason=scrub(sent.reason), raw=scrub(sent.raw), served=scrub(sent.served), usage=usage)


def clean(what: object) -> str:
    """What went wrong, as it may be kept: without a key, and text (headers may hold bytes that are none)."""
    return scrub(str(what).encode("utf-8", "replace").decode())


def _scrubbed(part: Part) -> Part:
    if part.state is not None:
        part = replace(part, state=replace(part.state, data=scrub(part.state.data)))
    return part if isinstance(part, Image) else replace(part, text=scrub(part.text))
