"""WEAVE's released scripts (`eval/main.py`, `summarize.py`): they have a missing output judged all the same, and take whatever number a
reply holds. Scores are out of ten."""

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from weft.benchmarks.official import FAILED, UNSCORED, Official
from weft.types import Missing, Question, Reading, Verdict

LARGEST = 1_000_000  # what is more is no score in any arithmetic


class WeaveOfficial(Official):
    prompts_file = "eval/prompts.py"
    prompts = {
        "key_point": "prompt_keypoint_checklist",
        "visual_consistency": "prompt_visual_consistency",
        "image_quality": "prompt_image_quality",
        "accuracy": "prompt_txt_acc",
    }
    settings = {"max_tokens": 1400}
    published_judge = "gpt-4o"

    def reading(self, question: Question, text: str) -> Mapping[str, Reading]:
        """The reply's JSON without fences, and whatever number stands there. A reply without a score is passed over."""
        try:
            found: Any = json.loads(text.replace("```json", "").replace("```", ""))
        except (ValueError, RecursionError):
            return {}
        if isinstance(found, dict) and "score" not in found:
            return {question.metrics[0]: Reading()}
        score: Any = cast(dict[str, Any], found).get("score") if isinstance(found, dict) else None
        if isinstance(score, bool) or not isinstance(score, (int, float)) or abs(score) > LARGEST or math.isnan(score):
            return {}
        return {question.metrics[0]: Reading(score)}

    def unread(self, verdict: Verdict) -> Reading | Missing:
        if verdict.by == "failure":
            return FAILED
        points = strict_points(verdict)
        return UNSCORED if points is None else Reading(points)

    def is_unasked(self, verdict: Verdict) -> bool:
        """A missing output, which nobody had judged as they do."""
        return verdict.by == "failure" and verdict.asked is None

    def is_passed_over(self, verdict: Verdict) -> bool:
        """Whether they read a reply, and found no score in it: that is left out, and nothing else of its record."""
        return not verdict.behind and verdict.reading is not None and verdict.reading.score is None


OFFICIAL = WeaveOfficial()


def strict_points(verdict: Verdict) -> float | None:
    """Out of ten, as the judge gave them: a mean of tens of shares is not rounded as a mean of points is."""
    return verdict.score if verdict.score is not None or verdict.value is None else 10 * verdict.value
