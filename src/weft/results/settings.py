"""The settings of stored runs by their names: what tables of several runs are ordered by.

    read_setting(run, "history")         # an option of the benchmark: `full`
    read_setting(run, "temperature")     # of the model; `not set` where nobody chose one
    read_setting(run, "judge.version")   # of the judge; `planner.seed` is that of a part of a composition
    list_settings(run)                   # all of them

A setting that a benchmark calls like one of the model's is the benchmark's; `model.NAME` is always the model's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from weft.benchmarks.base import Benchmark
from weft.benchmarks.options import list_options
from weft.errors import UserError
from weft.plugins import suggest_name
from weft.results.titles import TitleInput, model_name
from weft.store.manifest import Identity

NOT_SET = "not set"  # the text of a setting that a run does not have
NONE = "none"
MODEL = "model"
JUDGE = "judge"
# fields of an identity that its name already gives, or that have readers of their own
IGNORED_FIELDS = ("name", "model", "url", "takes", "parameters", "options", "parts", "seed", "temperature")
INPUT_FORMAT = {  # how the manifest calls what users choose about a model's input
    "images": "images",
    "own_images": "own_images",
    "max_side": "max_side",
    "most": "max_images",
    "drawing": "drawing",
}
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
DIGITS = re.compile(r"(\d+)")
MAX_LISTED = 40  # settings in an error


def list_settings(run: TitleInput) -> dict[str, str]:
    """Return every setting of a run in words, by name; those of the benchmark and the run first."""
    manifest = run.manifest
    settings: dict[str, str] = {MODEL: model_name(run)}
    settings |= {name: format_value(value) for name, value in manifest.options.items()}
    settings |= _list_run_settings(run)
    own = _list_model_settings(manifest.model)
    for name, value in own.items():
        settings.setdefault(name, value)
        settings[f"{MODEL}.{name}"] = value
    for name, value in _list_model_settings(manifest.judge).items():
        settings[f"{JUDGE}.{name}"] = value
    for role, part in manifest.model.parts.items():
        settings[role] = part.name
        for name, value in _list_model_settings(part).items():
            settings[f"{role}.{name}"] = value
    return settings


def _list_run_settings(run: TitleInput) -> dict[str, str]:
    """Return what every run has, whatever its benchmark. A group that was selected is under its axis."""
    manifest = run.manifest
    settings = {
        "strategy": manifest.strategy,
        JUDGE: run.names.get(JUDGE) or manifest.judge.name,
        "judge_repeats": str(manifest.judge_repeats),
        "prompts": manifest.prompts.source,
        "benchmark": manifest.benchmark.name,
        "benchmark_version": manifest.benchmark.version,
        "data": manifest.dataset.name,
        "data_digest": manifest.dataset.digest[:8],
        "limit": format_value(manifest.limit),
        "weft": manifest.weft,
        "tag": run.names.get("tag") or NOT_SET,
    }
    if manifest.sample is not None:
        settings["sample"] = f"{manifest.sample.count} (seed {manifest.sample.seed})"
    for axis, group in manifest.where.items():
        settings[f"only {axis}"] = group
    for role, preset in manifest.presets.items():
        settings["preset" if role == MODEL else f"{role}.preset"] = preset
    return settings


def _list_model_settings(identity: Identity) -> dict[str, str]:
    """Return what was chosen for a model or a judge, and what its provider says of it. Objects are left out."""
    settings: dict[str, str] = {}
    if identity.temperature is not None:
        settings["temperature"] = format_value(identity.temperature)
    if identity.seed is not None:
        settings["seed"] = format_value(identity.seed)
    for source in (identity.parameters, identity.options, identity):
        for name, value in source.items():
            if name not in IGNORED_FIELDS and not isinstance(value, (dict, list)):
                settings.setdefault(name, format_value(value))
    for field, name in INPUT_FORMAT.items():
        if field in identity.takes:
            settings[name] = format_value(identity.takes[field])
    return settings


def format_value(value: Any) -> str:
    """Return a setting's value as a user writes it."""
    if value is None or value == "":
        return NOT_SET
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (dict, list)):
        return msgspec.json.encode(value, order="sorted").decode()
    return str(value)


def read_setting(run: TitleInput, name: str) -> str:
    """Return one setting of a run in words; `not set` if it has none of this name."""
    return list_settings(run).get(normalize_name(name), NOT_SET)


def normalize_name(name: str) -> str:
    """Return a setting's name, which may be written like an option: `--judge-repeats` for `judge_repeats`."""
    return name.strip().removeprefix("--").replace("-", "_")


def check_names(runs: Iterable[TitleInput], names: Iterable[str], others: Sequence[str] = ()) -> None:
    """Raise UserError for a name that no run has as a setting, and that is none of `others`."""
    known: dict[str, None] = dict.fromkeys(others)
    for run in runs:
        known.update(dict.fromkeys(list_settings(run)))
    for name in names:
        if normalize_name(name) not in known:
            hint = suggest_name(normalize_name(name), known)
            listed = [one for one in known if "." not in one][:MAX_LISTED]
            raise UserError(
                f"these runs have no setting {name!r}; {hint}they have {', '.join(listed)}; and those of one model, "
                f"as in {MODEL}.temperature or {JUDGE}.version"
            )


def find_differing_settings(runs: Sequence[TitleInput]) -> dict[str, list[str]]:
    """Return the settings in which runs differ: their values in the order of the runs, by name.

    Names of a model's own settings stand without `model.`; what follows from its name alone is left out where the names
    differ."""
    settings_by_run = [list_settings(run) for run in runs]
    names: dict[str, None] = {}
    for settings in settings_by_run:
        names.update(dict.fromkeys(settings))
    differing: dict[str, list[str]] = {}
    for name in names:
        if name.startswith(f"{MODEL}.") or name == "tag":
            continue
        values = [settings.get(name, NOT_SET) for settings in settings_by_run]
        if len(set(values)) > 1:
            differing[name] = values
    return differing


def order_values(values: Iterable[str], benchmark: Benchmark, name: str) -> list[str]:
    """Return the different values of a setting in the order of a table: `none` or `not set` first, then an option's
    values as its benchmark declares them, numbers by size, anything else as it comes, with the numbers in it by size.
    """
    distinct = list(dict.fromkeys(values))
    declared: Mapping[str, tuple[str, ...]] = {
        option.name: option.choices for option in list_options(benchmark.Options)
    }
    choices = declared.get(name, ())

    def place(value: str) -> tuple[Any, ...]:
        if value in choices:
            return (1, choices.index(value))
        if value in (NONE, NOT_SET):
            return (0, 0)
        if NUMBER.fullmatch(value):
            return (2, float(value))
        return (3, first_by_stem[_stem(value)], [int(digits) for digits in DIGITS.findall(value)])

    first_by_stem: dict[str, int] = {}
    for value in distinct:
        first_by_stem.setdefault(_stem(value), len(first_by_stem))
    return sorted(distinct, key=place)


def _stem(value: str) -> str:
    """Return a value without its numbers, so that best-of:2 and best-of:10 are of one kind."""
    return DIGITS.sub("#", value)


def is_numeric(values: Iterable[str]) -> bool:
    """Whether all values of a setting are numbers."""
    return all(NUMBER.fullmatch(value) for value in values)
