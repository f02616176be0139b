"""From a judge's reply to a validated object: thinking tags, code fences and prose around the JSON are tolerated; a value outside the
schema is not. Nothing is guessed, clamped or defaulted: `Unusable` says what is wrong and where (`$.scores.c2.Score`), in words that can be
shown to the judge."""

import functools
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

import msgspec

from weft.errors import WeftError

THINKING = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
UNCLOSED = re.compile(r"<(?:think|thinking|reasoning|thought)>.*$", re.DOTALL | re.IGNORECASE)  # cut off while thinking: no verdict yet
UNOPENED = re.compile(r"^.*</(?:think|thinking|reasoning|thought)>", re.DOTALL | re.IGNORECASE)

KEYWORDS = {"type", "properties", "required", "additionalProperties", "items", "enum", "minimum", "maximum", "minItems", "maxItems"}
TYPES = ("object", "array", "string", "number", "integer", "boolean")
LONGEST, MOST_DEAD_ENDS, LARGEST = 50_000, 50, 1_000_000_000


class Unusable(WeftError):
    """Why a reply cannot be used."""


def read_reply(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The last object in the reply that fits the schema (a judge that corrects itself means its last word)."""
    said = UNCLOSED.sub("", UNOPENED.sub("", THINKING.sub("", text))).strip()
    if not said:
        raise Unusable("the reply is empty")
    if said[0] == "{" and said[-1] == "}":
        whole = _decoded(said)
        if whole is not None:
            return fit_schema(whole, schema)
    problem = "there is no JSON object in the reply"
    fitting: dict[str, Any] | None = None
    for found in _objects(said):
        try:
            fitting = fit_schema(found, schema)
        except Unusable as error:
            problem = str(error)
    if fitting is None:
        raise Unusable(problem)
    return fitting


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost JSON object in a text, in order. Braces that lead nowhere are tried a bounded number of times."""
    text = text[-LONGEST:]
    start, dead_ends = text.find("{"), 0
    while start != -1 and dead_ends < MOST_DEAD_ENDS:
        end = _closing(text, start)
        if end is not None:
            found = _decoded(text[start:end])
            if found is not None:
                yield found
                start = text.find("{", end)
                continue
        dead_ends += 1
        start = text.find("{", start + 1)


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        found: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def _closing(text: str, start: int) -> int | None:
    """Where the object that opens at `start` ends."""
    depth, quoted, escaped = 0, False, False
    for at in range(start, len(text)):
        char = text[at]
        if escaped:
            escaped = False
        elif quoted:
            escaped = char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return at + 1
    return None


def fit_schema(value: Any, schema: dict[str, Any]) -> Any:
    """The value if it fits, with numbers in strings made numbers. Keys that were not asked for do no harm."""
    try:
        found = msgspec.to_builtins(msgspec.convert(value, _type_of(msgspec.json.encode(schema)), strict=False))
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at ")
        raise Unusable(f"{where.strip('`') or '$'}: {said}") from None
    return {**value, **cast(dict[str, Any], found)} if isinstance(found, dict) else found


@functools.lru_cache(maxsize=1024)
def _type_of(schema: bytes) -> Any:
    """A schema as a type that msgspec checks, which is quick and says where something does not fit."""
    return _made_type(msgspec.json.decode(schema))


def _made_type(schema: dict[str, Any]) -> Any:
    unknown = schema.keys() - KEYWORDS - {"description"}
    kind = schema.get("type")
    if unknown or kind not in TYPES:
        raise ValueError(f"weft does not check {', '.join(sorted(unknown)) or f'type {kind!r}'} in a rubric's schema")
    if kind == "object":
        known: dict[str, dict[str, Any]] = schema.get("properties", {})
        short = {name: f"f{at}" for at, name in enumerate(known)}  # keys may be no names: `Prompt Adherence`
        types = {name: _made_type(one) for name, one in known.items()}
        due: list[str] = schema.get("required", [])
        required = [(short[name], types[name]) for name in known if name in due]
        rest = [(short[name], types[name] | msgspec.UnsetType, msgspec.UNSET) for name in known if name not in due]
        return msgspec.defstruct("Reply", [*required, *rest], rename={one: name for name, one in short.items()})
    if kind == "array":
        length = msgspec.Meta(min_length=schema.get("minItems"), max_length=schema.get("maxItems"))
        return Annotated[list[_made_type(schema.get("items", {"type": "string"}))], length]
    if kind in ("string", "boolean"):
        return Literal[tuple(schema["enum"])] if "enum" in schema else str if kind == "string" else bool
    return _made_number(kind, schema)


def _made_number(kind: str, schema: dict[str, Any]) -> Any:
    """Bounds, or numbers at even steps (1 to 5; 0, 5, 10), which is all that scores need."""
    low, high, step = schema.get("minimum"), schema.get("maximum"), None
    if "enum" in schema:
        allowed = sorted(schema["enum"])
        low, high = allowed[0], allowed[-1]
        step = allowed[1] - low if len(allowed) > 1 else 1
        if any(one % step for one in allowed) or [low + at * step for at in range(len(allowed))] != allowed:
            raise ValueError(
                f"weft does not check the numbers {allowed} in a rubric's schema: give minimum and maximum, or even steps from 0"
            )
    low, high = -LARGEST if low is None else low, LARGEST if high is None else high
    number: Any = int if kind == "integer" else float
    steps = {"multiple_of": step} if step not in (None, 1) else {}
    return Annotated[number, msgspec.Meta(ge=low, le=high, **steps)]
