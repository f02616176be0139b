"""What calls cost, before and after they are made. A price that is not known stays unknown: it is never taken for zero."""

import asyncio
import importlib.resources
import math
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import BudgetReached
from weft.models.endpoint import Endpoint
from weft.types import Image, Message, Usage, Want

LOCAL = ("http://127.", "http://localhost", "http://[::1]", "local:", "python:")
MOST_OUT = 8192  # tokens a reply may have where nothing limits it, for budgets
TEXT_OUT, IMAGE_OUT = 400, 1300  # tokens a reply is taken to have when planning: a verdict with its reason; one picture


class Price(Struct, frozen=True):
    """USD per million tokens."""

    tokens_in: float
    tokens_out: float

    def of(self, usage: Usage) -> float:
        return (usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out) / 1e6


def price_of(endpoint: Endpoint, own: Mapping[str, Any] | None = None) -> Price | None:
    """From the user's own prices, else from the data file by model name; calls to this machine are free."""
    model = str(endpoint.identity.get("model", ""))
    for prices in (own or {}, _shipped()):
        matching = [name for name in prices if not name.startswith("_") and _names(name, model)]
        if matching and (prices is own or not endpoint.address.startswith(LOCAL)):
            found = prices[max(matching, key=len)]
            return Price(float(found["in"]), float(found["out"]))
    return Price(0, 0) if endpoint.address.startswith(LOCAL) else None


def _names(name: str, model: str) -> bool:
    """`gpt-4o` is the price of gpt-4o and gpt-4o-2024-08-06, not of gpt-4o.5."""
    return model == name or (model.startswith(name) and model[len(name)] in "-:@")


def _shipped() -> dict[str, Any]:
    text = importlib.resources.files("weft").joinpath("data/prices.json").read_bytes()
    return msgspec.json.decode(text)


def estimate(messages: Iterable[Message], want: Want) -> Usage:
    """Tokens a request will take, roughly: four characters a token, pictures by OpenAI's tile rule."""
    tokens = 0
    for message in messages:
        for part in message.parts:
            tokens += image_tokens(part) if isinstance(part, Image) else len(part.text) // 4 + 1
    return Usage(tokens_in=tokens, tokens_out=TEXT_OUT if want.kind == "text" else IMAGE_OUT)


def most_of(expected: Usage, identity: Mapping[str, Any]) -> Usage:
    """What a call may use at the most, for budgets: the output up to its `max_tokens` or a generous guess, the input with room to spare."""
    parameters: Mapping[str, Any] = identity.get("parameters") or {}
    limit = parameters.get("max_tokens") or parameters.get("max_completion_tokens") or MOST_OUT
    return Usage(tokens_in=expected.tokens_in * 3 // 2, tokens_out=int(limit))


def added(one: Usage, other: Usage) -> Usage:
    cost = None if one.cost is None and other.cost is None else (one.cost or 0.0) + (other.cost or 0.0)
    return Usage(one.tokens_in + other.tokens_in, one.tokens_out + other.tokens_out, cost)


def image_tokens(image: Image) -> int:
    scale = min(1.0, 2048 / max(image.width, image.height))
    scale *= min(1.0, 768 / (min(image.width, image.height) * scale))
    tiles = math.ceil(image.width * scale / 512) * math.ceil(image.height * scale / 512)
    return 85 + 170 * tiles


@dataclass
class Spent:
    cost: float | None = 0.0  # None where the price is not known


class Budget:
    """Money for one command. A call reserves the most it can cost, so calls in flight together cannot pass the limit together; where that
    is too much beside what is in flight, it waits for those to come back cheaper."""

    def __init__(self, limit: float | None = None) -> None:
        self.limit, self.spent, self.reserved_now = limit, 0.0, 0.0
        self.unknown = False
        self._settled = asyncio.Event()

    @asynccontextmanager
    async def reserved(self, most: float) -> AsyncGenerator["Spent"]:
        """Room for a call that costs at most so much; what it did cost is told before it ends. Raises BudgetReached if the call could pass
        the limit even alone."""
        while self.limit is not None and self.spent + self.reserved_now + most > self.limit:
            if self.reserved_now <= 0 or self.spent + most > self.limit:
                raise BudgetReached(
                    f"the next call may cost up to ${most:.4f} and could pass the budget of ${self.limit:g}; ${self.spent:.4f} is spent"
                )
            self._settled.clear()
            await self._settled.wait()
        self.reserved_now += most
        spent = Spent()
        try:
            yield spent
        finally:
            self.reserved_now = max(0.0, self.reserved_now - most) if self.reserved_now - most > 1e-12 else 0.0
            self.unknown = self.unknown or spent.cost is None
            self.spent += spent.cost or 0.0
            self._settled.set()
