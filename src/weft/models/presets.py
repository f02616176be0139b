"""The settings that papers publish for models and judges: presets, named `PAPER/MODEL`.

A preset is a set of options under the names that servers of these models use. Options that the provider declares are
passed as such; the rest is sent with every request if the provider allows extra fields, else it is an error. Options
that the user gives override the preset's. Names and values are recorded in the manifest like all options.
"""

import functools
import importlib.resources
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.models.converters import json_object


class Preset(Struct, frozen=True):
    """One entry of data/presets.json."""

    settings: dict[str, Any]  # options by name
    source: str  # where they are published
    note: str = ""


@functools.cache
def load_presets() -> Mapping[str, Preset]:
    """Return all presets by name."""
    text = importlib.resources.files("weft").joinpath("data/presets.json").read_bytes()
    raw: dict[str, Any] = msgspec.json.decode(text)
    return {name: msgspec.convert(entry, Preset) for name, entry in raw.items() if not name.startswith("_")}


def find_preset(name: str) -> Preset:
    """Return a preset by name. Raises UserError, which lists the paper's presets, or all papers."""
    presets = load_presets()
    if name in presets:
        return presets[name]
    paper = name.partition("/")[0]
    suggestions = [preset for preset in presets if preset.startswith(f"{paper}/")]
    if not suggestions:
        suggestions = sorted({preset.partition("/")[0] + "/..." for preset in presets})
    raise UserError(
        f"there is no preset {name!r}; there is {', '.join(suggestions)}; `weft models presets` shows what each sets"
    )


def is_judge_preset(name: str) -> bool:
    """Return whether the preset is for a judge: all of these are called `PAPER/judge...`."""
    return name.partition("/")[2].startswith("judge")


def apply_preset(name: str, known: Collection[str], given: Mapping[str, Any], whom: str) -> dict[str, Any]:
    """Return a preset's options merged with those that the user has `given`, which win.

    `known` are the options that the provider declares; `whom` is the model's name for errors.
    """
    declared: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in find_preset(name).settings.items():
        if key in known:
            declared[key] = value
        else:
            extra[key] = value
    if extra and "extra" not in known:
        raise UserError(
            f"{whom} has no option {', '.join(extra)}, which the preset {name} sets; "
            f"its options are {', '.join(sorted(known)) or 'none'}"
        )
    try:
        given_extra = json_object(given.get("extra", {}))
    except ValueError as error:
        raise UserError(f"{whom}: option extra: {error}") from None
    options = {**declared, **given}
    if extra:
        options["extra"] = {**extra, **given_extra}
    return options
