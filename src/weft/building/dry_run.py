"""What a build would call and cost, without a call: some of its rows pass the steps with models that count.

Cached answers are used. For the rest a recipe's stand-in is, or JSON that fits the schema, or an image of one colour.
Rows pass twice: once as if every gate passed (the fewest calls) and once as if none did (the most, with all mending).
What a row needs on average is multiplied by the seeds that are left.
"""

import hashlib
from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from weft.building.context import DryMode, Tools
from weft.building.recipe import Recipe
from weft.building.rows import make_row
from weft.calls.caller import Caller
from weft.calls.prices import Price, estimate_usage, output_token_limit
from weft.calls.roles import ModelsByRole
from weft.models.baselines import ConstantJudge
from weft.store.blobs import Blobs
from weft.types import Image, Message, Reply, Request, Text, Usage

MAX_ROWS = 100  # that pass the steps
CHARACTERS_OF_TOKEN = 4
REASONING_TOKENS = 60  # of one or two sentences


class RoleForecast(Struct, frozen=True):
    """What one role would do: at least, and at most."""

    calls: tuple[int, int]  # to be made
    cached: int
    usage: Usage  # of the most calls
    cost: tuple[float, float] | None  # in USD; None where the price is unknown


class CountingPlayer:
    """A model that makes no calls."""

    def __init__(self, role: str, caller: Caller, recipe: Recipe, blobs: Blobs) -> None:
        self.name = caller.name
        self.takes = caller.takes
        self.calls = 0
        self.cached = 0
        self.usage = Usage()
        self._role = role
        self._caller = caller
        self._recipe = recipe
        self._blobs = blobs
        self._constant = ConstantJudge(None)

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        cached = self._caller.find_cached(messages, request)
        if cached is not None:
            self.cached += 1
            return cached
        self.calls += 1
        if not self._caller.endpoint.cacheable:  # it answers here, and at no cost
            answer = await self._caller.endpoint.send(messages, request)
            return Reply(answer.outcome, answer.parts, answer.reason)
        reply = self._recipe.stand_in(self._role, messages, request) or await self._stand_in(messages, request)
        usage = estimate_usage(messages, request)
        tokens_out = usage.tokens_out
        if request.schema is not None:
            tokens_out = _estimate_object(reply.text, request.schema)
        limit = output_token_limit(self._caller.endpoint.identity) or tokens_out
        self.usage = Usage(
            self.usage.tokens_in + usage.tokens_in,
            self.usage.tokens_out + min(tokens_out, limit),
            images=self.usage.images + usage.images,
        )
        return reply

    async def _stand_in(self, messages: tuple[Message, ...], request: Request) -> Reply:
        """Return JSON that fits the schema with the highest scores, or an image that no other request has."""
        if request.modality != "text":
            content = msgspec.json.encode([messages, request.draw])
            return Reply("answered", (draw_stand_in(hashlib.sha256(content).digest(), self._blobs),))
        if request.schema is None:
            return Reply("answered", (Text("A stand-in for a reply."),))
        answer = await self._constant.send(messages, request)
        return Reply("answered", answer.parts)

    def forecast(self, price: Price | None, scale: float) -> tuple[int, float | None, Usage]:
        """Return calls, cost and usage of all rows."""
        usage = Usage(
            round(self.usage.tokens_in * scale),
            round(self.usage.tokens_out * scale),
            images=round(self.usage.images * scale),
        )
        cost = None if price is None else price.cost_of(usage)
        return round(self.calls * scale), cost, usage


def _estimate_object(text: str, schema: Mapping[str, Any]) -> int:
    """Return the tokens of an object as long as its stand-in, with reasons in the sentences that are asked for."""
    reasons = sum(name == "reasoning" for name in schema.get("properties", {}))
    return len(text) // CHARACTERS_OF_TOKEN + REASONING_TOKENS * reasons


def draw_stand_in(digest: bytes, blobs: Blobs) -> Image:
    """Store a small image that only its digest decides, and that no gate on pixels rejects."""
    from PIL import Image as Pil

    colour = (digest[0], digest[1], digest[2])
    image = Pil.new("RGB", (64, 64), colour)
    contrast = "white" if sum(colour) < 384 else "black"
    image.paste(contrast, (0, 0, 16 + digest[4] % 32, 16 + digest[5] % 32))
    return blobs.put_pil(image, durable=False)


class _NoFeatures:
    """Computes features of stand-ins anew: they are not worth a place in the journal."""

    async def find(self, digest: str, kind: str, version: str) -> str | None:
        return None

    def keep(self, digest: str, kind: str, version: str, value: str) -> None:
        return


async def forecast_rows(recipe: Recipe, models: ModelsByRole, seeds: list[int]) -> dict[str, RoleForecast]:
    """Return what each role would do for these seeds."""
    # by chance: every n-th seed would be of one kind where recipes spread kinds evenly
    sample = sorted(Random("dry run").sample(seeds, min(MAX_ROWS, len(seeds))))
    scale = len(seeds) / max(1, len(sample))
    least = await _count(recipe, models, sample, "pass")
    most = await _count(recipe, models, sample, "flag")
    forecasts: dict[str, RoleForecast] = {}
    for role in models.callers:
        price = models.prices[role]
        few, low, _ = least[role].forecast(price, scale)
        many, high, usage = most[role].forecast(price, scale)
        cost = None
        if low is not None and high is not None:
            cost = (min(low, high), max(low, high))
        calls = (min(few, many), max(few, many))
        forecasts[role] = RoleForecast(calls, round(least[role].cached * scale), usage, cost)
    return forecasts


async def _count(
    recipe: Recipe, models: ModelsByRole, sample: list[int], mode: DryMode
) -> Mapping[str, CountingPlayer]:
    players = {role: CountingPlayer(role, caller, recipe, models.blobs) for role, caller in models.callers.items()}
    tools = Tools(players, models.blobs, _NoFeatures(), mode)
    steps: Any = recipe.steps()
    for number in sample:
        await make_row(recipe, steps, number, tools)
    return players
