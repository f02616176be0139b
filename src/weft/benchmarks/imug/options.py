"""What a user may choose for IMUG-Bench.

Its protocol has one history, the dialogue with the model's own replies; `none` measures what that history is worth.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class ImugOptions(Struct, frozen=True):
    """The options of IMUG-Bench."""

    history: Annotated[
        Literal["dialogue", "none"], Meta(description="The whole dialogue in its own order, or none of it.")
    ] = "dialogue"
    turns: Annotated[Literal["all", "image", "text"], Meta(description="Which turns are asked and scored.")] = "all"
    official: Annotated[
        bool,
        Meta(
            description="Build inputs as the released client does, defects included; what is missing is judged, for "
            "the official row."
        ),
    ] = False
