"""Why a run asks for what seems to be answered already, and why it does not where that may surprise: said before it
begins."""

from collections.abc import Callable, Sequence
from typing import Any

from weft.store.manifest import Identity, Manifest
from weft.store.records import RunRecord

PLACES = {"url": "address", "urls": "addresses", "where": "file", "called": "name in weft.toml", "version": "version"}
KEEPS = "with a name and a version of its own ([models.NAME] with version in weft.toml) a model keeps its answers wherever it is served"


def find_reuse_notes(
    records: Sequence[RunRecord],
    run: str,
    manifest: Manifest,
    source: str = "",
    has: Callable[[str], bool] | None = None,
) -> list[str]:
    """`records` are the runs so far, the latest last; `source` the digest of a model's code, where it is the user's
    own; `has` tells whether a run has any answers."""
    model = manifest.model
    if any(record.id == run for record in records):
        return _edited(records, manifest, source)
    for record in reversed(records):
        other = record.manifest.model
        if other.name != model.name or record.manifest.dataset != manifest.dataset:
            continue
        differing = [key for key in dict.fromkeys((*PLACES, *model, *other)) if model.get(key) != other.get(key)]
        if not differing:
            return _edited(records, manifest, source)  # its answers are taken
        if set(differing) <= set(PLACES) and (has is None or has(record.id)):
            return [f"answers of {record.id} are not taken for this model's: {_why(differing, other, model)}"]
    return _edited(records, manifest, source)


def _why(differing: Sequence[str], other: Identity, model: Identity) -> str:
    sources = [one.version.startswith("source:") for one in (other, model)]
    if list(differing) == ["version"] and all(sources):
        return "its source has changed since; set `version` on it, and only that counts"
    told = [f"its {PLACES[key]} was {_told(other.get(key))}, and is {_told(model.get(key))}" for key in differing]
    return f"{'; '.join(told)}; {KEEPS}"


def _edited(records: Sequence[RunRecord], manifest: Manifest, source: str) -> list[str]:
    """Code that has changed under a version that has not."""
    before = next(
        (one for one in reversed(records) if one.manifest.model == manifest.model and one.names.get("source")), None
    )
    if before is None or not source or before.names["source"] == source:
        return []
    model = manifest.model
    return [
        f"the source of {model.name} has changed, its version {model.version!r} has not: answers of {before.id} are taken for its own"
    ]


def _told(value: Any) -> str:
    if value:
        return str(value)
    return "none"
