"""Which gates a recipe uses, from its options and from the roles that have models."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from weft.building.gates.embeddings import EmbeddingGate
from weft.building.gates.judge import JudgeGate
from weft.building.gates.pixels import BlankGate, EditedGate, KeptGate
from weft.building.orders import Gate

LEVELS = ("none", "rules", "pixels", "judge")


class GateOptions(Struct, frozen=True):
    """Options that recipes with gates share."""

    gates: Annotated[
        Literal["none", "rules", "pixels", "judge"],
        Meta(description="How far images and texts are checked; each includes those before."),
    ] = "judge"
    mends: Annotated[int, Meta(ge=0, le=8, description="Times that the mender may replace a rejected image.")] = 1
    least_change: Annotated[
        float, Meta(ge=0, le=255, description="Local change, of 255, below which an edit counts as not done.")
    ] = 5.0
    least_similarity: Annotated[
        float,
        Meta(ge=-1, le=1, description="Structural similarity below which an edit changed too much; -1: not checked."),
    ] = -1.0
    embedder: Annotated[
        str,
        Meta(
            description="A second opinion on whether an image was edited: CLIP's or SigLIP's weights, as a folder or "
            "a repository. Extra `local`."
        ),
    ] = ""
    most_similar: Annotated[
        float,
        Meta(ge=0, le=1, description="Cosine of the embeddings from which on an edit counts as not done."),
    ] = 0.995
    least_score: Annotated[float, Meta(ge=0, le=10, description="What the checker must give at least.")] = 7.0


def has_level(options: GateOptions, level: str) -> bool:
    """Return whether the gates of this level are used."""
    return LEVELS.index(options.gates) >= LEVELS.index(level)


def choose_gates(options: GateOptions, *, has_checker: bool) -> list[Gate]:
    """Return the gates for images, cheapest first."""
    gates: list[Gate] = []
    if has_level(options, "pixels"):
        gates.append(EditedGate(options.least_change))
        gates.append(BlankGate())
        if options.least_similarity > -1:
            gates.append(KeptGate(options.least_similarity))
        if options.embedder:
            gates.append(EmbeddingGate(options.embedder, options.most_similar))
    if has_level(options, "judge") and has_checker:
        gates.append(JudgeGate(options.least_score))
    return gates
