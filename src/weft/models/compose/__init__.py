"""Models made of Models: test-time strategies around one, compositions of several with roles.

cot             the model first says in words what it is about to make, then makes it; the plan stays out of the history
self-verify:N   the model looks at what it made and makes it again after its own objection, at most N times; the last
one counts
best-of:N       the model makes it N times at once and picks one
cascade:reasoner=MODEL,painter=MODEL
weaver:planner=MODEL,visualizer=MODEL
"""

import re

from weft.errors import UserError
from weft.models.compose.base import Composition
from weft.models.compose.best_of import BestOf
from weft.models.compose.cot import ChainOfThought
from weft.models.compose.phrasing import English, Phrasing
from weft.models.compose.self_verify import SelfVerify
from weft.plugins import find_entry_points, load_object, load_target
from weft.store.blobs import Blobs
from weft.types import Model

STRATEGY_NAMES = "cot, self-verify:N, best-of:N"
COMPOSITIONS = {"cascade": "weft.models.compose.cascade:Cascade", "weaver": "weft.models.compose.weaver:Weaver"}
GROUP = "weft.compositions"


def list_compositions() -> dict[str, str]:
    """Every composition that can be named: name -> target."""
    return {**COMPOSITIONS, **{point.name: point.value for point in find_entry_points(GROUP)}}


def load_composition(name: str) -> type[Composition]:
    known = list_compositions()
    if ".py:" not in name and name not in known:
        raise UserError(f"there is no composition {name!r}; there is {', '.join(known)}; or file.py:NAME for your own")
    if ".py:" in name:
        kind = load_object(name)
    else:
        kind = load_target(known[name])
    if not isinstance(kind, type) or not issubclass(kind, Composition):
        raise UserError(f"{name} is no composition: make it a class of weft.models.compose.base.Composition")
    return kind


def apply_strategy(name: str, model: Model, blobs: Blobs, words: Phrasing | None = None) -> Model:
    """The model under a strategy; `none` is the model itself."""
    kind, _, number = name.partition(":")
    spoken = words or English()
    if name == "none":
        return model
    if kind == "cot" and not number:
        return ChainOfThought(model, blobs, spoken)
    if kind in ("self-verify", "best-of"):
        if not re.fullmatch("[0-9]{1,3}", number) or not (1 if kind == "self-verify" else 2) <= int(number) <= 64:
            raise UserError(f"--strategy {name}: give a number, as in {kind}:3")
        if kind == "self-verify":
            return SelfVerify(model, blobs, spoken, int(number))
        return BestOf(model, blobs, spoken, int(number))
    raise UserError(f"there is no strategy {name!r}; there is {STRATEGY_NAMES}")
