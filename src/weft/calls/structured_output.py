"""From a judge's reply to a validated object: thinking tags, code fences and prose around the JSON are tolerated; a
value outside the schema is not. Nothing is guessed, clamped or defaulted: `UnusableReply` says what is wrong and where
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
# What follows a tag that really ends thinking. A judge that only mentions a tag continues on the same line.
AFTER_CLOSING_TAG = re.compile(r"[^\S\n]*(?:\n|$|\{|`{3}|<)")
INTRODUCTION = re.compile(  # how a judge introduces its own verdict, as opposed to a quotation
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
MAX_LENGTH = 200_000  # characters of a reply that are read, from its end
MAX_WASTED = 2_000_000  # characters that are scanned for objects that turn out to be none
MAX_NUMBER = 1_000_000_000


class UnusableReply(WeftError):
    """Why a reply cannot be used. `ask_again`: whether the judge may do better if it is told."""

    def __init__(self, message: str, *, ask_again: bool = True) -> None:
        super().__init__(message)
        self.ask_again = ask_again


class EmbeddedObject(Struct, frozen=True):
    """A JSON object in a reply."""

    value: dict[str, Any]
    before: str  # the text in front of it, back to the object before
    section: int = 0  # closing tags before it that may have ended thinking, or may only be mentioned


Candidate = tuple[EmbeddedObject, dict[str, Any]]  # an object that fits the schema, and its converted value


def read_reply(text: str, schema: dict[str, Any], read_material: Callable[[], str] = str) -> dict[str, Any]:
    """Return the object in the reply that fits the schema. Raises UnusableReply if there is none, or no single one.

    `read_material` returns what the judge was shown: if several objects fit, one that occurs there too is a quotation,
    not a verdict. Among the others the judge's own introduction decides (`No, wait: {...}`), then which begins its
    line; if they still contradict each other the reply cannot be used.
    """
    text = _strip_fence(text.strip())
    if text[:1] == "{" and text[-1:] == "}":
        whole = _decode_object(text)
        if whole is not None:
            return fit_schema(whole, schema)
    objects, has_text = _find_objects(text)
    if not objects and not has_text:
        raise UnusableReply("the reply is empty")
    problem = "there is no JSON object in the reply"
    candidates: list[Candidate] = []
    for embedded in objects:
        try:
            candidates.append((embedded, fit_schema(embedded.value, schema)))
        except UnusableReply as error:
            problem = str(error)
    if not candidates:
        raise UnusableReply(problem)
    last_section = max(embedded.section for embedded, _ in candidates)
    candidates = [candidate for candidate in candidates if candidate[0].section == last_section]
    return _choose(candidates, read_material)


def _strip_fence(text: str) -> str:
    """Return the content of a code fence if the whole text is one."""
    if not text.startswith("```") or not text.endswith("```") or text.count("```") != 2:
        return text
    content = text[3:-3]
    if not content.startswith("{"):  # the first line names the language
        content = content.partition("\n")[2]
    return content.strip()


def _choose(candidates: list[Candidate], read_material: Callable[[], str]) -> dict[str, Any]:
    """Return the object that is the judge's verdict."""
    own = _drop_quotations(candidates, read_material())
    if not own:  # the judge may quote the very verdict that it introduces as its own
        own = _keep_last_introduced(candidates)
    if not own:
        raise UnusableReply("what it has of JSON stands in what was to be judged; give your own, and nothing else")
    introduced = [candidate for candidate in _keep_last_introduced(candidates) if candidate in own]
    for group in (own, introduced, _keep_line_beginnings(own)):
        if _agree(group):
            return group[-1][1]
    raise UnusableReply(f"it has {len(own)} JSON objects that fit and contradict each other; give one")


def _drop_quotations(candidates: list[Candidate], material: str) -> list[Candidate]:
    """Return those that do not occur in what the judge was shown."""
    quoted = [embedded.value for embedded in _find_objects(material)[0]]
    return [candidate for candidate in candidates if candidate[0].value not in quoted]


def _keep_last_introduced(candidates: list[Candidate]) -> list[Candidate]:
    """Return the last one that the judge introduces as its own; none if it introduces none."""
    return [candidate for candidate in candidates if INTRODUCTION.search(candidate[0].before[-80:])][-1:]


def _keep_line_beginnings(candidates: list[Candidate]) -> list[Candidate]:
    """Return those that begin their line."""
    return [candidate for candidate in candidates if _begins_line(candidate[0])]


def _agree(candidates: list[Candidate]) -> bool:
    """Whether there are any, and all have one value."""
    return bool(candidates) and all(value == candidates[0][1] for _, value in candidates)


def _begins_line(embedded: EmbeddedObject) -> bool:
    line = embedded.before.rpartition("\n")[2]
    return not line.strip(" \t`")


def _find_objects(text: str) -> tuple[list[EmbeddedObject], bool]:
    """Return every outermost JSON object outside of thinking, in order, and whether there is anything but thinking.

    One pass: a tag inside an object is text. A tag opens thinking only at the beginning of a line, and closes what the
    chat template opened only where its line ends or the verdict begins: a judge may mention tags. The characters that
    are scanned after braces that begin no object are bounded.
    """
    text = text[-MAX_LENGTH:]
    objects: list[EmbeddedObject] = []
    position = 0
    content_start = 0  # after the last object, or the last closing tag
    wasted = 0
    thinking_start = -1  # -1 outside of thinking
    section = 0
    while True:
        match = TAG.search(text, position)
        if match is None:
            break
        position = match.end()
        if match.group() == "{":
            if thinking_start >= 0 or wasted >= MAX_WASTED:
                continue
            value, end = _object_at(text, match.start())
            if value is None:
                wasted += end - match.start() + position // 50 + 200  # an attempt costs something by itself
            else:
                objects.append(EmbeddedObject(value, text[content_start : match.start()], section))
                position = end
                content_start = end
        elif not match.group(1):
            if thinking_start < 0 and _is_at_line_start(text, match.start()):
                thinking_start = match.start()
        elif thinking_start >= 0 or AFTER_CLOSING_TAG.match(text, match.end()):
            if thinking_start < 0:  # the chat template opened it
                objects.clear()
            thinking_start = -1
            content_start = match.end()
        else:
            section += 1
    end = len(text)
    if thinking_start >= 0:  # cut off while thinking
        end = thinking_start
    return objects, bool(text[content_start:end].strip()) or bool(objects)


def _is_at_line_start(text: str, position: int) -> bool:
    line_start = max(text.rfind("\n", 0, position) + 1, position - 200)
    return not text[line_start:position].strip()


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """Return the object that begins at `start`, if any, and how far it was scanned."""
    try:
        _, end = DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return None, error.pos + 1
    except (ValueError, RecursionError):
        return None, len(text)
    return _decode_object(text[start:end]), end


def _decode_object(text: str) -> dict[str, Any] | None:
    try:
        value: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if isinstance(value, dict):
        return cast(dict[str, Any], value)
    return None


def fit_schema(value: Any, schema: dict[str, Any]) -> Any:
    """Return the value if it fits the schema, with numbers in strings converted. Additional keys are kept.

    Raises UnusableReply if it does not fit.
    """
    type = compile_schema(schema)
    try:
        converted = msgspec.convert(value, type, strict=False)
    except msgspec.ValidationError as error:
        try:
            converted = msgspec.convert(_strip_strings(value), type, strict=False)
        except msgspec.ValidationError:
            problem, _, where = str(error).partition(" - at ")
            raise UnusableReply(f"{where.strip('`') or '$'}: {problem}") from None
    fitted = msgspec.to_builtins(converted)
    _check_enums(fitted, schema, "$")
    if isinstance(fitted, dict):
        return {**value, **cast(dict[str, Any], fitted)}
    return fitted


def compile_schema(schema: dict[str, Any]) -> Any:
    """Return a type that msgspec validates against, which is quick and says where something does not fit.

    Raises ValueError for a schema with keywords that are not checked, before any judge is asked.
    """
    return _compile_cached(msgspec.json.encode(schema))


def _strip_strings(value: Any) -> Any:
    """Strip every string: judges put spaces around numbers."""
    if isinstance(value, dict):
        return {name: _strip_strings(item) for name, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_strip_strings(item) for item in cast(list[Any], value)]
    if isinstance(value, str):
        return value.strip()
    return value


def _check_enums(value: Any, schema: dict[str, Any], where: str) -> None:
    """Check numbers against their enums; the compiled type has only their bounds."""
    kind = schema["type"]
    if kind == "object":
        for name, property_schema in schema.get("properties", {}).items():
            if name in value:
                _check_enums(value[name], property_schema, f"{where}.{name}")
    elif kind == "array" and "items" in schema:
        for index, item in enumerate(value):
            _check_enums(item, schema["items"], f"{where}[{index}]")
    elif kind in ("number", "integer") and "enum" in schema and value not in schema["enum"]:
        raise UnusableReply(f"{where}: {value:g} is not one of {', '.join(map(str, schema['enum']))}")


@functools.lru_cache(maxsize=1024)
def _compile_cached(schema: bytes) -> Any:
    return _compile(msgspec.json.decode(schema))


def _compile(schema: dict[str, Any]) -> Any:
    unknown = schema.keys() - KEYWORDS - {"description"}
    kind = schema.get("type")
    if unknown or kind not in TYPES:
        raise ValueError(f"weft does not check {', '.join(sorted(unknown)) or f'type {kind!r}'} in a rubric's schema")
    if kind == "object":
        return _compile_object(schema)
    if kind == "array":
        length = msgspec.Meta(min_length=schema.get("minItems"), max_length=schema.get("maxItems"))
        return Annotated[list[_compile(schema.get("items", {"type": "string"}))], length]
    if "enum" in schema and not schema["enum"]:
        raise ValueError("an empty enum in a rubric's schema: nothing could fit it")
    if kind in ("number", "integer"):
        return _compile_number(kind, schema)
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if kind == "string":
        return str
    return bool


def _compile_object(schema: dict[str, Any]) -> Any:
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    invalid = [name for name in properties if not name or set(name) & set('"\\') or not name.isprintable()]
    invalid += sorted(set(required) - set(properties))
    if invalid:
        raise ValueError(f"weft does not check the keys {invalid} in a rubric's schema")
    required_fields: list[Any] = []
    optional_fields: list[Any] = []
    names: dict[str, str] = {}  # field -> key, since keys such as `Prompt Adherence` are no Python names
    for index, (name, property_schema) in enumerate(properties.items()):
        field = f"f{index}"
        names[field] = name
        type = _compile(property_schema)
        if name in required:
            required_fields.append((field, type))
        else:
            optional_fields.append((field, type | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct("Reply", [*required_fields, *optional_fields], rename=names)


def _compile_number(kind: str, schema: dict[str, Any]) -> Any:
    low = schema.get("minimum")
    high = schema.get("maximum")
    if "enum" in schema:
        low = min(schema["enum"])
        high = max(schema["enum"])
    if low is None:
        low = -MAX_NUMBER
    if high is None:
        high = MAX_NUMBER
    number: Any = int if kind == "integer" else float
    return Annotated[number, msgspec.Meta(ge=number(low), le=number(high))]
