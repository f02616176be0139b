"""One model at several addresses.

Each call goes to the address with the fewest calls in flight. An address that cannot be reached, or that keeps failing
while others answer, is left alone for a while and then tried again.
"""

import time
from collections.abc import Iterable, Sequence

from weft.models.endpoint import TRANSIENT, CallError, Endpoint, EndpointReply
from weft.types import Message, Request

PAUSE_S = 10.0  # how long a failed address is left alone
MAX_FAILURES = 3  # consecutive failed calls after which an address is left alone


class LoadBalancer(Endpoint):
    """Several endpoints of one model; their answers share the cache keys of the first endpoint."""

    def __init__(self, endpoints: Sequence[Endpoint], away: Sequence[str] = ()) -> None:
        """`away`: further addresses that could not be reached when the endpoints were created."""
        first = endpoints[0]
        super().__init__(first.name, address=first.address)
        self.identity = first.identity
        self.previous_identities = first.previous_identities
        self.takes = first.takes
        self.gives = first.gives
        self.cacheable = first.cacheable
        self.wants_batches = first.wants_batches
        self.concurrency = _total(endpoint.concurrency for endpoint in endpoints)
        self.initial_concurrency = _total(endpoint.initial_concurrency for endpoint in endpoints)
        self._endpoints = list(endpoints)
        self._unreachable = tuple(away)
        # by position in `endpoints`:
        self._in_flight = [0] * len(endpoints)
        self._paused_until = [0.0] * len(endpoints)
        self._calls = [0] * len(endpoints)
        self._failures = [0] * len(endpoints)  # since the last answer

    @property
    def missing_setup(self) -> str:
        problems: list[str] = []
        if self._unreachable:
            problems.append(f"nobody answers at {', '.join(self._unreachable)}")
        for endpoint in self._endpoints:
            if endpoint.missing_setup and endpoint.missing_setup not in problems:
                problems.append(endpoint.missing_setup)
        return "; ".join(problems)

    @property
    def missing_key(self) -> str:
        return next((endpoint.missing_key for endpoint in self._endpoints if endpoint.missing_key), "")

    @property
    def status_line(self) -> str:
        paused = sum(until > time.monotonic() for until in self._paused_until)
        if paused:
            return f"{len(self._endpoints) - paused} of {len(self._endpoints)} addresses answer"
        return ""

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        index = self._choose()
        endpoint = self._endpoints[index]
        endpoint.max_reply_tokens = self.max_reply_tokens
        self._in_flight[index] += 1
        self._calls[index] += 1
        try:
            reply = await endpoint.send(messages, request)
            self._failures[index] = 0
            return reply
        except CallError as error:
            if error.retry.kind != "transient":
                raise
            self._failures[index] += 1
            if not error.unreachable and self._failures[index] < MAX_FAILURES:
                raise
            self._paused_until[index] = time.monotonic() + PAUSE_S
            if all(until > time.monotonic() for until in self._paused_until):
                raise
            # not `unreachable`: the model still answers at another address
            raise CallError(str(error), TRANSIENT, billed=error.billed) from None
        finally:
            self._in_flight[index] -= 1

    def _choose(self) -> int:
        """Return the index of the least loaded address; among equals, the one with the fewest calls so far."""
        now = time.monotonic()
        available = [index for index, until in enumerate(self._paused_until) if until <= now]
        if not available:
            available = list(range(len(self._endpoints)))

        def load(index: int) -> tuple[float, int]:
            capacity = self._endpoints[index].concurrency or 1
            return self._in_flight[index] / capacity, self._calls[index]

        return min(available, key=load)

    async def load(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.load()

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.close()


def _total(limits: Iterable[int | None]) -> int | None:
    """Return the sum of the limits; None if any is unknown."""
    total = 0
    for limit in limits:
        if limit is None:
            return None
        total += limit
    return total
