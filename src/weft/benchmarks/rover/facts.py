"""What ROVER's tables know of a verdict besides its value."""

from collections.abc import Mapping

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.types import OfficialReading, Verdict


class RoverFacts(Struct, frozen=True, omit_defaults=True):
    no_image: bool = False  # whether thinking was judged that came without an image
    no_text: bool = False  # whether the reply shows no thinking, or gives no answer in words
    thinking_outside_tags: bool = False  # whether the thinking stands where the released code does not see it
    path_distance: float | None = None  # how far a path lies from the true one, as a share of the diagonal
    # by metric, what the released code keeps of words that a model does not have
    official_readings: Mapping[str, OfficialReading] = {}


def read_rover_facts(verdict: Verdict) -> RoverFacts:
    return read_facts(verdict.detail, RoverFacts)
