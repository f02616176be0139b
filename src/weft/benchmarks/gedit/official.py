"""GEdit-Bench's released arithmetic. Scores are shares of ten.

An edit without an image is skipped. The random scores that the scripts give to replies that they cannot read are no
numbers here: such an edit is missing from the official row.
"""

import math
from collections.abc import Mapping

from weft.benchmarks.gedit import official_reading
from weft.benchmarks.official import NO_MODEL_OUTPUT, MissingScore, Official
from weft.types import OfficialReading, Question, Verdict

MAX_SCORE = 10
PROMPTS_FILE = "GEdit-Bench/viescore/vie_prompts.py"
PROMPTS = {
    "context": "_context_no_delimit",
    "rule": "_prompts_0shot_two_image_edit_rule",
    "sc": "_prompts_0shot_tie_rule_SC",
    "pq": "_prompts_0shot_rule_PQ",
}


class GEditOfficial(Official):
    """GEdit-Bench's arithmetic."""

    prompts_file = PROMPTS_FILE
    prompts = PROMPTS
    settings = {"max_tokens": 1400}
    published_judge = "gpt-4.1"
    published_samples = 606
    samples_are = "edits of each language"

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Read a reply. The scripts ask again for what they cannot read."""
        if not question.text_only:
            return {}
        score = official_reading.read_score(text)
        if score is None:
            return {}
        return {question.metrics[0]: OfficialReading(score / MAX_SCORE)}

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return NO_MODEL_OUTPUT
        return super().find_reading(verdict)


OFFICIAL = GEditOfficial()


def combine(sc: Verdict, pq: Verdict) -> OfficialReading | None:
    """Return the overall score of an edit as the scripts compute it; None if a part has no number, or no root."""
    parts = (OFFICIAL.score(sc), OFFICIAL.score(pq))
    if isinstance(parts[0], MissingScore) or isinstance(parts[1], MissingScore):
        return None
    product = parts[0] * parts[1]
    if product < 0:
        return None
    return OfficialReading(math.sqrt(product))
