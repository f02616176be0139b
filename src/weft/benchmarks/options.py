"""The options of a benchmark: fields of a frozen struct become command line options and Python keywords.

class MineOptions(Struct, frozen=True):
    tone: Annotated[Literal["plain", "polite"], Meta(description="How the model is asked.")] = "plain"

parse_options(MineOptions, {"tone": "polite"}, "mine")
"""

import re
from collections.abc import Mapping
from typing import Any, cast, get_args, get_type_hints

import msgspec
from msgspec import Struct
from msgspec import inspect as type_inspect

from weft.errors import UserError

OPTION_TYPES: dict[Any, type] = {
    type_inspect.BoolType: bool,
    type_inspect.IntType: int,
    type_inspect.FloatType: float,
}
EXPECTED_VALUES: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}
BOUND = re.compile(r"([<>]=) (-?[\d.]+)")  # as msgspec's errors name the bound that a number violates


class NoOptions(Struct, frozen=True):
    """The options of a benchmark without any."""


class Option(Struct, frozen=True):
    """One field of a benchmark's `Options`, described for command lines and forms."""

    name: str
    choices: tuple[str, ...]  # empty if any value of `kind` is allowed
    kind: type  # bool, int, float or str
    default: Any
    help: str


def list_options(options: type[Struct]) -> list[Option]:
    """Describe every field of an options struct, in order."""
    info = type_inspect.type_info(options)
    if not isinstance(info, type_inspect.StructType):
        return []
    hints = get_type_hints(options)
    described: list[Option] = []
    for field in info.fields:
        kind: Any = field.type
        description = ""
        if isinstance(kind, type_inspect.Metadata):
            extra: dict[str, Any] = cast(Any, kind).extra_json_schema or {}
            description = str(extra.get("description", ""))
            kind = kind.type
        choices: tuple[str, ...] = ()
        if isinstance(kind, type_inspect.LiteralType):
            choices = tuple(map(str, get_args(hints[field.name])))
        described.append(Option(field.name, choices, OPTION_TYPES.get(type(kind), str), field.default, description))
    return described


def parse_options(options: type[Struct], values: Mapping[str, Any], name: str) -> Any:
    """Build the options of the benchmark `name` from the user's values. None stands for "not chosen".

    Text is converted where a number is expected. Raises UserError for an unknown option or a value that is not allowed.
    """
    known = {option.name: option for option in list_options(options)}
    chosen = {key: value for key, value in values.items() if value is not None}
    for key in chosen:
        if key not in known:
            raise UserError(f"{name} has no option {key!r}; its own are {', '.join(known) or 'none'}")
    try:
        return msgspec.convert(chosen, options, strict=False)
    except msgspec.ValidationError as error:
        key = str(error).rpartition("$.")[2].rstrip("`")
        raise UserError(_describe_bad_value(name, key, chosen.get(key), known.get(key), error)) from None


def _describe_bad_value(name: str, key: str, value: Any, option: Option | None, error: Exception) -> str:
    """Say what is wrong with an option's value and what is allowed."""
    prefix = f"{name}: option {key} {value!r}"
    if option is None:
        return f"{prefix}: {error}"
    if option.choices:
        return f"{name} has no {key} {value!r}; there is {', '.join(option.choices)}"
    expected = EXPECTED_VALUES.get(option.kind)
    if expected is None:
        return f"{prefix}: {error}"
    bound = BOUND.search(str(error))
    if bound is None:
        return f"{prefix}: give {expected}"
    limit = {">=": "at least", "<=": "at most"}[bound[1]]
    return f"{prefix}: give {expected}, {limit} {bound[2]}"
