"""The models of one piece of work, by role. Each has a limiter, a price and a cache key of its own; all share a budget, a journal and a
reason to stop.

    roles = ModelsByRole(Limits(budget=5.0), {"writer": endpoint, "painter": other}, {}, journal, blobs)
    reply = await roles.callers["writer"].reply(messages, Want("text"))
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from weft.calls.caller import Caller, Halt, Patience
from weft.calls.preflight import Gate
from weft.calls.prices import MOST_OUT, Budget, Price, price_of
from weft.errors import UserError
from weft.models.batch_api import Batched
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.store.journal import Journal

MIN_SAMPLES_IN_FLIGHT = 16


class Limits(Struct, frozen=True):
    """What may be spent, and how much at a time."""

    budget: float | None = None  # in USD
    concurrency: int | None = None  # calls in flight at one endpoint; found by trying where it is not given
    judge_concurrency: int | None = None
    patience: Patience = Patience()
    preflight: bool = False  # whether each endpoint is asked one small question before the first call


class ModelsByRole:
    """Callers by role. `judge` is a role like any other, but for its own concurrency."""

    def __init__(
        self,
        limits: Limits,
        endpoints: Mapping[str, Endpoint],
        prices: Mapping[str, Any],
        journal: Journal,
        blobs: Blobs,
        *,
        composed: bool = False,
    ) -> None:
        """`composed`: replies are made of several calls, which are journalled even where they cost nothing."""
        self.endpoints, self.journal, self.blobs, self.halt = dict[str, Endpoint](), journal, blobs, Halt()
        self.budget, self.prices, self.callers = Budget(limits.budget), dict[str, Price | None](), dict[str, Caller]()
        self._limits, self._prices, self._composed = limits, prices, composed
        self._preflight = Gate(self.callers) if limits.preflight else None
        self.join(endpoints)

    def join(self, endpoints: Mapping[str, Endpoint]) -> None:
        """Add endpoints by role. Raises UserError where a budget is set and a price is not known."""
        composed = self._composed or len(endpoints) > 2
        for role, endpoint in endpoints.items():
            price = self._price_of(endpoint)
            if self._limits.budget is not None:
                endpoint.longest = MOST_OUT if price != Price(0, 0) else None
            self.endpoints[role], self.prices[role] = endpoint, price and price.at(endpoint.usual_rate)
            self.callers[role] = Caller(
                endpoint,
                role=role,
                journal=self.journal,
                budget=self.budget,
                concurrency=self._concurrency_of(role, endpoint),
                price=price,
                patience=self._limits.patience,
                halt=self.halt,
                blobs=self.blobs,
                kept=composed and role != "judge",
            )
            self.callers[role].gate = self._preflight

    def _price_of(self, endpoint: Endpoint) -> Price | None:
        price = price_of(endpoint, self._prices)
        if self._limits.budget is not None and price is None:
            name = endpoint.identity["model"]
            raise UserError(f'--budget needs a price for {name}; add [prices."{name}"] with `in` and `out`, or `image`, to weft.toml')
        return price

    def _concurrency_of(self, role: str, endpoint: Endpoint) -> int | None:
        if isinstance(endpoint, Batched):  # the questions of a batch go together
            return None
        limits = self._limits
        return (limits.judge_concurrency or limits.concurrency) if role == "judge" else limits.concurrency

    @property
    def width(self) -> int:
        """How many samples are worked on at a time."""
        limiters = (2 * caller.limiter.maximum for role, caller in self.callers.items() if role != "judge")
        return max([MIN_SAMPLES_IN_FLIGHT, *limiters])
