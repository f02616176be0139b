"""One call to the outside: memo -> budget -> limiter -> try -> classify -> journal.

A call's key is a digest of everything that can change its answer: endpoint, model, every parameter, the messages with picture
digests, what is wanted, the draw number. An answer is in the journal before anyone gets it; the same call is never made twice,
not even by two tasks at the same moment. A call that fails is journalled as failed, comes back as a `failed` reply, and is
made again by the next command. One request's trouble is one request's: only what makes every further call pointless (a key that is never
accepted, no quota) ends the run. Whatever a user's own code does, in the way it raises or in what it returns, is a failed call; and what
comes from outside is scrubbed of keys here, before anyone keeps or shows it.
"""

import asyncio
import hashlib
import math
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.calls.limiter import Limiter
from weft.calls.preflight import NO_PROBE, Gate, small_question, unfit
from weft.calls.prices import Budget, Excess, Price, added, estimate, most_of
from weft.calls.throughput import Pace
from weft.calls.tickets import collected
from weft.errors import StoreError, WeftError, trace_of
from weft.models.endpoint import NO, CallError, Endpoint, Retry, Sent, TaskEndpoint
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.store.journal import CallRecord, Journal
from weft.types import Image, Message, Part, Reply, Text, Thought, Usage, Want, outcome_of

START, MOST = 8, 64  # calls in flight at one endpoint, where nobody says otherwise
GONE = 25  # failed calls in a row after which an address is taken to be gone
LONG = 200_000  # characters of a reply that are looked through elsewhere than in the loop
PROBE = "probe"  # the run of calls that only try an endpoint out
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
        patience: Patience = Patience(),
        halt: Halt | None = None,
        blobs: Blobs | None = None,
        run: str = "",
        round: int = 1,
        kept: bool = False,
    ) -> None:
        """`concurrency` are the most calls in flight, found by trying where it is not given. `kept`: calls are journalled even where they
        cost nothing, since what stands behind a composed reply is worth a look."""
        self._memo = endpoint.memo or kept or isinstance(endpoint, TaskEndpoint)
        self._mark = hashlib.sha256(msgspec.json.encode(endpoint.identity, order="deterministic", enc_hook=str)).hexdigest()[:16]
        self.name, self.takes, self.partial, self.endpoint, self.role = endpoint.name, endpoint.takes, endpoint.partial, endpoint, role
        self._journal, self._budget, self._price, self._patience = journal, budget, price, patience
        self._halt, self._blobs, self.run, self.round = halt or Halt(), blobs, run, round
        self._flying: dict[str, asyncio.Future[Reply]] = {}
        self._reached = False
        self._failed_in_a_row = 0
        self._answered = False  # whether any call was, by this command
        self._denied = 0
        self._over = Excess()
        self.owed = journal.tickets(endpoint.address)  # requests that were handed in there and are not back
        self._alone, self._first = budget.limit is not None and price is not None and price != Price(0, 0), asyncio.Lock()
        self.tally = Tally()
        self.gate: Gate | None = None  # what must be passed before anyone is asked
        most = min(endpoint.concurrency or concurrency or MOST, concurrency or endpoint.concurrency or MOST)
        waits = endpoint.gathers or isinstance(endpoint, TaskEndpoint)  # what only waits for its answers has no need to begin small
        at_once = concurrency or waits
        pace = None if at_once else Pace(careful=endpoint.start is not None)
        self.limiter = Limiter(start=most if at_once else min(endpoint.start or START, most), maximum=most, pace=pace)

    async def reply(self, messages: tuple[Message, ...], want: Want) -> Reply:
        if lacks := self.endpoint.gives.lacks(want.kind):  # nobody is asked for what they cannot send
            return Reply("empty", reason=lacks)
        messages = handed_to(messages, self._mark)
        if not self._memo:
            return await self._local(messages, want)
        request, key = request_key(self.endpoint.identity, messages, want)
        if key in self._flying:
            return await asyncio.shield(self._flying[key])
        flying: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._flying[key] = flying
        try:
            reply = await self._answer(key, request, messages, want)
            flying.set_result(reply)
            return reply
        except BaseException as error:
            flying.set_exception(error if isinstance(error, Exception) else WeftError("stopped"))
            flying.exception()  # marks it as seen: nobody may be waiting
            raise
        finally:
            del self._flying[key]

    def down(self, why: str) -> EndpointDown:
        """It is the user's move."""
        return EndpointDown(f"{self.role} {self.name}: {why}", user=True)

    async def try_out(self, judge: bool) -> None:
        """Ask one small question. Raises EndpointDown where a run would be pointless."""
        reply = await self._tried_out(judge)
        if judge and reply.outcome == "failed":
            raise EndpointDown(f"the judge {self.name} did not answer a small question: {reply.reason} ({NO_PROBE})", user=True)
        if judge and unfit(reply) and (why := unfit(await self._tried_out(judge))):
            raise EndpointDown(f"the judge {self.name} cannot answer by a schema: {why} ({NO_PROBE})", user=True)

    async def _tried_out(self, judge: bool) -> Reply:
        messages, want = small_question(judge)
        request, key = request_key(self.endpoint.identity, messages, want)
        denied, self._denied = self._denied, DENIALS - 1  # one is enough here
        try:
            sent, tries, seconds = await self._try(key, messages, want)
        finally:
            self._denied = denied
        reply = Reply(sent.outcome, sent.parts, sent.reason, sent.usage, (key,), sent.ended)
        recorded = self._journal.record(self._record(key, request, reply, sent, (tries, seconds, time.time()), run=PROBE))
        await asyncio.shield(asyncio.wrap_future(recorded))
        return reply

    def belongs_to(self, run: str, round: int = 1) -> None:
        """From now on its calls are booked under this run."""
        self.run, self.round = run, round

    def remembers(self, messages: tuple[Message, ...], want: Want) -> Reply | None:
        """The journalled answer, if there is one; makes no call."""
        return self._kept(*request_key(self.endpoint.identity, handed_to(messages, self._mark), want)) if self._memo else None

    def soon(self) -> None:
        """No more questions are to come but those that follow from others."""
        if isinstance(self.endpoint, TaskEndpoint):
            self.endpoint.soon()

    def void(self, keys: tuple[str, ...], reason: str) -> None:
        """These answers led to nothing usable: ask again next time."""
        for key in keys:
            self._journal.void(key, self.run, self.round, reason)

    async def _local(self, messages: tuple[Message, ...], want: Want) -> Reply:
        """Nothing to wait for, so nothing to remember."""
        async with self.limiter.slot():
            self._halt.check()
            try:
                sent = await self._send("", messages, want)
            except CallError as error:
                if error.retry.kind == "fatal":
                    raise EndpointDown(str(error), user=True) from None
                sent = Sent((), "failed", str(error))
        self.tally.calls += 1
        return Reply(sent.outcome, sent.parts, sent.reason, sent.usage, ended=sent.ended)

    async def _answer(self, key: str, request: bytes, messages: tuple[Message, ...], want: Want) -> Reply:
        """From the journal, or by a call that is in it before anyone gets its answer."""
        known = self._kept(request, key)
        if known is not None:
            self.tally.remembered += 1
            return known
        if self.gate is not None:
            await self.gate.passed()
        began = time.time()
        sent, tries, seconds = await self._try(key, messages, want)
        usage = sent.usage
        reply = Reply(sent.outcome, sent.parts, sent.reason, usage, (key,), sent.ended)
        call = self._record(key, request, reply, sent, (tries, seconds, began))
        recorded = self._journal.record(call, was_pending=self.owed > 0 or isinstance(self.endpoint, TaskEndpoint))
        await asyncio.shield(asyncio.wrap_future(recorded))  # an answer that has come is kept, whatever happens to whoever asked for it
        self.tally.calls += 1
        self.tally.cost += usage.cost or 0.0
        self._failed_in_a_row = self._failed_in_a_row + 1 if sent.outcome == "failed" else 0
        counts = self.endpoint.usual_rate == 1.0 and self.endpoint.address.startswith("http")  # of a batch all fail together
        if self._failed_in_a_row >= GONE and counts:  # going on would only fail everything that is left
            raise EndpointDown(f"{self._failed_in_a_row} calls in a row failed; the last: {sent.reason}", user=False)
        return reply

    def _record(self, key: str, request: bytes, reply: Reply, sent: Sent, took: tuple[int, float, float], run: str = "") -> CallRecord:
        tries, seconds, began = took
        return CallRecord(
            key=key,
            request_digest=hashlib.sha256(request).hexdigest(),
            run=run or self.run,
            role=self.role,
            endpoint=self.endpoint.address,
            model=str(self.endpoint.identity.get("model", self.endpoint.name)),
            served=sent.served,
            request=request.decode(),
            outcome=sent.outcome,
            reply=msgspec.json.encode(reply).decode(),
            raw=sent.raw,
            tokens_in=sent.usage.tokens_in,
            tokens_out=sent.usage.tokens_out,
            cost=sent.usage.cost,
            latency=seconds,
            attempts=tries,
            at=began,
        )

    def _kept(self, request: bytes, key: str) -> Reply | None:
        """The answer under a key, or under what it would have been before the endpoint came to be called otherwise."""
        found = self._known(key)
        for before in self.endpoint.formerly if found is None else ():
            found = found or self._known(key_of(before, request))
        return found

    def _known(self, key: str) -> Reply | None:
        """An answer whose pictures are gone from the store is no answer."""
        found = self._journal.find(key, self.run, self.round)
        if found is None or (self._blobs is not None and not all(self._blobs.has(image) for image in found[1].images)):
            return None
        return found[1]

    async def _try(self, key: str, messages: tuple[Message, ...], want: Want) -> tuple[Sent, int, float]:
        """Tries until an answer, a final error, or the end of patience: what came with what all tries used, after how many tries, and how
        long the last one took."""
        tried, pushed, empty = 0, 0, 0
        used = Usage(cost=None if self._price is None else 0.0)
        asked = time.perf_counter()
        while True:
            try:
                async with self.limiter.slot(want.kind) as began:
                    self._halt.check()
                    asked = time.perf_counter()
                    try:
                        sent = await self._paid(key, messages, want)
                    except CallError as error:
                        used = added(used, error.used)
                        if error.retry.kind == "rate_limit":
                            if (error.retry.delay or 0) > self._patience.longest_wait:
                                raise EndpointDown(f"{error}; it asks to wait {error.retry.delay:.0f} s", user=False) from None
                            self.limiter.pushed_back(began, error.retry.delay)
                        elif error.timed_out:
                            self.limiter.pushed_back(began)
                        raise
                seconds = time.perf_counter() - asked
                self._reached = True
                empty += 1
                used = added(used, sent.usage)
                if not sent.again or empty >= self._patience.empty_tries:
                    return replace(sent, usage=used), tried + pushed + empty, seconds
                self.tally.retries["empty"] += 1
                await asyncio.sleep(self._patience.wait(Retry("transient"), empty))
            except CallError as error:
                retry = error.retry
                if retry.kind == "fatal":
                    raise EndpointDown(f"{self.role} {self.name}: {error}; no further call would be answered", user=True) from None
                if retry.kind == "denied":
                    self._hear(error)
                if retry.kind in ("no", "denied"):
                    kept = Sent((), "failed", str(error), _told(error.trace), usage=used)
                    return kept, tried + pushed + empty + 1, time.perf_counter() - asked
                if retry.kind == "rate_limit":
                    pushed += 1
                    over = pushed >= self._patience.rate_limit_tries
                else:
                    tried += 1
                    over = tried >= self._patience.tries
                if error.unreachable and not self._reached and (over or tried >= self._patience.unreachable_tries):
                    raise EndpointDown(str(error), user=True) from None
                if over:
                    reason = f"{error} (after {tried + pushed + empty} tries)"
                    return Sent((), "failed", reason, usage=used), tried + pushed + empty, time.perf_counter() - asked
                self.tally.retries[retry.kind] += 1
                await asyncio.sleep(self._patience.wait(retry, tried + pushed))

    def _hear(self, denial: CallError) -> None:
        """A request was turned away. Where any other is answered, now or before, that is its own trouble; where several are turned away and
        none is answered, all would be."""
        self._denied += 1
        if self._denied >= DENIALS and not self._answered and not self.tally.remembered:
            raise EndpointDown(str(denial), user=True) from None

    async def _paid(self, key: str, messages: tuple[Message, ...], want: Want) -> Sent:
        """One try, with money put by for it. What it used and cost is in its usage; in an error's `used` where it may be billed."""
        if self._alone and not self._is_handed_in(key):
            async with self._first:  # what the first one is billed at is known before others follow
                if self._alone:
                    try:
                        return await self._reserved(key, messages, want)
                    finally:
                        self._alone = False
        return await self._reserved(key, messages, want)

    def _is_handed_in(self, key: str) -> bool:
        return isinstance(self.endpoint, TaskEndpoint) and self._journal.ticket(key) is not None

    async def _reserved(self, key: str, messages: tuple[Message, ...], want: Want) -> Sent:
        price = self._price
        if price is not None:
            price = price.at(self.endpoint.usual_rate if self._is_handed_in(key) else self.endpoint.rate(messages, want))
        expected = None if price is None else price.of(estimate(messages, want))
        bound = most_of(messages, want, self.endpoint.identity, self.endpoint.longest)
        most = 0.0 if price is None else self._over.of(bound, price)
        async with self._budget.reserved(most) as spent:
            self._halt.check()
            try:
                sent = await self._send(key, messages, want)
            except CallError as error:
                if error.billed:
                    spent.cost = most
                    error.used = Usage(cost=expected)
                raise
            self._answered = True
            cost, pictures = sent.usage.cost, sum(isinstance(part, Image) for part in sent.parts)
            if price is not None and price.image:
                sent = replace(sent, usage=replace(sent.usage, images=pictures))
            if cost is None and price is not None and (sent.usage.tokens_in or sent.usage.tokens_out or sent.usage.images):
                cost = price.of(sent.usage)
            if cost is None:  # it does not say
                spent.cost = None if price is None else most
                return replace(sent, usage=replace(sent.usage, cost=expected))
            spent.cost = cost
            if price is not None:
                self._over.learn(bound, sent.usage, price, cost)
            return replace(sent, usage=replace(sent.usage, cost=cost))

    async def _send(self, key: str, messages: tuple[Message, ...], want: Want) -> Sent:
        """One try. Whatever a foreign endpoint does wrong is a failed call: it neither ends the run nor gets into the journal."""
        process, task = os.getpid(), asyncio.current_task()
        try:
            if isinstance(self.endpoint, TaskEndpoint):
                sent: Any = await collected(self.endpoint, self._journal, key, messages, want, self._halt.check)
            else:
                sent = await self.endpoint.send(messages, want)
        except CallError as error:
            error.args = (_told(error), *error.args[1:])
            raise
        except (StoreError, Halted):
            raise
        except BaseException as error:  # CancelledError, SystemExit and the like as well, unless it is weft that cancels
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            made = CallError(_told(f"{self.name} raised {type(error).__name__}: {error}"), NO, billed=True)
            made.trace = trace_of(error)
            raise made from error
        finally:
            if os.getpid() != process:  # it forked, and this is the other one
                os._exit(0)
        if not isinstance(sent, Sent):
            raise CallError(f"{self.name} sent {type(sent).__name__} where a Sent was due", NO, billed=True)
        if self.endpoint.foreign:
            sent = await asyncio.to_thread(self._checked, sent) if len(sent.raw) > LONG else self._checked(sent)
        if any(part.state for part in sent.parts):
            stamped = (part if part.state is None else replace(part, state=replace(part.state, of=self._mark)) for part in sent.parts)
            sent = replace(sent, parts=tuple(stamped))
        if sent.outcome == "answered":
            outcome, reason = outcome_of(sent.parts, want.kind)
            return replace(sent, outcome=outcome, reason=reason or sent.reason)
        return sent

    def _checked(self, sent: Sent) -> Sent:
        """What came from outside, if it is what it says it is, without any key in it."""
        try:
            sent = msgspec.convert(msgspec.to_builtins(sent), Sent)
            msgspec.json.encode(sent)
        except (msgspec.ValidationError, UnicodeError, OverflowError, TypeError, RecursionError) as error:
            raise CallError(_told(f"{self.name} sent a reply that is no reply: {error}"), NO, billed=True) from None
        parts = tuple(_scrubbed(part) for part in sent.parts)
        usage = sent.usage
        if usage.tokens_in < 0 or usage.tokens_out < 0 or not (usage.cost is None or 0 <= usage.cost < math.inf):
            usage = Usage()
        return replace(sent, parts=parts, reason=scrub(sent.reason), raw=scrub(sent.raw), served=scrub(sent.served), usage=usage)


def handed_to(messages: tuple[Message, ...], mark: str) -> tuple[Message, ...]:
    """The messages as an endpoint may have them: another's state is not for it, and thoughts go back only to who wants them back."""
    if not any(isinstance(part, Thought) or part.state for message in messages for part in message.parts):
        return messages
    kept = [replace(message, parts=tuple(one for part in message.parts if (one := _own(part, mark)) is not None)) for message in messages]
    return tuple(message for message in kept if message.parts)


def _told(what: object) -> str:
    """What went wrong, as it may be kept: without a key, and text (headers may hold bytes that are none)."""
    return scrub(str(what).encode("utf-8", "replace").decode())


def _scrubbed(part: Part) -> Part:
    if part.state is not None:
        part = replace(part, state=replace(part.state, data=scrub(part.state.data)))
    return part if isinstance(part, Image) else replace(part, text=scrub(part.text))


def _own(part: Part, mark: str) -> Part | None:
    if part.state is not None and part.state.of == mark:
        return part
    empty = isinstance(part, Text) and not part.text and part.state is not None  # it was there for its state alone
    return None if isinstance(part, Thought) or empty else replace(part, state=None)


def request_key(identity: Mapping[str, Any], messages: tuple[Message, ...], want: Want) -> tuple[bytes, str]:
    """The request as it is journalled, and the call's key."""
    asked: dict[str, Any] = {"messages": messages, "want": want.kind, "schema": want.schema, "draw": want.draw}
    asked |= {"size": want.size} if want.size else {}
    request = msgspec.json.encode(asked, order="deterministic")
    return request, key_of(identity, request)


def key_of(identity: Mapping[str, Any], request: bytes) -> str:
    digest = hashlib.sha256(msgspec.json.encode(identity, order="deterministic"))
    digest.update(b"\n" + request)
    return digest.hexdigest()
