"""Models made of models: test-time strategies around one model, and compositions of several with roles.

cot             the model first plans in words what it is about to make, then makes it; the plan stays out of the
                history
self-verify:N   the model reviews its output and makes it again after its own objection, at most N times; the last
                counts
best-of:N       the model makes N candidates at once and picks one
cascade:reasoner=MODEL,painter=MODEL
weaver:planner=MODEL,visualizer=MODEL
plan:planner=MODEL
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
COMPOSITIONS = {
    "cascade": "weft.models.compose.cascade:Cascade",
    "weaver": "weft.models.compose.weaver:Weaver",
    "plan": "weft.models.compose.plan:Plan",
}
GROUP = "weft.compositions"
MAX_ROUNDS = 64  # of a strategy


def list_compositions() -> dict[str, str]:
    """Return every composition that can be named: name -> target."""
    installed = {point.name: point.value for point in find_entry_points(GROUP)}
    return {**COMPOSITIONS, **installed}


def load_composition(name: str) -> type[Composition]:
    """Return a composition's class by its name or `file.py:NAME`. Raises UserError for what is none."""
    compositions = list_compositions()
    if ".py:" in name:
        kind = load_object(name)
    elif name in compositions:
        kind = load_target(compositions[name])
    else:
        raise UserError(
            f"there is no composition {name!r}; there is {', '.join(compositions)}; or file.py:NAME for your own"
        )
    if not isinstance(kind, type) or not issubclass(kind, Composition):
        raise UserError(f"{name} is no composition: make it a class of weft.models.compose.base.Composition")
    return kind


def apply_strategy(name: str, model: Model, blobs: Blobs, words: Phrasing | None = None) -> Model:
    """Return the model under a strategy; `none` is the model itself. Raises UserError for an unknown strategy."""
    if name == "none":
        return model
    kind, _, number = name.partition(":")
    phrasing = words or English()
    if kind == "cot" and not number:
        return ChainOfThought(model, blobs, phrasing)
    if kind == "self-verify":
        return SelfVerify(model, blobs, phrasing, _read_rounds(name, kind, number, 1))
    if kind == "best-of":
        return BestOf(model, blobs, phrasing, _read_rounds(name, kind, number, 2))
    raise UserError(f"there is no strategy {name!r}; there is {STRATEGY_NAMES}")


def _read_rounds(name: str, kind: str, number: str, minimum: int) -> int:
    if not re.fullmatch("[0-9]{1,3}", number) or not minimum <= int(number) <= MAX_ROUNDS:
        raise UserError(f"--strategy {name}: give a number, as in {kind}:3")
    return int(number)
