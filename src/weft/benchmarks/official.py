"""The official arithmetic: what a paper's released scripts ask, read and compute, defects included.

Weft scores the same verdicts twice. `strict` is a verdict's own value. `official` is what the released scripts would
have made of it:

    official.reading(question, text)   what they read from a raw judge reply, stored as `Verdict.reading`
    official.score(verdict)            what their arithmetic averages, or MissingScore if they leave the verdict out

What the scripts ask and weft does not is a question with the variant `OFFICIAL_VARIANT`. Its verdict has no row of its
own: it is attached to our verdict of the same metric, as `Verdict.variant_reading`.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.types import Cell, Image, MissingScore, OfficialReading, Question, Reply, Table, Verdict

OFFICIAL_VARIANT = "official"  # the variant of a question that is asked for the official row alone


class LeftOut(MissingScore, frozen=True):
    """The released scripts leave it out by a rule of their own, whatever a judge says: it is not expected."""


class Unscored(MissingScore, frozen=True):
    """There is no reply to read, through no fault of the model."""


NO_SCORE = MissingScore("the released scripts find no score in the judge's reply")
UNSCORED = Unscored("it could not be scored")
# of a verdict with `by="failure"`: the model gave no output, which strict scores 0 (`outcome="failed"` is unscored)
NO_MODEL_OUTPUT = LeftOut("the released scripts leave out what a model did not make")


class Official:
    """A paper's released scripts. The defaults are weft's own behaviour; a subclass overrides what differs."""

    prompts_file: str = ""  # a path in the authors' repository
    prompts: Mapping[str, str] = {}  # metric -> the constant in that file with the paper's own prompt
    settings: Mapping[str, Any] = {}  # the judge's options in the released code
    published_judge: str = ""  # the judge of the published rows
    published_samples: int = 0  # that the published rows are over; 0 if unknown
    samples_are: str = "dialogues"  # what the paper calls them

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Return what the scripts read from a raw judge reply, by metric, whether or not it fits the schema.

        Empty if the scripts would ask the judge again.
        """
        return {}

    def score(self, verdict: Verdict) -> float | MissingScore:
        """Return what the released arithmetic averages, on its own scale; MissingScore if it leaves the verdict out.

        It is neither `Verdict.score`, which is the judge's number, nor `Verdict.value`, the share that strict averages.
        """
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
            return UNSCORED if verdict.variant_reading.failed else verdict.variant_reading
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

    def expects(self, verdict: Verdict) -> bool:
        """Whether a verdict counts in `Cell.expected` of official cells. What the scripts leave out does not.

        What is missing because a call failed, or because nobody can read the judge's reply, is expected.
        """
        if self.lacks_official_question(verdict):
            return True
        score = self.score(verdict)
        if isinstance(score, LeftOut):
            return False
        if verdict.value is None:  # its call failed, or weft cannot read the judge's reply
            return True
        if isinstance(score, Unscored):  # there was no reply to read
            return True
        return not isinstance(score, MissingScore)

    def reads_unusable(self, verdict: Verdict) -> bool:
        """Whether the scripts make a number of something that weft could not use, and leaves unscored."""
        return verdict.value is None and not isinstance(self.score(verdict), MissingScore)

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
            reading = OfficialReading(failed=True)
        return replace(verdict, variant_reading=reading, keys=(*verdict.keys, *other.keys))


NOT_ASKED_NOTE = (
    "A cell `not asked (3/40)` has no official number: for 3 of its 40 verdicts the released scripts ask their judge a "
    "question that this run did not ask."
)
UNUSABLE_NOTE = (
    "A cell `0.512 (39/40, 2 unusable)` rests on 39 of 40 verdicts; the released scripts read 2 of them from what weft "
    "cannot use and leaves unscored."
)


def explain_official_cells(table: Table) -> Table:
    """Return the table with a note that explains its official cells, where there are some that need it."""
    cells: list[Cell] = []
    for row in table.rows:
        cells += row.cells.values()
    notes = [table.note]
    if any(cell.not_asked for cell in cells):
        notes.append(NOT_ASKED_NOTE)
    if any(cell.unusable for cell in cells):
        notes.append(UNUSABLE_NOTE)
    return replace(table, note=" ".join(filter(None, notes)))


def note_published_size(table: Table, official: Official | None, sizes: Iterable[int]) -> Table:
    """Return a table that notes over how many samples its published rows are, if a run is over another number."""
    if official is None or not official.published_samples or all(row.kind != "published" for row in table.rows):
        return table
    others = sorted({size for size in sizes if size != official.published_samples})
    if not others:
        return table
    note = (
        f"Published rows are over the full set of {official.published_samples:,} {official.samples_are}, "
        f"rows of this report over {' or '.join(f'{size:,}' for size in others)}."
    )
    return replace(table, note=f"{table.note} {note}".strip())


def with_official_counts(cell: Cell, official: Official, verdicts: Sequence[Verdict] | None = None) -> Cell:
    """Return an official cell that says what it rests on: what the scripts alone could read, what was not asked.

    `verdicts` are those that count in it, if not all that it has.
    """
    if verdicts is None:
        verdicts = cell.verdicts
    if cell.value is not None:
        return replace(cell, unusable=sum(map(official.reads_unusable, verdicts)))
    return replace(cell, not_asked=sum(map(official.lacks_official_question, verdicts)))


def find_released_image(reply: Reply | None) -> Image | None:
    """Return the image that the scripts take for a reply's output.

    In a file from elsewhere that weft cannot read they may see one all the same (see `outputs.py`).
    """
    if reply is None:
        return None
    if reply.outcome == "failed" and reply.images and not reply.keys:
        return reply.images[-1]
    return reply.last_image


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
