"""The official arithmetic: what a paper's released scripts ask, read and compute, defects included.

Weft scores the same verdicts twice. `strict` is a verdict's own value. `official` is what the released scripts would
have made of it:

    official.reading(question, text)   what they take from a judge's reply as it came, kept as `Verdict.reading`
    official.score(verdict)            what their arithmetic averages, or Missing where they leave the verdict out

What they ask that we do not is a question with the variant `VARIANT`: its verdict is in no table of its own, but stands
in the one that it belongs to, as `Verdict.asked`."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.types import MissingScore, OfficialReading, Question, Verdict

OFFICIAL_VARIANT = "official"  # of a question that is asked for the official row alone
NO_SCORE = MissingScore("the released scripts find no score in the judge's reply")
UNSCORED = MissingScore("it could not be scored")
FAILED = MissingScore("the released scripts leave out what a model did not make")


class Official:
    """A paper's released scripts. What is not written here is as weft has it."""

    prompts_file: str = ""  # of the authors' repository
    prompts: Mapping[str, str] = {}  # metric -> the constant in that file that is the paper's own prompt
    settings: Mapping[str, Any] = {}  # a judge's options, as the released code has them
    published_judge: str = ""  # who judged the published rows

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """What the scripts take from a judge's reply, by metric, whatever the schema says of it. Nothing where they ask
        again."""
        return {}

    def score(self, verdict: Verdict) -> float | MissingScore:
        """What the released arithmetic averages, on its own scale; Missing where it leaves the verdict out."""
        kept = self.find_reading(verdict)
        if isinstance(kept, MissingScore):
            return kept
        if kept.score is None:
            return NO_SCORE
        return kept.score

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        """What the scripts keep of a verdict before any arithmetic: where they ask otherwise, what came of that; of
        repeats the mean; else what they read from the judge's reply."""
        if verdict.variant_reading is not None:
            return verdict.variant_reading
        if verdict.merged_from:
            return average_readings([self.find_reading(one) for one in verdict.merged_from])
        return verdict.reading or self.reading_without_reply(verdict)

    def reading_without_reply(self, verdict: Verdict) -> OfficialReading | MissingScore:
        """The same of a verdict without a reply that they could read: what a rule decided, or a judge of ours."""
        if verdict.value is None:
            return UNSCORED
        return OfficialReading(verdict.value)

    def lacks_official_question(self, verdict: Verdict) -> bool:
        """Whether they ask their judge something here that nobody was asked: the cells that it belongs to have no
        official number."""
        return False

    def attach_official(self, ours: Sequence[Verdict], theirs: Sequence[Verdict]) -> list[Verdict]:
        """Our verdicts, each with what came of the question that is asked for the official row alone, and with its
        calls."""
        by_place = {(one.sample, one.turn, one.metric): one for one in theirs}
        return [self._with(one, by_place.get((one.sample, one.turn, one.metric))) for one in ours]

    def _with(self, verdict: Verdict, other: Verdict | None) -> Verdict:
        if other is None:
            return verdict
        kept = self.find_reading(other)
        if isinstance(kept, MissingScore):
            asked = OfficialReading()
        else:
            asked = kept
        return replace(verdict, variant_reading=asked, keys=(*verdict.keys, *other.keys))


def average_readings(kept: Sequence[OfficialReading | MissingScore]) -> OfficialReading | MissingScore:
    """Of repeats: a text that is no number decides; else the mean of those with a score."""
    there = [one for one in kept if isinstance(one, OfficialReading)]
    texts = [one for one in there if one.text]
    scores = [one.score for one in there if one.score is not None]
    if texts:
        return texts[0]
    if scores:
        return OfficialReading(statistics.fmean(scores))
    if not there:
        return kept[0]
    return there[0]


def score_or_none(score: float | MissingScore) -> float | None:
    """For means: what is missing is in none."""
    if isinstance(score, MissingScore):
        return None
    return score
