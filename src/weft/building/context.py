"""What a step works with: models by role, images, features. One `Context` for each row.

    reply = await context.write("writer", "Invent two objects.", SCHEMA)          # JSON that fits the schema
    image = await context.draw("painter", "Draw a cup.")                           # a reply with an image, or without
    image = await context.draw("editor", "Make the cup of Image #1 red.", [cup])

Every call is in the journal before it is used. A call that failed raises `CallFailed`: the row is tried again by the
next command. What a model refuses, or answers so that it cannot be used, is its own fault and drops the row.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from weft.building.features import Feature, FeatureStore, read_feature
from weft.building.provenance import Origins
from weft.building.recipe import Dropped, is_player
from weft.calls.structured_output import UnusableReply, compile_schema, read_reply
from weft.errors import UnusableJudge, UserError, WeftError
from weft.models.compose.base import ask_model
from weft.store.blobs import Blobs
from weft.types import Image, Message, Model, Part, Question, Reply, Request, Text, TurnRef, build_caption

BENCHMARK = "build"  # of the turn references of a build's calls
SCHEMA_REQUEST = "Reply with one JSON object that fits this schema, and with nothing else:\n"
OBJECTION = "That cannot be used: {problem}. Give the whole object again, and nothing else."
MAX_WRITE_TRIES = 2  # at a reply that fits the schema
MAX_UNUSABLE = 25  # replies of one role in a row, after which its model cannot do what it is asked

Schema = dict[str, Any]
DryMode = Literal["", "pass", "flag"]  # a dry run counts calls as if every gate passed, or none


class CallFailed(WeftError):
    """A call brought no answer, through no fault of the model."""


@dataclass
class Tools:
    """What all rows of a build share."""

    models: Mapping[str, Model]  # by role; a role that several models play has NAME, NAME-2, NAME-3
    blobs: Blobs
    features: FeatureStore
    dry: DryMode = ""
    test_share: float = 0.0  # of the rows; they are the test part
    tries: int = 1  # dialogues of one seed, until one is kept

    def __post_init__(self) -> None:
        self.unusable: dict[str, int] = {}  # replies in a row, by role

    def players(self, role: str) -> list[str]:
        """Return the names of all models that play a role, the first one first."""
        return [name for name in self.models if is_player(name, role)]


class Context:
    """What the steps of one row work with."""

    def __init__(self, tools: Tools, number: int) -> None:
        self.blobs = tools.blobs
        self.is_flagging = tools.dry == "flag"  # a dry run in which no gate passes
        self.dry = tools.dry
        self.origins = Origins()
        self._tools = tools
        self._number = number
        self._costs: dict[str, float | None] = {}  # by cache key

    @property
    def calls(self) -> tuple[str, ...]:
        """The cache keys of all calls so far, sorted: their order may differ from one run to the next."""
        return tuple(sorted(self._costs))

    @property
    def cost(self) -> float | None:
        """What the calls cost in USD; None if a price is unknown."""
        costs = [cost for cost in self._costs.values() if cost is not None]
        if len(costs) < len(self._costs):
            return None
        return math.fsum(costs)

    def has(self, role: str) -> bool:
        """Return whether a model plays this role."""
        return role in self._tools.models

    def players(self, role: str) -> list[str]:
        """Return the names under which models play a role: painter, painter-2."""
        return self._tools.players(role)

    def model_name(self, role: str) -> str:
        """Return the name of the model that plays a role."""
        return self._tools.models[role].name

    async def ask(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply:
        """Ask the model of a role. Raises CallFailed if there is no answer, through no fault of the model."""
        model = self._tools.models.get(role)
        if model is None:
            raise UserError(f"the recipe asks the role {role!r}, which has no model")
        reply = await ask_model(model, messages, request, self.blobs)
        for key in reply.keys:
            self._costs[key] = reply.usage.cost if len(reply.keys) == 1 else None
        if len(reply.keys) > 1:  # several calls behind one reply: their sum belongs to the first
            self._costs.update(dict.fromkeys(reply.keys, 0.0))
            self._costs[reply.keys[0]] = reply.usage.cost
        if reply.outcome == "failed":
            raise CallFailed(f"{role} {model.name}: {reply.reason}")
        if not self.dry and not all(self.blobs.has(image) for image in reply.images):
            raise CallFailed(f"{role} {model.name}: it returned an image that is not in the image store")
        self.origins.add_reply(role, reply)
        return reply

    async def write(
        self,
        role: str,
        prompt: str,
        schema: Schema,
        *,
        images: Sequence[Image] = (),
        task: str = "write",
        material: Mapping[str, tuple[Part, ...]] | None = None,
    ) -> dict[str, Any]:
        """Return an object that fits the schema, written by the model of a role.

        `task` and `material` say the same to models that are programs. Raises Dropped if the model refuses, or twice
        does not fit the schema.
        """
        compile_schema(schema)
        schema_text = msgspec.json.encode(schema).decode()
        parts = (*_caption(images), Text(f"{prompt}\n\n{SCHEMA_REQUEST}{schema_text}"))
        messages: tuple[Message, ...] = (Message("user", parts),)
        turn_ref = TurnRef(str(self._number), benchmark=BENCHMARK)
        question = Question((task,), messages, schema, turn_ref, material or {})
        problem = ""
        for _ in range(MAX_WRITE_TRIES):
            reply = await self.ask(role, messages, Request("text", schema, 0, turn_ref, question))
            if reply.outcome == "refused":
                raise Dropped(f"the {role} refused", reply.reason)
            try:
                written = read_reply(reply.text, schema, lambda: prompt)
            except UnusableReply as error:
                problem = str(error)
                objection = f"{OBJECTION.format(problem=problem)}\n{schema_text}"
                shown = Message("assistant", (Text(reply.text or "(nothing)"),))
                messages = (*messages, shown, Message("user", (Text(objection),)))
            else:
                self._tools.unusable[role] = 0
                self.origins.add_object(role, reply, written)
                return written
        self._count_unusable(role, problem)
        raise Dropped(f"the {role}'s reply cannot be used", problem)

    def _count_unusable(self, role: str, problem: str) -> None:
        """Raises UnusableJudge if the model of a role cannot do what it is asked."""
        self._tools.unusable[role] = self._tools.unusable.get(role, 0) + 1
        if self._tools.unusable[role] >= MAX_UNUSABLE:
            name = self._tools.models[role].name
            raise UnusableJudge(
                f"{role} {name}: {MAX_UNUSABLE} replies in a row could not be used; the last: {problem}"
            )

    async def draw(
        self, role: str, prompt: str, images: Sequence[Image] = (), *, item: int = 0, draw: int = 0
    ) -> Reply:
        """Ask for an image. `images` are what the prompt calls `Image #1`, `Image #2`; the reply may have none.

        `draw` tells repeated calls with the same prompt apart.
        """
        parts = (*_caption(images), Text(prompt))
        turn_ref = TurnRef(str(self._number), item, benchmark=BENCHMARK)
        return await self.ask(role, (Message("user", parts),), Request("image", draw=draw, turn_ref=turn_ref))

    async def feature(self, feature: Feature, image: Image) -> str:
        """Return what is computed from an image, once in the life of a build."""
        return await read_feature(feature, image, self.blobs, self._tools.features)


def _caption(images: Sequence[Image]) -> tuple[Part, ...]:
    """Return images, each after its number."""
    parts: list[Part] = []
    for number, image in enumerate(images, start=1):
        parts += [build_caption(number), image]
    return tuple(parts)
