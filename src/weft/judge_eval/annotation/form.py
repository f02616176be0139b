"""A question's schema as a form, and a filled-in form as the reply that a judge would have given. Pure.

A score is a row of buttons, with half points where the scale allows them; an enum is buttons; a boolean is yes or no;
texts are free and never required. For a list of objects whose entries are numbered by an enum (`point_id`), there is a
group of fields for each number. Nothing is guessed: a field that was not filled in is missing."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError, WeftError
from weft.untrusted import dict_or_empty

MAX_BUTTONS = 12  # a scale with more steps is typed as a number
MAX_TEXT = 4000  # characters
Path = tuple[str | int, ...]  # of a value in a reply
Schema = Mapping[str, Any]


class MissingAnswer(WeftError):
    """A field that was not filled in, or not with an allowed value."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index  # of the field in its form


class Field(Struct, frozen=True):
    """One value that an annotator fills in."""

    path: Path
    kind: Literal["scale", "choice", "yes", "number", "text", "lines"]
    label: str
    group: str = ""  # the heading above it
    options: tuple[Any, ...] = ()
    has_halves: bool = False  # half a point can be added to the chosen option
    low: float | None = None
    high: float | None = None
    is_integer: bool = False
    required: bool = True

    @property
    def is_text(self) -> bool:
        return self.kind in ("text", "lines")

    @property
    def full_label(self) -> str:
        if self.group:
            return f"{self.group}, {self.label}"
        return self.label


class AnnotationForm(Struct, frozen=True):
    """The fields of a question, and the parts of the reply that are not filled in."""

    fields: tuple[Field, ...]
    fixed: tuple[tuple[Path, Any], ...] = ()  # numbers of list entries
    lists: tuple[Path, ...] = ()  # where the reply has lists, even empty ones


def build_form(schema: Schema, lines: Sequence[str] = ()) -> AnnotationForm:
    """Build the form of a schema. `lines` say what the entries of a list are about, if there is one for each.

    Raises UserError for a schema that no form can be built from."""
    builder = _FormBuilder(lines)
    builder.add(schema, (), "", "", required=True)
    if all(field.is_text for field in builder.fields):
        raise UserError("this question has nothing to choose in its schema, so there is no form for it")
    return AnnotationForm(tuple(builder.fields), tuple(builder.fixed), tuple(builder.lists))


class _FormBuilder:
    """Walks a schema and collects the fields of its form."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.fields: list[Field] = []
        self.fixed: list[tuple[Path, Any]] = []
        self.lists: list[Path] = []

    def add(self, schema: Schema, path: Path, label: str, group: str, *, required: bool) -> None:
        kind = schema.get("type")
        if kind == "object":
            self._add_object(schema, path, label, group, required=required)
        elif kind == "array" and dict_or_empty(schema.get("items")).get("type") == "object":
            self._add_list(schema, path, label, group, required=required)
        else:
            self.fields.append(_build_field(schema, path, label, group, required))

    def _add_object(self, schema: Schema, path: Path, label: str, group: str, *, required: bool) -> None:
        properties = schema.get("properties", {})
        names_required = schema.get("required", list(properties))
        inner_group = group
        if label and not _holds_objects(schema):
            inner_group = label
        for name in sorted(properties, key=lambda name: _is_text(properties[name])):  # texts last
            is_required = required and name in names_required
            self.add(properties[name], (*path, name), _readable(name), inner_group, required=is_required)

    def _add_list(self, schema: Schema, path: Path, label: str, group: str, *, required: bool) -> None:
        self.lists.append(path)
        number_name, numbers = _entry_numbers(schema, path)
        has_lines = len(self.lines) == len(numbers) and numbers[:1] == [1]
        noun = _readable(number_name or label).removesuffix(" id")
        for index, number in enumerate(numbers):
            title = f"{noun} {number}"
            if has_lines and self.lines[index]:
                title += f": {self.lines[index]}"
            if number_name:
                self.fixed.append(((*path, index, number_name), number))
            entry = _without_property(schema["items"], number_name)
            self.add(entry, (*path, index), title, group, required=required)


def _without_property(schema: Schema, name: str) -> dict[str, Any]:
    """The schema of an object without one of its properties; unchanged if the name is empty."""
    if not name:
        return dict(schema)
    properties = {key: value for key, value in schema["properties"].items() if key != name}
    required = [key for key in schema.get("required", properties) if key != name]
    return {**schema, "properties": properties, "required": required}


def _readable(name: str) -> str:
    return name.replace("_", " ").strip()


def _is_text(schema: Schema) -> bool:
    if schema.get("type") == "string":
        return "enum" not in schema
    return schema.get("type") == "array" and dict_or_empty(schema.get("items")).get("type", "string") == "string"


def _holds_objects(schema: Schema) -> bool:
    return any(inner.get("type") == "object" for inner in schema.get("properties", {}).values())


def _entry_numbers(schema: Schema, path: Path) -> tuple[str, list[Any]]:
    """The property that numbers the entries of a list, and the numbers; without such a property, from 1 up."""
    properties: Mapping[str, Any] = schema["items"].get("properties", {})
    for name, inner in properties.items():
        if inner.get("type") == "integer" and inner.get("enum"):
            return name, list(inner["enum"])
    count = schema.get("minItems")
    if count is None or count != schema.get("maxItems"):
        raise UserError(
            f"{_dotted(path)}: a list without a fixed count, whose entries have no number from an enum: there is no "
            "form for it"
        )
    return "", list(range(1, count + 1))


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _build_field(schema: Schema, path: Path, label: str, group: str, required: bool) -> Field:
    kind = schema.get("type")
    if kind == "boolean":
        return Field(path, "yes", label, group, (True, False), required=required)
    if kind == "array":
        return Field(path, "lines", label, group, required=False)
    if kind == "string":
        if "enum" in schema:
            return Field(path, "choice", label, group, tuple(schema["enum"]), required=required)
        return Field(path, "text", label, group, required=False)
    if kind not in ("integer", "number"):
        raise UserError(f"{_dotted(path)}: there is no form for type {kind!r}")
    if "enum" in schema:
        return Field(path, "scale", label, group, tuple(sorted(schema["enum"])), required=required)
    field = Field(
        path,
        "number",
        label,
        group,
        low=schema.get("minimum"),
        high=schema.get("maximum"),
        is_integer=kind == "integer",
        required=required,
    )
    return _as_scale(field)


def _as_scale(field: Field) -> Field:
    """A number as a row of buttons, where its range has few steps; else as it is."""
    low = field.low
    high = field.high
    if low is None or high is None or high - low >= MAX_BUTTONS:
        return field
    has_whole_bounds = low == int(low) and high == int(high)
    if field.is_integer and not has_whole_bounds:
        return field
    has_halves = False
    if not field.is_integer and (high - low <= 2 or not has_whole_bounds):
        steps: tuple[float, ...] = tuple(round(low + (high - low) * step / 10, 6) for step in range(11))
    else:
        steps = tuple(range(int(low), int(high) + 1))
        has_halves = not field.is_integer
    return replace(field, kind="scale", options=steps, has_halves=has_halves)


def parse_answer(form: AnnotationForm, sent: Mapping[str, str]) -> dict[str, Any]:
    """The reply, from what the browser sends: `f0`, `f1` and so on, with `h0` for half a point. Raises
    MissingAnswer."""
    values: list[tuple[Path, Any]] = [*form.fixed]
    for index, field in enumerate(form.fields):
        text = sent.get(f"f{index}", "").strip()
        value = _parse_value(field, index, text, half=bool(sent.get(f"h{index}")))
        if value is not None:
            values.append((field.path, value))
    return build_answer(values, form.lists)


def _parse_value(field: Field, index: int, text: str, *, half: bool) -> Any:
    if field.kind == "text":
        return text[:MAX_TEXT]
    if field.kind == "lines":
        return [line.strip() for line in text[:MAX_TEXT].splitlines() if line.strip()]
    if not text:
        if field.required:
            raise MissingAnswer(index, f"choose something for {field.full_label}")
        return None
    if field.kind == "number":
        return _parse_number(field, index, text)
    if not text.isdecimal() or int(text) >= len(field.options):
        raise MissingAnswer(index, f"that is not a choice for {field.full_label}")
    value = field.options[int(text)]
    if half and field.has_halves:
        value += 0.5
        if field.high is not None and value > field.high:
            raise MissingAnswer(index, f"{field.full_label}: {value:g} is more than {field.high:g}")
    return value


def _parse_number(field: Field, index: int, text: str) -> float:
    try:
        value = int(text) if field.is_integer else float(text)
    except ValueError:
        noun = "a whole number" if field.is_integer else "a number"
        raise MissingAnswer(index, f"{field.full_label}: {text[:20]!r} is not {noun}") from None
    is_above_low = field.low is None or value >= field.low
    is_below_high = field.high is None or value <= field.high
    if not (is_above_low and is_below_high):
        raise MissingAnswer(index, f"{field.full_label}: {value:g} is not {_describe_range(field)}")
    return value


def _describe_range(field: Field) -> str:
    if field.high is None:
        return f"{field.low:g} or more"
    if field.low is None:
        return f"{field.high:g} or less"
    return f"from {field.low:g} to {field.high:g}"


def build_answer(values: Sequence[tuple[Path, Any]], lists: Sequence[Path] = ()) -> dict[str, Any]:
    """Values by their paths as one nested object; `lists` are the paths that have a list even without values."""
    answer: dict[str, Any] = {}
    for path in lists:
        _container_at(answer, path[:-1])[path[-1]] = []
    for path, value in values:
        _container_at(answer, path[:-1])[path[-1]] = value
    return answer


def _container_at(container: Any, path: Path) -> Any:
    """The object or list at a path, created where it is missing."""
    for step in path:
        if isinstance(container, list):
            entries = cast(list[Any], container)
            while len(entries) <= int(step):
                entries.append({})
            container = entries[int(step)]
        else:
            container = container.setdefault(step, {})
    return container


def value_at(answer: Any, path: Path) -> Any:
    """The value at a path of an answer; None where there is none."""
    for step in path:
        if isinstance(answer, dict):
            answer = dict_or_empty(answer).get(str(step))
        elif isinstance(answer, list) and isinstance(step, int):
            answer = next(iter(cast(list[Any], answer)[step : step + 1]), None)
        else:
            return None
    return answer


def form_value(field: Field, answer: Mapping[str, Any]) -> tuple[str, bool]:
    """What the browser sends for an answer that was saved before: the value, and whether half a point is added."""
    value = value_at(answer, field.path)
    if value is None:
        return "", False
    if field.kind == "lines":
        return "\n".join(map(str, value)), False
    if field.is_text or field.kind == "number":
        if isinstance(value, str):
            return value, False
        return f"{value:g}", False
    if value in field.options:
        return str(field.options.index(value)), False
    if field.has_halves and isinstance(value, float) and value - 0.5 in field.options:
        return str(field.options.index(value - 0.5)), True
    return "", False


def format_value(value: Any) -> str:
    """A value as annotators see it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:g}"
    return str(value)


def lowest_values(form: AnnotationForm) -> list[tuple[Path, Any]]:
    """For each required field its lowest score, first choice, `no` or smallest number."""
    values: list[tuple[Path, Any]] = []
    for field in form.fields:
        if field.is_text or not field.required:
            continue
        if field.kind == "yes":
            lowest = False
        elif field.kind == "number":
            lowest = field.low or 0
        else:
            lowest = field.options[0]
        values.append((field.path, lowest))
    return values
