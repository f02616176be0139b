"""ROVER's released code: tasks without an image are in no mean, and a score s counts as (s - 1) * 25, whatever it is.

If it stored a score that is no number, its summary stops. Scores are from 0 to 100.
"""

from collections.abc import Mapping
from typing import Any

from weft.benchmarks.official import NO_MODEL_OUTPUT, NO_SCORE, UNSCORED, LeftOut, MissingScore, Official
from weft.benchmarks.rover import official_reading
from weft.benchmarks.rover.facts import read_rover_facts
from weft.types import OfficialReading, Question, Verdict

NO_IMAGE = LeftOut("the released code leaves out a task without an image")


class SummaryStops(MissingScore, frozen=True):
    """The released summary stops at this score: there is no official number at all."""


class RoverOfficial(Official):
    """ROVER's arithmetic."""

    published_judge = "gpt-4.1"
    samples_are = "tasks"

    def __init__(self, prompts: Mapping[str, str], settings: Mapping[str, Any], size: int, *, loose: bool) -> None:
        """`size`: tasks of the paper. `loose`: whether digits are read from more places, as in ROVER-TG."""
        self.published_samples = size
        self.prompts = prompts
        self.settings = settings
        self._loose = loose

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        (metric,) = question.metrics
        reading = official_reading.build_reading(text, f"{metric}_score", loose=self._loose)
        if reading is None:
            return {}
        return {metric: reading}

    def score(self, verdict: Verdict) -> float | MissingScore:
        reading = self.find_reading(verdict)
        if isinstance(reading, MissingScore):
            return reading
        return self.to_points(reading)

    def to_points(self, reading: OfficialReading) -> float | MissingScore:
        """Convert a reading to the paper's scale."""
        if reading.failed:
            return UNSCORED
        if reading.text:
            return SummaryStops(f"the released summary stops at the score {reading.text!r}")
        if reading.score is None:
            return NO_SCORE
        return official_reading.to_points(reading.score)

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return NO_MODEL_OUTPUT
        if read_rover_facts(verdict).no_image:
            return NO_IMAGE
        return super().find_reading(verdict)

    def reading_without_reply(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.value is None:
            return UNSCORED
        if verdict.by == "judge":
            return NO_SCORE
        return OfficialReading(1 + 4 * verdict.value)

    def lacks_official_question(self, verdict: Verdict) -> bool:
        """Whether the thinking is outside of whole tags, where the released code does not see it."""
        if verdict.merged_from:
            return any(map(self.lacks_official_question, verdict.merged_from))
        return read_rover_facts(verdict).thinking_outside_tags
