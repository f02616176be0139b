"""What ROVER's tables know of a verdict besides its value."""

from collections.abc import Mapping

from msgspec import Struct

from weft.benchmarks.facts import facts_of
from weft.types import Reading, Verdict


class RoverFacts(Struct, frozen=True, omit_defaults=True):
    no_picture: bool = False  # whether thinking was judged that came without an image
    silent: bool = False  # whether the reply shows no thinking, or gives no answer in words
    elsewhere: bool = False  # whether the thinking stands where the released code does not see it
    away: float | None = None  # how far a path lies from the true one, as a share of the diagonal
    unsaid: Mapping[str, Reading] = {}  # by metric, what the released code keeps of words that a model does not have


def rover_facts(verdict: Verdict) -> RoverFacts:
    return facts_of(verdict.detail, RoverFacts)
