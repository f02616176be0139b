"""What calls cost, before and after they are made. A price that is not known stays unknown: it is never taken for zero.

A budget is kept by reserving, before every try, the most that the try can cost: its input at a token a byte, its
pictures by the most expensive of the rules in use, its output at the limit that is sent with it. A reply that says what
it used is billed at that. One that was paid for perhaps, but cannot be read, or does not say, is told in the journal at
what was expected, and counted against the budget at the most. What a server bills beyond what it was asked for shows
with its first reply, which is waited for alone, and raises what is reserved from then on."""

import asyncio
import importlib.resources
import math
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import BudgetReached
from weft.models.endpoint import Endpoint
from weft.types import Image, Message, Request, Usage

LOCAL = ("http://127.", "http://localhost", "http://[::1]", "local:", "python:")
DEFAULT_MAX_OUTPUT_TOKENS = 8192  # tokens a reply may have where nobody says otherwise and there is a budget
PER_PICTURE = 2500  # tokens that any picture may be counted as
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")  # how a request says it
MOST_PICTURES = 8  # that a reply of words and pictures may have, where each is paid for
PER_CALL = 16  # tokens around a request, and around each message of it
# tokens a reply is taken to have when planning: a verdict with its reason; one picture
TEXT_OUT = 400
IMAGE_OUT = 1300


class Price(Struct, frozen=True):
    """USD per million tokens, and for each picture that comes."""

    tokens_in: float
    tokens_out: float
    image: float = 0.0

    def scaled_by(self, rate: float) -> "Price":
        """At a share of it."""
        if rate == 1.0:
            return self
        return Price(self.tokens_in * rate, self.tokens_out * rate, self.image * rate)

    def cost_of(self, usage: Usage) -> float:
        return (usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out) / 1e6 + usage.images * self.image


def find_price(endpoint: Endpoint, own: Mapping[str, Any] | None = None) -> Price | None:
    """From the user's own prices, else from the data file by model name; calls to this machine are free."""
    model = str(endpoint.identity.get("model", ""))
    for prices in (own or {}, _shipped()):
        matching = [name for name in prices if not name.startswith("_") and _names(name, model)]
        if matching and (prices is own or not endpoint.address.startswith(LOCAL)):
            found = prices[max(matching, key=len)]
            return Price(*(float(found.get(side, 0)) for side in ("in", "out", "image")))
    if endpoint.address.startswith(LOCAL):
        return Price(0, 0)
    return None


def _names(name: str, model: str) -> bool:
    """`gpt-4o` is the price of gpt-4o and gpt-4o-2024-08-06, not of gpt-4o.5."""
    return model == name or (model.startswith(name) and model[len(name)] in "-:@")


def _shipped() -> dict[str, Any]:
    text = importlib.resources.files("weft").joinpath("data/prices.json").read_bytes()
    return msgspec.json.decode(text)


def estimate_usage(messages: Iterable[Message], want: Request) -> Usage:
    """Tokens a request will take, roughly: four characters a token, pictures by OpenAI's tile rule."""
    tokens = 0
    for message in messages:
        for part in message.parts:
            tokens += estimate_image_tokens(part) if isinstance(part, Image) else len(part.text) // 4 + 1
    return Usage(tokens, TEXT_OUT if want.modality == "text" else IMAGE_OUT, images=int(want.modality != "text"))


def output_token_limit(identity: Mapping[str, Any]) -> int | None:
    """The most tokens that a user lets a reply have."""
    parameters: Mapping[str, Any] = identity.get("parameters") or {}
    return next((int(parameters[name]) for name in LIMITS if parameters.get(name)), None)


def upper_bound(messages: Iterable[Message], want: Request, identity: Mapping[str, Any], longest: int | None) -> Usage:
    """What a call may use at the most, for budgets."""
    parameters: Mapping[str, Any] = identity.get("parameters") or {}
    limit = output_token_limit(identity) or longest or DEFAULT_MAX_OUTPUT_TOKENS
    tokens = PER_CALL + (len(msgspec.json.encode(want.schema)) if want.schema is not None else 0)
    for message in messages:
        tokens += PER_CALL
        for part in message.parts:
            tokens += max_image_tokens(part) if isinstance(part, Image) else len(part.text.encode())
    times = max(1, int(parameters.get("n") or 1))
    pictures = {"text": 0, "image": 1, "interleaved": MOST_PICTURES}[want.modality]
    return Usage(tokens, int(limit) * times, images=pictures * times)


def add_usage(one: Usage, other: Usage) -> Usage:
    if one.cost is None and other.cost is None:
        cost = None
    else:
        cost = (one.cost or 0.0) + (other.cost or 0.0)
    return Usage(one.tokens_in + other.tokens_in, one.tokens_out + other.tokens_out, cost, one.images + other.images)


def estimate_image_tokens(image: Image) -> int:
    scale = min(1.0, 2048 / max(image.width, image.height))
    scale *= min(1.0, 768 / (min(image.width, image.height) * scale))
    tiles = math.ceil(image.width * scale / 512) * math.ceil(image.height * scale / 512)
    return 85 + 170 * tiles


def max_image_tokens(image: Image) -> int:
    """The most that a picture is counted as by the rules in use: tiles of 512, tiles of 768, patches of 28, pixels by
    750; small ones are not always counted as small."""
    tiles = 258 * math.ceil(image.width / 768) * math.ceil(image.height / 768)
    patches = math.ceil(image.width / 28) * math.ceil(image.height / 28)
    return max(PER_PICTURE, estimate_image_tokens(image), tiles, patches, image.width * image.height // 750)


@dataclass
class BillingExcess:
    """How many times the most that was reckoned with an endpoint has billed, in tokens and in all."""

    tokens_in: float = 1.0
    tokens_out: float = 1.0
    cost: float = 1.0

    def max_cost(self, bound: Usage, price: Price) -> float:
        """What a call may cost, by what is known."""
        told = (
            bound.tokens_in * self.tokens_in * price.tokens_in + bound.tokens_out * self.tokens_out * price.tokens_out
        ) / 1e6
        told += bound.images * price.image
        return max(told, price.cost_of(bound) * self.cost)

    def update(self, bound: Usage, used: Usage, price: Price, cost: float) -> None:
        self.tokens_in = max(self.tokens_in, used.tokens_in / max(bound.tokens_in, 1))
        self.tokens_out = max(self.tokens_out, used.tokens_out / max(bound.tokens_out, 1))
        most = price.cost_of(bound)
        if used.cost is not None and most > 0:  # what it says it costs, which need not follow from its tokens
            self.cost = max(self.cost, cost / most)


class Reservation(Struct, frozen=True):
    """What is known of a try's cost before it is sent."""

    price: Price | None  # None where it is not known: nothing is reserved then
    bound: Usage  # what it may use at the most
    expected: float | None
    max_cost: float  # what it can cost


def build_reservation(
    messages: tuple[Message, ...], want: Request, endpoint: Endpoint, price: Price | None, excess: BillingExcess
) -> Reservation:
    """What to put by for one try at this price, given what the endpoint has billed so far."""
    if price is None:
        return Reservation(None, Usage(), None, 0.0)
    bound = upper_bound(messages, want, endpoint.identity, endpoint.max_reply_tokens)
    return Reservation(price, bound, price.cost_of(estimate_usage(messages, want)), excess.max_cost(bound, price))


@dataclass
class Charge:
    cost: float | None = 0.0  # None where the price is not known


@dataclass
class Budget:
    """Money for one command. Every try reserves the most it can cost, so calls in flight together cannot pass the limit
    together; where that is too much beside what is in flight, it waits for those to come back cheaper."""

    limit: float | None = None
    spent: float = 0.0  # what may have been billed by now
    reserved_now: float = 0.0
    unknown: bool = False  # whether anything was sent whose price is not known
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def reserve(self, most: float) -> AsyncGenerator["Charge"]:
        """Room for a try that costs at most so much; what it did cost is told before it ends. Raises BudgetReached if
        it could pass the limit even alone."""
        while self.limit is not None and self.spent + self.reserved_now + most > self.limit:
            if self.reserved_now <= 0 or self.spent + most > self.limit:
                raise BudgetReached(
                    f"the next call may cost up to ${most:.4f} and could pass the budget of ${self.limit:g}; ${self.spent:.4f} is spent"
                )
            self._settled.clear()
            await self._settled.wait()
        self.reserved_now += most
        spent = Charge()
        try:
            yield spent
        finally:
            if self.reserved_now - most > 1e-12:
                self.reserved_now = max(0.0, self.reserved_now - most)
            else:
                self.reserved_now = 0.0
            self.unknown = self.unknown or spent.cost is None
            self.spent += spent.cost or 0.0
            self._settled.set()
