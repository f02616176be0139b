"""From a judge's reply to a validated object: thinking tags, code fences and prose around the JSON are tolerated; a value outside the
schema is not. Nothing is guessed, clamped or defaulted: `Unusable` says what is wrong, in words that can be shown to the judge."""

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from weft.errors import WeftError

THINKING = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
UNCLOSED = re.compile(r"<(?:think|thinking|reasoning|thought)>.*$", re.DOTALL | re.IGNORECASE)  # cut off while thinking: no verdict yet
UNOPENED = re.compile(r"^.*</(?:think|thinking|reasoning|thought)>", re.DOTALL | re.IGNORECASE)

KEYWORDS = {"type", "properties", "required", "additionalProperties", "items", "enum", "minimum", "maximum", "description"}
TYPES = ("object", "array", "string", "number", "integer", "boolean")
LONGEST, MOST_DEAD_ENDS = 50_000, 50


class Unusable(WeftError):
    """Why a reply cannot be used."""


def read(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The last object in the reply that fits the schema (a judge that corrects itself means its last word)."""
    said = UNCLOSED.sub("", UNOPENED.sub("", THINKING.sub("", text))).strip()
    if not said:
        raise Unusable("the reply is empty")
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
            try:
                found: Any = msgspec.json.decode(text[start:end])
            except msgspec.DecodeError:
                found = None
            if isinstance(found, dict):
                yield cast(dict[str, Any], found)
                start = text.find("{", end)
                continue
        dead_ends += 1
        start = text.find("{", start + 1)


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


def fit_schema(value: Any, schema: dict[str, Any], where: str = "the reply") -> Any:
    """The value if it fits, with numbers in strings made numbers. The part of JSON schema that our rubrics use."""
    unknown = schema.keys() - KEYWORDS
    kind = schema.get("type")
    if unknown or kind not in TYPES:
        raise ValueError(f"weft does not check {', '.join(sorted(unknown)) or f'type {kind!r}'} in a rubric's schema")
    if kind == "object":
        return _fit_object(value, schema, where)
    if kind == "array":
        if not isinstance(value, list):
            raise Unusable(f"{where} must be a list")
        return [fit_schema(one, schema["items"], f"{where}[{at}]") for at, one in enumerate(cast(list[Any], value))]
    if kind == "string":
        if not isinstance(value, str):
            raise Unusable(f"{where} must be a string")
    elif kind in ("number", "integer"):
        value = _number(value, where)
        if kind == "integer" and value != int(value):
            raise Unusable(f"{where} is {value:g}; it must be a whole number")
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = " and ".join(
                words for words in (low is not None and f"at least {low}", high is not None and f"at most {high}") if words
            )
            raise Unusable(f"{where} is {value:g}; it must be {bounds}")
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(map(str, schema["enum"]))
        raise Unusable(f"{where} is {value}; it must be one of {allowed}")
    return value


def _fit_object(value: Any, schema: dict[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unusable(f"{where} must be an object")
    fields = cast(dict[str, Any], value)
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in fields:
            raise Unusable(f'{where} lacks the key "{name}"')
    return {name: fit_schema(one, properties[name], f'"{name}"') if name in properties else one for name, one in fields.items()}


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool):
        raise Unusable(f"{where} must be a number")
    if isinstance(value, str):
        try:
            value = float(value.strip()[:40])
        except ValueError:
            raise Unusable(f"{where} is {value!r}; it must be a number") from None
    if not isinstance(value, (int, float)) or value != value or abs(value) > 1e9:
        raise Unusable(f"{where} must be a number of a sensible size")
    return value
