"""How many calls may be in flight at one endpoint, found by trying: additive increase, multiplicative decrease.

The limit grows by one per call while all slots are in use, until the endpoint first pushes back; from then on by one
per full round of calls, and near the limit that was too high by one in several rounds, so that most of the time is
spent just below it. Push-back (429, 503, 529, a timeout) halves the limit, once for all calls that were in flight
together; so does finding that more calls only wait longer (`ThroughputMonitor`). A Retry-After holds new calls back
until it has passed, and the longer it was, the less often one more is tried. Waiting calls are served in order.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from msgspec import Struct

from weft.models.endpoint import Endpoint, TaskEndpoint

START_CONCURRENCY = 8  # calls in flight at one endpoint, unless set otherwise
MAX_CONCURRENCY = 64
NEAR = 0.8  # growth is slow from this share of the limit that was last too high
OVERSHOOT = 2  # growth is slow until this many more calls than that limit were not too many
SLOW_ROUNDS = 8  # while growth is slow, one more slot takes at least this many rounds of calls
SLOW_WAITS = 6  # and at least this many times the last Retry-After: one call too many holds all of them back
MIN_ROUND_CALLS = 4  # of a round whose throughput is measured
MIN_INCREASE = 1.25  # rounds are compared if the calls in flight differ by this factor
# More calls must raise throughput by this share of the ideal. It is below 1 because the calls that return first look
# quicker than the rest.
USEFUL_SHARE = 0.5
QUICK_S = 0.05  # an endpoint that answers within this time is not measured

Advice = Literal["grow", "stay", "lower"]


def build_limiter(endpoint: Endpoint, concurrency: int | None) -> "Limiter":
    """Return the limiter of an endpoint: at most `concurrency`, and what the endpoint itself says it can take.

    A number from the user is used from the first call on. So is the maximum of tasks and batches, which only wait.
    """
    maximum = min(
        endpoint.concurrency or concurrency or MAX_CONCURRENCY, concurrency or endpoint.concurrency or MAX_CONCURRENCY
    )
    if concurrency or endpoint.wants_batches or isinstance(endpoint, TaskEndpoint):
        return Limiter(start=maximum, maximum=maximum)
    return Limiter(
        start=min(endpoint.initial_concurrency or START_CONCURRENCY, maximum),
        maximum=maximum,
        throughput=ThroughputMonitor(careful=endpoint.initial_concurrency is not None),
    )


class Limiter:
    """Slots for calls in flight, whose number adapts to the endpoint."""

    def __init__(
        self, start: int = 8, minimum: int = 1, maximum: int = 64, throughput: "ThroughputMonitor | None" = None
    ) -> None:
        self.limit = float(min(start, maximum))
        self.minimum = minimum
        self.maximum = maximum
        self.active = 0
        self.decreases = 0
        self._throughput = throughput
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._decreased_at = 0.0
        self._limit_too_high = 0.0  # the limit when the endpoint last pushed back
        self._retry_after = 0.0  # the seconds it asked for then
        self._held_until = 0.0

    @asynccontextmanager
    async def slot(self, kind: str = "") -> AsyncGenerator[float]:
        """Hold a slot; yield the time it was taken, for `back_off`.

        A call that returns without an error lets the limit grow while all slots are in use. Calls of one `kind` are
        expected to take about equally long.
        """
        await self._acquire()
        try:
            began = time.monotonic()
            in_flight = self.active
            yield began
            self._adapt(began, in_flight, kind)
        finally:
            self.active -= 1
            self._wake()

    def _adapt(self, began: float, in_flight: int, kind: str) -> None:
        """Change the limit after a call that returned."""
        if not self._waiters and self.active < int(self.limit):
            if self._throughput is not None:
                self._throughput.discard_round()
            return
        now = time.monotonic()
        advice: Advice = "grow"
        if self._throughput is not None:
            advice = self._throughput.add_call(kind, now - began, in_flight, self.limit)
        if advice == "lower" and self._throughput is not None:
            self.back_off(now)
            self.limit = max(float(self.minimum), min(self.limit, 2 * self._throughput.useful_concurrency))
        elif advice == "grow":
            self.limit = min(float(self.maximum), self.limit + self._growth(now - began))

    def _growth(self, seconds: float) -> float:
        """Return how much a call that took this long raises the limit."""
        if not self.decreases:
            return 1.0
        rounds = 1.0
        if NEAR * self._limit_too_high <= self.limit <= self._limit_too_high + OVERSHOOT:
            rounds = max(SLOW_ROUNDS, SLOW_WAITS * self._retry_after / max(1e-9, seconds))
        return 1.0 / (self.limit * rounds)

    def back_off(self, began: float, delay: float | None = None) -> None:
        """Lower the limit after push-back. `began`: when the rejected call took its slot; `delay`: its Retry-After."""
        now = time.monotonic()
        if delay:
            self._held_until = max(self._held_until, now + delay)
        if began >= self._decreased_at:
            self._decreased_at = now
            self.decreases += 1
            self._limit_too_high = self.limit
            self._retry_after = delay or 0.0
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
        """Wait out a Retry-After. The slot is ours already: if we are cancelled here it must be released."""
        try:
            while time.monotonic() < self._held_until:  # noqa: ASYNC110 (the time may move while we wait)
                await asyncio.sleep(self._held_until - time.monotonic())
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
    """Calls whose throughput is measured together."""

    expected_calls: int
    calls: int = 0
    slowdown: float = 0.0  # sum of each call's time over the shortest of its kind
    in_flight: float = 0.0  # sum of the calls in flight when each was sent


class ThroughputMonitor:
    """Finds out whether more calls in flight raise throughput.

    A server that works on one request at a time accepts whatever it is sent, and answers none of it sooner: requests
    sent too early wait there until they time out, and are then computed for nobody.

    So rounds of calls are compared. By Little's law, throughput is the number of calls in flight over the time that
    each takes: twice as many double the throughput, unless they take twice as long. A call's time is measured relative
    to the shortest of its kind: an image takes longer than a letter. If two rounds of extra concurrency did not raise
    throughput, the limit is lowered.
    """

    def __init__(self, *, careful: bool = False) -> None:
        """`careful`: do not grow before one round has been measured."""
        self.useful_concurrency = 0.0  # about how many calls the server worked on at once, when there were too many
        self._careful = careful
        self._in_doubt = False  # the last round brought too little
        self._shortest: dict[str, float] = {}  # seconds, by kind of call
        self._round: MeasuredRound | None = None
        self._base: tuple[float, float] | None = None  # calls in flight, and their throughput

    def discard_round(self) -> None:
        """Forget the current round: while slots are free, times say nothing about the server."""
        self._round = None

    def add_call(self, kind: str, seconds: float, in_flight: int, limit: float) -> Advice:
        """Add a call that returned while all slots were taken, and advise on the limit.

        `in_flight` is how many calls were in flight when it was sent, itself included: it may have waited for those.
        """
        self._shortest[kind] = min(seconds, self._shortest.get(kind, seconds))
        if self._round is None:
            self._round = MeasuredRound(max(MIN_ROUND_CALLS, int(limit)))
        measured = self._round
        measured.calls += 1
        measured.slowdown += seconds / max(1e-9, self._shortest[kind])
        measured.in_flight += in_flight
        if measured.calls < measured.expected_calls:
            if self._in_doubt or (self._careful and self._base is None):
                return "stay"
            return "grow"
        self._round = None
        return self._compare(measured.in_flight / measured.calls, measured.in_flight / measured.slowdown)

    def _compare(self, in_flight: float, throughput: float) -> Advice:
        """Compare a finished round with the one before."""
        base = self._base
        was_in_doubt = self._in_doubt
        self._in_doubt = False
        if base is None or max(self._shortest.values()) < QUICK_S:
            self._base = (in_flight, throughput)
            return "grow"
        increase = in_flight / base[0]
        if increase < MIN_INCREASE:  # about as many as before: a later round is compared with the smaller one
            if increase < 1:
                self._base = (in_flight, throughput)
            return "grow"
        if throughput >= base[1] * (1 + USEFUL_SHARE * (increase - 1)):
            self._base = (in_flight, throughput)
            return "grow"
        if not was_in_doubt:
            self._in_doubt = True
            return "stay"
        self._base = None
        self.useful_concurrency = throughput
        return "lower"
