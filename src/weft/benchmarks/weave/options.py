"""What can be chosen for WEAVEBench: the history policy, and whether inputs are built as the released scripts build them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from weft.types import Turn

History = Annotated[
    Literal["none", "partial", "full", "dialogue"],
    Meta(description="What of the dialogue a model sees; dialogue is everything, interleaved."),
]
Placement = Annotated[Literal["front", "first"], Meta(description="Where pictures stand in a dialogue: front, or first (mention).")]
Past = Annotated[Literal["own", "truth"], Meta(description="Earlier replies in the history: the model's own, or the true ones.")]
Turns = Annotated[Literal["all", "image", "text"], Meta(description="Which turns are asked; others are filled in from the dataset.")]
Official = Annotated[bool, Meta(description="Build inputs as the released scripts do, defects included.")]


class WeaveOptions(Struct, frozen=True):
    history: History = "partial"
    placement: Placement = "front"
    past: Past = "own"
    turns: Turns = "all"
    official: Official = False

    def asks(self, turn: Turn) -> bool:
        """Whether the run asks this turn of the model; turns that it does not ask are filled in from the dataset."""
        return self.turns == "all" or (self.turns == "text") == (turn.want == "text")
