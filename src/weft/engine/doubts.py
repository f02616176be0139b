"""Why a run asks for what seems to be answered already, and why it does not where that may surprise: said before it begins."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.outside import fields
from weft.store.records import RunRecord

PLACES = {"url": "address", "urls": "addresses", "where": "file"}
KEEPS = "give the model a version (version = ... in weft.toml, or --model-opt version=...), and it keeps its answers wherever it is served"


def doubts(records: Sequence[RunRecord], run: str, manifest: Mapping[str, Any], source: str = "") -> list[str]:
    """`records` are the runs so far, the latest last; `source` the digest of a model's code, where it is the user's own."""
    if any(record.id == run for record in records):
        return _edited(records, manifest, source)
    model = fields(manifest["model"])
    for record in reversed(records):
        other = fields(record.manifest.get("model"))
        if other.get("name") != model.get("name") or record.manifest.get("dataset") != manifest.get("dataset"):
            continue
        differing = {key for key in {**model, **other} if model.get(key) != other.get(key)}
        moved = [key for key in PLACES if key in differing]
        if moved and differing <= {*PLACES, "version", "called"} and "version" not in differing:
            was = f"its {PLACES[moved[0]]} was {_told(other.get(moved[0]))}, and is {_told(model.get(moved[0]))}"
            return [f"answers of {record.id} are not taken for this model's: {was}; {KEEPS}"]
        version = str(model.get("version", ""))
        if differing == {"version"} and version.startswith("source:") and str(other.get("version", "")).startswith("source:"):
            return [
                f"answers of {record.id} are not taken: the model's source has changed since; set `version` on it, and only that counts"
            ]
        return []
    return _edited(records, manifest, source)


def _edited(records: Sequence[RunRecord], manifest: Mapping[str, Any], source: str) -> list[str]:
    """Code that has changed under a version that has not."""
    before = next((one for one in reversed(records) if one.manifest.get("model") == manifest["model"] and one.names.get("source")), None)
    if before is None or not source or before.names["source"] == source:
        return []
    name, version = fields(manifest["model"]).get("name"), fields(manifest["model"]).get("version")
    return [f"the source of {name} has changed, its version {version!r} has not: answers of {before.id} are taken for its own"]


def _told(value: Any) -> str:
    return str(value) if value else "none"
