"""The official arithmetic: what a paper's released scripts ask, read and compute, defects included.

Weft scores the same verdicts twice. `strict` is a verdict's own value. `official` is what the released scripts would have made of it:

    official.reading(question, text)   what they take from a judge's reply as it came, kept as `Verdict.reading`
    official.score(verdict)            what their arithmetic averages, or Missing where they leave the verdict out

What they ask that we do not is a question with the variant `VARIANT`: its verdict is in no table of its own, but stands in the one that it
belongs to, as `Verdict.asked`.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.types import Missing, Question, Reading, Verdict

VARIANT = "official"  # of a question that is asked for the official row alone
NO_SCORE = Missing("the released scripts find no score in the judge's reply")
UNSCORED = Missing("it could not be scored")
FAILED = Missing("the released scripts leave out what a model did not make")


class Official:
    """A paper's released scripts. What is not written here is as weft has it."""

    prompts_file: str = ""  # of the authors' repository
    prompts: Mapping[str, str] = {}  # metric -> the constant in that file that is the paper's own prompt
    settings: Mapping[str, Any] = {}  # a judge's options, as the released code has them
    published_judge: str = ""  # who judged the published rows

    def reading(self, question: Question, text: str) -> Mapping[str, Reading]:
        """What the scripts take from a judge's reply, by metric, whatever the schema says of it. Nothing where they ask again."""
        return {}

    def score(self, verdict: Verdict) -> float | Missing:
        """What the released arithmetic averages, on its own scale; Missing where it leaves the verdict out."""
        kept = self.kept(verdict)
        if isinstance(kept, Missing):
            return kept
        return NO_SCORE if kept.score is None else kept.score

    def kept(self, verdict: Verdict) -> Reading | Missing:
        """What the scripts keep of a verdict before any arithmetic: where they ask otherwise, what came of that; of repeats the mean; else
        what they read from the judge's reply."""
        if verdict.asked is not None:
            return verdict.asked
        if verdict.behind:
            return mean_of([self.kept(one) for one in verdict.behind])
        return verdict.reading or self.unread(verdict)

    def unread(self, verdict: Verdict) -> Reading | Missing:
        """The same of a verdict without a reply that they could read: what a rule decided, or a judge of ours."""
        return UNSCORED if verdict.value is None else Reading(verdict.value)

    def is_unasked(self, verdict: Verdict) -> bool:
        """Whether they ask their judge something here that nobody was asked: the cells that it belongs to have no official number."""
        return False

    def beside(self, ours: Sequence[Verdict], theirs: Sequence[Verdict]) -> list[Verdict]:
        """Our verdicts, each with what came of the question that is asked for the official row alone, and with its calls."""
        by_place = {(one.sample, one.turn, one.metric): one for one in theirs}
        return [self._with(one, by_place.get((one.sample, one.turn, one.metric))) for one in ours]

    def _with(self, verdict: Verdict, other: Verdict | None) -> Verdict:
        if other is None:
            return verdict
        kept = self.kept(other)
        asked = Reading() if isinstance(kept, Missing) else kept
        return replace(verdict, asked=asked, keys=(*verdict.keys, *other.keys))


def mean_of(kept: Sequence[Reading | Missing]) -> Reading | Missing:
    """Of repeats: a text that is no number decides; else the mean of those with a score."""
    there = [one for one in kept if isinstance(one, Reading)]
    texts = [one for one in there if one.text]
    scores = [one.score for one in there if one.score is not None]
    if texts:
        return texts[0]
    if scores:
        return Reading(statistics.fmean(scores))
    return kept[0] if not there else there[0]


def or_none(score: float | Missing) -> float | None:
    """For means: what is missing is in none."""
    return None if isinstance(score, Missing) else score
