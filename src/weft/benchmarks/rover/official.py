"""ROVER's released code: tasks without an image are in no mean, and a score s counts as (s - 1) * 25, whatever it is. Where it kept a score
that is no number its summary stops. Scores are from 0 to 100."""

from collections.abc import Mapping
from typing import Any

from weft.benchmarks.official import FAILED, NO_SCORE, UNSCORED, Official
from weft.benchmarks.rover import released
from weft.benchmarks.rover.facts import rover_facts
from weft.types import Missing, Question, Reading, Verdict

NO_PICTURE = Missing("the released code leaves out a task without an image")


class Stops(Missing, frozen=True):
    """The released summary stops at it: there is no official number at all."""


class RoverOfficial(Official):
    published_judge = "gpt-4.1"

    def __init__(self, prompts: Mapping[str, str], settings: Mapping[str, Any], *, loose: bool) -> None:
        """`loose`: whether digits are taken from more places, as the second half does."""
        self.prompts, self.settings, self._loose = prompts, settings, loose

    def reading(self, question: Question, text: str) -> Mapping[str, Reading]:
        (metric,) = question.metrics
        found = released.reading(text, f"{metric}_score", loose=self._loose)
        return {} if found is None else {metric: found}

    def score(self, verdict: Verdict) -> float | Missing:
        kept = self.kept(verdict)
        return kept if isinstance(kept, Missing) else self.points(kept)

    def points(self, kept: Reading) -> float | Missing:
        """On the paper's scale."""
        if kept.text:
            return Stops(f"the released summary stops at the score {kept.text!r}")
        return NO_SCORE if kept.score is None else released.points(kept.score)

    def kept(self, verdict: Verdict) -> Reading | Missing:
        if verdict.by == "failure":
            return FAILED
        return NO_PICTURE if rover_facts(verdict).no_picture else super().kept(verdict)

    def unread(self, verdict: Verdict) -> Reading | Missing:
        if verdict.by == "judge" or verdict.value is None:
            return UNSCORED
        return Reading(1 + 4 * verdict.value)

    def is_unasked(self, verdict: Verdict) -> bool:
        """Thinking outside of whole tags, which the released code does not see."""
        return any(map(self.is_unasked, verdict.behind)) if verdict.behind else rover_facts(verdict).elsewhere
