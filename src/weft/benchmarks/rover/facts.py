"""The `detail` of ROVER's verdicts: what its tables know besides the value."""

from collections.abc import Mapping

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.types import OfficialReading, Verdict


class RoverFacts(Struct, frozen=True, omit_defaults=True):
    no_image: bool = False  # whether the thinking that was judged came without an image
    no_text: bool = False  # whether the reply shows no thinking, or gives no answer in text
    thinking_outside_tags: bool = False  # where the released code does not see it
    path_distance: float | None = None  # mean distance of a path from the reference, as a share of the diagonal
    official_readings: Mapping[str, OfficialReading] = {}  # metric -> what the released code stores for missing text


def read_rover_facts(verdict: Verdict) -> RoverFacts:
    return read_facts(verdict.detail, RoverFacts)
