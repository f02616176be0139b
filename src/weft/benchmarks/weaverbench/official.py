"""What the paper counts: the judge's own scores, and files. Our rules (`rules.py`) are none of it. Scores are shares of full marks."""

from collections.abc import Mapping

from weft.benchmarks.official import NO_SCORE, UNSCORED, Official
from weft.benchmarks.weaverbench.facts import document_facts
from weft.types import Missing, Verdict


class WeaverOfficial(Official):
    published_judge = "a GPT of the authors'"  # the paper does not say which

    def score(self, verdict: Verdict) -> float | Missing:
        """Before our rules: `reading` is what stood there."""
        if verdict.reading is not None:
            return NO_SCORE if verdict.reading.score is None else verdict.reading.score
        return UNSCORED if verdict.value is None else verdict.value

    def alone(self, verdict: Verdict) -> Mapping[str, float | None]:
        """By metric, what the judge said of the consistency of one image: in the official means alone."""
        return document_facts(verdict).alone


OFFICIAL = WeaverOfficial()
