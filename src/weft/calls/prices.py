"""What calls cost, before and after they are made. An unknown price stays unknown: it is never taken for zero."""

import importlib.resources
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from weft.models.endpoint import Endpoint
from weft.types import Image, Message, Request, Usage

LOCAL = ("http://127.", "http://localhost", "http://[::1]", "local:", "python:")
REPLY_COUNTS = ("n", "candidateCount")  # names of the parameter for several replies to one request
OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")  # parameter names
DEFAULT_MAX_OUTPUT_TOKENS = 8192  # of a reply, where there is a budget and no other limit
MIN_IMAGE_TOKENS = 2500  # that any image may be counted as
MAX_REPLY_IMAGES = 8  # that an interleaved reply may have, where each is billed
OVERHEAD_TOKENS = 16  # of a request, and of each message in it
EXPECTED_TEXT_TOKENS = 400  # of a reply, for estimates: a verdict with its reason
EXPECTED_IMAGE_TOKENS = 1300  # of a reply, for estimates: one image


class Price(Struct, frozen=True):
    """USD per million tokens, and per generated image."""

    tokens_in: float
    tokens_out: float
    image: float = 0.0

    def scaled_by(self, share: float) -> "Price":
        """Return this share of the price."""
        if share == 1.0:
            return self
        return Price(self.tokens_in * share, self.tokens_out * share, self.image * share)

    def cost_of(self, usage: Usage) -> float:
        """Return the cost of a usage in USD."""
        return (usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out) / 1e6 + usage.images * self.image


FREE = Price(0, 0)


def find_price(endpoint: Endpoint, own: Mapping[str, Any] | None = None) -> Price | None:
    """Return the price by model name, from the user's own prices, else from weft's; None if it is unknown.

    Calls to this machine are free unless the user sets a price.
    """
    model = str(endpoint.identity.get("model", ""))
    is_local = endpoint.address.startswith(LOCAL)
    for prices in (own or {}, _read_shipped_prices()):
        matching = [name for name in prices if not name.startswith("_") and _is_price_of(name, model)]
        if matching and (prices is own or not is_local):
            price = prices[max(matching, key=len)]
            return Price(float(price.get("in", 0)), float(price.get("out", 0)), float(price.get("image", 0)))
    if is_local:
        return FREE
    return None


def _is_price_of(name: str, model: str) -> bool:
    """`gpt-4o` is the price of gpt-4o and gpt-4o-2024-08-06, not of gpt-4o.5."""
    return model == name or (model.startswith(name) and model[len(name)] in "-:@")


def _read_shipped_prices() -> dict[str, Any]:
    text = importlib.resources.files("weft").joinpath("data/prices.json").read_bytes()
    return msgspec.json.decode(text)


def estimate_usage(messages: Iterable[Message], request: Request) -> Usage:
    """Estimate a call's usage: four characters per token, images by OpenAI's tile rule."""
    tokens = 0
    for message in messages:
        for part in message.parts:
            if isinstance(part, Image):
                tokens += estimate_image_tokens(part)
            else:
                tokens += len(part.text) // 4 + 1
    if request.modality == "text":
        return Usage(tokens, EXPECTED_TEXT_TOKENS)
    return Usage(tokens, EXPECTED_IMAGE_TOKENS, images=1)


def output_token_limit(identity: Mapping[str, Any]) -> int | None:
    """Return the limit on a reply's tokens that the user set; None if there is none."""
    parameters: Mapping[str, Any] = identity.get("parameters") or {}
    return next((int(parameters[name]) for name in OUTPUT_LIMITS if parameters.get(name)), None)


def count_replies(identity: Mapping[str, Any]) -> int:
    """Return how many replies the user has each request answered with: all are billed, and one is read."""
    parameters: Mapping[str, Any] = identity.get("parameters") or {}
    return max([1, *(int(parameters.get(name) or 1) for name in REPLY_COUNTS)])


def upper_bound(
    messages: Iterable[Message], request: Request, identity: Mapping[str, Any], default_limit: int | None
) -> Usage:
    """Return the most that a call can use, for budgets. `default_limit`: of output tokens, if the user set none."""
    limit = output_token_limit(identity) or default_limit or DEFAULT_MAX_OUTPUT_TOKENS
    tokens = OVERHEAD_TOKENS
    if request.schema is not None:
        tokens += len(msgspec.json.encode(request.schema))
    for message in messages:
        tokens += OVERHEAD_TOKENS
        for part in message.parts:
            if isinstance(part, Image):
                tokens += max_image_tokens(part)
            else:
                tokens += len(part.text.encode())
    replies = count_replies(identity)
    images = {"text": 0, "image": 1, "interleaved": MAX_REPLY_IMAGES}[request.modality]
    return Usage(tokens, int(limit) * replies, images=images * replies)


def add_usage(first: Usage, second: Usage) -> Usage:
    """Return the sum of two usages. The cost is unknown only if both costs are."""
    cost = None
    if first.cost is not None or second.cost is not None:
        cost = (first.cost or 0.0) + (second.cost or 0.0)
    return Usage(
        first.tokens_in + second.tokens_in,
        first.tokens_out + second.tokens_out,
        cost,
        first.images + second.images,
    )


def estimate_image_tokens(image: Image) -> int:
    """Return an image's tokens by OpenAI's tile rule: scaled into 2048 x 2048, then to a short side of 768."""
    scale = min(1.0, 2048 / max(image.width, image.height))
    scale *= min(1.0, 768 / (min(image.width, image.height) * scale))
    tiles = math.ceil(image.width * scale / 512) * math.ceil(image.height * scale / 512)
    return 85 + 170 * tiles


def max_image_tokens(image: Image) -> int:
    """Return the most that any rule in use counts an image as: tiles of 512 or 768, patches of 28, pixels by 750.

    Some servers do not count a small image as small.
    """
    tiles = 258 * math.ceil(image.width / 768) * math.ceil(image.height / 768)
    patches = math.ceil(image.width / 28) * math.ceil(image.height / 28)
    return max(MIN_IMAGE_TOKENS, estimate_image_tokens(image), tiles, patches, image.width * image.height // 750)


@dataclass
class BillingExcess:
    """How much more than the upper bound an endpoint has billed: factors, and a number of images in one reply."""

    tokens_in: float = 1.0
    tokens_out: float = 1.0
    cost: float = 1.0
    images: int = 0

    def max_cost(self, bound: Usage, price: Price) -> float:
        """Return the most that a call can cost, given what was billed so far."""
        tokens_in = bound.tokens_in * self.tokens_in
        tokens_out = bound.tokens_out * self.tokens_out
        by_usage = (tokens_in * price.tokens_in + tokens_out * price.tokens_out) / 1e6
        by_usage += (bound.images + self.images) * price.image
        return max(by_usage, price.cost_of(bound) * self.cost)

    def update(self, bound: Usage, usage: Usage, price: Price) -> bool:
        """Learn from what a call was billed. Return whether any maximum has risen."""
        before = (self.tokens_in, self.tokens_out, self.images, self.cost)
        self.tokens_in = max(self.tokens_in, usage.tokens_in / max(bound.tokens_in, 1))
        self.tokens_out = max(self.tokens_out, usage.tokens_out / max(bound.tokens_out, 1))
        self.images = max(self.images, usage.images - bound.images)
        max_cost = price.cost_of(bound)
        if usage.cost is not None and max_cost > 0:  # the stated cost need not follow from the tokens
            self.cost = max(self.cost, usage.cost / max_cost)
        return before != (self.tokens_in, self.tokens_out, self.images, self.cost)


class Reservation(Struct, frozen=True):
    """What is known of a try's cost before it is sent."""

    price: Price
    bound: Usage  # the most that it is asked to use
    expected: float  # the estimated cost


def build_reservation(
    messages: Iterable[Message], request: Request, endpoint: Endpoint, price: Price, share: float
) -> Reservation:
    """Return what to reserve for a try at this share of the price."""
    price = price.scaled_by(share)
    bound = upper_bound(messages, request, endpoint.identity, endpoint.max_reply_tokens)
    return Reservation(price, bound, price.cost_of(estimate_usage(messages, request)))
