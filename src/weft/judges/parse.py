"""From a judge's reply to a validated object: thinking tags, code fences and prose around the JSON are tolerated; a value outside the
schema is not. Nothing is guessed, clamped or defaulted: `Unusable` says what is wrong and where (`$.scores.c2.Score`), in words that can be
shown to the judge."""

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from weft.errors import WeftError

THINKING = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
UNCLOSED = re.compile(r"<(?:think|thinking|reasoning|thought)>.*$", re.DOTALL | re.IGNORECASE)  # cut off while thinking: no verdict yet
UNOPENED = re.compile(r"^.*</(?:think|thinking|reasoning|thought)>", re.DOTALL | re.IGNORECASE)

LONGEST, MOST_DEAD_ENDS, LONGEST_PROBLEM = 50_000, 50, 200


class Unusable(WeftError):
    """Why a reply cannot be used."""


def read_reply(text: str, schema: dict[str, Any]) -> dict[str, Any]:
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


def fit_schema(value: Any, schema: dict[str, Any]) -> Any:
    """The value if it fits, with numbers in strings made numbers. Keys that were not asked for do no harm."""
    from jsonschema import Draft202012Validator

    value = _with_numbers(value, schema)
    every: Iterator[Any] = cast(Any, Draft202012Validator(schema)).iter_errors(value)
    found = [error for error in every if error.validator != "additionalProperties"]
    if found:
        error = min(found, key=lambda one: len(one.absolute_path))
        said, half = str(error.message), LONGEST_PROBLEM // 2
        said = said if len(said) <= LONGEST_PROBLEM else f"{said[:half]}…{said[-half:]}"
        raise Unusable(f"{error.json_path}: {said}")
    return value


def _with_numbers(value: Any, schema: dict[str, Any]) -> Any:
    """The same value, with a number where a string holds the number that is due; what is no sensible number is left for the schema."""
    kind = schema.get("type")
    if kind == "object" and isinstance(value, dict):
        known: dict[str, dict[str, Any]] = schema.get("properties", {})
        return {name: _with_numbers(one, known.get(name, {})) for name, one in cast(dict[str, Any], value).items()}
    if kind == "array" and isinstance(value, list):
        return [_with_numbers(one, schema.get("items", {})) for one in cast(list[Any], value)]
    if kind not in ("number", "integer"):
        return value
    number = value
    if isinstance(value, str):
        try:
            number = float(value.strip()[:40])
        except ValueError:
            return value
    if isinstance(number, float) and abs(number) <= 1e9 and number.is_integer():
        return int(number)
    return number if isinstance(number, (int, float)) and abs(number) <= 1e9 else str(value)
