"""One model at several addresses: each call goes where the fewest are under way, and an address that nobody answers at is left alone for a
while."""

import time
from collections.abc import Sequence

from weft.models.endpoint import TRANSIENT, CallError, Endpoint, Sent
from weft.types import Message, Want

REST = 10.0  # seconds until an address that was dead is tried again


class Spread(Endpoint):
    """`endpoints` are one model: what answers are kept under is the same for all."""

    gathers = True

    def __init__(self, endpoints: Sequence[Endpoint], away: Sequence[str] = ()) -> None:
        """`away`: addresses at which nobody answered when they were first looked at."""
        first = endpoints[0]
        super().__init__(first.name, address=first.address)
        self.identity, self.takes, self.gives, self.memo = first.identity, first.takes, first.gives, first.memo
        self.concurrency = sum(one.concurrency or 1 for one in endpoints)
        self._endpoints, self._away = list(endpoints), tuple(away)
        self._flying, self._rests = [0] * len(endpoints), [0.0] * len(endpoints)  # calls under way, and until when each is left alone

    @property
    def missing(self) -> str:
        return f"nobody answers at {', '.join(self._away)}" if self._away else ""

    @property
    def standing(self) -> str:
        dead = sum(until > time.monotonic() for until in self._rests)
        return f"{len(self._endpoints) - dead} of {len(self._endpoints)} addresses answer" if dead else ""

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        now = time.monotonic()
        awake = [at for at, until in enumerate(self._rests) if until <= now] or list(range(len(self._endpoints)))
        at = min(awake, key=lambda one: self._flying[one] / (self._endpoints[one].concurrency or 1))
        self._flying[at] += 1
        try:
            return await self._endpoints[at].send(messages, want)
        except CallError as error:
            if not error.unreachable:
                raise
            self._rests[at] = time.monotonic() + REST
            if all(until > time.monotonic() for until in self._rests):
                raise
            raise CallError(str(error), TRANSIENT, billed=False) from None  # somebody else will answer
        finally:
            self._flying[at] -= 1

    async def load(self) -> None:
        for one in self._endpoints:
            await one.load()

    async def close(self) -> None:
        for one in self._endpoints:
            await one.close()
