"""The models of one piece of work, by role. Each has a limiter, a price and cache keys of its own; all share a budget,
a journal and a reason to stop.

    models = ModelsByRole(Limits(budget=5.0), {"writer": endpoint, "painter": other}, {}, journal, blobs)
    reply = await models.callers["writer"].reply(messages, Request("text"))
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from weft.calls.budget import Budget
from weft.calls.caller import Caller, Halt, RetryPolicy
from weft.calls.preflight import Preflight
from weft.calls.prices import DEFAULT_MAX_OUTPUT_TOKENS, Price, find_price
from weft.errors import UserError
from weft.models.batch_api import BatchEndpoint
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.store.journal import Journal

MIN_SAMPLES_IN_FLIGHT = 16


class Limits(Struct, frozen=True):
    """How much may be spent, and how many calls may be in flight."""

    budget: float | None = None  # in USD
    concurrency: int | None = None  # calls in flight at one endpoint; found by trying if not set
    judge_concurrency: int | None = None
    retry_policy: RetryPolicy = RetryPolicy()
    preflight: bool = False  # ask each endpoint one small question before the first call

    def concurrency_of(self, role: str, endpoint: Endpoint) -> int | None:
        """Return the concurrency set for an endpoint; None if it is to be found by trying."""
        if isinstance(endpoint, BatchEndpoint):  # the calls of a batch are submitted together
            return None
        if role == "judge" and self.judge_concurrency:
            return self.judge_concurrency
        return self.concurrency


class ModelsByRole:
    """Callers by role. `judge` is a role like any other, except for its own concurrency."""

    def __init__(
        self,
        limits: Limits,
        endpoints: Mapping[str, Endpoint],
        prices: Mapping[str, Any],
        journal: Journal,
        blobs: Blobs,
        *,
        composed: bool = False,
        budget: Budget | None = None,
    ) -> None:
        """`composed`: replies are made from several calls, which are journalled even if they cost nothing. `budget`:
        what it shares with other runs, instead of that in `limits`."""
        self.endpoints: dict[str, Endpoint] = {}
        self.prices: dict[str, Price | None] = {}
        self.callers: dict[str, Caller] = {}
        self.journal = journal
        self.blobs = blobs
        self.halt = Halt()
        self.budget = budget or Budget(limits.budget)
        self.samples_in_flight = MIN_SAMPLES_IN_FLIGHT  # how many samples are worked on at a time
        self._limits = limits
        self._prices = prices
        self._composed = composed
        self._preflight: Preflight | None = None
        if limits.preflight:
            self._preflight = Preflight(self.callers)
        self.add_endpoints(endpoints)

    def add_endpoints(self, endpoints: Mapping[str, Endpoint]) -> None:
        """Add endpoints by role. Raises UserError if there is a budget and a price is unknown."""
        composed = self._composed or len(endpoints) > 2
        for role, endpoint in endpoints.items():
            price = find_price(endpoint, self._prices)
            self.prices[role] = price and price.scaled_by(endpoint.usual_price_share)
            self._limit_output(endpoint, price)
            self.endpoints[role] = endpoint
            caller = Caller(
                endpoint,
                role=role,
                journal=self.journal,
                budget=self.budget,
                concurrency=self._limits.concurrency_of(role, endpoint),
                price=price,
                retry_policy=self._limits.retry_policy,
                halt=self.halt,
                blobs=self.blobs,
                always_record=composed and role != "judge",
            )
            if self._preflight is not None:
                caller.before_call = self._preflight.ask_once
            self.callers[role] = caller
            if role != "judge":
                self.samples_in_flight = max(self.samples_in_flight, 2 * caller.limiter.maximum)

    def _limit_output(self, endpoint: Endpoint, price: Price | None) -> None:
        """Limit the replies of a paid endpoint if there is a budget, so that a call's maximum cost is known."""
        if self.budget.limit is None:
            return
        if price is None:
            name = endpoint.identity["model"]
            raise UserError(
                f"--budget needs a price for {name}; "
                f'add [prices."{name}"] with `in` and `out`, or `image`, to weft.toml'
            )
        endpoint.max_reply_tokens = None
        if price != Price(0, 0):
            endpoint.max_reply_tokens = DEFAULT_MAX_OUTPUT_TOKENS
