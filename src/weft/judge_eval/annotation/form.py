"""A question's schema as a form, and a filled-in form as the reply that a judge would have given. Pure.

A score is a row of buttons, with halves where the scale has them; an enum is buttons; a boolean is yes or no; words are
free, and never needed. In a list of objects whose entries have a number from an enum (`point_id`), there is a group for
each number, which is filled in. Nothing is guessed: what was not chosen is missing."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import Struct

from weft.errors import UserError, WeftError
from weft.untrusted import dict_or_empty as fields_of

MANY = 12  # steps of a scale that are buttons; of more, a number is typed
LONGEST = 4000  # characters of a reason
Path = tuple[str | int, ...]


class MissingAnswer(WeftError):
    """What was not chosen, or cannot be; `at` is the field's number."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at


class Field(Struct, frozen=True):
    """`halves`: half a step more than the option that is chosen can be said. `group` is the heading that it stands
    under."""

    path: Path
    kind: Literal["scale", "choice", "yes", "number", "text", "lines"]
    label: str
    group: str = ""
    options: tuple[Any, ...] = ()
    halves: bool = False
    low: float | None = None
    high: float | None = None
    whole: bool = False
    needed: bool = True

    @property
    def is_words(self) -> bool:
        return self.kind in ("text", "lines")


class AnnotationForm(Struct, frozen=True):
    fields: tuple[Field, ...]
    fixed: tuple[tuple[Path, Any], ...] = ()  # numbers of list entries
    lists: tuple[Path, ...] = ()


def form_of(schema: Mapping[str, Any], lines: Sequence[str] = ()) -> AnnotationForm:
    """`lines` are what the entries of a list are about, if there is one for each. Raises UserError for what no form can
    be made of."""
    fields: list[Field] = []
    fixed: list[tuple[Path, Any]] = []
    lists: list[Path] = []

    def walk(one: Mapping[str, Any], path: Path, label: str, group: str, needed: bool) -> None:
        kind = one.get("type")
        if kind == "object":
            inside = one.get("properties", {})
            required = one.get("required", list(inside))
            for name in sorted(inside, key=lambda name: _is_words(inside[name])):  # words last
                if label and not _holds_objects(one):
                    under = label
                else:
                    under = group
                walk(inside[name], (*path, name), _said(name), under, needed and name in required)
        elif kind == "array" and fields_of(one.get("items")).get("type") == "object":
            lists.append(path)
            number, values = _numbered(one, path)
            for at, value in enumerate(values):
                if len(lines) == len(values) and values[:1] == [1]:
                    told = lines[at]
                else:
                    told = ""
                title = f"{_said(number or label).removesuffix(' id')} {value}" + (f": {told}" if told else "")
                entry = dict(one["items"])
                if number:
                    fixed.append(((*path, at, number), value))
                    rest = {name: part for name, part in entry["properties"].items() if name != number}
                    entry = {
                        **entry,
                        "properties": rest,
                        "required": [name for name in entry.get("required", rest) if name != number],
                    }
                walk(entry, (*path, at), title, group, needed)
        else:
            fields.append(_field(one, path, label, group, needed))

    walk(schema, (), "", "", True)
    if all(field.is_words for field in fields):
        raise UserError("this question has nothing to choose in its schema, so there is no form for it")
    return AnnotationForm(tuple(fields), tuple(fixed), tuple(lists))


def _said(name: str) -> str:
    return name.replace("_", " ").strip()


def _is_words(schema: Mapping[str, Any]) -> bool:
    return (schema.get("type") == "string" and "enum" not in schema) or (
        schema.get("type") == "array" and fields_of(schema.get("items")).get("type", "string") == "string"
    )


def _holds_objects(schema: Mapping[str, Any]) -> bool:
    return any(one.get("type") == "object" for one in schema.get("properties", {}).values())


def _numbered(schema: Mapping[str, Any], path: Path) -> tuple[str, list[Any]]:
    """What its entries are numbered by, and the numbers."""
    inside: Mapping[str, Any] = schema["items"].get("properties", {})
    for name, one in inside.items():
        if one.get("type") == "integer" and one.get("enum"):
            return name, list(one["enum"])
    count = schema.get("minItems")
    if count is None or count != schema.get("maxItems"):
        where = ".".join(map(str, path))
        raise UserError(
            f"{where}: a list whose entries have no number from an enum, nor a fixed count: there is no form for it"
        )
    return "", list(range(1, count + 1))


def _field(schema: Mapping[str, Any], path: Path, label: str, group: str, needed: bool) -> Field:
    kind = schema.get("type")
    if kind == "boolean":
        return Field(path, "yes", label, group, (True, False), needed=needed)
    if kind == "array":
        return Field(path, "lines", label, group, needed=False)
    if kind == "string":
        if "enum" in schema:
            return Field(path, "choice", label, group, tuple(schema["enum"]), needed=needed)
        return Field(path, "text", label, group, needed=False)
    if kind not in ("integer", "number"):
        raise UserError(f"{'.'.join(map(str, path))}: there is no form for type {kind!r}")
    if "enum" in schema:
        return Field(path, "scale", label, group, tuple(sorted(schema["enum"])), needed=needed)
    return _number(path, label, group, needed, schema.get("minimum"), schema.get("maximum"), whole=kind == "integer")


def _number(
    path: Path, label: str, group: str, needed: bool, low: float | None, high: float | None, *, whole: bool
) -> Field:
    if low is None or high is None or high - low >= MANY or (whole and (low != int(low) or high != int(high))):
        return Field(path, "number", label, group, low=low, high=high, whole=whole, needed=needed)
    if not whole and (high - low <= 2 or low != int(low) or high != int(high)):
        steps = tuple(round(low + (high - low) * step / 10, 6) for step in range(11))
        return Field(path, "scale", label, group, steps, low=low, high=high, needed=needed)
    steps = tuple(range(int(low), int(high) + 1))
    return Field(path, "scale", label, group, steps, halves=not whole, low=low, high=high, whole=whole, needed=needed)


def answer_of(form: AnnotationForm, given: Mapping[str, str]) -> dict[str, Any]:
    """The reply, from what a form sends: `f0`, `f1` and so on, with `h0` for a half. Raises `Missing`."""
    values: list[tuple[Path, Any]] = [*form.fixed]
    for at, field in enumerate(form.fields):
        value = _value(field, at, given.get(f"f{at}", "").strip(), half=bool(given.get(f"h{at}")))
        if value is not None:
            values.append((field.path, value))
    return nested(values, form.lists)


def _value(field: Field, at: int, said: str, *, half: bool) -> Any:
    if field.kind == "text":
        return said[:LONGEST]
    if field.kind == "lines":
        return [line.strip() for line in said[:LONGEST].splitlines() if line.strip()]
    if not said:
        if field.needed:
            raise MissingAnswer(at, f"choose something for {told(field)}")
        return None
    if field.kind == "number":
        return _typed(field, at, said)
    if not said.isdecimal() or int(said) >= len(field.options):
        raise MissingAnswer(at, f"that is no choice for {told(field)}")
    value = field.options[int(said)]
    if half and field.halves:
        value += 0.5
        if field.high is not None and value > field.high:
            raise MissingAnswer(at, f"{told(field)}: {value:g} is more than {field.high:g}")
    return value


def _typed(field: Field, at: int, said: str) -> float:
    try:
        if field.whole:
            value = int(said)
        else:
            value = float(said)
    except ValueError:
        raise MissingAnswer(at, f"{told(field)}: {said[:20]!r} is no {'whole ' * field.whole}number") from None
    if not (field.low is None or value >= field.low) or not (field.high is None or value <= field.high):
        raise MissingAnswer(at, f"{told(field)}: {value:g} is not from {field.low:g} to {field.high:g}")
    return value


def told(field: Field) -> str:
    if field.group:
        return f"{field.group}, {field.label}"
    return field.label


def nested(values: Sequence[tuple[Path, Any]], lists: Sequence[Path] = ()) -> dict[str, Any]:
    """Values by their paths as one object."""
    made: dict[str, Any] = {}
    for path in lists:
        _at(made, path[:-1])[path[-1]] = []
    for path, value in values:
        _at(made, path[:-1])[path[-1]] = value
    return made


def _at(whole: Any, path: Path) -> Any:
    for step in path:
        if isinstance(whole, list):
            some = cast(list[Any], whole)
            while len(some) <= int(step):
                some.append({})
            whole = some[int(step)]
        else:
            whole = whole.setdefault(step, {})
    return whole


def found_at(answer: Any, path: Path) -> Any:
    """What an answer has there; None where there is nothing."""
    for step in path:
        if isinstance(answer, dict):
            answer = fields_of(answer).get(str(step))
        elif isinstance(answer, list) and isinstance(step, int):
            answer = next(iter(cast(list[Any], answer)[step : step + 1]), None)
        else:
            return None
    return answer


def chosen(field: Field, answer: Mapping[str, Any]) -> tuple[str, bool]:
    """What a form sends for an answer that was given before: the value, and whether there is a half."""
    value = found_at(answer, field.path)
    if value is None:
        return "", False
    if field.kind == "lines":
        return "\n".join(map(str, value)), False
    if field.is_words or field.kind == "number":
        return (value if isinstance(value, str) else f"{value:g}"), False
    if value in field.options:
        return str(field.options.index(value)), False
    if field.halves and isinstance(value, float) and value - 0.5 in field.options:
        return str(field.options.index(value - 0.5)), True
    return "", False


def lowest(form: AnnotationForm) -> list[tuple[Path, Any]]:
    """The lowest score, the first choice, `no` and the smallest number, for each field that is to be filled in."""
    made: list[tuple[Path, Any]] = []
    for field in form.fields:
        if not field.is_words and field.needed:
            if field.kind == "yes":
                least = False
            else:
                if field.kind == "number":
                    least = field.low or 0
                else:
                    least = field.options[0]
            made.append((field.path, least))
    return made
