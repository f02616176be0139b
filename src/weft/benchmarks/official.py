"""The official arithmetic: what a paper's released scripts ask, read and compute, defects included.

Weft scores the same verdicts twice. `strict` is a verdict's own value. `official` is what the released scripts would
have made of it:

    official.reading(question, text)   what they read from a raw judge reply, stored as `Verdict.reading`
    official.score(verdict)            what their arithmetic averages, or MissingScore if they leave the verdict out

What the scripts ask and weft does not is a question with the variant `OFFICIAL_VARIANT`. Its verdict has no row of its
own: it is attached to our verdict of the same metric, as `Verdict.variant_reading`.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.types import MissingScore, OfficialReading, Question, Verdict

OFFICIAL_VARIANT = "official"  # the variant of a question that is asked for the official row alone
NO_SCORE = MissingScore("the released scripts find no score in the judge's reply")
UNSCORED = MissingScore("it could not be scored")
FAILED = MissingScore("the released scripts leave out what a model did not make")


class Official:
    """A paper's released scripts. The defaults are weft's own behaviour; a subclass overrides what differs."""

    prompts_file: str = ""  # a path in the authors' repository
    prompts: Mapping[str, str] = {}  # metric -> the constant in that file with the paper's own prompt
    settings: Mapping[str, Any] = {}  # the judge's options in the released code
    published_judge: str = ""  # the judge of the published rows

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Return what the scripts read from a raw judge reply, by metric, whether or not it fits the schema.

        Empty if the scripts would ask the judge again.
        """
        return {}

    def score(self, verdict: Verdict) -> float | MissingScore:
        """Return what the released arithmetic averages, on its own scale; MissingScore if it leaves the verdict out."""
        reading = self.find_reading(verdict)
        if isinstance(reading, MissingScore):
            return reading
        if reading.score is None:
            return NO_SCORE
        return reading.score

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        """Return what the scripts store for a verdict, before any arithmetic.

        That is the reading of their own question if they ask otherwise; the mean over repeats; else what they read
        from the judge's reply.
        """
        if verdict.variant_reading is not None:
            return verdict.variant_reading
        if verdict.merged_from:
            return average_readings(list(map(self.find_reading, verdict.merged_from)))
        return verdict.reading or self.reading_without_reply(verdict)

    def reading_without_reply(self, verdict: Verdict) -> OfficialReading | MissingScore:
        """Return the reading of a verdict without a reply that they could read: decided by a rule, or by our judge."""
        if verdict.value is None:
            return UNSCORED
        return OfficialReading(verdict.value)

    def lacks_official_question(self, verdict: Verdict) -> bool:
        """Whether the scripts ask their judge something here that was not asked in this run.

        Cells that need such a verdict have no official number.
        """
        return False

    def attach_official(self, ours: Sequence[Verdict], theirs: Sequence[Verdict]) -> list[Verdict]:
        """Attach to each of our verdicts the reading and the calls of the question for the official row, if any."""
        theirs_by_key = {(verdict.sample, verdict.turn, verdict.metric): verdict for verdict in theirs}
        merged: list[Verdict] = []
        for verdict in ours:
            other = theirs_by_key.get((verdict.sample, verdict.turn, verdict.metric))
            if other is not None:
                verdict = self._attach(verdict, other)
            merged.append(verdict)
        return merged

    def _attach(self, verdict: Verdict, other: Verdict) -> Verdict:
        reading = self.find_reading(other)
        if isinstance(reading, MissingScore):
            reading = OfficialReading()
        return replace(verdict, variant_reading=reading, keys=(*verdict.keys, *other.keys))


def average_readings(readings: Sequence[OfficialReading | MissingScore]) -> OfficialReading | MissingScore:
    """Average the readings of repeats. A text that is no number decides; else the mean of those with a score."""
    present = [reading for reading in readings if isinstance(reading, OfficialReading)]
    for reading in present:
        if reading.text:
            return reading
    scores = [reading.score for reading in present if reading.score is not None]
    if scores:
        return OfficialReading(statistics.fmean(scores))
    if present:
        return present[0]
    return readings[0]


def score_or_none(score: float | MissingScore) -> float | None:
    """Return None for a missing score, which no mean includes."""
    if isinstance(score, MissingScore):
        return None
    return score
