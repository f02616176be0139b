"""What IMUG-Bench's tables know of a verdict besides its value."""

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.benchmarks.imug.data import ChoiceGold
from weft.types import Verdict


class ChoiceFacts(Struct, frozen=True, omit_defaults=True):
    """Of a multiple-choice question."""

    response: str = ""  # the model's, as it came
    key: str = ""  # the letters that are right, or what the dataset has in their place
    dynamic: bool = False  # whether the judge works out the key from the model's own replies
    unlisted: bool = False  # whether the released scripts do not know that it is dynamic, and leave it out
    union: str = ""  # the key with letters that exclude each other, where that is another


class PointsFacts(Struct, frozen=True, omit_defaults=True):
    """Of an image: its points, 0 to 5 each."""

    points: tuple[float, ...] = ()


def read_choice_facts(verdict: Verdict) -> ChoiceFacts:
    return read_facts(verdict.detail, ChoiceFacts)


def read_points_facts(verdict: Verdict) -> PointsFacts:
    return read_facts(verdict.detail, PointsFacts)


def build_choice_facts(gold: ChoiceGold, response: str) -> ChoiceFacts:
    """Before anybody worked out the key."""
    return ChoiceFacts(response, gold.raw, gold.dynamic, gold.dynamic and not gold.listed)


def build_zero_points(count: int) -> PointsFacts:
    return PointsFacts((0,) * count)


def is_dynamic(verdict: Verdict) -> bool:
    return verdict.metric == "choice" and read_choice_facts(verdict).dynamic
