"""The settings that papers publish for models and judges, as data: `PAPER/MODEL`, under the names that servers of these
models take.

A preset is options that nobody need type: what a provider declares as its own is given as that, the rest goes with
every request where the provider lets anything go with it, and is an error where it does not. What a user gives besides
wins. Names and values stand in the manifest like all options."""

import functools
import importlib.resources
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.models.converters import json_object


class Preset(Struct, frozen=True):
    settings: dict[str, Any]
    source: str
    note: str = ""


@functools.cache
def load_presets() -> Mapping[str, Preset]:
    text = importlib.resources.files("weft").joinpath("data/presets.json").read_bytes()
    raw: dict[str, Any] = msgspec.json.decode(text)
    return {name: msgspec.convert(one, Preset) for name, one in raw.items() if not name.startswith("_")}


def find_preset(name: str) -> Preset:
    known = load_presets()
    if name in known:
        return known[name]
    paper = name.partition("/")[0]
    near = [one for one in known if one.startswith(f"{paper}/")] or sorted(
        {one.partition("/")[0] + "/..." for one in known}
    )
    raise UserError(
        f"there is no preset {name!r}; there is {', '.join(near)}; `weft models presets` tells what each sets"
    )


def is_judge_preset(name: str) -> bool:
    """Whether it is for a judge, as all that are called `PAPER/judge...`."""
    return name.partition("/")[2].startswith("judge")


def apply_preset(name: str, known: Collection[str], given: Mapping[str, Any], whom: str) -> dict[str, Any]:
    """A preset as a provider's options, under what was `given`."""
    settings = find_preset(name).settings
    own = {key: value for key, value in settings.items() if key in known}
    rest = {key: value for key, value in settings.items() if key not in known}
    if rest and "extra" not in known:
        raise UserError(
            f"{whom} cannot be told {', '.join(rest)}, which the preset {name} sets; it knows {', '.join(sorted(known)) or 'none'}"
        )
    try:
        more = json_object(given.get("extra", {}))
    except ValueError as error:
        raise UserError(f"{whom}: option extra: {error}") from None
    return {**own, **given, **({"extra": {**rest, **more}} if rest else {})}
