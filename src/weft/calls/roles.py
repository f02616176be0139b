"""The models of one piece of work, by role. Each has a limiter, a price and a cache key of its own; all share a budget,
a journal and a reason to stop.

    roles = ModelsByRole(Limits(budget=5.0), {"writer": endpoint, "painter": other}, {}, journal, blobs)
    reply = await roles.callers["writer"].reply(messages, Want("text"))
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from weft.calls.caller import Caller, Halt, RetryPolicy
from weft.calls.preflight import Preflight
from weft.calls.prices import DEFAULT_MAX_OUTPUT_TOKENS, Budget, Price, find_price
from weft.errors import UserError
from weft.models.batch_api import BatchEndpoint
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.store.journal import Journal

MIN_SAMPLES_IN_FLIGHT = 16


class Limits(Struct, frozen=True):
    """What may be spent, and how much at a time."""

    budget: float | None = None  # in USD
    concurrency: int | None = None  # calls in flight at one endpoint; found by trying where it is not given
    judge_concurrency: int | None = None
    retry_policy: RetryPolicy = RetryPolicy()
    preflight: bool = False  # whether each endpoint is asked one small question before the first call

    def concurrency_of(self, role: str, endpoint: Endpoint) -> int | None:
        if isinstance(endpoint, BatchEndpoint):  # the questions of a batch go together
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
        self.endpoints = dict[str, Endpoint]()
        self.journal = journal
        self.blobs = blobs
        self.halt = Halt()
        self.budget, self.prices, self.callers = Budget(limits.budget), dict[str, Price | None](), dict[str, Caller]()
        self.samples_in_flight = MIN_SAMPLES_IN_FLIGHT  # how many samples are worked on at a time
        self._limits = limits
        self._prices = prices
        self._composed = composed
        if limits.preflight:
            self._preflight = Preflight(self.callers)
        else:
            self._preflight = None
        self.add_endpoints(endpoints)

    def add_endpoints(self, endpoints: Mapping[str, Endpoint]) -> None:
        """Add endpoints by role. Raises UserError where a budget is set and a price is not known."""
        limits = self._limits
        composed = self._composed or len(endpoints) > 2
        for role, endpoint in endpoints.items():
            concurrency = limits.concurrency_of(role, endpoint)
            price = find_price(endpoint, self._prices)
            if limits.budget is not None:
                if price is None:
                    name = endpoint.identity["model"]
                    raise UserError(
                        f'--budget needs a price for {name}; add [prices."{name}"] with `in` and `out`, or `image`, to weft.toml'
                    )
                if price != Price(0, 0):
                    endpoint.max_reply_tokens = DEFAULT_MAX_OUTPUT_TOKENS
                else:
                    endpoint.max_reply_tokens = None
            self.endpoints[role], self.prices[role] = endpoint, price and price.scaled_by(endpoint.usual_price_share)
            caller = Caller(
                endpoint,
                role=role,
                journal=self.journal,
                budget=self.budget,
                concurrency=concurrency,
                price=price,
                retry_policy=limits.retry_policy,
                halt=self.halt,
                blobs=self.blobs,
                always_record=composed and role != "judge",
            )
            caller.before_call = self._preflight and self._preflight.ask_once
            self.callers[role] = caller
            if role != "judge":
                self.samples_in_flight = max(self.samples_in_flight, 2 * caller.limiter.maximum)
