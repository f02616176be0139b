"""OpenING's released summary of scores: answers that are missing, or lack a score, are left out whole
(`tables.official`). Scores are shares of full marks."""

from weft.benchmarks.official import FAILED, UNSCORED, Official
from weft.types import MissingScore, Verdict


class OpeningOfficial(Official):
    published_judge = "gpt-4o"

    def score(self, verdict: Verdict) -> float | MissingScore:
        if verdict.by == "failure":
            return FAILED
        if verdict.value is None:
            return UNSCORED
        return verdict.value


OFFICIAL = OpeningOfficial()
