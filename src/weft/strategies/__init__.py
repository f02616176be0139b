"""Test-time strategies: Models made of a Model, for every benchmark. They act where a picture is due; text turns pass through.

    cot             the model first says in words what it is about to draw, then draws it; the plan stays out of the history
    self-verify:N   the model looks at its picture and redraws it after its own objection, at most N times; the last enters the history
    best-of:N       the model draws N times at once and picks one

A reply carries the keys and the usage of all the calls behind it, so that plans, reviews and candidates are in the journal and in the cost.
"""

from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.strategies.best_of import BestOf
from weft.strategies.cot import ChainOfThought
from weft.strategies.self_verify import SelfVerify
from weft.strategies.words import English, Words
from weft.types import Model

NAMES = "cot, self-verify:N, best-of:N"


def calls_a_picture(name: str) -> int:
    """How many calls a strategy makes for one picture, at the most."""
    kind, _, number = name.partition(":")
    return {"cot": 2, "self-verify": 1 + 2 * int(number or 0), "best-of": int(number or 0) + 1}.get(kind, 1)


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
