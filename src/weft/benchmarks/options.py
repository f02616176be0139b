"""What a user may choose for a benchmark: the fields of a frozen struct, each with a type, a default and a description.

class MyOptions(Struct, frozen=True):
    mode: Annotated[Literal["visual", "text"], Meta(description="What comes back.")] = "visual"

They become options of `weft run NAME`, arguments of `weft.evaluate`, and part of the manifest.
"""

from collections.abc import Mapping
from typing import Any, cast, get_args, get_type_hints

import msgspec
from msgspec import Struct, inspect

from weft.errors import UserError


class NoOptions(Struct, frozen=True):
    """There is nothing to choose."""


class Option(Struct, frozen=True):
    """One of them, for those who show it: its choices, or `bool`, `int`, `float` or `str`."""

    name: str
    choices: tuple[str, ...]
    kind: type
    usual: Any
    help: str


def listed(options: type[Struct]) -> list[Option]:
    made: list[Option] = []
    info = inspect.type_info(options)
    hints = get_type_hints(options)
    for field in info.fields if isinstance(info, inspect.StructType) else ():
        kind: Any = field.type
        told = ""
        if isinstance(kind, inspect.Metadata):
            about: dict[str, Any] = cast(Any, kind).extra_json_schema or {}
            told, kind = str(about.get("description", "")), kind.type
        kinds: dict[Any, type] = {inspect.BoolType: bool, inspect.IntType: int, inspect.FloatType: float}
        choices = tuple(map(str, get_args(hints[field.name]))) if isinstance(kind, inspect.LiteralType) else ()
        made.append(Option(field.name, choices, kinds.get(type(kind), str), field.default, told))
    return made


def choose(options: type[Struct], given: Mapping[str, Any], name: str) -> Any:
    """The options with what is given; what is None is not given. Texts are read as numbers where numbers are due."""
    known = {option.name: option for option in listed(options)}
    chosen = {key: value for key, value in given.items() if value is not None}
    for key in chosen:
        if key not in known:
            raise UserError(f"{name} has no option {key!r}; its own are {', '.join(known) or 'none'}")
    try:
        return msgspec.convert(chosen, options, strict=False)
    except msgspec.ValidationError as error:
        key = str(error).rpartition("$.")[2].rstrip("`")
        if key in known and known[key].choices:
            raise UserError(f"{name} has no {key} {chosen[key]!r}; there is {', '.join(known[key].choices)}") from None
        raise UserError(f"{name}: option {key}: {error}") from None
