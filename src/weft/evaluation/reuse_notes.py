"""Explains before a run why it does not reuse answers that seem to be cached, and why it does where that may
surprise."""

from collections.abc import Callable, Sequence

from weft.store.manifest import Identity, Manifest
from weft.store.records import RunRecord

IDENTITY_LABELS = {
    "url": "address",
    "urls": "addresses",
    "where": "file",
    "called": "name in weft.toml",
    "version": "version",
}
ADVICE = (
    "with a name and a version of its own ([models.NAME] with version in weft.toml) a model keeps its answers wherever "
    "it is served"
)


def find_reuse_notes(
    records: Sequence[RunRecord],
    run: str,
    manifest: Manifest,
    code_digest: str = "",
    has_answers: Callable[[str], bool] | None = None,
) -> list[str]:
    """Return notes on reuse for a run that is about to begin.

    `records` are the runs so far, sorted ascending by time; `code_digest` that of the model's code, if it is the user's
    own.
    """
    model = manifest.model
    if any(record.id == run for record in records):
        return _note_edited_code(records, manifest, code_digest)
    for record in reversed(records):
        other = record.manifest.model
        if other.name != model.name or record.manifest.dataset != manifest.dataset:
            continue
        keys = dict.fromkeys((*IDENTITY_LABELS, *model, *other))
        differing = [key for key in keys if model.get(key) != other.get(key)]
        if not differing:  # its answers are reused
            return _note_edited_code(records, manifest, code_digest)
        if set(differing) <= set(IDENTITY_LABELS) and (has_answers is None or has_answers(record.id)):
            reason = _describe_difference(differing, other, model)
            return [f"answers of {record.id} are not reused for this model: {reason}"]
    return _note_edited_code(records, manifest, code_digest)


def _describe_difference(differing: Sequence[str], before: Identity, now: Identity) -> str:
    both_from_code = before.version.startswith("source:") and now.version.startswith("source:")
    if list(differing) == ["version"] and both_from_code:
        return "its source has changed since; set `version` on it, and only that counts"
    differences: list[str] = []
    for key in differing:
        old = before.get(key) or "none"
        new = now.get(key) or "none"
        differences.append(f"its {IDENTITY_LABELS[key]} was {old}, and is {new}")
    return f"{'; '.join(differences)}; {ADVICE}"


def _note_edited_code(records: Sequence[RunRecord], manifest: Manifest, code_digest: str) -> list[str]:
    """Return a note if the model's code has changed, but not its version."""
    model = manifest.model
    for record in reversed(records):
        if record.manifest.model != model or not record.names.get("source"):
            continue
        if not code_digest or record.names["source"] == code_digest:
            return []
        return [
            f"the source of {model.name} has changed, its version {model.version!r} has not: "
            f"answers of {record.id} are reused"
        ]
    return []
