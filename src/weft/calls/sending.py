"""One call, from the first try to the last: a chain of links, each with one `send`. A call goes down the chain and its
reply comes up.

    RetryLink          tries again, until there is an answer or the retry policy is exhausted
      LimiterLink      waits for a slot: calls in flight at one endpoint are limited
        BudgetLink     holds the money that the try can cost, and records what it did cost
          EndpointLink sends it to the endpoint, and validates what comes back

A link takes a `Call`, returns an `EndpointReply`, and raises `CallError` for a try that failed; `RetryLink` turns the
last of those into a `failed` reply. One request's trouble stays its own: only what makes every further call pointless
(`EndpointDown`), the budget, a full disk and the end of the run (`RunHalted`) are raised through the whole chain. The
cache in front of it is in `caller.py`.
"""

import asyncio
import math
import os
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.calls.budget import Account, Charge
from weft.calls.limiter import Limiter
from weft.calls.prices import add_usage
from weft.calls.tickets import submit_and_collect
from weft.errors import StoreError, WeftError, format_trace, message_of
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, Endpoint, EndpointReply, Retry, TaskEndpoint
from weft.secrets import scrub
from weft.store.journal import Journal
from weft.types import Image, Message, Part, Request, Usage, outcome_of

LONG_REPLY = 200_000  # characters of a reply that is validated in a thread, not in the event loop
MAX_DENIALS = 3  # requests that may be denied before any is answered


class RetryPolicy(Struct, frozen=True):
    """How often and how long to try again. Waits are random in [0, base * 2^n], at most `cap` (full jitter)."""

    tries: int = 6
    rate_limit_tries: int = 30
    empty_tries: int = 3  # of a call whose replies are empty
    unreachable_tries: int = 4  # while the endpoint has never answered
    base: float = 0.5  # seconds
    cap: float = 30.0  # seconds
    max_wait: float = 600.0  # seconds; a longer Retry-After ends the run

    def choose_wait(self, retry: Retry, tried: int) -> float:
        """Return how many seconds to wait after this many tries."""
        if retry.delay is not None:
            return retry.delay + random.uniform(0, min(1.0, self.base))
        return random.uniform(0, min(self.cap, self.base * 2**tried))


class EndpointDown(WeftError):
    """No further call can succeed: wrong key, no such model, no quota, no server. `user_fault`: the user must act."""

    def __init__(self, message: str, *, user_fault: bool = False) -> None:
        super().__init__(message)
        self.user_fault = user_fault


@dataclass
class Halt:
    """Shared by all callers of a run: once it has a reason, no new call is sent; calls in flight return."""

    reason: WeftError | None = None

    def stop(self, reason: WeftError) -> None:
        """End the run for this reason, unless it is ending already."""
        self.reason = self.reason or reason

    def check(self) -> None:
        """Raise RunHalted if the run is ending."""
        if self.reason is not None:
            raise RunHalted(str(self.reason))


class RunHalted(WeftError):
    """No call was made: the run is ending."""


@dataclass
class CallTally:
    """What a caller has done so far, for progress displays and reports."""

    calls: int = 0
    cached: int = 0
    cost: float = 0.0  # as recorded in the journal
    retries: Counter[str] = field(default_factory=Counter[str])  # by reason


@dataclass(slots=True)
class Call:
    """One call, and what its tries have used so far."""

    key: str  # the cache key
    request_json: bytes  # as it is journalled
    messages: tuple[Message, ...]
    request: Request
    run: str = ""  # under which it is journalled
    round: int = 1
    is_preflight: bool = False  # it only checks the endpoint
    tries: int = 0
    usage: Usage = field(default_factory=Usage)  # of all tries together
    sent_at: float = 0.0  # when the last try got its slot, by `time.perf_counter`
    charge: Charge | None = None  # of a try that was submitted and goes on


class Link(Protocol):
    """One link of the chain."""

    async def send(self, call: Call) -> EndpointReply: ...


@dataclass
class RetryLink:
    """Tries a call until there is an answer; returns a `failed` reply once the retry policy is exhausted.

    A refusal is an answer, and is never tried again. Raises EndpointDown where every further call would fail as well.
    """

    inner: Link
    retry_policy: RetryPolicy
    tally: CallTally
    label: str  # role and name, for messages
    answered: bool = False  # whether this command got any answer
    denied: int = 0

    async def send(self, call: Call) -> EndpointReply:
        failed = 0
        rate_limited = 0
        empty = 0
        while True:
            call.tries += 1
            try:
                reply = await self.inner.send(call)
            except CallError as error:
                self._check_fatal(call, error)
                retry = error.retry
                reason = retry.kind
                if retry.kind in ("no", "denied"):
                    return EndpointReply((), "failed", str(error), scrub_message(error.trace))
                if retry.kind == "rate_limit":
                    rate_limited += 1
                    exhausted = rate_limited >= self.retry_policy.rate_limit_tries
                else:
                    failed += 1
                    exhausted = failed >= self.retry_policy.tries
                unreachable = failed >= self.retry_policy.unreachable_tries or exhausted
                if error.unreachable and unreachable and not self.answered:
                    raise EndpointDown(str(error), user_fault=True) from None
                if exhausted:
                    return EndpointReply((), "failed", f"{error} (after {call.tries} tries)")
                tried = failed + rate_limited
            else:
                self.answered = True
                empty += 1
                if not reply.retry_advised or empty >= self.retry_policy.empty_tries:
                    return reply
                retry = TRANSIENT
                reason = "empty"
                tried = empty
            self.tally.retries[reason] += 1
            await asyncio.sleep(self.retry_policy.choose_wait(retry, tried))

    def _check_fatal(self, call: Call, error: CallError) -> None:
        """Raise EndpointDown if no further call would be answered."""
        if error.retry.kind == "fatal":
            message = f"{self.label}: {error}; no further call would be answered"
            raise EndpointDown(message, user_fault=True) from None
        if error.retry.kind == "denied":
            self._count_denial(call, error)

    def _count_denial(self, call: Call, denial: CallError) -> None:
        """Raise EndpointDown if several requests were denied and none was ever answered.

        If any other is answered, the denial concerns this request only. One denied preflight call is enough, and does
        not count for other calls.
        """
        if not call.is_preflight:
            self.denied += 1
        if self.answered or self.tally.cached:
            return
        if call.is_preflight or self.denied >= MAX_DENIALS:
            raise EndpointDown(str(denial), user_fault=True) from None


@dataclass
class LimiterLink:
    """Sends a try once a slot is free. An endpoint that pushes back, or times out, gets fewer calls at once.

    No try is sent once the run is halted, and none holds its slot while it waits to be retried.
    """

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
                    if (delay or 0) > self.max_wait:  # before other calls are held back for so long
                        raise EndpointDown(f"{error}; it asks to wait {delay:.0f} s", user_fault=False) from None
                    self.limiter.back_off(began, delay)
                elif error.timed_out:
                    self.limiter.back_off(began)
                raise


@dataclass
class BudgetLink:
    """Sends a try once its maximum cost is held, and adds what it used to `call.usage`. The rule is in `budget.py`."""

    inner: Link
    endpoint: Endpoint
    journal: Journal
    account: Account
    halt: Halt

    async def send(self, call: Call) -> EndpointReply:
        if self._has_ticket(call) and call.charge is None:  # an earlier command submitted it
            call.charge = self.account.open(call.messages, call.request, self.endpoint.usual_price_share)
        async with self.account.hold(call.messages, call.request, call.charge) as charge:
            self.halt.check()
            call.charge = None
            if charge.expected is not None:
                call.usage = add_usage(call.usage, Usage(cost=0.0))  # nothing yet, but at a known price
            try:
                reply = await self.inner.send(call)
            except CallError as error:
                if self._has_ticket(call):  # the answer may still come, and say what it cost
                    charge.count_most()
                    call.charge = charge
                elif error.billed:
                    call.usage = add_usage(call.usage, Usage(cost=charge.count_most()))
                raise
            except BaseException:  # nobody waits for the answer any more
                charge.count_most()
                raise
            call.usage = add_usage(call.usage, self.account.settle(charge, reply, call.request))
            return reply

    def _has_ticket(self, call: Call) -> bool:
        """Return whether the call was submitted, and its answer is still to be collected."""
        return isinstance(self.endpoint, TaskEndpoint) and self.journal.find_ticket(call.key) is not None


@dataclass
class EndpointLink:
    """Sends a try to the endpoint; returns a valid reply without secrets, with its outcome decided by the request.

    Whatever foreign code raises or returns by mistake becomes a CallError: it neither ends the run nor gets into the
    journal. StoreError, RunHalted and weft's own cancellation pass.
    """

    endpoint: Endpoint
    journal: Journal
    halt: Halt
    endpoint_digest: str  # marks state that only this endpoint may get back

    async def send(self, call: Call) -> EndpointReply:
        reply = await check_reply(self.endpoint, await call_foreign(self.endpoint.name, self._ask, call))
        if any(part.state for part in reply.parts):
            reply = replace(reply, parts=tuple(self._mark_state(part) for part in reply.parts))
        if reply.outcome == "answered":
            outcome, reason = outcome_of(reply.parts, call.request.modality)
            return replace(reply, outcome=outcome, reason=reason or reply.reason)
        return reply

    async def _ask(self, call: Call) -> Any:
        if isinstance(self.endpoint, TaskEndpoint):
            return await submit_and_collect(
                self.endpoint, self.journal, call.key, call.messages, call.request, self.halt.check
            )
        return await self.endpoint.send(call.messages, call.request)

    def _mark_state(self, part: Part) -> Part:
        if part.state is None:
            return part
        return replace(part, state=replace(part.state, endpoint_digest=self.endpoint_digest))


async def call_foreign(name: str, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    """Return what a model's code returns. Raises CallError, without secrets, for whatever it raises.

    StoreError, RunHalted and weft's own cancellation pass.
    """
    process = os.getpid()
    task = asyncio.current_task()
    try:
        return await function(*arguments)
    except CallError as error:
        error.args = (scrub_message(message_of(error)), *error.args[1:])
        if not _is_retry(error.retry):
            error.retry = NO_RETRY
        raise
    except (StoreError, RunHalted):
        raise
    except BaseException as error:  # also CancelledError and SystemExit, unless it is weft that cancels
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        message = scrub_message(f"{name} raised {type(error).__name__}: {message_of(error)}")
        call_error = CallError(message, NO_RETRY, billed=True)
        call_error.trace = format_trace(error)
        raise call_error from error
    finally:
        if os.getpid() != process:  # the model forked, and this is the child
            os._exit(0)


def _is_retry(value: object) -> bool:
    """Return whether a model's code gave a retry decision that can be followed."""
    try:
        return isinstance(value, Retry) and msgspec.convert(msgspec.to_builtins(value), Retry) == value
    except (msgspec.ValidationError, TypeError):
        return False


async def check_reply(endpoint: Endpoint, reply: object) -> EndpointReply:
    """Return a reply whose fields have their types, without secrets. Raises CallError for anything else."""
    if not isinstance(reply, EndpointReply):
        message = f"{endpoint.name} returned {type(reply).__name__} where an EndpointReply was expected"
        raise CallError(message, NO_RETRY, billed=True)
    if not endpoint.output_checked:
        return reply
    raw: Any = reply.raw  # of any type so far
    if isinstance(raw, str) and len(raw) > LONG_REPLY:
        return await asyncio.to_thread(_validate, endpoint.name, reply)
    return _validate(endpoint.name, reply)


def _validate(name: str, reply: EndpointReply) -> EndpointReply:
    """Return the reply with every field of its type and scrubbed; an impossible usage is dropped."""
    try:
        reply = msgspec.convert(msgspec.to_builtins(reply), EndpointReply)
        msgspec.json.encode(reply)
    except (msgspec.ValidationError, UnicodeError, OverflowError, TypeError, RecursionError) as error:
        message = scrub_message(f"{name} returned an invalid reply: {error}")
        raise CallError(message, NO_RETRY, billed=True) from None
    usage = reply.usage
    if usage.tokens_in < 0 or usage.tokens_out < 0 or not (usage.cost is None or 0 <= usage.cost < math.inf):
        usage = Usage()
    return replace(
        reply,
        parts=tuple(_scrub_part(part) for part in reply.parts),
        reason=scrub(reply.reason),
        raw=scrub(reply.raw),
        served_model=scrub(reply.served_model),
        usage=usage,
    )


def scrub_message(message: object) -> str:
    """Return an error's message without secrets, as valid text: headers may hold any bytes."""
    return scrub(str(message).encode("utf-8", "replace").decode())


def _scrub_part(part: Part) -> Part:
    if part.state is not None:
        part = replace(part, state=replace(part.state, data=scrub(part.state.data)))
    if isinstance(part, Image):
        return part
    return replace(part, text=scrub(part.text))
