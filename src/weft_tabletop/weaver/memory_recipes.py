"""What a model that is to remember is trained on: whole dialogues and views of their single turns, in shares of tokens.

plan_memory("micro", "dialogues=.25", "")      a quarter of all tokens from whole dialogues, the rest from single turns
plan_memory("micro", "", "plain")              nothing but single turns that name one image at most"""

from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.training.mix import parse_mix
from weft_tabletop.weaver.world import find_world

VIEWS = {"dialogues": "dialogue", "single-turn": "single-turn", "plain": "plain"}  # and their names in `weave/views.py`


class MemoryRecipe(Struct, frozen=True):
    """Everything that decides the weights."""

    world: str = "full"
    share: float = 1.0  # of tokens, that come from whole dialogues
    view: str = "single-turn"  # of the others
    steps: int = 2000
    tokens: int = 65_536  # of a step, with padding
    rate: float = 1.5e-3
    seed: int = 0
    rows: int = 200_000
    every: int = 500
    faults: float = 0.0  # the share of rows with an image that is wrong in one cell
    own: float = 0.0  # the share of rows whose history holds the model's own images


class MemoryAmount(Struct, frozen=True):
    """How much is trained unless told otherwise."""

    steps: int
    tokens: int
    rate: float
    rows: int


AMOUNTS = {"micro": MemoryAmount(400, 4096, 4e-3, 8000), "full": MemoryAmount(2000, 65_536, 1.5e-3, 200_000)}


def plan_memory(
    world: str, mix: str, view: str, *, seed: int = 0, faults: float = 0.0, own: float = 0.0, **given: Any
) -> MemoryRecipe:
    """A recipe with the usual amount of training, but for what is `given`: steps, tokens, rate, rows. Raises UserError
    for names that there are not."""
    find_world(world)
    if view and view not in VIEWS:
        raise UserError(f"--view {view}: there is {', '.join(VIEWS)}")
    share, other = _parse_shares(mix, view) if mix else (float(view == "dialogues"), view)
    amount: dict[str, Any] = {
        **msgspec.structs.asdict(AMOUNTS[world]),
        **{name: value for name, value in given.items() if value is not None},
    }
    every = max(1, int(amount["steps"]) // 4)
    shown = VIEWS["single-turn"] if other in ("", "dialogues") else VIEWS[other]
    return MemoryRecipe(world=world, share=share, view=shown, seed=seed, every=every, faults=faults, own=own, **amount)


def _parse_shares(mix: str, view: str) -> tuple[float, str]:
    """The share of whole dialogues, and the view of the rest."""
    if mix.partition("=")[0] == "dialogues" and "," not in mix and _is_zero(mix.partition("=")[2]):
        return 0.0, view
    weights = {source.data: source.weight for source in parse_mix(mix, tuple(VIEWS)).sources}
    dialogues = weights.pop("dialogues", 0.0)
    if len(weights) > 1 or (weights and view and view not in weights):
        raise UserError(f"--mix {mix}: beside whole dialogues there is one view of single turns")
    if weights:
        ((other, weight),) = weights.items()
        return dialogues / (dialogues + weight), other
    if dialogues > 1:
        raise UserError(f"--mix {mix}: the share of dialogues is at most 1")
    return dialogues, view


def _is_zero(text: str) -> bool:
    try:
        return float(text) == 0
    except ValueError:
        return False
