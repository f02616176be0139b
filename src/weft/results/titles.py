"""What runs are called: their model, and what was chosen for them. Of several runs, only what tells them apart.

A run's manifest has everything that can change a number; here it becomes words. A name that the user gave wins: a tag for the run, the name
in weft.toml for its model. No name is a bare digest.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.store.manifest import Manifest

LONGEST = 28  # characters of a value that only tells apart what nothing else does
BORING = ("weft", "option_labels", "takes")  # what no reader can tell runs apart by


class Named(Struct, frozen=True):
    """A run, as far as its name needs it: its manifest, what its user calls it and its parts, whether it is done, when it began."""

    manifest: Manifest
    names: Mapping[str, str] = {}
    done: bool = True
    began: str = ""


def title_of(manifest: Manifest, state: str = "finished", names: Mapping[str, str] | None = None) -> str:
    """A run in a few words: its model, and what was chosen for it."""
    one = Named(manifest, names or {}, state in ("finished", "part"))
    found = facts(one)
    told = [text for key, text in found.items() if key not in ("model", "judge", "prompts")]
    return _titled(one, [*told, *(["in part"] if state == "part" else [])])


def apart(runs: Sequence[Named]) -> list[str]:
    """A name for each of several runs: its model, and what is not the same in all of them; never the same name twice."""
    told = _differing(runs)
    made = [_titled(one, some) for one, some in zip(runs, told, strict=True)]
    for name in {name for name in made if made.count(name) > 1}:
        alike = [at for at, other in enumerate(made) if other == name]
        for at, more in zip(alike, finer([runs[at] for at in alike]), strict=True):
            made[at] = _titled(runs[at], [*told[at], more])
    return [name if made.count(name) == 1 else f"{name} ({made[:at].count(name) + 1})" for at, name in enumerate(made)]


def apart_but_for(runs: Sequence[Named], fact: str) -> list[str]:
    """The same where one fact, such as the strategy, does not count: some may have the same name then."""
    return [_titled(one, some) for one, some in zip(runs, _differing(runs, fact), strict=True)]


def _differing(runs: Sequence[Named], but: str = "") -> list[list[str]]:
    found = [facts(one) for one in runs]
    keys = list(dict.fromkeys(key for some in found for key in some))
    differing = [key for key in keys if key not in ("model", but) and len({some.get(key) for some in found}) > 1]
    return [[some[key] for key in differing if key in some] for some in found]


def shared(runs: Sequence[Named]) -> list[str]:
    """What is the same in all of them, in words: to be said once."""
    found = [facts(one) for one in runs]
    same = [key for key in found[0] if all(some.get(key) == found[0][key] for some in found)]
    return [found[0][key] for key in same if key != "model"]


def facts(run: Named) -> dict[str, str]:
    """What was chosen for a run, in words, by what it is about; what is as usual is left out."""
    manifest = run.manifest
    made = {"model": model_of(run)}
    made |= {f"option {at}": text for at, text in enumerate(manifest.option_labels)}
    made["strategy"] = manifest.strategy if manifest.strategy != "none" else ""
    made |= manifest.model.choices
    made["preset"] = f"preset {manifest.presets['model']}" if "model" in manifest.presets else ""
    made |= {f"where {axis}": f"{axis} {name}" for axis, name in manifest.where.items()}
    made["limit"] = f"first {manifest.limit}" if manifest.limit is not None else ""
    made["sample"] = f"{manifest.sample.count} at random (seed {manifest.sample.seed})" if manifest.sample else ""
    made["repeats"] = f"{manifest.judge_repeats} judgements each" if manifest.judge_repeats > 1 else ""
    made["judge"] = f"judged by {run.names.get('judge') or manifest.judge.name}"
    made["prompts"] = f"prompts {manifest.prompts.source}" if manifest.prompts.source != "weft" else ""
    return {key: text for key, text in made.items() if text}


def model_of(run: Named) -> str:
    return run.names.get("model") or run.manifest.model.name


def with_fact(title: str, fact: str) -> str:
    """A title that says one thing more."""
    return f"{title[:-1]}, {fact}]" if title.endswith("]") else f"{title} [{fact}]"


def _titled(run: Named, told: Sequence[str]) -> str:
    if run.names.get("tag"):
        return run.names["tag"] + ("" if run.done else " [unfinished]")
    how = [*told, *([] if run.done else ["unfinished"])]
    return f"{model_of(run)} [{', '.join(how)}]" if how else model_of(run)


def finer(runs: Sequence[Named]) -> list[str]:
    """What tells runs apart that have the same words: the first thing in which their manifests differ, else when they began."""
    leaves = [dict(_leaves(msgspec.to_builtins(one.manifest))) for one in runs]
    for key in dict.fromkeys(key for some in leaves for key in some):
        if len({some.get(key) for some in leaves}) == len(runs):
            name = key.rpartition(".")[2]
            name = "data" if key.startswith("dataset.") else "source" if name == "version" else name
            return [f"{name} {_short(some.get(key))}" for some in leaves]
    return [f"begun {one.began}" if one.began else "another" for one in runs]


def _short(value: str | None) -> str:
    text = "none" if value is None else value.removeprefix("source:")
    return text[:8] if len(text) in (16, 64) and all(char in "0123456789abcdef" for char in text) else text[-LONGEST:]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in cast(dict[str, Any], value).items():
            yield from _leaves(one, f"{path}.{key}" if path else str(key))
    elif path not in BORING and path.rpartition(".")[2] not in BORING and ".takes." not in path:
        yield path, str(value)
