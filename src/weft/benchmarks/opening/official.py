"""OpenING's released scoring of single answers and its summary. Scores are shares of full marks.

The script stores the whole reply, whatever its scores. Its summary leaves out an answer with a null score, or without
any reply, as a whole; of others it averages what is a number, criterion by criterion.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from weft.benchmarks.official import NO_MODEL_OUTPUT, Official
from weft.types import MissingScore, OfficialReading, Question, Verdict

MAX_SCORE = 10
MAX_NUMBER = 1_000_000  # a larger number is not a score in either arithmetic


class OpeningOfficial(Official):
    """OpenING's arithmetic for scores of single answers."""

    published_judge = "gpt-4o"
    published_samples = 2160
    samples_are = "items"

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Read the score of each criterion, whatever number it is. The script asks again for what is no JSON object."""
        try:
            reply: Any = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(reply, dict) or not reply:
            return {}
        entries = cast(dict[str, Any], reply)
        if _is_left_out(entries):
            return dict.fromkeys(question.metrics, OfficialReading())
        return {metric: OfficialReading(_read_share(entries.get(metric))) for metric in question.metrics}

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return NO_MODEL_OUTPUT
        return super().find_reading(verdict)


OFFICIAL = OpeningOfficial()


def _is_left_out(entries: Mapping[str, Any]) -> bool:
    """Whether the summary drops the reply: a score is null, or all scores are in an object of their own."""
    if "scores" in entries:
        inner = entries["scores"]
        if not isinstance(inner, dict) or cast(dict[str, Any], inner).get("Score") is None:
            return True
    return any(_has_null(entry) for entry in entries.values())


def _has_null(entry: Any) -> bool:
    return isinstance(entry, dict) and "Score" in entry and entry["Score"] is None


def _read_share(entry: Any) -> float | None:
    """Return what the summary averages of a criterion, as a share: any number, `true` included, and no text."""
    if not isinstance(entry, dict):
        return None
    score: Any = cast(dict[str, Any], entry).get("Score")
    if not isinstance(score, (int, float)) or not abs(score) <= MAX_NUMBER:
        return None
    return score / MAX_SCORE
