"""One model at several addresses: each call goes where the fewest are under way, and an address that nobody answers at,
or that keeps failing while others answer, is left alone for a while and then tried again."""

import time
from collections.abc import Sequence

from weft.models.endpoint import TRANSIENT, CallError, Endpoint, EndpointReply
from weft.types import Message, Request

REST = 10.0  # seconds until an address that was dead is tried again
BAD = 3  # calls in a row that failed, after which an address is left alone


class LoadBalancer(Endpoint):
    """`endpoints` are one model: what answers are kept under is the same for all, that of the first."""

    def __init__(self, endpoints: Sequence[Endpoint], away: Sequence[str] = ()) -> None:
        """`away`: addresses at which nobody answered when they were first looked at."""
        first = endpoints[0]
        super().__init__(first.name, address=first.address)
        self.identity, self.takes, self.gives, self.cacheable = (
            first.identity,
            first.takes,
            first.gives,
            first.cacheable,
        )
        self.wants_batches, self.previous_identities = first.wants_batches, first.previous_identities
        most = [one.concurrency for one in endpoints if one.concurrency is not None]
        if len(most) == len(endpoints):
            self.concurrency = sum(most)
        else:
            self.concurrency = None
        starts = [one.initial_concurrency for one in endpoints if one.initial_concurrency is not None]
        if len(starts) == len(endpoints):
            self.initial_concurrency = sum(starts)
        else:
            self.initial_concurrency = None
        self._endpoints = list(endpoints)
        self._away = tuple(away)
        # calls under way, and until when each is left alone
        self._flying = [0] * len(endpoints)
        self._rests = [0.0] * len(endpoints)
        # calls so far, and those that failed since the last answer
        self._made = [0] * len(endpoints)
        self._failed = [0] * len(endpoints)

    @property
    def missing_setup(self) -> str:
        told = [f"nobody answers at {', '.join(self._away)}"] if self._away else []
        return "; ".join([*told, *dict.fromkeys(one.missing_setup for one in self._endpoints if one.missing_setup)])

    @property
    def missing_key(self) -> str:
        return next((one.missing_key for one in self._endpoints if one.missing_key), "")

    @property
    def status_line(self) -> str:
        dead = sum(until > time.monotonic() for until in self._rests)
        if dead:
            return f"{len(self._endpoints) - dead} of {len(self._endpoints)} addresses answer"
        return ""

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        at = self._next()
        endpoint = self._endpoints[at]
        endpoint.max_reply_tokens = self.max_reply_tokens
        self._flying[at] += 1
        self._made[at] += 1
        try:
            sent = await endpoint.send(messages, want)
            self._failed[at] = 0
            return sent
        except CallError as error:
            if error.retry.kind != "transient":
                raise
            self._failed[at] += 1
            if not error.unreachable and self._failed[at] < BAD:
                raise
            self._rests[at] = time.monotonic() + REST
            if all(until > time.monotonic() for until in self._rests):
                raise
            raise CallError(str(error), TRANSIENT, billed=error.billed) from None  # somebody else will answer
        finally:
            self._flying[at] -= 1

    def _next(self) -> int:
        """The address with the fewest calls under way for what it can take; of those the one that was asked least."""
        now = time.monotonic()
        awake = [at for at, until in enumerate(self._rests) if until <= now] or list(range(len(self._endpoints)))
        return min(
            awake, key=lambda one: (self._flying[one] / (self._endpoints[one].concurrency or 1), self._made[one])
        )

    async def load(self) -> None:
        for one in self._endpoints:
            await one.load()

    async def close(self) -> None:
        for one in self._endpoints:
            await one.close()
