"""What PlanViz's tables know of a verdict besides its value."""

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.types import Question, Verdict


class PlanFacts(Struct, frozen=True, omit_defaults=True):
    points: tuple[int, ...] = ()  # of the key points that were decided, 1 for each that is met
    undecided: tuple[int, ...] = ()  # numbers of the key points that a judge of plain words left open
    expected: int = 0  # key points, where nothing came back that could be used
    unnecessary_steps: int = 0  # unnecessary steps
    deduct: bool = False  # whether those are taken off
    official_input_differs: bool = False  # whether the released code shows its judge something else here


def read_plan_facts(one: Verdict | Question) -> PlanFacts:
    return read_facts(one.detail, PlanFacts)
