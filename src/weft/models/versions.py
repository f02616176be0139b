"""The version of a user's own model that declares none: what its answers are cached under.

- Everything that decides its answers can be seen: the version is `source:DIGEST`, and the same code with the same
  values and weights is the same model, in another process as well.
- Something cannot be seen, and the object came from Python: the version is `object:DIGEST`, which no other object gets.
- Something cannot be seen, and the object came from a file that weft imported itself: the version is that of what can
  be seen; `assumption` says what is taken for granted.
"""

import hashlib
import uuid
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from weft.models.code_digest import belongs_to_weft, is_installed_class
from weft.models.endpoint import Endpoint
from weft.models.object_digest import digest_object, digest_roughly
from weft.store.manifest import DERIVED_VERSIONS

if TYPE_CHECKING:
    from weft.models.compose.base import Composition

SEEN, UNSEEN = DERIVED_VERSIONS


class DerivedVersion(Struct, frozen=True):
    """A version that was derived from an object."""

    version: str
    opaque: tuple[str, ...]  # what it uses and weft cannot see into
    readers: tuple[str, ...] = ()  # functions it calls that may read what weft does not look at

    @property
    def for_one_object(self) -> bool:
        """Whether its answers are reused for this object alone."""
        return self.version.startswith(UNSEEN)

    def assumption(self, name: str, *, from_file: bool) -> str:
        """Return what the user must know about the reuse of its answers; "" if weft sees everything."""
        if not (self.opaque or self.readers or from_file):
            return ""
        if self.for_one_object:
            return (
                f"{name} has no `version`, and weft cannot see into {', '.join(self.opaque)}: its answers are reused "
                "for this object alone. Set `version`, and change it with the weights; reuse=RUN continues a run"
            )
        assumed = ["its code, its values and the weights that they name"]
        if self.opaque:
            assumed.append(f"what weft cannot see into ({', '.join(self.opaque)})")
        if self.readers:
            assumed.append(f"what its code reads when it is called ({', '.join(self.readers)})")
        return (
            f"{name} has no `version`: weft assumes that it gives the same answers while {' and '.join(assumed)} "
            "are the same. Set `version`, and change it with the weights"
        )


def derive_version(
    thing: Any, home: Path, options: Mapping[str, Any], *, from_file: bool, owner: Any = None
) -> DerivedVersion:
    """Derive the version of an object. `options` are the user's for it; `from_file`: weft imported its file itself.

    `owner` is the object that answers are reused for, if it is not `thing` itself.
    """
    seen = digest_object(thing, home / "weights.json", options)
    if seen.digest and (not seen.opaque or from_file):
        return DerivedVersion(SEEN + seen.digest[:16], seen.opaque, seen.readers)
    # another opaque value in the same object is another model
    tokens = [_TOKENS.token_of(value) for value in (thing if owner is None else owner, *seen.opaque_values)]
    text = " ".join((*tokens, seen.digest))
    return DerivedVersion(UNSEEN + hashlib.sha256(text.encode()).hexdigest()[:16], seen.opaque, seen.readers)


def identify_endpoint(endpoint: Endpoint, home: Path, *, from_file: bool) -> Endpoint:
    """Return the endpoint. If it is the user's own and has no version, it gets one that is derived from it."""
    if is_installed_class(type(endpoint)):
        return endpoint
    declared = endpoint.identity.get("version")
    own = {name: value for name, value in vars(endpoint).items() if name not in Endpoint.__annotations__}
    if declared is not None and not is_derived(str(declared)):
        endpoint.code_digest = digest_roughly((type(endpoint), own))
        return endpoint
    identity = {key: value for key, value in endpoint.identity.items() if key != "version"}
    derived = derive_version((type(endpoint), own), home, identity, from_file=from_file, owner=endpoint)
    endpoint.identity = {**identity, "version": derived.version}
    endpoint.version_note = derived.assumption(endpoint.name, from_file=from_file)
    return endpoint


def identify_composition(kind: "type[Composition]", home: Path) -> tuple[str, str]:
    """Return the version of a composition, and what the user must know about it.

    It is the one that the class declares. The user's own class that declares none, also one that only changes a class
    of weft's, has one that is derived from its code.
    """
    declares = next(base for base in kind.__mro__ if "version" in vars(base))
    if declares is kind or not belongs_to_weft(declares.__module__):
        return kind.version, ""
    derived = derive_version(kind, home, {}, from_file=True)
    return derived.version, derived.assumption(kind.__name__, from_file=True)


def is_derived(version: str) -> bool:
    """Return whether a version in a manifest was derived, and not set by the user."""
    return version.startswith(DERIVED_VERSIONS)


class _Tokens:
    """A random token for every object, for as long as it lives."""

    def __init__(self) -> None:
        self._tokens: dict[int, tuple[Any, str]] = {}  # by id: a weak reference if possible, else the object

    def token_of(self, thing: Any) -> str:
        owner = thing
        if isinstance(thing, MethodType):  # a new object at every access
            owner = thing.__self__
        key = id(owner)
        if key not in self._tokens:
            self._tokens[key] = (self._reference(owner, key), uuid.uuid4().hex)
        return self._tokens[key][1]

    def _reference(self, owner: Any, key: int) -> Any:
        try:
            return weakref.ref(owner, lambda _: cast(None, self._tokens.pop(key, None)))
        except TypeError:
            return owner


_TOKENS = _Tokens()
