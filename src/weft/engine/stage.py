"""All who play in a run, each under a role with a limiter, a price and a memo of its own; and the data once helpers were asked."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from weft.benchmarks.base import Benchmark
from weft.engine.call import Caller, Halt, Patience
from weft.engine.foresee import Counting
from weft.engine.gate import Gate
from weft.engine.interrupts import Interrupted, first_of, interruptible
from weft.engine.plan import check_ids
from weft.engine.prices import MOST_OUT, Budget, Price, price_of
from weft.errors import UserError, WeftError, blamed
from weft.judges.vlm import Jpegs
from weft.models.batched import Batched
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Dataset, Problem

Tell = Callable[[str], None]
WIDTH = 16  # samples in flight, at the least


class Means(Struct, frozen=True):
    """What may be spent, and how much at a time."""

    budget: float | None
    concurrency: int | None
    judge_concurrency: int | None
    patience: Patience
    probe: bool = False  # whether each endpoint is asked one small question first


class Stage:
    """All who play in a run, each under a role with a limiter, a price and a memo of its own."""

    def __init__(
        self,
        means: Means,
        endpoints: Mapping[str, Endpoint],
        prices: Mapping[str, Any],
        journal: Journal,
        blobs: Blobs,
        strategy: str,
    ) -> None:
        self.endpoints, self.journal, self.blobs, self.halt = dict[str, Endpoint](), journal, blobs, Halt()
        self.jpegs: Jpegs = {}
        self.budget, self.prices, self.callers = Budget(means.budget), dict[str, Price | None](), dict[str, Caller]()
        self._means, self._prices, self._strategy = means, prices, strategy
        self.noted: tuple[Problem, ...] = ()  # what was found out about the data after they were read
        self._gate = Gate(self.callers) if means.probe else None
        self.counted: dict[str, Counting] = {}  # what the data themselves need, in a dry run
        self.join(endpoints)

    def join(self, endpoints: Mapping[str, Endpoint]) -> None:
        """More of them, by role. One that plays with others keeps what it said."""
        means, composed = self._means, self._strategy != "none" or len(endpoints) > 2
        for role, endpoint in endpoints.items():
            price = price_of(endpoint, self._prices)
            if means.budget is not None and price is None:
                name = endpoint.identity["model"]
                raise UserError(f'--budget needs a price for {name}; add [prices."{name}"] with `in` and `out`, or `image`, to weft.toml')
            if means.budget is not None:
                endpoint.longest = MOST_OUT if price != Price(0, 0) else None
            self.endpoints[role], self.prices[role] = endpoint, price and price.at(endpoint.usual_rate)
            most = (means.judge_concurrency or means.concurrency) if role == "judge" else means.concurrency
            self.callers[role] = Caller(
                endpoint,
                role=role,
                journal=self.journal,
                budget=self.budget,
                concurrency=None if isinstance(endpoint, Batched) else most,  # those of a batch are together or nothing
                price=price,
                patience=means.patience,
                halt=self.halt,
                blobs=self.blobs,
                kept=composed and role != "judge",
            )
            self.callers[role].gate = self._gate

    async def completed(
        self, benchmark: Benchmark, dataset: Dataset, options: Any, helpers: Iterable[str], *, dry: bool = False, tell: Tell | None = None
    ) -> Dataset:
        """The dataset as the run asks about it. What helpers answer on the way is of no run until it has a name; `dry`: it is counted."""
        callers = {role: self.callers[role] for role in helpers}
        self.counted = {role: Counting(caller, {}, self.blobs) for role, caller in callers.items()} if dry else {}
        for role, caller in callers.items() if not dry else ():
            caller.early()
            if tell is not None:
                tell(f"{caller.name} is asked first ({role}); what it answered before is not asked again")
        working = asyncio.ensure_future(benchmark.completed(dataset, options, self.counted or callers))
        try:
            made = await interruptible(working, self.halt, "before the run began")
            self.noted = made.problems[len(dataset.problems) :]
            check_ids(made.samples, f"benchmark {benchmark.name}")
            return made
        except (WeftError, OSError):
            raise
        except BaseExceptionGroup as group:
            reason = self.halt.reason if isinstance(self.halt.reason, Interrupted) else first_of(group)
            if isinstance(reason, WeftError) or not isinstance(reason, Exception):
                raise reason from group
            raise blamed(f"benchmark {benchmark.name}: completing its data", reason) from group
        except Exception as error:
            raise blamed(f"benchmark {benchmark.name}: completing its data", error) from error

    @property
    def width(self) -> int:
        return max([WIDTH, *(2 * caller.limiter.maximum for role, caller in self.callers.items() if role != "judge")])
