"""What runs are called: their model, and what was chosen for them. Of several runs, only what tells them apart.

A run's manifest has everything that can change a number; here it becomes words. A name that the user gave wins: a tag
for the run, the name in weft.toml for its model. No name is a bare digest."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.store.manifest import Manifest

LONGEST = 28  # characters of a value that only tells apart what nothing else does
BORING = ("weft", "option_labels", "takes")  # what no reader can tell runs apart by


class TitleInput(Struct, frozen=True):
    """A run, as far as its name needs it: its manifest, what its user calls it and its parts, whether it is done, when
    it began."""

    manifest: Manifest
    names: Mapping[str, str] = {}
    finished: bool = True
    started: str = ""


def format_title(manifest: Manifest, state: str = "finished", names: Mapping[str, str] | None = None) -> str:
    """A run in a few words: its model, and what was chosen for it."""
    one = TitleInput(manifest, names or {}, state in ("finished", "part"))
    found = describe_settings(one)
    told = [text for key, text in found.items() if key not in ("model", "judge", "prompts")]
    return _titled(one, [*told, *(["in part"] if state == "part" else [])])


def distinct_titles(runs: Sequence[TitleInput]) -> list[str]:
    """A name for each of several runs: its model, and what is not the same in all of them; never the same name
    twice."""
    told = _differing(runs)
    made = [_titled(one, some) for one, some in zip(runs, told, strict=True)]
    for name in {name for name in made if made.count(name) > 1}:
        alike = [at for at, other in enumerate(made) if other == name]
        for at, more in zip(alike, distinguishing_settings([runs[at] for at in alike]), strict=True):
            made[at] = _titled(runs[at], [*told[at], more])
    return [name if made.count(name) == 1 else f"{name} ({made[:at].count(name) + 1})" for at, name in enumerate(made)]


def titles_without_setting(runs: Sequence[TitleInput], fact: str) -> list[str]:
    """The same where one fact, such as the strategy, does not count: some may have the same name then."""
    return [_titled(one, some) for one, some in zip(runs, _differing(runs, fact), strict=True)]


def _differing(runs: Sequence[TitleInput], but: str = "") -> list[list[str]]:
    found = [describe_settings(one) for one in runs]
    keys = list(dict.fromkeys(key for some in found for key in some))
    differing = [key for key in keys if key not in ("model", but) and len({some.get(key) for some in found}) > 1]
    return [[some[key] for key in differing if key in some] for some in found]


def shared_settings(runs: Sequence[TitleInput]) -> list[str]:
    """What is the same in all of them, in words: to be said once."""
    found = [describe_settings(one) for one in runs]
    same = [key for key in found[0] if all(some.get(key) == found[0][key] for some in found)]
    return [found[0][key] for key in same if key != "model"]


def describe_settings(run: TitleInput) -> dict[str, str]:
    """What was chosen for a run, in words, by what it is about; what is as usual is left out."""
    manifest = run.manifest
    made = {"model": model_name(run)}
    made |= {f"option {at}": text for at, text in enumerate(manifest.option_labels)}
    if manifest.strategy != "none":
        made["strategy"] = manifest.strategy
    else:
        made["strategy"] = ""
    made |= manifest.model.choice_labels
    if "model" in manifest.presets:
        made["preset"] = f"preset {manifest.presets['model']}"
    else:
        made["preset"] = ""
    made |= {f"where {axis}": f"{axis} {name}" for axis, name in manifest.where.items()}
    if manifest.limit is not None:
        made["limit"] = f"first {manifest.limit}"
    else:
        made["limit"] = ""
    if manifest.sample:
        made["sample"] = f"{manifest.sample.count} at random (seed {manifest.sample.seed})"
    else:
        made["sample"] = ""
    if manifest.judge_repeats > 1:
        made["repeats"] = f"{manifest.judge_repeats} judgements each"
    else:
        made["repeats"] = ""
    made["judge"] = f"judged by {run.names.get('judge') or manifest.judge.name}"
    if manifest.prompts.source != "weft":
        made["prompts"] = f"prompts {manifest.prompts.source}"
    else:
        made["prompts"] = ""
    return {key: text for key, text in made.items() if text}


def model_name(run: TitleInput) -> str:
    return run.names.get("model") or run.manifest.model.name


def append_setting(title: str, fact: str) -> str:
    """A title that says one thing more."""
    if title.endswith("]"):
        return f"{title[:-1]}, {fact}]"
    return f"{title} [{fact}]"


def _titled(run: TitleInput, told: Sequence[str]) -> str:
    if run.names.get("tag"):
        return run.names["tag"] + ("" if run.finished else " [unfinished]")
    how = [*told, *([] if run.finished else ["unfinished"])]
    if how:
        return f"{model_name(run)} [{', '.join(how)}]"
    return model_name(run)


def distinguishing_settings(runs: Sequence[TitleInput]) -> list[str]:
    """What tells runs apart that have the same words: the first thing in which their manifests differ, else when they
    began."""
    leaves = [dict(_leaves(msgspec.to_builtins(one.manifest))) for one in runs]
    for key in dict.fromkeys(key for some in leaves for key in some):
        if len({some.get(key) for some in leaves}) == len(runs):
            name = key.rpartition(".")[2]
            if key.startswith("dataset."):
                name = "data"
            else:
                if name == "version":
                    name = "source"
            return [f"{name} {_short(some.get(key))}" for some in leaves]
    return [f"begun {one.started}" if one.started else "another" for one in runs]


def _short(value: str | None) -> str:
    if value is None:
        text = "none"
    else:
        text = value.removeprefix("source:")
    if len(text) in (16, 64) and all(char in "0123456789abcdef" for char in text):
        return text[:8]
    return text[-LONGEST:]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in cast(dict[str, Any], value).items():
            yield from _leaves(one, f"{path}.{key}" if path else str(key))
    elif path not in BORING and path.rpartition(".")[2] not in BORING and ".takes." not in path:
        yield path, str(value)
