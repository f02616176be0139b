"""Models that need no weights: a floor for tables (`copy`), and the dataset's references, which check the whole
path."""

from typing import Any, cast

import msgspec

from weft.errors import UserError
from weft.models.converters import finite_number
from weft.models.endpoint import Endpoint, EndpointReply
from weft.models.registry import ModelSpec, provider_info
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Modality, Part, Request, Takes, Text, TurnRef, outcome_of


class UncachedEndpoint(Endpoint):
    """Nothing to wait for, so nothing to remember."""

    cacheable = False
    output_checked = False


class CopyBaseline(UncachedEndpoint):
    """The last picture it was shown; where text is due, the same fixed words."""

    def __init__(self) -> None:
        super().__init__("copy", version=1)

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        shown = [part for message in messages for part in message.parts if isinstance(part, Image)]
        if want.modality == "text":
            parts: tuple[Part, ...] = (Text("I do not know."),)
        else:
            parts = tuple(shown[-1:])
        outcome, reason = outcome_of(parts, want.modality)
        return EndpointReply(parts, outcome, reason or "", served_model=self.name)


class ConstantJudge(UncachedEndpoint):
    """A judge that gives everything the same score, or the highest that each question allows. It tests plumbing; it
    judges nothing."""

    def __init__(self, score: float | None) -> None:
        super().__init__("constant/max" if score is None else f"constant/{score:g}", score=score)
        self._score = score
        self._said: dict[bytes, str] = {}

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        asked = want.schema or (want.question.schema if want.question else None)
        schema = msgspec.json.encode(asked or {"type": "object", "properties": {"score": {"type": "number"}}})
        if schema not in self._said:
            self._said[schema] = msgspec.json.encode(self._filled(msgspec.json.decode(schema))).decode()
        said = self._said[schema]
        return EndpointReply((Text(said),), "answered", raw=said, served_model=self.name)

    def _filled(self, schema: dict[str, Any]) -> Any:
        """A value that fits, whatever the shape."""
        kinds: Any = schema.get("type", "object")
        kind = next(
            one for one in (cast(list[str], kinds) if isinstance(kinds, list) else [str(kinds)]) if one != "null"
        )
        if kind == "object":
            return {name: self._filled(one) for name, one in schema.get("properties", {}).items()}
        if kind == "array":
            return self._entries(schema)
        if kind == "string":
            return schema.get("enum", ["the same score for all"])[0]
        if kind == "boolean":
            return self._score is None or self._score > 0
        if self._score is not None:
            score = self._score
        else:
            score = schema.get("maximum", max(schema.get("enum", [0])))
        if score == int(score):
            return int(score)
        return score

    def _entries(self, schema: dict[str, Any]) -> list[Any]:
        """As many as are due: one for each number that an entry may carry, or the least that the list may have."""
        entry = schema.get("items", {})
        for name, one in entry.get("properties", {}).items():
            numbers = one.get("enum", ())
            if numbers and list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
                return [{**self._filled(entry), name: number} for number in numbers]
        return [self._filled(entry) for _ in range(schema.get("minItems", 1))]


MAX_REFERENCES = 10_000  # references of turns that are being asked about
STAND_IN_REASON = "the dataset has no true reply here: a stand-in"


class ReferenceModel(UncachedEndpoint):
    """The dataset's own reference replies. Where it has none (IMUG-Bench has no reference images), a stand-in, and the
    reply says so."""

    depends_on_input = False

    def __init__(self, digest: str, blobs: Blobs) -> None:
        """`digest` is the dataset's. Who asks about a turn lets it learn the reference first."""
        super().__init__("reference", dataset=digest)
        self._blobs = blobs
        self._parts: dict[TurnRef, tuple[Part, ...]] = {}

    def set_reference(self, place: TurnRef, reference: tuple[Part, ...]) -> None:
        """`place` is a turn that is asked about next; only the latest are kept."""
        if len(self._parts) >= MAX_REFERENCES:
            self._parts.pop(next(iter(self._parts)))
        self._parts[place] = reference

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        parts = self._parts[want.turn_ref]
        outcome, reason = outcome_of(parts, want.modality)
        if outcome != "answered":
            return EndpointReply(
                (*parts, build_stand_in(want.modality, self._blobs)),
                "answered",
                STAND_IN_REASON,
                served_model=self.name,
                notes=("stand-in",),
            )
        return EndpointReply(parts, outcome, reason, served_model=self.name)


def build_stand_in(kind: Modality, blobs: Blobs) -> Part:
    """Something of the kind that is due."""
    from PIL import Image as Pil

    if kind == "text":
        return Text("A")
    return blobs.put_pil(Pil.new("RGB", (64, 64), "grey"), durable=False)


@provider_info(Takes(), Gives(interleaved=False, ordered=False, json=False))
def copy_from_spec(spec: ModelSpec, blobs: Blobs) -> CopyBaseline:
    return CopyBaseline()


@provider_info(Takes(), Gives(image=False, interleaved=False, ordered=False))
def constant_from_spec(spec: ModelSpec, blobs: Blobs) -> ConstantJudge:
    try:
        return ConstantJudge(None if spec.model == "max" else finite_number(spec.model))
    except ValueError:
        raise UserError(f"{spec.text}: constant/SCORE needs a number, such as constant/10, or max") from None
