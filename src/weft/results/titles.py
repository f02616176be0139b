"""Titles of runs: the model, then the settings in brackets, as in `bagel [full, best-of:4]`.

A run's manifest has everything that can change a number; a title puts it in words. Of several runs, titles name only
the settings that differ. A name that the user gave wins: a tag for the run, the name in weft.toml for its model. A
title is never a bare digest."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.store.manifest import Manifest

MAX_VALUE_LENGTH = 28  # characters of a manifest value in a title
IGNORED_FIELDS = ("weft", "option_labels")  # manifest fields by which no reader can tell runs apart
FIELD_NAMES = {"version": "source", "most": "max_images"}  # where a title does not call a field as the manifest does
NOT_IN_TITLE = ("model", "judge", "prompts")


class TitleInput(Struct, frozen=True):
    """What a title is built from."""

    manifest: Manifest
    names: Mapping[str, str] = {}  # the user's names, by role: tag, model, judge
    finished: bool = True
    started: str = ""  # day and minute


def format_title(manifest: Manifest, state: str = "finished", names: Mapping[str, str] | None = None) -> str:
    """Return the title of one run: its model, and the settings that are not the defaults."""
    run = TitleInput(manifest, names or {}, state in ("finished", "part"))
    settings = [text for key, text in describe_settings(run).items() if key not in NOT_IN_TITLE]
    if state == "part":
        settings.append("in part")
    return _build_title(run, settings)


def distinct_titles(runs: Sequence[TitleInput]) -> list[str]:
    """Return a title for each run: its model, and the settings that differ between the runs. No title comes twice."""
    settings = _differing_settings(runs)
    titles = [_build_title(run, texts) for run, texts in zip(runs, settings, strict=True)]
    for title in {title for title in titles if titles.count(title) > 1}:
        indices = [index for index, other in enumerate(titles) if other == title]
        details = distinguishing_settings([runs[index] for index in indices])
        for index, detail in zip(indices, details, strict=True):
            titles[index] = _build_title(runs[index], [*settings[index], detail])
    return _number_duplicates(titles)


def titles_without_setting(runs: Sequence[TitleInput], setting: str) -> list[str]:
    """Return titles that leave one setting out, such as the strategy. Two runs may then share a title."""
    settings = _differing_settings(runs, setting)
    return [_build_title(run, texts) for run, texts in zip(runs, settings, strict=True)]


def shared_settings(runs: Sequence[TitleInput]) -> list[str]:
    """Return the settings, in words, that all runs share; the model is not among them."""
    first, *others = [describe_settings(run) for run in runs]
    texts: list[str] = []
    for key, text in first.items():
        if key != "model" and all(settings.get(key) == text for settings in others):
            texts.append(text)
    return texts


def describe_settings(run: TitleInput) -> dict[str, str]:
    """Return a run's settings in words, by what they are about. Defaults are left out."""
    manifest = run.manifest
    settings = {"model": model_name(run)}
    for number, label in enumerate(manifest.option_labels):
        settings[f"option {number}"] = label
    if manifest.strategy != "none":
        settings["strategy"] = manifest.strategy
    settings.update(manifest.model.choice_labels)
    if manifest.crop_rows:
        settings["crop rows"] = "rows cropped"
    if "model" in manifest.presets:
        settings["preset"] = f"preset {manifest.presets['model']}"
    for axis, group in manifest.where.items():
        settings[f"where {axis}"] = f"{axis} {group}"
    if manifest.limit is not None:
        settings["limit"] = f"first {manifest.limit}"
    if manifest.sample:
        settings["sample"] = f"{manifest.sample.count} at random (seed {manifest.sample.seed})"
    if manifest.judge_repeats > 1:
        settings["repeats"] = f"{manifest.judge_repeats} judgements each"
    settings["judge"] = f"judged by {run.names.get('judge') or manifest.judge.name}"
    if manifest.prompts.source != "weft":
        settings["prompts"] = f"prompts {manifest.prompts.source}"
    return {key: text for key, text in settings.items() if text}


def model_name(run: TitleInput) -> str:
    return run.names.get("model") or run.manifest.model.name


def without_tag(names: Mapping[str, str]) -> dict[str, str]:
    """Return the user's names for model and judge."""
    return {role: name for role, name in names.items() if role != "tag"}


def append_setting(title: str, setting: str) -> str:
    """Add a setting to the brackets of a title."""
    if title.endswith("]"):
        return f"{title[:-1]}, {setting}]"
    return f"{title} [{setting}]"


def distinguishing_settings(runs: Sequence[TitleInput]) -> list[str]:
    """Return for each run the first manifest field in which all runs differ; without one, when each started."""
    fields_by_run = [dict(_flatten(msgspec.to_builtins(run.manifest))) for run in runs]
    paths: dict[str, None] = {}
    for fields in fields_by_run:
        paths.update(dict.fromkeys(fields))
    for path in paths:
        values = [fields.get(path) for fields in fields_by_run]
        if len(set(values)) == len(runs):
            name = _field_name(path)
            return [f"{name} {_shorten(value)}" for value in values]
    return [f"started {run.started}" if run.started else "another" for run in runs]


def _differing_settings(runs: Sequence[TitleInput], ignored: str = "") -> list[list[str]]:
    """Return for each run its settings, in words, that not all runs share."""
    settings_by_run = [describe_settings(run) for run in runs]
    keys: dict[str, None] = {}
    for settings in settings_by_run:
        keys.update(dict.fromkeys(settings))
    texts: list[list[str]] = [[] for _ in runs]
    for key in keys:
        values = [settings.get(key) for settings in settings_by_run]
        is_shared = len(set(values)) == 1 or (key == "seed" and _is_one_seed(runs, values))
        if key in ("model", ignored) or is_shared:
            continue
        for index, value in enumerate(values):
            if value is not None:
                texts[index].append(value)
    return texts


def _is_one_seed(runs: Sequence[TitleInput], seeds: Sequence[str | None]) -> bool:
    """Whether all models that have a seed have the same one: it tells no two runs apart."""
    with_seed = {model_name(run) for run, seed in zip(runs, seeds, strict=True) if seed is not None}
    without = {model_name(run) for run, seed in zip(runs, seeds, strict=True) if seed is None}
    return len(set(seeds) - {None}) == 1 and not with_seed & without


def _build_title(run: TitleInput, settings: Sequence[str]) -> str:
    if run.names.get("tag"):
        name = run.names["tag"]
        texts: list[str] = []
    else:
        name = model_name(run)
        texts = list(settings)
    if not run.finished:
        texts.append("unfinished")
    if not texts:
        return name
    return f"{name} [{', '.join(texts)}]"


def _number_duplicates(titles: Sequence[str]) -> list[str]:
    numbered: list[str] = []
    for index, title in enumerate(titles):
        if titles.count(title) == 1:
            numbered.append(title)
        else:
            numbered.append(f"{title} ({titles[:index].count(title) + 1})")
    return numbered


def _field_name(path: str) -> str:
    if path.startswith("dataset."):
        return "data"
    name = path.rpartition(".")[2]
    return FIELD_NAMES.get(name, name)


def _shorten(value: str | None) -> str:
    """Return 8 characters of a digest, the end of anything else."""
    if value is None:
        return "none"
    text = value.removeprefix("source:")
    if len(text) in (16, 64) and set(text) <= set("0123456789abcdef"):
        return text[:8]
    return text[-MAX_VALUE_LENGTH:]


def _flatten(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted path and the value of every leaf that may tell two runs apart."""
    if isinstance(value, dict):
        for key, child in cast(dict[str, Any], value).items():
            child_path = f"{path}.{key}" if path else str(key)
            yield from _flatten(child, child_path)
        return
    name = path.rpartition(".")[2]
    if path not in IGNORED_FIELDS and name not in IGNORED_FIELDS:
        yield path, "not set" if value is None else str(value)
