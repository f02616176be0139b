"""Why a run asks for what seems to be answered already, and why it does not where that may surprise: said before it begins."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.store.records import RunRecord
from weft.untrusted import fields

PLACES = {"url": "address", "urls": "addresses", "where": "file", "called": "name in weft.toml", "version": "version"}
KEEPS = "with a name and a version of its own ([models.NAME] with version in weft.toml) a model keeps its answers wherever it is served"


def doubts(
    records: Sequence[RunRecord], run: str, manifest: Mapping[str, Any], source: str = "", has: Callable[[str], bool] | None = None
) -> list[str]:
    """`records` are the runs so far, the latest last; `source` the digest of a model's code, where it is the user's own; `has` tells
    whether a run has any answers."""
    model = fields(manifest["model"])
    if any(record.id == run for record in records):
        return _edited(records, manifest, source)
    for record in reversed(records):
        other = fields(record.manifest.get("model"))
        if other.get("name") != model.get("name") or record.manifest.get("dataset") != manifest.get("dataset"):
            continue
        differing = [key for key in dict.fromkeys((*PLACES, *model, *other)) if model.get(key) != other.get(key)]
        if not differing:
            return _edited(records, manifest, source)  # its answers are taken
        if set(differing) <= set(PLACES) and (has is None or has(record.id)):
            return [f"answers of {record.id} are not taken for this model's: {_why(differing, other, model)}"]
    return _edited(records, manifest, source)


def _why(differing: Sequence[str], other: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    sources = [str(one.get("version", "")).startswith("source:") for one in (other, model)]
    if list(differing) == ["version"] and all(sources):
        return "its source has changed since; set `version` on it, and only that counts"
    told = [f"its {PLACES[key]} was {_told(other.get(key))}, and is {_told(model.get(key))}" for key in differing]
    return f"{'; '.join(told)}; {KEEPS}"


def _edited(records: Sequence[RunRecord], manifest: Mapping[str, Any], source: str) -> list[str]:
    """Code that has changed under a version that has not."""
    before = next((one for one in reversed(records) if one.manifest.get("model") == manifest["model"] and one.names.get("source")), None)
    if before is None or not source or before.names["source"] == source:
        return []
    name, version = fields(manifest["model"]).get("name"), fields(manifest["model"]).get("version")
    return [f"the source of {name} has changed, its version {version!r} has not: answers of {before.id} are taken for its own"]


def _told(value: Any) -> str:
    return str(value) if value else "none"
