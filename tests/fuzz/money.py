"""Runs with a budget against providers that bill: prices by token and by image, repeats, batches, compositions, retries
and streams, with replies that are lost, spoilt or do not say what they cost. What was billed is never more than the
budget; and the budget is used."""

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path
from typing import Any

from fakes import FAKES, Fake
from fuzz import Broken
from fuzz.till import NO_LIMIT, Habits, Till
from server import drawn
from weft.calls.caller import EndpointDown, RetryPolicy, RunHalted
from weft.calls.prices import Price
from weft.calls.roles import Limits
from weft.errors import BudgetReached
from weft.models.batch_api import build_batch_endpoint
from weft.models.compose import apply_strategy
from weft.models.compose.base import ask_model
from weft.models.endpoint import TEXT_LISTENER, Endpoint, TaskEndpoint
from weft.models.registry import list_providers, options_of
from weft.plugins import load_target
from weft.store.blobs import Blobs
from weft.types import Message, Model, Reply, Request, Text, Usage
from weft.workspace import Workspace
from wires import http_models

# `weft serve` speaks for a model of weft's own: whom it calls is billed; `logprobs/` is a chat of openai-chat's kind
OTHER_WIRES = {"served", "logprobs"}
QUICK = RetryPolicy(
    tries=3, rate_limit_tries=3, empty_tries=2, unreachable_tries=10**9, base=0.0005, cap=0.001, max_wait=60
)
STRATEGIES = ("none", "none", "cot", "self-verify:1", "best-of:2", "best-of:4")
MODALITIES: tuple[Any, ...] = ("text", "image", "interleaved")


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    missing = set(http_models("http://127.0.0.1")) - set(FAKES) - OTHER_WIRES
    if missing:
        raise Broken(f"no fake of {', '.join(sorted(missing))}, so no run with a budget can be tried there")
    done: Counter[str] = Counter()
    used: list[float] = []
    for number in range(count):
        seed = chance.randrange(10**9)
        run = Run(random.Random(seed), folder / f"money-{number}")
        asyncio.run(run.go())
        if run.bill > run.budget * (1 + 1e-9):
            raise Broken(f"run {seed}: ${run.bill:.4f} was billed on a budget of ${run.budget:.4f} ({run.told})")
        if run.bill > run.spent * (1 + 1e-9):
            raise Broken(f"run {seed}: ${run.bill:.4f} was billed, and counted as ${run.spent:.4f} ({run.told})")
        done += run.done
        done["bills of at most the budget"] += 1
        if run.was_stopped:
            done["runs that the budget ended"] += 1
            used.append(run.bill / run.budget)
            done["runs that were billed more than half of it"] += used[-1] > 0.5
    if used:
        done["share of a budget that was billed: average, in %"] = round(100 * sum(used) / len(used))
        done["share of a budget that was billed: closest, in hundredths of %"] = round(10000 * max(used))
    return done


class Run:
    """One run: some models, each behind a till, under one budget."""

    def __init__(self, chance: random.Random, home: Path) -> None:
        self.chance, self.workspace = chance, Workspace(home)
        self.tills: list[Till] = []
        self.done: Counter[str] = Counter()
        self.was_stopped = False
        self.spent = 0.0
        self.limit = chance.choice([60, 400, 2000])
        price = Price(chance.choice([0, 50.0, 2000.0]), chance.choice([0, 200.0, 8000.0]), chance.choice([0, 0.05, 1]))
        self.price = price if price != Price(0, 0) else Price(0, 0, 1)
        over = chance.choice([1.0, 1.0, 1.0, 1.0, 2.0, 7.0])
        images = chance.choice([1, 1, 1, 1, 3, 12])
        self.names = [chance.choice(list(FAKES)) for _ in range(chance.choice([1, 1, 2, 3]))]
        late = chance.choice([0, 0, 1, 2]) if len(self.names) == 1 else 0  # others could use the room up meanwhile
        self.habits = Habits(self.price, chance.choice([0.0, 0.1, 0.3, 0.6]), over, images, late)
        # what a first reply bills beyond what it was asked for, nobody can know: there is room for that
        least = 1 if self.habits.is_honest else 5 * len(self.names)
        most = Usage(3000, round(max(self.limit, NO_LIMIT) * over), images=8 * images)
        self.budget = self.price.cost_of(most) * chance.uniform(least, least + 15)

    @property
    def bill(self) -> float:
        return sum(till.bill for till in self.tills)

    @property
    def told(self) -> str:
        return f"{', '.join(self.names)}; {self.habits}"

    async def go(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            endpoints: dict[str, Endpoint] = {}
            for number, name in enumerate(self.names):
                fake = await stack.enter_async_context(self.stand(name))
                endpoints[f"{number}"] = self.endpoint(fake)
            prices = {
                str(endpoint.identity["model"]): {
                    "in": self.price.tokens_in, "out": self.price.tokens_out, "image": self.price.image,
                }
                for endpoint in endpoints.values()
            }  # fmt: skip
            limits = Limits(self.budget, retry_policy=QUICK)
            models = await stack.enter_async_context(
                self.workspace.open(endpoints, limits, prices=prices, composed=True)
            )
            strategy = self.chance.choice(STRATEGIES)
            work: list[Any] = []
            for caller in models.callers.values():
                caller.book_under("run")
                model = apply_strategy(strategy, caller, self.workspace.blobs)
                work += [self.talk(model, caller.endpoint) for _ in range(self.chance.choice([10, 40, 80]))]
            self.chance.shuffle(work)
            results = await asyncio.gather(*work, return_exceptions=True)
            self.spent = models.budget.spent
        for result in results:
            if isinstance(result, BudgetReached):
                self.was_stopped = True
            elif isinstance(result, BaseException) and not isinstance(result, EndpointDown | RunHalted):
                raise result
        self.done[f"strategy {strategy}"] += 1
        for till in self.tills:
            self.done += Counter({f"replies: {what}": number for what, number in till.made.items()})
            self.done[f"calls to {till.fake.provider}"] += till.made["billed"] + till.made["lines of batches"]

    def stand(self, name: str) -> Any:
        fake = FAKES[name]()
        self.tills.append(Till(fake, self.habits, self.chance))
        return fake.up()

    def endpoint(self, fake: Fake) -> Endpoint:
        known = options_of(load_target(list_providers()[fake.provider][0]))
        options = {"max_tokens": str(self.limit)} if "max_tokens" in known else {}
        if "mode" in known and self.chance.random() < 0.5:
            options["mode"] = "task"
        endpoint = self.workspace.endpoint(fake.name, options)
        if hasattr(fake, "batches") and self.chance.random() < 0.5:
            endpoint = build_batch_endpoint(endpoint)
            endpoint._quiet_period = 0.02
            fake.batches.patience = 1  # type: ignore[attr-defined]
        if isinstance(endpoint, TaskEndpoint):
            endpoint.poll_interval = 0.005
        return endpoint

    async def talk(self, model: Model, endpoint: Endpoint) -> None:
        """One dialogue of up to three turns."""
        kinds = [kind for kind in MODALITIES if not endpoint.gives.unsupported_reason(kind)]
        if self.chance.random() < 0.3:
            TEXT_LISTENER.set(lambda piece: None)
        messages: tuple[Message, ...] = ()
        for turn in range(self.chance.choice([1, 1, 2, 3])):
            parts: list[Any] = [Text("say or draw " + "something " * self.chance.choice([1, 30]))]
            if self.chance.random() < 0.2 and endpoint.takes.images != "none":
                parts.append(self.image())
            messages = (*messages, Message("user", tuple(parts)))
            request = Request(self.chance.choice(kinds), draw=self.chance.randrange(200))
            reply: Reply = await ask_model(model, messages, request, self.workspace.blobs)
            self.done[f"{turn + 1}. turns: {reply.outcome}"] += 1
            if reply.outcome != "answered":
                return
            messages = (*messages, Message("assistant", reply.parts))

    def image(self) -> Any:
        blobs: Blobs = self.workspace.blobs
        return blobs.put(drawn(str(self.chance.randrange(5)), 40))
