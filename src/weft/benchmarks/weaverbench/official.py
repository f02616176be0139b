"""What the paper counts: the judge's own scores, and files. Our rules (`rules.py`) are none of it. Scores are shares of
full marks."""

from collections.abc import Mapping

from weft.benchmarks.official import NO_SCORE, UNSCORED, Official
from weft.benchmarks.weaverbench.facts import read_document_facts
from weft.types import MissingScore, Verdict


class WeaverBenchOfficial(Official):
    published_judge = "a GPT of the authors'"  # the paper does not say which

    def score(self, verdict: Verdict) -> float | MissingScore:
        """Before our rules: `reading` is what stood there."""
        if verdict.reading is not None:
            if verdict.reading.score is None:
                return NO_SCORE
            return verdict.reading.score
        if verdict.value is None:
            return UNSCORED
        return verdict.value

    def single_image_scores(self, verdict: Verdict) -> Mapping[str, float | None]:
        """By metric, what the judge said of the consistency of one image: in the official means alone."""
        return read_document_facts(verdict).single_image_scores


OFFICIAL = WeaverBenchOfficial()
