"""What PlanViz's tables know of a verdict besides its value."""

from msgspec import Struct

from weft.benchmarks.facts import facts_of
from weft.types import Question, Verdict


class PlanFacts(Struct, frozen=True, omit_defaults=True):
    points: tuple[int, ...] = ()  # of the key points that were decided, 1 for each that is met
    left: tuple[int, ...] = ()  # numbers of the key points that a judge of plain words left open
    due: int = 0  # key points, where nothing came back that could be used
    extra: int = 0  # unnecessary steps
    deduct: bool = False  # whether those are taken off
    elsewhere: bool = False  # whether the released code shows its judge something else here


def plan_facts(one: Verdict | Question) -> PlanFacts:
    return facts_of(one.detail, PlanFacts)
