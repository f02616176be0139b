"""Models that need no weights: a floor for tables (`copy`), and the dataset's references, which check the whole path."""

from typing import Any, cast

import msgspec

from weft.errors import UserError
from weft.models.converters import finite
from weft.models.endpoint import Endpoint, Sent
from weft.models.registry import ModelSpec, about
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Kind, Message, Part, Place, Takes, Text, Want, outcome_of


class Local(Endpoint):
    """Nothing to wait for, so nothing to remember."""

    memo = False
    foreign = False


class Copy(Local):
    """The last picture it was shown; where text is due, the same fixed words."""

    def __init__(self) -> None:
        super().__init__("copy", version=1)

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        shown = [part for message in messages for part in message.parts if isinstance(part, Image)]
        parts: tuple[Part, ...] = (Text("I do not know."),) if want.kind == "text" else tuple(shown[-1:])
        outcome, reason = outcome_of(parts, want.kind)
        return Sent(parts, outcome, reason or "", served=self.name)


class Constant(Local):
    """A judge that gives everything the same score, or the highest that each question allows. It tests plumbing; it judges nothing."""

    def __init__(self, score: float | None) -> None:
        super().__init__("constant/max" if score is None else f"constant/{score:g}", score=score)
        self._score = score
        self._said: dict[bytes, str] = {}

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        asked = want.schema or (want.question.schema if want.question else None)
        schema = msgspec.json.encode(asked or {"type": "object", "properties": {"score": {"type": "number"}}})
        if schema not in self._said:
            self._said[schema] = msgspec.json.encode(self._filled(msgspec.json.decode(schema))).decode()
        said = self._said[schema]
        return Sent((Text(said),), "answered", raw=said, served=self.name)

    def _filled(self, schema: dict[str, Any]) -> Any:
        """A value that fits, whatever the shape."""
        kinds: Any = schema.get("type", "object")
        kind = next(one for one in (cast(list[str], kinds) if isinstance(kinds, list) else [str(kinds)]) if one != "null")
        if kind == "object":
            return {name: self._filled(one) for name, one in schema.get("properties", {}).items()}
        if kind == "array":
            return self._entries(schema)
        if kind == "string":
            return schema.get("enum", ["the same score for all"])[0]
        if kind == "boolean":
            return self._score is None or self._score > 0
        score = self._score if self._score is not None else schema.get("maximum", max(schema.get("enum", [0])))
        return int(score) if score == int(score) else score

    def _entries(self, schema: dict[str, Any]) -> list[Any]:
        """As many as are due: one for each number that an entry may carry, or the least that the list may have."""
        entry = schema.get("items", {})
        for name, one in entry.get("properties", {}).items():
            numbers = one.get("enum", ())
            if numbers and list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
                return [{**self._filled(entry), name: number} for number in numbers]
        return [self._filled(entry) for _ in range(schema.get("minItems", 1))]


MOST_LEARNT = 10_000  # references of turns that are being asked about
STAND_IN = "the dataset has no true reply here: a stand-in"


class Reference(Local):
    """The dataset's own reference replies. Where it has none (IMUG-Bench has no reference images), a stand-in, and the reply says so."""

    sees = False

    def __init__(self, digest: str, blobs: Blobs) -> None:
        """`digest` is the dataset's. Who asks about a turn lets it learn the reference first."""
        super().__init__("reference", dataset=digest)
        self._blobs = blobs
        self._parts: dict[Place, tuple[Part, ...]] = {}

    def learn(self, place: Place, reference: tuple[Part, ...]) -> None:
        """`place` is a turn that is asked about next; only the latest are kept."""
        if len(self._parts) >= MOST_LEARNT:
            self._parts.pop(next(iter(self._parts)))
        self._parts[place] = reference

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        parts = self._parts[want.place]
        outcome, reason = outcome_of(parts, want.kind)
        if outcome != "answered":
            return Sent((*parts, stand_in(want.kind, self._blobs)), "answered", STAND_IN, served=self.name, notes=("stand-in",))
        return Sent(parts, outcome, reason, served=self.name)


def stand_in(kind: Kind, blobs: Blobs) -> Part:
    """Something of the kind that is due."""
    from PIL import Image as Pil

    return Text("A") if kind == "text" else blobs.put_picture(Pil.new("RGB", (64, 64), "grey"), durable=False)


@about(Takes(), Gives(both=False, order=False, json=False))
def copy_from_spec(spec: ModelSpec, blobs: Blobs) -> Copy:
    return Copy()


@about(Takes(), Gives(image=False, both=False, order=False))
def constant_from_spec(spec: ModelSpec, blobs: Blobs) -> Constant:
    try:
        return Constant(None if spec.model == "max" else finite(spec.model))
    except ValueError:
        raise UserError(f"{spec.text}: constant/SCORE needs a number, such as constant/10, or max") from None
