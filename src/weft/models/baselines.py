"""Models that need no weights.

`copy` is a floor for tables, `constant/SCORE` a judge for testing, and `reference` replies with the dataset's own
reference answers. A turn that has none stays unscored.
"""

from typing import Any, cast

import msgspec

from weft.errors import UserError
from weft.models.converters import finite_number
from weft.models.endpoint import Endpoint, EndpointReply
from weft.models.registry import ModelSpec, provider_info
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Modality, Part, Request, Takes, Text, TurnRef, outcome_of

SCORE_SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}
MAX_REFERENCES = 10_000  # that a ReferenceModel holds; only turns in flight need one
NO_REFERENCE = "the dataset has no reference {} here, so the model `reference` has no reply"  # modality
STAND_IN_REASON = "the dataset has no reference here: a stand-in"


class UncachedEndpoint(Endpoint):
    """An endpoint that answers at once, so that its answers need not be cached."""

    cacheable = False
    output_checked = False


class CopyBaseline(UncachedEndpoint):
    """Replies with the last image it was shown; with a fixed text where text is expected."""

    def __init__(self) -> None:
        super().__init__("copy", version=1)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        parts: tuple[Part, ...] = (Text("I do not know."),)
        if request.modality != "text":
            parts = _last_image(messages)
        outcome, reason = outcome_of(parts, request.modality)
        return EndpointReply(parts, outcome, reason or "", served_model=self.name)


def _last_image(messages: tuple[Message, ...]) -> tuple[Part, ...]:
    for message in reversed(messages):
        for part in reversed(message.parts):
            if isinstance(part, Image):
                return (part,)
    return ()


class ConstantJudge(UncachedEndpoint):
    """Gives everything the same score, or (None) the highest that each question allows. It is for tests of a setup."""

    def __init__(self, score: float | None) -> None:
        name = "constant/max" if score is None else f"constant/{score:g}"
        super().__init__(name, score=score)
        self._score = score
        self._replies: dict[bytes, str] = {}  # by schema

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        schema = request.schema
        if not schema and request.question:
            schema = request.question.schema
        key = msgspec.json.encode(schema or SCORE_SCHEMA)
        if key not in self._replies:
            self._replies[key] = msgspec.json.encode(self._fill(msgspec.json.decode(key))).decode()
        text = self._replies[key]
        return EndpointReply((Text(text),), "answered", raw=text, served_model=self.name)

    def _fill(self, schema: dict[str, Any]) -> Any:
        """Return a value that fits the schema."""
        types: Any = schema.get("type", "object")
        if not isinstance(types, list):
            types = [str(types)]
        type_name = next(name for name in cast(list[str], types) if name != "null")
        if type_name == "object":
            return {name: self._fill(field) for name, field in schema.get("properties", {}).items()}
        if type_name == "array":
            return self._fill_array(schema)
        if type_name == "string":
            return schema.get("enum", ["the same score for all"])[0]
        if type_name == "boolean":
            return self._score is None or self._score > 0
        score = self._score
        if score is None:
            score = schema.get("maximum", max(schema.get("enum", [0])))
        if score == int(score):
            return int(score)
        return score

    def _fill_array(self, schema: dict[str, Any]) -> list[Any]:
        """Return one entry for each number that an entry may carry, or as few entries as the schema allows."""
        entry = schema.get("items", {})
        for name, field in entry.get("properties", {}).items():
            numbers = list(field.get("enum", ()))
            first = numbers[0] if numbers else None
            if isinstance(first, int) and numbers == list(range(first, first + len(numbers))):
                return [{**self._fill(entry), name: number} for number in numbers]
        return [self._fill(entry) for _ in range(schema.get("minItems", 1))]


class ReferenceModel(UncachedEndpoint):
    """Replies with the dataset's references.

    Where the dataset has none (IMUG-Bench has no reference images) the reply is a failed one, and the turn unscored.
    With `stand_ins` it is a placeholder instead, and its reason says so: to check a dataset end to end.
    """

    depends_on_input = False

    def __init__(self, digest: str, blobs: Blobs, *, stand_ins: bool = False) -> None:
        """`digest` is the dataset's. `set_reference` must be called for a turn before `send`."""
        super().__init__("reference", dataset=digest)
        self._blobs = blobs
        self._has_stand_ins = stand_ins
        self._references: dict[TurnRef, tuple[Part, ...]] = {}

    def set_reference(self, turn: TurnRef, reference: tuple[Part, ...]) -> None:
        """Store the reference of a turn that is about to be requested; the oldest is dropped if there are too many."""
        if len(self._references) >= MAX_REFERENCES:
            self._references.pop(next(iter(self._references)))
        self._references[turn] = reference

    def _find_parts(self, request: Request) -> tuple[Part, ...]:
        return self._references[request.turn_ref]

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        parts = self._find_parts(request)
        outcome, reason = outcome_of(parts, request.modality)
        if outcome == "answered":
            return EndpointReply(parts, outcome, reason, served_model=self.name)
        if not self._has_stand_ins:
            missing = NO_REFERENCE.format(request.modality)
            return EndpointReply((), "failed", missing, served_model=self.name)
        return EndpointReply(
            (*parts, build_stand_in(request.modality, self._blobs)),
            "answered",
            STAND_IN_REASON,
            served_model=self.name,
            notes=("stand-in",),
        )


class ReferenceRole(ReferenceModel):
    """Plays a role of a composition with the dataset's references: what the role is asked for of them, text or images.

    Whoever asks for an image of several gets them all. A turn without a reference of that modality stays unscored.
    """

    def __init__(self, blobs: Blobs) -> None:
        super().__init__("", blobs)  # a run's manifest has the dataset's digest

    def _find_parts(self, request: Request) -> tuple[Part, ...]:
        parts = self._references.get(request.turn_ref, ())
        if request.modality == "text":
            return tuple(part for part in parts if not isinstance(part, Image))
        if request.modality == "image":
            return tuple(part for part in parts if isinstance(part, Image))
        return parts


def build_stand_in(modality: Modality, blobs: Blobs) -> Part:
    """Return a placeholder output: a letter where text is expected, else a grey image."""
    from PIL import Image as Pil

    if modality == "text":
        return Text("A")
    return blobs.put_pil(Pil.new("RGB", (64, 64), "grey"), durable=False)


@provider_info()
def reference_role_from_spec(spec: ModelSpec, blobs: Blobs) -> ReferenceRole:
    return ReferenceRole(blobs)


@provider_info(Takes(), Gives(interleaved=False, ordered=False, json=False))
def copy_from_spec(spec: ModelSpec, blobs: Blobs) -> CopyBaseline:
    return CopyBaseline()


@provider_info(Takes(), Gives(image=False, interleaved=False, ordered=False))
def constant_from_spec(spec: ModelSpec, blobs: Blobs) -> ConstantJudge:
    if spec.model == "max":
        return ConstantJudge(None)
    try:
        return ConstantJudge(finite_number(spec.model))
    except ValueError:
        raise UserError(f"{spec.text}: constant/SCORE needs a number, such as constant/10, or max") from None
