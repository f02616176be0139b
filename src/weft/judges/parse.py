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
    except (msgspec.DecodeError, RecursionError):
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
    kind = type_of(schema)
    try:
        fitting = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        try:
            fitting = msgspec.convert(_stripped(value), kind, strict=False)
        except msgspec.ValidationError:
            said, _, where = str(error).partition(" - at ")
            raise Unusable(f"{where.strip('`') or '$'}: {said}") from None
    found = msgspec.to_builtins(fitting)
    _check_numbers(found, schema, "$")
    return {**value, **cast(dict[str, Any], found)} if isinstance(found, dict) else found


def type_of(schema: dict[str, Any]) -> Any:
    """A schema as a type that msgspec checks, which is quick and says where something does not fit. Raises ValueError for what it is not
    checked for: before anyone is asked."""
    return _type_of(msgspec.json.encode(schema))


def _stripped(value: Any) -> Any:
    """Judges put spaces around numbers."""
    if isinstance(value, dict):
        return {name: _stripped(one) for name, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_stripped(one) for one in cast(list[Any], value)]
    return value.strip() if isinstance(value, str) else value


def _check_numbers(value: Any, schema: dict[str, Any], where: str) -> None:
    """Numbers that are named one by one; the type has their bounds alone."""
    kind = schema["type"]
    if kind == "object":
        for name, one in schema.get("properties", {}).items():
            if name in value:
                _check_numbers(value[name], one, f"{where}.{name}")
    elif kind == "array" and "items" in schema:
        for at, one in enumerate(value):
            _check_numbers(one, schema["items"], f"{where}[{at}]")
    elif kind in ("number", "integer") and "enum" in schema and value not in schema["enum"]:
        raise Unusable(f"{where}: {value:g} is not one of {', '.join(map(str, schema['enum']))}")


@functools.lru_cache(maxsize=1024)
def _type_of(schema: bytes) -> Any:
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
        strange = [name for name in known if not name or set(name) & set('"\\') or not name.isprintable()]
        if strange or set(due) - set(known):
            raise ValueError(f"weft does not check the keys {[*strange, *sorted(set(due) - set(known))]} in a rubric's schema")
        required = [(short[name], types[name]) for name in known if name in due]
        rest = [(short[name], types[name] | msgspec.UnsetType, msgspec.UNSET) for name in known if name not in due]
        return msgspec.defstruct("Reply", [*required, *rest], rename={one: name for name, one in short.items()})
    if kind == "array":
        length = msgspec.Meta(min_length=schema.get("minItems"), max_length=schema.get("maxItems"))
        return Annotated[list[_made_type(schema.get("items", {"type": "string"}))], length]
    if "enum" in schema and not schema["enum"]:
        raise ValueError("an empty enum in a rubric's schema: nothing could fit it")
    if kind in ("string", "boolean"):
        return Literal[tuple(schema["enum"])] if "enum" in schema else str if kind == "string" else bool
    return _made_number(kind, schema)


def _made_number(kind: str, schema: dict[str, Any]) -> Any:
    low, high = (min(schema["enum"]), max(schema["enum"])) if "enum" in schema else (schema.get("minimum"), schema.get("maximum"))
    number: Any = int if kind == "integer" else float
    low, high = number(-LARGEST if low is None else low), number(LARGEST if high is None else high)
    return Annotated[number, msgspec.Meta(ge=low, le=high)]
