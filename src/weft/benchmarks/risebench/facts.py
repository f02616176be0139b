"""What verdicts of RISEBench carry besides their values."""

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.types import Verdict


class EditRules(Struct, frozen=True, omit_defaults=True):
    """Which rules an edit is scored by; of every verdict that the judge gave."""

    is_logical: bool = False  # 0 or 1 in place of 1 to 5, and no plausibility
    is_consistency_free: bool = False  # nothing has to stay as it was
    counts_as_free: bool = False  # what the released score takes for that: a missing field counts as true


class ReleasedScores(Struct, frozen=True, omit_defaults=True):
    """What the released script makes of the replies about one edit; of the verdict `score`."""

    is_known: bool = False  # whether there are replies to all of its questions
    stops: bool = False  # whether its table breaks at this edit
    score: float | None = None  # 1 to 5
    consistency: float | None = None
    reasoning: float | None = None
    plausibility: float | None = None

    @property
    def by_metric(self) -> dict[str, float | None]:
        return {"consistency": self.consistency, "reasoning": self.reasoning, "plausibility": self.plausibility}


def read_edit_rules(verdict: Verdict) -> EditRules:
    return read_facts(verdict.detail, EditRules)


def read_released_scores(verdict: Verdict) -> ReleasedScores:
    return read_facts(verdict.detail, ReleasedScores)
