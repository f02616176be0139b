"""OpenING's released summary of scores: answers that are missing, or lack a score, are left out whole (`tables.official`). Scores are
shares of full marks."""

from weft.benchmarks.official import FAILED, UNSCORED, Official
from weft.types import Missing, Verdict


class OpeningOfficial(Official):
    published_judge = "gpt-4o"

    def score(self, verdict: Verdict) -> float | Missing:
        if verdict.by == "failure":
            return FAILED
        return UNSCORED if verdict.value is None else verdict.value


OFFICIAL = OpeningOfficial()
