"""Explains before a run why it does not reuse answers that seem to be cached, and why it does where that may
surprise."""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from weft.models.endpoint import Endpoint
from weft.models.registry import KEY_BY_HOST
from weft.models.versions import is_derived
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
    endpoints: Mapping[str, Endpoint] | None = None,
    *,
    fresh: bool = False,
    version_note: str = "",
    benchmark_digest: str = "",
    judge_digest: str = "",
) -> list[str]:
    """Return notes on reuse for a run that is about to begin.

    `records` are the runs so far, sorted ascending by time; `code_digest`, `judge_digest` and `benchmark_digest` those
    of the code of the model, the judge and the benchmark, if they are the user's own; `fresh`: nothing is reused;
    `version_note` is that of a composition.
    """
    notes = _note_other_answers(records, run, manifest, code_digest, has_answers)
    notes += _note_edited_judge(records, manifest, judge_digest)
    notes += _note_edited_benchmark(records, run, manifest, benchmark_digest)
    endpoints = endpoints or {}
    if version_note:
        notes.append(version_note)
    notes += [endpoint.version_note for endpoint in endpoints.values() if endpoint.version_note]
    if fresh:
        notes.append(f"all is asked anew, as {run}; reuse={run} continues it")
    elif records:
        notes += _note_served_weights(records, endpoints)
    return notes


def _note_other_answers(
    records: Sequence[RunRecord],
    run: str,
    manifest: Manifest,
    code_digest: str,
    has_answers: Callable[[str], bool] | None,
) -> list[str]:
    """Return a note if the latest run of a model of this name on these data has answers that are not reused, or if its
    code is another."""
    model = manifest.model
    if any(record.id == run for record in records):
        return _note_edited_code(records, manifest, code_digest)
    if any(record.manifest.model == model and record.manifest.dataset == manifest.dataset for record in records):
        return _note_edited_code(records, manifest, code_digest)  # its answers are reused, whatever came after
    for record in reversed(records):
        other = record.manifest.model
        if other.name != model.name or record.manifest.dataset != manifest.dataset:
            continue
        keys = dict.fromkeys((*IDENTITY_LABELS, *model, *other))
        differing = [key for key in keys if model.get(key) != other.get(key)]
        if set(differing) <= set(IDENTITY_LABELS) and (has_answers is None or has_answers(record.id)):
            reason = _describe_difference(differing, other, model)
            return [f"answers of {record.id} are not reused for this model: {reason}"]
    return _note_edited_code(records, manifest, code_digest)


def _describe_difference(differing: Sequence[str], before: Identity, now: Identity) -> str:
    if list(differing) == ["version"] and is_derived(before.version) and is_derived(now.version):
        return (
            "its code, a value or the weights have changed since, or weft cannot tell; "
            "set `version` on it, and only that counts"
        )
    differences: list[str] = []
    for key in differing:
        old, new = before.get(key), now.get(key)
        label = IDENTITY_LABELS[key]
        if old and new:
            differences.append(f"its {label} was {old}, and is {new}")
        elif old:
            differences.append(f"it had the {label} {old}, and has none")
        else:
            differences.append(f"it had no {label}, and has {new}")
    return f"{'; '.join(differences)}; {ADVICE}"


def _note_edited_code(records: Sequence[RunRecord], manifest: Manifest, code_digest: str) -> list[str]:
    """Return a note if the model's code has changed, but not its version."""
    before = [record for record in records if record.manifest.model == manifest.model]
    return _note_edited(manifest.model, code_digest, before, "source", "answers")


def _note_edited_judge(records: Sequence[RunRecord], manifest: Manifest, code_digest: str) -> list[str]:
    """Return a note if the judge's code has changed, but not its version."""
    before = [record for record in records if record.manifest.judge == manifest.judge]
    return _note_edited(manifest.judge, code_digest, before, "judge_source", "verdicts")


def _note_edited(identity: Identity, code_digest: str, records: Sequence[RunRecord], name: str, what: str) -> list[str]:
    record = next((record for record in reversed(records) if record.names.get(name)), None)
    if record is None or not code_digest or record.names[name] == code_digest:
        return []
    return [
        f"the code or a value of {identity.name} has changed, its version {identity.version!r} has not: "
        f"{what} of {record.id} are reused"
    ]


def _note_edited_benchmark(
    records: Sequence[RunRecord], run: str, manifest: Manifest, benchmark_digest: str
) -> list[str]:
    """Return a note if the run has scores that other code of the benchmark computed."""
    benchmark = manifest.benchmark
    for record in records:
        before = record.names.get("benchmark_source", "")
        if record.id == run and benchmark_digest and before and before != benchmark_digest:
            return [
                f"the source of the benchmark {benchmark.name} has changed, its version {benchmark.version!r} has not: "
                f"scores of {run} that are there already were computed before"
            ]
    return []


def _note_served_weights(records: Sequence[RunRecord], endpoints: Mapping[str, Endpoint]) -> list[str]:
    """Return a note if models on the user's own servers have answers: weft cannot see which weights they have."""
    names: dict[str, None] = {}
    addresses: dict[str, None] = {}
    for role, endpoint in endpoints.items():
        if "version" in endpoint.identity or not _has_own_weights(endpoint.address):
            continue
        if any(_has_identity(record.manifest, role, endpoint) for record in records):
            names[endpoint.name] = None
            addresses[endpoint.address] = None
    if not names:
        return []
    return [
        f"answers of {' and '.join(names)} are reused: weft assumes that the same weights are still served at "
        f"{' and '.join(addresses)}. A version (--model-opt version=NAME) tells weights apart, --fresh asks anew"
    ]


def _has_identity(manifest: Manifest, role: str, endpoint: Endpoint) -> bool:
    if role == "judge":
        stored = manifest.judge
    else:
        stored = manifest.model.parts.get(role, manifest.model)
    return stored.name == endpoint.name and all(stored.get(key) == value for key, value in endpoint.identity.items())


def _has_own_weights(address: str) -> bool:
    """Return whether a server is no known provider's, so that its weights may be changed by the user."""
    parts = urlsplit(address)
    return parts.scheme in ("http", "https") and (parts.hostname or "") not in KEY_BY_HOST
