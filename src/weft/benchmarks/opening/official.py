"""OpenING's released summary of scores: an answer that is missing, or lacks a score, is left out as a whole.

`tables.build_official_cells` applies that. Scores are shares of full marks.
"""

from weft.benchmarks.official import FAILED, UNSCORED, Official
from weft.types import MissingScore, Verdict


class OpeningOfficial(Official):
    """OpenING's arithmetic for scores of single answers."""

    published_judge = "gpt-4o"

    def score(self, verdict: Verdict) -> float | MissingScore:
        if verdict.by == "failure":
            return FAILED
        if verdict.value is None:
            return UNSCORED
        return verdict.value


OFFICIAL = OpeningOfficial()
