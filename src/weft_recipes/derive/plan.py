"""A planned dialogue: what its images show and what its turns say, before anything is drawn. Everything in it is exact.

`Image #1` is the input; each request imagines an alternative, and a question compares them.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from weft.building.draft import Draft, DraftTurn
from weft.types import Image


class PlannedTurn(Struct, frozen=True):
    """One request with its exact result."""

    text: str
    kind: str  # alternative, compare or continue
    makes: int | None = None  # the number of the image that is its reference
    answer: str = ""
    key_points: Mapping[str, str] = {}
    words: tuple[str, ...] = ()  # that a rewording must keep
    order: tuple[str, ...] = ()  # of these words: "from e2 to e4" is not "from e4 to e2"
    gold: Any = None  # what a program can check the reference by


class DialoguePlan(Struct, frozen=True):
    """A dialogue in words."""

    domain: str
    turns: tuple[PlannedTurn, ...]


def to_draft(plan: DialoguePlan, images: list[Image], texts: list[str]) -> Draft:
    """Return the dialogue, with a text for each turn."""
    turns = [
        DraftTurn(text, turn.kind, turn.makes, turn.answer, dict(turn.key_points), gold=turn.gold)
        for turn, text in zip(plan.turns, texts, strict=True)
    ]
    return Draft(plan.domain, tuple(images), tuple(turns))
