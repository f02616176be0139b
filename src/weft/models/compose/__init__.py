"""Models made of Models: test-time strategies around one, compositions of several with roles.

    cot             the model first says in words what it is about to make, then makes it; the plan stays out of the history
    self-verify:N   the model looks at what it made and makes it again after its own objection, at most N times; the last one counts
    best-of:N       the model makes it N times at once and picks one
    cascade:reasoner=MODEL,painter=MODEL

`wired` finds the endpoints that a model's name stands for, and how they play together.
"""

import importlib.metadata
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.models.compose.base import Composition
from weft.models.compose.best_of import BestOf
from weft.models.compose.cot import ChainOfThought
from weft.models.compose.self_verify import SelfVerify
from weft.models.compose.words import English, Words
from weft.models.endpoint import Endpoint
from weft.models.registry import load_object, load_target, resolve
from weft.store.blobs import Blobs
from weft.types import Model

NAMES = "cot, self-verify:N, best-of:N"
COMPOSITIONS = {"cascade": "weft.models.compose.cascade:Cascade"}
GROUP = "weft.compositions"
PARTS = re.compile(r"(?P<name>.+?):(?P<parts>\w+=.+)", re.DOTALL)


class Wired(Struct, frozen=True):
    """A model as a run wires it: the endpoints by role, and how the Models that are made of them become one. `told` is for the manifest."""

    told: Mapping[str, Any]
    endpoints: Mapping[str, Endpoint]
    joined: Callable[[Mapping[str, Model]], Model]
    words: Words | None = None
    sees: bool = True

    def model(self, parts: Mapping[str, Model], strategy: str, blobs: Blobs) -> Model:
        return apply(strategy, self.joined(parts), blobs, self.words)


def wired(
    model: Any, blobs: Blobs, options: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None, data: str = ""
) -> Wired:
    """A model from its name or the user's own object; `NAME:role=MODEL,...` is a composition."""
    match = PARTS.fullmatch(model) if isinstance(model, str) else None
    if match is None:
        return alone(resolve(model, blobs, options, config, data))
    kind = composition(match["name"])
    given = dict(part.split("=", 1) for part in re.split(r",(?=\w+=)", match["parts"]))
    if set(given) != set(kind.roles):
        example = f"{match['name']}:{','.join(f'{role}=MODEL' for role in kind.roles)}"
        raise UserError(f"{model}: {match['name']} has the roles {', '.join(kind.roles)}; give each a model, as in {example}")
    endpoints = {role: resolve(given[role], blobs, _options_of(role, kind, options or {}), config, data) for role in kind.roles}
    told = {
        "name": model,
        "takes": msgspec.to_builtins(kind.takes),
        "provider": "composition",
        "model": match["name"],
        "version": kind.version,
        "parts": {role: manifest_of(endpoint) for role, endpoint in endpoints.items()},
    }
    return Wired(told, endpoints, lambda parts: kind(str(model), parts, blobs))


def alone(endpoint: Endpoint) -> Wired:
    return Wired(manifest_of(endpoint), {"model": endpoint}, lambda parts: parts["model"], endpoint.words, endpoint.sees)


def manifest_of(endpoint: Endpoint) -> dict[str, Any]:
    return {"name": endpoint.name, "takes": msgspec.to_builtins(endpoint.takes), **endpoint.identity}


def compositions() -> dict[str, str]:
    """Every composition that can be named: name -> target."""
    return {**COMPOSITIONS, **{point.name: point.value for point in importlib.metadata.entry_points(group=GROUP)}}


def composition(name: str) -> type[Composition]:
    known = compositions()
    if ".py:" not in name and name not in known:
        raise UserError(f"there is no composition {name!r}; there is {', '.join(known)}; or file.py:NAME for your own")
    kind = load_object(name) if ".py:" in name else load_target(known[name])
    if not isinstance(kind, type) or not issubclass(kind, Composition):
        raise UserError(f"{name} is no composition: make it a class of weft.models.compose.base.Composition")
    return kind


def _options_of(role: str, kind: type[Composition], options: Mapping[str, Any]) -> dict[str, Any]:
    """`painter.steps=28` is the painter's."""
    for name in options:
        if name.partition(".")[0] not in kind.roles or "." not in name:
            raise UserError(f"option {name!r}: say whose it is, as in {kind.roles[-1]}.{name.rpartition('.')[2]}=...")
    return {name.partition(".")[2]: value for name, value in options.items() if name.partition(".")[0] == role}


def apply(name: str, model: Model, blobs: Blobs, words: Words | None = None) -> Model:
    """The model under a strategy; `none` is the model itself."""
    kind, _, number = name.partition(":")
    spoken = words or English()
    if name == "none":
        return model
    if kind == "cot" and not number:
        return ChainOfThought(model, blobs, spoken)
    if kind in ("self-verify", "best-of"):
        if not number.isdigit() or not (1 if kind == "self-verify" else 2) <= int(number) <= 64:
            raise UserError(f"--strategy {name}: give a number, as in {kind}:3")
        return SelfVerify(model, blobs, spoken, int(number)) if kind == "self-verify" else BestOf(model, blobs, spoken, int(number))
    raise UserError(f"there is no strategy {name!r}; there is {NAMES}")
