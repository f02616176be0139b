"""What IMUG-Bench's verdicts store in `Verdict.detail`, for its tables."""

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.benchmarks.imug.data import ChoiceGold
from weft.types import Verdict


class ChoiceFacts(Struct, frozen=True, omit_defaults=True):
    """The detail of a multiple-choice question's verdict."""

    response: str = ""  # the model's raw reply
    key: str = ""  # the right letters, or what the dataset has in their place
    dynamic: bool = False  # whether the judge works out the key from the model's own replies
    unlisted: bool = False  # whether no reference file lists it as dynamic: the released scripts leave it out
    union: str = ""  # the key with letters that exclude each other, if it differs from `key`


class PointsFacts(Struct, frozen=True, omit_defaults=True):
    """The detail of an image's verdict."""

    points: tuple[float, ...] = ()  # one for each evaluation point, from 0 to 5


def read_choice_facts(verdict: Verdict) -> ChoiceFacts:
    """Return the detail of a verdict on the metric `choice`."""
    return read_facts(verdict.detail, ChoiceFacts)


def read_points_facts(verdict: Verdict) -> PointsFacts:
    """Return the detail of a verdict on the metric `points`."""
    return read_facts(verdict.detail, PointsFacts)


def build_choice_facts(gold: ChoiceGold, response: str) -> ChoiceFacts:
    """Build the detail of a question whose key the judge has not worked out."""
    return ChoiceFacts(response, gold.raw, gold.dynamic, gold.dynamic and not gold.listed)


def build_zero_points(count: int) -> PointsFacts:
    """Build the detail of an image without a point."""
    return PointsFacts((0,) * count)


def is_dynamic(verdict: Verdict) -> bool:
    """Whether a verdict is about a question whose key depends on the model's own replies."""
    return verdict.metric == "choice" and read_choice_facts(verdict).dynamic
