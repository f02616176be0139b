"""The models of one piece of work, by role. Each has a limiter, a price and a cache key of its own; all share a budget, a journal and a
reason to stop.

    roles = ModelsByRole(Limits(budget=5.0), {"writer": endpoint, "painter": other}, {}, journal, blobs)
    reply = await roles.callers["writer"].reply(messages, Want("text"))
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from weft.calls.caller import Caller, Halt, Patience
from weft.calls.preflight import Preflight
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

    def concurrency_of(self, role: str, endpoint: Endpoint) -> int | None:
        if isinstance(endpoint, Batched):  # the questions of a batch go together
            return None
        return (self.judge_concurrency if role == "judge" else None) or self.concurrency


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
        self.width = MIN_SAMPLES_IN_FLIGHT  # how many samples are worked on at a time
        self._limits, self._prices, self._composed = limits, prices, composed
        self._preflight = Preflight(self.callers) if limits.preflight else None
        self.join(endpoints)

    def join(self, endpoints: Mapping[str, Endpoint]) -> None:
        """Add endpoints by role. Raises UserError where a budget is set and a price is not known."""
        limits = self._limits
        composed = self._composed or len(endpoints) > 2
        for role, endpoint in endpoints.items():
            concurrency = limits.concurrency_of(role, endpoint)
            price = price_of(endpoint, self._prices)
            if limits.budget is not None:
                if price is None:
                    name = endpoint.identity["model"]
                    raise UserError(
                        f'--budget needs a price for {name}; add [prices."{name}"] with `in` and `out`, or `image`, to weft.toml'
                    )
                endpoint.longest = MOST_OUT if price != Price(0, 0) else None
            self.endpoints[role], self.prices[role] = endpoint, price and price.at(endpoint.usual_rate)
            caller = Caller(
                endpoint,
                role=role,
                journal=self.journal,
                budget=self.budget,
                concurrency=concurrency,
                price=price,
                patience=limits.patience,
                halt=self.halt,
                blobs=self.blobs,
                kept=composed and role != "judge",
            )
            caller.gate = self._preflight and self._preflight.passed
            self.callers[role] = caller
            if role != "judge":
                self.width = max(self.width, 2 * caller.limiter.maximum)
