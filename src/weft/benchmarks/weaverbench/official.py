"""The paper's arithmetic: the judge's own scores, and image files counted. Our rules (`rules.py`) do not apply.

Scores are shares of full marks.
"""

from collections.abc import Mapping

from weft.benchmarks.official import NO_SCORE, UNSCORED, MissingScore, Official
from weft.benchmarks.weaverbench.facts import read_document_facts
from weft.types import Verdict


class WeaverBenchOfficial(Official):
    published_judge = "a GPT of the authors'"  # the paper does not name it
    published_samples = 512
    samples_are = "prompts"

    def score(self, verdict: Verdict) -> float | MissingScore:
        """Return the score before our rules, which store it as the verdict's `reading`."""
        if verdict.reading is not None:
            if verdict.reading.score is None:
                return NO_SCORE
            return verdict.reading.score
        if verdict.value is None:
            return UNSCORED
        return verdict.value

    def reads_unusable(self, verdict: Verdict) -> bool:
        """Never: the paper's arithmetic reads no reply in a way of its own. It only does without our rules."""
        return False

    def single_image_scores(self, verdict: Verdict) -> Mapping[str, float | None]:
        """Return by metric the judge's scores for consistency of one image: they count in official means only."""
        return read_document_facts(verdict).single_image_scores


OFFICIAL = WeaverBenchOfficial()
