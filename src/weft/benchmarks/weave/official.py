"""WEAVE's released scripts (`eval/main.py`, `summarize.py`): they have a missing output judged all the same, and take
whatever number a reply holds. Scores are out of ten."""

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from weft.benchmarks.official import FAILED, UNSCORED, Official
from weft.types import MissingScore, OfficialReading, Question, Verdict

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

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """The reply's JSON without fences, and whatever number stands there. A reply without a score is passed over."""
        try:
            found: Any = json.loads(text.replace("```json", "").replace("```", ""))
        except (ValueError, RecursionError):
            return {}
        if isinstance(found, dict) and "score" not in found:
            return {question.metrics[0]: OfficialReading()}
        if isinstance(found, dict):
            score: Any = cast(dict[str, Any], found).get("score")
        else:
            score = None
        if isinstance(score, bool) or not isinstance(score, (int, float)) or abs(score) > LARGEST or math.isnan(score):
            return {}
        return {question.metrics[0]: OfficialReading(score)}

    def reading_without_reply(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return FAILED
        points = strict_points(verdict)
        if points is None:
            return UNSCORED
        return OfficialReading(points)

    def lacks_official_question(self, verdict: Verdict) -> bool:
        """A missing output, which nobody had judged as they do."""
        return verdict.by == "failure" and verdict.variant_reading is None

    def found_no_score(self, verdict: Verdict) -> bool:
        """Whether they read a reply, and found no score in it: that is left out, and nothing else of its record."""
        return not verdict.merged_from and verdict.reading is not None and verdict.reading.score is None


OFFICIAL = WeaveOfficial()


def strict_points(verdict: Verdict) -> float | None:
    """Out of ten, as the judge gave them: a mean of tens of shares is not rounded as a mean of points is."""
    if verdict.score is not None or verdict.value is None:
        return verdict.score
    return 10 * verdict.value
