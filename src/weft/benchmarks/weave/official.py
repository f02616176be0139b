"""WEAVE's released scripts (`eval/main.py`, `summarize.py`). Scores are out of ten.

They have missing outputs judged like all others, and take whatever number a reply contains.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from weft.benchmarks.official import NO_MODEL_OUTPUT, UNSCORED, MissingScore, Official
from weft.types import OfficialReading, Question, Verdict

MAX_SCORE = 1_000_000  # a larger number is not a score in either arithmetic


class WeaveOfficial(Official):
    """What WEAVE's released scripts ask and compute."""

    prompts_file = "eval/prompts.py"
    prompts = {
        "key_point": "prompt_keypoint_checklist",
        "visual_consistency": "prompt_visual_consistency",
        "image_quality": "prompt_image_quality",
        "accuracy": "prompt_txt_acc",
    }
    settings = {"max_tokens": 1400}
    published_judge = "gpt-4o"
    published_samples = 100

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Read the `score` of the reply's JSON, whatever number it is; true counts 1. The scripts pass over JSON
        without one."""
        try:
            reply: Any = json.loads(text.replace("```json", "").replace("```", ""))
        except (ValueError, RecursionError):
            return {}
        if not isinstance(reply, dict) or "score" not in reply:
            return {question.metrics[0]: OfficialReading()}
        score: Any = cast(dict[str, Any], reply)["score"]
        if not isinstance(score, (int, float)):
            return {}
        if abs(score) > MAX_SCORE or math.isnan(score):
            return {}
        return {question.metrics[0]: OfficialReading(float(score))}

    def reading_without_reply(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return NO_MODEL_OUTPUT
        points = strict_points(verdict)
        if points is None:
            return UNSCORED
        return OfficialReading(points)

    def lacks_official_question(self, verdict: Verdict) -> bool:
        """Whether an output is missing and the judge was not asked about it as the scripts ask."""
        return verdict.by == "failure" and verdict.variant_reading is None

    def found_no_score(self, verdict: Verdict) -> bool:
        """Whether the scripts read a reply without a score: they skip it, and keep the other scores of its record."""
        reading = self.find_reading(verdict)
        return isinstance(reading, OfficialReading) and reading.score is None and not reading.failed


OFFICIAL = WeaveOfficial()


def strict_points(verdict: Verdict) -> float | None:
    """Return the points out of ten as the judge gave them.

    Averaging points and averaging shares times ten round differently.
    """
    if verdict.score is not None or verdict.value is None:
        return verdict.score
    return 10 * verdict.value
