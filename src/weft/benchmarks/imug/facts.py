"""What IMUG-Bench's tables know of a verdict besides its value."""

from msgspec import Struct

from weft.benchmarks.facts import facts_of
from weft.benchmarks.imug.data import Choice
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


def choice_facts(verdict: Verdict) -> ChoiceFacts:
    return facts_of(verdict.detail, ChoiceFacts)


def points_facts(verdict: Verdict) -> PointsFacts:
    return facts_of(verdict.detail, PointsFacts)


def facts_of_choice(gold: Choice, response: str) -> ChoiceFacts:
    """Before anybody worked out the key."""
    return ChoiceFacts(response, gold.raw, gold.dynamic, gold.dynamic and not gold.listed)


def no_points(count: int) -> PointsFacts:
    return PointsFacts((0,) * count)


def is_dynamic(verdict: Verdict) -> bool:
    return verdict.metric == "choice" and choice_facts(verdict).dynamic
