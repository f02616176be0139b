"""Which cached answers a run may use: those under its own models' identities, none (`fresh`), or those of a run that
the user names (`reuse`).

Both change identities, and nothing else: a fresh model is one that was never asked before, and a model that continues a
run is the one that the run was made with.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.models.endpoint import Endpoint
from weft.models.registry import ResolvedModel
from weft.models.versions import SEEN, is_derived
from weft.results.run import find_run
from weft.store.manifest import Identity, Manifest
from weft.workspace import read_only_journal

FRESH = "fresh"  # the key of an identity that no answer is cached under
# What may differ between a model and that of the run which it continues: where it is, and what weft derived.
VOUCHED_KEYS = ("version", "where", "url", "urls", "called", FRESH)
DESCRIPTION_KEYS = ("name", "takes")  # what a manifest adds to an endpoint's identity


def identify_model(config: RunConfig, resolved: ResolvedModel) -> ResolvedModel:
    """Return the model with identities as `config.fresh` or `config.reuse` says, like `identify_endpoints`.

    A composition that continues a run has that run's version.
    """
    identify_endpoints(config, resolved.endpoints)
    if not config.reuse or resolved.composition is None:
        return resolved
    with read_only_journal(config.home) as journal:
        record = find_run(journal, config.reuse)
    stored = record.manifest.model.version
    if not stored or stored == resolved.version:
        return resolved
    if not is_derived(stored) and not is_derived(resolved.version):
        raise UserError(
            f"{resolved.name} cannot continue {record.id}: it had version {stored}, and now it is {resolved.version}"
        )
    note = f"{resolved.name} differs from the model of {record.id} in its code: answers of both are in one run"
    return replace(resolved, version=stored, version_note=note)


def identify_endpoints(config: RunConfig, endpoints: Mapping[str, Endpoint]) -> None:
    """Change the identities of endpoints by role as `config.fresh` or `config.reuse` says.

    Raises UserError if a model is not the one of the run that it is to continue. Another judge keeps its identity.
    """
    if config.fresh and config.reuse:
        raise UserError("fresh and reuse exclude each other: ask anew, or continue a run")
    if config.fresh:
        asked_at = datetime.now(UTC).isoformat(timespec="microseconds")
        for endpoint in endpoints.values():
            _set_identity(endpoint, {**endpoint.identity, FRESH: asked_at})
    if config.reuse:
        with read_only_journal(config.home) as journal:
            record = find_run(journal, config.reuse)
        for role, endpoint in endpoints.items():
            _continue_run(role, endpoint, record.manifest, record.id)


def _continue_run(role: str, endpoint: Endpoint, manifest: Manifest, run: str) -> None:
    stored = _stored_identity(role, manifest)
    problem = _find_difference(endpoint, stored)
    if not problem:
        identity = {key: value for key, value in stored.items() if key not in DESCRIPTION_KEYS}
        endpoint.version_note = _describe_other_version(endpoint, stored, run)
        _set_identity(endpoint, identity)
    elif role != "judge":
        raise UserError(f"{endpoint.name} cannot continue {run}: {problem}")


def _stored_identity(role: str, manifest: Manifest) -> Identity:
    if role == "judge":
        return manifest.judge
    if role in manifest.model.parts:
        return manifest.model.parts[role]
    return manifest.model


def _find_difference(endpoint: Endpoint, stored: Identity) -> str:
    """Return why an endpoint cannot be the stored model; "" if it can."""
    if stored.name != endpoint.name:
        return f"its model is {stored.name}"
    versions = [str(identity.get("version") or "") for identity in (stored, endpoint.identity)]
    if all(versions) and versions[0] != versions[1] and not any(map(is_derived, versions)):
        return f"its model had version {versions[0]}, and now it is {versions[1]}"
    own = _without_vouched(endpoint.identity)
    other = _without_vouched({key: value for key, value in stored.items() if key not in DESCRIPTION_KEYS})
    for key in dict.fromkeys((*own, *other)):
        if own.get(key) != other.get(key):
            return f"its model had {key} {other.get(key, 'none')}, and now it is {own.get(key, 'none')}"
    return ""


def _describe_other_version(endpoint: Endpoint, stored: Identity, run: str) -> str:
    """Return a note if weft sees that the model is not the one of the run; "" where it has to believe the user."""
    versions = [str(identity.get("version") or "") for identity in (stored, endpoint.identity)]
    if versions[0] == versions[1] or not all(version.startswith(SEEN) for version in versions):
        return ""
    return (
        f"{endpoint.name} differs from the model of {run} in its code, a value or its weights: "
        "answers of both are in one run, because reuse says that they are one model"
    )


def _without_vouched(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in identity.items() if key not in VOUCHED_KEYS}


def _set_identity(endpoint: Endpoint, identity: Mapping[str, Any]) -> None:
    endpoint.identity = identity
    endpoint.previous_identities = ()
