"""What a seed is about, by shares that every stretch of seeds keeps.

    pathway = choose(number, {"fusion": 3, "recall": 1}, PATHWAY)

Chance would leave a category of 50 among 100,000 dialogues with 36 or 64. Here seeds are spread evenly instead: the
multiples of an irrational number that fractions approximate badly (H. Weyl, 1916), so that every stretch of seeds meets
each share to within a few dialogues. Each decision has a number of its own, so that one says nothing of another. All
tries of a seed have the same share.
"""

import math
from collections.abc import Mapping
from typing import Literal, TypeVar

from weft.benchmarks.weave.training import PUBLISHED
from weft.benchmarks.weave.training_names import TABLE_5
from weft.building.counts import PublishedCounts
from weft.building.recipe import SEED_SPACE
from weft.errors import UserError

PATHWAY = (math.sqrt(5) - 1) / 2
CATEGORY = math.sqrt(2) - 1
IMAGES = math.sqrt(3) - 1
DOMAIN = (math.sqrt(13) - 3) / 2
T = TypeVar("T")
Images = Literal["fixed", "paper"]
LONGEST = {6: 0.72, 7: 0.24, 8: 0.04}  # of the dialogues with 6 or more images; with these, the mean is the paper's


def choose(number: int, shares: Mapping[T, float], decision: float) -> T:
    """Return what a seed gets, by the shares of the possibilities. `decision` is one of the numbers above."""
    seed = number % SEED_SPACE
    place = (0.5 + seed * decision) % 1.0 * sum(shares.values())
    chosen = None
    for name, share in shares.items():
        if share > 0:
            chosen = name
            place -= share
            if place < 0:
                break
    assert chosen is not None, "no possibility has a share"
    return chosen


WEAVE_100K = PublishedCounts(
    "WEAVE-100k",
    {
        "fusion": "Multi-image Fusion",
        "recall": "Recall",
        "edit": "Edit",
        "chess_game": "Chess Game",
        "visual_jigsaw": "Visual Jigsaw",
    },
    {(domain, kind): count for domain, kinds in TABLE_5.items() for kind, count in kinds.items()},
    {number: PUBLISHED[f"≥{number} images"] / PUBLISHED["dialogues"] for number in (4, 5, 6)},
    "the paper's Table 5 and Figure 4",
)


def _published_images() -> dict[int, float]:
    """Return the shares of WEAVE-100k's dialogues by their number of images (paper, Figure 4)."""
    four, five, six = (PUBLISHED[f"≥{number} images"] for number in (4, 5, 6))
    return {4: four - five, 5: five - six, **{number: six * share for number, share in LONGEST.items()}}


FIGURE_4 = _published_images()


def check_images(images: Images, option: str, value: int, usual: int) -> None:
    """Raise UserError for an option that the paper's numbers of images would overrule."""
    if images == "paper" and value != usual:
        raise UserError(f"--{option} {value}: with --images paper it follows from Figure 4; add --images fixed")


def choose_images(number: int) -> int:
    """Return how many images the dialogue of a seed is to have, in the shares of Figure 4."""
    return choose(number, FIGURE_4, IMAGES)
