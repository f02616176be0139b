"""How many calls may be in flight at one endpoint, found by trying: additive increase, multiplicative decrease.

The limit grows by one a call while all slots are in use, until the endpoint first pushes back; from then on by one a
full round of calls, and near what was too many by one in several, so that most of the time is spent just below.
Push-back (429, 503, 529, a time-out) halves it, once for all calls that were in flight together; so does it if more
calls only wait longer (`Pace`). A Retry-After holds new calls back until it has passed, and the longer it was, the less
often one more is tried. Waiters are served in order."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from msgspec import Struct

from weft.models.endpoint import Endpoint, TaskEndpoint

# calls in flight at one endpoint, where nobody says otherwise
START_CONCURRENCY = 8
MAX_CONCURRENCY = 64
NEAR = 0.8  # this share of what was too many is near it,
OVER = 2  # and if so many more are not, it is no longer
ROUNDS = 8  # of calls until one more is tried near it,
WAITS = 6  # and times the last Retry-After: all calls are held back if that one is too many
FEWEST = 4  # calls of a round whose throughput is measured
MORE = 1.25  # so many times the calls in flight must bring something,
# namely this share of what they would bring if none waited: who comes back first of many looks quicker than they are
USEFUL = 0.5
QUICK = 0.05  # seconds: who answers within them is not waited for

Advice = Literal["grow", "stay", "lower"]


def build_limiter(endpoint: Endpoint, concurrency: int | None) -> "Limiter":
    """The limiter of an endpoint: never more than `concurrency`, or than it says it can take. A number that the user
    gives is used from the first call on; so is the most of what only waits for its answers, a task or a batch."""
    most = min(
        endpoint.concurrency or concurrency or MAX_CONCURRENCY, concurrency or endpoint.concurrency or MAX_CONCURRENCY
    )
    if concurrency or endpoint.wants_batches or isinstance(endpoint, TaskEndpoint):
        return Limiter(start=most, maximum=most)
    return Limiter(
        start=min(endpoint.initial_concurrency or START_CONCURRENCY, most),
        maximum=most,
        throughput=ThroughputMonitor(careful=endpoint.initial_concurrency is not None),
    )


class Limiter:
    def __init__(
        self, start: int = 8, minimum: int = 1, maximum: int = 64, throughput: "ThroughputMonitor | None" = None
    ) -> None:
        self.limit = float(min(start, maximum))
        self.minimum = minimum
        self.maximum = maximum
        self.active = 0
        self.decreases = 0
        self._pace = throughput
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._decreased_at = 0.0
        # the limit when the endpoint last pushed back, and the seconds it asked for
        self._too_many = 0.0
        self._wait = 0.0
        self._held_until = 0.0

    @asynccontextmanager
    async def slot(self, kind: str = "") -> AsyncGenerator[float]:
        """A place in flight; yields the time it was taken, which `pushed_back` wants to know. What comes back without
        an error lets the limit grow while all slots are in use. Calls of one `kind` take about as long as each
        other."""
        await self._acquire()
        try:
            began = time.monotonic()
            flying = self.active
            yield began
            self._came(began, flying, kind)
        finally:
            self.active -= 1
            self._wake()

    def _came(self, began: float, flying: int, kind: str) -> None:
        if not self._waiters and self.active < int(self.limit):
            if self._pace is not None:
                self._pace.discard_round()
            return
        now = time.monotonic()
        if self._pace is None:
            advice = "grow"
        else:
            advice = self._pace.add_call(kind, now - began, flying, self.limit)
        if advice == "lower" and self._pace is not None:
            self.back_off(now)
            self.limit = max(float(self.minimum), min(self.limit, 2 * self._pace.useful_concurrency))
        elif advice == "grow":
            self.limit = min(float(self.maximum), self.limit + self._step(now - began))

    def _step(self, seconds: float) -> float:
        """What a call that took so long lets the limit grow by."""
        if not self.decreases:
            return 1.0
        near = NEAR * self._too_many <= self.limit <= self._too_many + OVER
        if near:
            rounds = max(ROUNDS, WAITS * self._wait / max(1e-9, seconds))
        else:
            rounds = 1.0
        return 1.0 / (self.limit * rounds)

    def back_off(self, began: float, delay: float | None = None) -> None:
        """The endpoint had too much. `began`: when the call that was turned away took its slot."""
        now = time.monotonic()
        if delay:
            self._held_until = max(self._held_until, now + delay)
        if began >= self._decreased_at:
            self._decreased_at = now
            self.decreases += 1
            self._too_many = self.limit
            self._wait = delay or 0.0
            self.limit = max(float(self.minimum), self.limit / 2)

    async def _acquire(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._wake()
        try:
            await waiter  # _wake counts the slot as ours before it wakes us
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.active -= 1
                self._wake()
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise
        if self._held_until:
            await self._hold()

    async def _hold(self) -> None:
        """Wait out a Retry-After. The slot is ours already; if we are cancelled here it must go back."""
        try:
            while (hold := self._held_until - time.monotonic()) > 0:  # noqa: ASYNC110 (it is a time that is waited for, and it may move)
                await asyncio.sleep(hold)
        except asyncio.CancelledError:
            self.active -= 1
            self._wake()
            raise

    def _wake(self) -> None:
        while self._waiters and self.active < int(self.limit):
            waiter = self._waiters.popleft()
            if not waiter.done():
                self.active += 1
                waiter.set_result(None)


class MeasuredRound(Struct):
    expected_calls: int  # calls
    calls: int = 0
    slowdown: float = 0.0
    in_flight: float = 0.0


class ThroughputMonitor:
    """Whether more calls in flight get more done. A server that works on one request at a time behind a lock takes in
    whatever it is sent, and answers none of it sooner: what is sent too early waits there until it times out, and is
    worked on for nobody.

    So rounds of calls are compared. By Little's law, throughput is the number of calls in flight over the time that
    each takes: twice as many get twice as much done, unless they take twice as long. How long a call takes is measured
    by the shortest that one of its kind has taken: an image takes longer than a letter. If two rounds of extra
    concurrency did not raise throughput, it is lowered.

    `careful`: nothing grows before one round has been measured."""

    def __init__(self, *, careful: bool = False) -> None:
        self._careful = careful
        self._doubt = False
        self.useful_concurrency = (
            0.0  # about how many calls the server was found to work on at once, when it was last found to have too many
        )
        self._least: dict[str, float] = {}
        self._round: MeasuredRound | None = None
        self._base: tuple[float, float] | None = None  # calls in flight, and what they got done

    def discard_round(self) -> None:
        """Places are free: what is measured now says nothing about the server."""
        self._round = None

    def add_call(self, kind: str, seconds: float, flying: int, limit: float) -> Advice:
        """A call came back, while all places were taken. `flying`: how many were on their way when it was sent, itself
        included: those are what it may have had to wait for."""
        self._least[kind] = min(seconds, self._least.get(kind, seconds))
        if self._round is None:
            self._round = MeasuredRound(max(FEWEST, int(limit)))
        self._round.calls += 1
        self._round.slowdown += seconds / max(1e-9, self._least[kind])
        self._round.in_flight += flying
        if self._round.calls < self._round.expected_calls:
            if self._doubt or (self._careful and self._base is None):
                return "stay"
            return "grow"
        done, self._round = self._round, None
        return self._compared(done.in_flight / done.calls, done.in_flight / done.slowdown)

    def _compared(self, flying: float, pace: float) -> Advice:
        before, self._doubt, doubted = self._base, False, self._doubt
        if before is None or max(self._least.values()) < QUICK:
            self._base = (flying, pace)
            return "grow"
        more = flying / before[0]
        if more < MORE:  # about as many as before, or fewer: more are compared with these
            if more < 1:
                self._base = (flying, pace)
            else:
                self._base = before
            return "grow"
        if pace >= before[1] * (1 + USEFUL * (more - 1)):
            self._base = (flying, pace)
            return "grow"
        if not doubted:
            self._doubt = True
            return "stay"
        self._base = None
        self.useful_concurrency = pace
        return "lower"
