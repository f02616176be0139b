"""GenEval's released arithmetic: the same rules, over the images that are there."""

from weft.benchmarks.official import NO_MODEL_OUTPUT, MissingScore, Official
from weft.types import Verdict


class GenEvalOfficial(Official):
    """GenEval's arithmetic. The released script goes through the files that it finds: a missing image is in no mean."""

    published_judge = "Mask2Former of mmdet"
    published_samples = 553
    samples_are = "prompts"

    def score(self, verdict: Verdict) -> float | MissingScore:
        if verdict.by == "failure":
            return NO_MODEL_OUTPUT
        return super().score(verdict)


OFFICIAL = GenEvalOfficial()
