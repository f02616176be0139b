"""What a seed is about, by shares that every stretch of seeds keeps.

    pathway, rank = choose_ranked(number, {"fusion": 3, "recall": 1}, PATHWAY)
    category = choose(rank, RECALL, CATEGORY)

Chance would leave a category of 50 among 100,000 dialogues with 36 or 64. Here seeds are spread evenly instead: the
multiples of an irrational number that fractions approximate badly (H. Weyl, 1916), so that the first n seeds meet each
share to within a few dialogues. What is decided next goes by a seed's rank among those of its own kind: two decisions
by the same number would not be independent in a small kind. All tries of a seed have the same share. Everything is
computed in integers, so that it is the same on every machine.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, TypeVar

from weft.benchmarks.weave.training import PUBLISHED
from weft.benchmarks.weave.training_names import TABLE_5
from weft.building.counts import PublishedCounts
from weft.building.recipe import SEED_SPACE
from weft.errors import UserError

WHOLE = 1 << 62
PATHWAY = round((math.sqrt(5) - 1) / 2 * WHOLE)
CATEGORY = round((math.sqrt(2) - 1) * WHOLE)
IMAGES = round((math.sqrt(3) - 1) * WHOLE)
DOMAIN = round((math.sqrt(13) - 3) / 2 * WHOLE)
T = TypeVar("T")
Images = Literal["fixed", "paper"]
LONGEST = {6: 0.72, 7: 0.24, 8: 0.04}  # of the dialogues with 6 or more images; with these, the mean is the paper's


def choose(number: int, shares: Mapping[T, float], decision: int) -> T:
    """Return what a seed gets, by the shares of the possibilities. `decision` is one of the numbers above."""
    return choose_ranked(number, shares, decision)[0]


def choose_ranked(number: int, shares: Mapping[T, float], decision: int) -> tuple[T, int]:
    """Return what a seed gets, and how many seeds before it get the same. Later tries have ranks in the same way."""
    seed = number % SEED_SPACE
    place = (seed * decision + WHOLE // 2) % WHOLE
    bounds = _find_bounds(shares)
    chosen = next(name for name, (_, upper) in bounds.items() if place < upper)
    lower, upper = bounds[chosen]
    rank = _count_below(seed, upper, decision) - _count_below(seed, lower, decision)
    return chosen, number - seed + rank


def _find_bounds(shares: Mapping[T, float]) -> dict[T, tuple[int, int]]:
    """Return the stretch of places of each possibility that has a share; the last one ends at the end."""
    given = {name: Fraction(share) for name, share in shares.items() if share > 0}
    total = sum(given.values())
    bounds: dict[T, tuple[int, int]] = {}
    sum_so_far = Fraction(0)
    for name, share in given.items():
        lower = int(sum_so_far * WHOLE / total)
        sum_so_far += share
        bounds[name] = (lower, int(sum_so_far * WHOLE / total))
    return bounds


def _count_below(seeds: int, bound: int, decision: int) -> int:
    """Return how many of the first seeds have a place below a bound."""
    start = WHOLE // 2
    return _sum_floors(seeds, decision, start) - _sum_floors(seeds, decision, start - bound + WHOLE) + seeds


def _sum_floors(count: int, step: int, start: int) -> int:
    """Return the sum of (i * step + start) // WHOLE over the first `count` numbers i, in a few dozen steps: the
    algorithm of Euclid on the slope."""
    total = 0
    modulus = WHOLE
    while count > 0:
        total += (step // modulus) * (count * (count - 1) // 2) + (start // modulus) * count
        step %= modulus
        start %= modulus
        last = step * count + start
        if last < modulus:
            break
        count, start = divmod(last, modulus)
        modulus, step = step, modulus
    return total


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
