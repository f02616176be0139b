"""A dialogue in the making, and what is known of how it was made. Frozen, and JSON in the part files.

A `Row` is one seed on its way through a recipe's steps. Its `Draft` is the dialogue so far: images by number, and turns
that mention them as `Image #k`. An `Attempt` is one order for one image with what the gates said of the result; all
attempts are kept, since a rejected one and a chosen one at the same item are a preference pair.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from weft.types import Image

MIN_TURNS = 2  # of a dialogue; one that has fewer left is dropped

# failed: a call or a step went wrong, and the next command tries again
RowOutcome = Literal["", "kept", "dropped", "failed"]


class DraftTurn(Struct, frozen=True, omit_defaults=True):
    """One request with its reference: an image of the draft, or a text answer."""

    text: str  # what the user says
    kind: str = ""  # the recipe's word for it, such as add, reverse or fuse
    makes: int | None = None  # the number of the image that is its reference; None: `answer` is
    answer: str = ""
    key_points: Mapping[str, str] = {}  # as in WEAVE's files: `GT #k`, `Image #k` or `Text` -> requirement
    sees: tuple[int, ...] = ()  # images that it depends on without a mention
    gold: Any = None  # what else is known of the reference, for programs


class Draft(Struct, frozen=True, omit_defaults=True):
    """A dialogue. `images[k - 1]` is `Image #k`; those that no turn makes are inputs."""

    domain: str
    images: tuple[Image, ...]
    turns: tuple[DraftTurn, ...]
    subdomain: str = ""  # a finer group, such as WEAVE-100k's Animals
    split: Literal["train", "test"] = "train"


class GateVerdict(Struct, frozen=True, omit_defaults=True):
    """What one gate says of one attempt."""

    gate: str
    passed: bool
    value: float | None = None  # what was measured
    reason: str = ""


class Attempt(Struct, frozen=True, omit_defaults=True):
    """One order for an image, and what came of it."""

    item: str  # what was ordered, such as `edit 2`; attempts at one item compete
    role: str  # who made it
    prompt: str
    shown: tuple[Image, ...] = ()  # the images that came with the order
    image: Image | None = None
    reason: str = ""  # why there is no image
    verdicts: tuple[GateVerdict, ...] = ()
    chosen: bool = False
    key: str = ""  # cache key of its call

    @property
    def passed(self) -> bool:
        """Whether there is an image and no gate rejected it."""
        return self.image is not None and all(verdict.passed for verdict in self.verdicts)


class Origin(Struct, frozen=True, omit_defaults=True):
    """Where an image or a sentence comes from: a model, a file of the user's, or else the recipe's own program."""

    role: str = ""  # that the model plays
    call: str = ""  # cache key of the call whose reply has it
    file: str = ""  # name of the user's file that it was made from


class Provenance(Struct, frozen=True, omit_defaults=True):
    """The origin of every image and every sentence of a dialogue."""

    images: tuple[Origin, ...]  # in the order of the draft's images
    turns: tuple[Mapping[str, Origin], ...]  # by turn: of `text`, of `answer`, and of each key point by its name


class EarlierTry(Struct, frozen=True):
    """A dialogue of the same seed that was dropped before the one of the row."""

    step: str
    reason: str


class Row(Struct, frozen=True, omit_defaults=True):
    """One seed on its way to a dialogue."""

    number: int  # of the seed, from 0
    facts: Mapping[str, Any] = {}  # what steps tell later steps
    draft: Draft | None = None
    attempts: tuple[Attempt, ...] = ()
    counts: Mapping[str, int] = {}  # what happened on the way, such as mended edits
    calls: tuple[str, ...] = ()  # cache keys of all its calls, sorted
    cost: float | None = 0.0  # of these calls in USD, whoever paid for them; None if a price is unknown
    outcome: RowOutcome = ""
    step: str = ""  # which ended it, unless it was kept
    reason: str = ""  # why, in words that are the same for all such rows
    detail: str = ""
    group: str = ""  # steps with a group are for rows of that group
    earlier: tuple[EarlierTry, ...] = ()  # dialogues of this seed that were dropped before
    provenance: Provenance | None = None  # of a kept dialogue
    prints: tuple[str, ...] = ()  # perceptual hashes of a kept dialogue's images, in hexadecimal digits
