"""The `detail` of PlanViz's verdicts: what its tables know besides the value."""

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.types import Question, Verdict


class PlanFacts(Struct, frozen=True, omit_defaults=True):
    points: tuple[int, ...] = ()  # 1 for each decided key point that is met, 0 for each that is not
    undecided: tuple[int, ...] = ()  # numbers of the key points that an OCR judge left open
    expected: int = 0  # number of key points, where no usable reply came back
    unnecessary_steps: int = 0  # of a workflow
    deduct: bool = False  # whether unnecessary steps cost points
    official_input_differs: bool = False  # whether the released code shows its judge something else here


def read_plan_facts(source: Verdict | Question) -> PlanFacts:
    return read_facts(source.detail, PlanFacts)
