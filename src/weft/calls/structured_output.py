"""From a judge's reply to a validated object: thinking tags, code fences and prose around the JSON are tolerated; a
value outside the schema is not. Nothing is guessed, clamped or defaulted: `Unusable` says what is wrong and where
(`$.scores.c2.Score`), in words that can be shown to the judge."""

import functools
import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Struct

from weft.errors import WeftError

TAG = re.compile(r"\{|<(/?)(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
# what follows a tag that surely ends thinking; a judge that names one goes on in its line
CLOSES = re.compile(r"[^\S\n]*(?:\n|$|\{|`{3}|<)")
OWN = re.compile(  # how a judge introduces what it gives, as against what it quotes
    r"\b(?:my|here|final|verdict|judge?ment|score|wait|actually|sum up|correct\w*|"
    r"instead|rather|revis\w*|reconsider\w*|therefore|so|result)\b[^\w{}]*$",
    re.IGNORECASE,
)
KEYWORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
}
TYPES = ("object", "array", "string", "number", "integer", "boolean")
DECODER = json.JSONDecoder()
LONGEST = 200_000
MOST_WASTED = 2_000_000
LARGEST = 1_000_000_000


class UnusableReply(WeftError):
    """Why a reply cannot be used."""


class EmbeddedObject(Struct, frozen=True):
    """An object in a reply, and the text in front of it, back to the object before. `part`: how many tags stand before
    it that may have ended thinking, or may only be named."""

    value: dict[str, Any]
    before: str
    part: int = 0


def read_reply(text: str, schema: dict[str, Any], shown: Callable[[], str] = str) -> dict[str, Any]:
    """The object in the reply that fits the schema. `shown` gives what the judge was shown: where several objects fit,
    what stands there as well is a quotation, and no verdict. Of those that are left the judge's own introduction
    decides (`No, wait: {...}`), then which begins its line; where they still contradict each other the reply cannot be
    used."""
    said = _unfenced(text.strip())
    if said[:1] == "{" and said[-1:] == "}":
        whole = _decoded(said)
    else:
        whole = None
    if whole is not None:
        return fit_schema(whole, schema)
    there, talked = _objects(said)
    if not there and not talked:
        raise UnusableReply("the reply is empty")
    problem = "there is no JSON object in the reply"
    fitting: list[tuple[EmbeddedObject, dict[str, Any]]] = []
    for found in there:
        try:
            fitting.append((found, fit_schema(found.value, schema)))
        except UnusableReply as error:
            problem = str(error)
    if not fitting:
        raise UnusableReply(problem)
    last = max(found.part for found, _ in fitting)
    return _meant([one for one in fitting if one[0].part == last], shown)


def _unfenced(said: str) -> str:
    """What stands in a fence, if nothing stands around it."""
    if not said.startswith("```") or not said.endswith("```") or said.count("```") != 2:
        return said
    if said[3:4] != "{":
        return said[3:-3].partition("\n")[2].strip()
    return said[3:-3].strip()


def _meant(fitting: list[tuple[EmbeddedObject, dict[str, Any]]], shown: Callable[[], str]) -> dict[str, Any]:
    """Of the objects in a reply with other words around them, the one that the judge gives."""
    quoted = [found.value for found in _objects(shown())[0]]
    introduced = [one for one in fitting if OWN.search(one[0].before[-80:])][-1:]
    own = [one for one in fitting if one[0].value not in quoted] or introduced
    if not own:
        raise UnusableReply("what it has of JSON stands in what was to be judged; give your own, and nothing else")
    introduced = [one for one in introduced if one in own]
    standing = [one for one in own if not one[0].before.rpartition("\n")[2].strip(" \t`")]
    for some in (own, introduced, standing):
        if some and _agree(some):
            return some[-1][1]
    raise UnusableReply(f"it has {len(own)} JSON objects that fit and contradict each other; give one")


def _agree(some: list[tuple[EmbeddedObject, dict[str, Any]]]) -> bool:
    return all(fitted == some[0][1] for _, fitted in some)


def _objects(text: str) -> tuple[list[EmbeddedObject], bool]:
    """Every outermost JSON object outside of thinking, in order, and whether anything but thinking is there. One pass:
    a tag inside an object is a text of it. A tag opens thinking only at the beginning of a line, and ends what the
    template opened only where its line ends or the verdict begins: a judge may name tags. Braces that lead nowhere are
    followed for a bounded number of characters, all together."""
    text = text[-LONGEST:]
    found: list[EmbeddedObject] = []
    at = 0
    since = 0
    wasted = 0
    opened = -1
    part = 0
    while (match := TAG.search(text, at)) is not None:
        at = match.end()
        if match.group() == "{":
            if opened >= 0 or wasted >= MOST_WASTED:
                continue
            one, end = _object_at(text, match.start())
            if one is None:
                wasted += end - match.start() + at // 50 + 200  # what a try costs by itself
            else:
                found.append(EmbeddedObject(one, text[since : match.start()], part))
                at = since = end
        elif not match.group(1):
            line = max(text.rfind("\n", 0, match.start()) + 1, match.start() - 200)
            if opened < 0 and not text[line : match.start()].strip():
                opened = match.start()
        elif opened >= 0 or CLOSES.match(text, match.end()):
            if opened < 0:  # the template opened it
                found.clear()
            opened = -1
            since = match.end()
        else:
            part += 1
    if opened >= 0:  # cut off while thinking
        return found, bool(text[since:opened].strip()) or bool(found)
    return found, bool(text[since:].strip()) or bool(found)


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """The object that begins there, if one does, and how far it was followed."""
    try:
        _, end = DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return None, error.pos + 1
    except (ValueError, RecursionError):
        return None, len(text)
    return _decoded(text[start:end]), end


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        found: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if isinstance(found, dict):
        return cast(dict[str, Any], found)
    return None


def fit_schema(value: Any, schema: dict[str, Any]) -> Any:
    """The value if it fits, with numbers in strings made numbers. Keys that were not asked for do no harm."""
    kind = compile_schema(schema)
    try:
        fitting = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        try:
            fitting = msgspec.convert(_stripped(value), kind, strict=False)
        except msgspec.ValidationError:
            said, _, where = str(error).partition(" - at ")
            raise UnusableReply(f"{where.strip('`') or '$'}: {said}") from None
    found = msgspec.to_builtins(fitting)
    _check_numbers(found, schema, "$")
    if isinstance(found, dict):
        return {**value, **cast(dict[str, Any], found)}
    return found


def compile_schema(schema: dict[str, Any]) -> Any:
    """A schema as a type that msgspec checks, which is quick and says where something does not fit. Raises ValueError
    for what it is not checked for: before anyone is asked."""
    return _type_of(msgspec.json.encode(schema))


def _stripped(value: Any) -> Any:
    """Judges put spaces around numbers."""
    if isinstance(value, dict):
        return {name: _stripped(one) for name, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_stripped(one) for one in cast(list[Any], value)]
    if isinstance(value, str):
        return value.strip()
    return value


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
        raise UnusableReply(f"{where}: {value:g} is not one of {', '.join(map(str, schema['enum']))}")


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
            raise ValueError(
                f"weft does not check the keys {[*strange, *sorted(set(due) - set(known))]} in a rubric's schema"
            )
        required = [(short[name], types[name]) for name in known if name in due]
        rest = [(short[name], types[name] | msgspec.UnsetType, msgspec.UNSET) for name in known if name not in due]
        return msgspec.defstruct("Reply", [*required, *rest], rename={one: name for name, one in short.items()})
    if kind == "array":
        length = msgspec.Meta(min_length=schema.get("minItems"), max_length=schema.get("maxItems"))
        return Annotated[list[_made_type(schema.get("items", {"type": "string"}))], length]
    if "enum" in schema and not schema["enum"]:
        raise ValueError("an empty enum in a rubric's schema: nothing could fit it")
    if kind in ("string", "boolean"):
        if "enum" in schema:
            return Literal[tuple(schema["enum"])]
        if kind == "string":
            return str
        return bool
    return _made_number(kind, schema)


def _made_number(kind: str, schema: dict[str, Any]) -> Any:
    low, high = (
        (min(schema["enum"]), max(schema["enum"]))
        if "enum" in schema
        else (schema.get("minimum"), schema.get("maximum"))
    )
    if kind == "integer":
        number: Any = int
    else:
        number = float
    low, high = number(-LARGEST if low is None else low), number(LARGEST if high is None else high)
    return Annotated[number, msgspec.Meta(ge=low, le=high)]
