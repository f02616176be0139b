"""A score that another tool measured, and what its samples say about it.

A request that failed is no wrong answer, whatever the tool made of it: such samples are unscored, and the score is the
mean of the others. If the tool's number cannot be worked out again from its samples, there is no score.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from weft.errors import UserError
from weft.stats.intervals import estimate_mean

FAILURE_MARKERS = (  # texts that tools put in place of a reply, or of a judge's reply, that never came
    "[LMMS_EVAL_REQUEST_FAILED",
    "[LMMS_EVAL_BUDGET_EXCEEDED]",
    "Failed to obtain answer",
    "randomly generate one",
)
TOLERANCE = 0.0006  # of full marks: tools round to three or four decimals
FULL_MARKS = (1.0, 100.0)
Name = Annotated[str, Meta(max_length=200)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Count = Annotated[int, Meta(ge=0)]


class ImportedScore(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number of one task, in percent of full marks."""

    model: Name  # as the user names it
    served_model: Name  # as the tool names it
    tool: Name
    version: Name  # of the tool; empty if its files do not say
    task: Name
    metric: Name
    judge: Name  # empty if no model judged
    value: Percent | None  # None: there is no score
    scored: Count
    expected: Count
    printed: float | None = None  # what the tool printed, on its own scale
    low: Percent | None = None
    high: Percent | None = None
    notes: Annotated[tuple[Annotated[str, Meta(max_length=500)], ...], Meta(max_length=20)] = ()
    time: Name = ""  # of the tool's run, as it writes it

    @property
    def column(self) -> str:
        """The score's column on a card. It names the tool: two tools give one task two numbers."""
        return f"{self.task} ({self.tool})"

    def describe(self) -> str:
        """Return where the number comes from, in one line."""
        tool = f"{self.tool} {self.version}".strip()
        judge = self.judge or "no model"
        if not self.metric:
            return "; ".join([f"{tool}, task {self.task}", *self.notes])
        return "; ".join([f"{tool}, task {self.task}, metric {self.metric}, judged by {judge}", *self.notes])


class SampleScore(Struct, frozen=True):
    """One sample of a task. `value`: on the tool's scale; None if the tool does not give a number for it."""

    group: str  # repetitions of one sample share it
    value: float | None
    failed: bool  # its request, or its judge's, never got an answer


class Outcome(Struct, frozen=True):
    """What is made of a tool's number: fields of an ImportedScore."""

    value: float | None
    scored: int
    expected: int
    low: float | None = None
    high: float | None = None
    notes: tuple[str, ...] = ()


def has_failed(text: object) -> bool:
    """Return whether a tool put this text in place of an answer that it did not get."""
    return any(marker in str(text) for marker in FAILURE_MARKERS)


def combine(printed: float, samples: Sequence[SampleScore], full: float, expected: int) -> Outcome:
    """Return the score behind a tool's number.

    `printed` is on the tool's scale of `full` marks, and counts failed requests as the tool did. `samples`: all that it
    wrote down, none if it wrote none down.
    """
    failed = sum(1 for sample in samples if sample.failed)
    expected = max(expected, len(samples))
    scored = expected - failed - _count_missing(samples, expected)
    clusters = _cluster(samples, full)
    mean_of_all = _mean_of(samples, full)
    is_mean = mean_of_all is not None and abs(mean_of_all - printed / full) <= TOLERANCE
    if failed and not is_mean:
        note = f"{failed} of {expected} requests failed, and the tool's number is no mean of its samples: no score"
        return Outcome(None, 0, expected, notes=(note,))
    if failed and not clusters:
        return Outcome(None, 0, expected, notes=("every request failed",))
    if failed:
        estimate = estimate_mean(clusters)
        note = f"{failed} requests failed: unscored, where the tool counted them and printed {printed:g}"
        return Outcome(100 * estimate.value, scored, expected, 100 * estimate.low, 100 * estimate.high, (note,))
    value = 100 * printed / full
    if not is_mean:
        note = "no interval: the tool's number is no mean of its samples" if samples else "no interval: no samples"
        return Outcome(value, scored, expected, notes=(note,))
    estimate = estimate_mean(clusters)
    return Outcome(value, scored, expected, 100 * min(estimate.low, value / 100), 100 * max(estimate.high, value / 100))


def _count_missing(samples: Sequence[SampleScore], expected: int) -> int:
    """Return how many samples a tool should have written down and did not; 0 if it wrote none at all."""
    if not samples:
        return 0
    return max(0, expected - len(samples))


def _cluster(samples: Sequence[SampleScore], full: float) -> Mapping[str, list[float]]:
    """Return the values of samples that did not fail, as shares, by group."""
    clusters: dict[str, list[float]] = {}
    for sample in samples:
        if not sample.failed and sample.value is not None:
            clusters.setdefault(sample.group, []).append(sample.value / full)
    return clusters


def _mean_of(samples: Sequence[SampleScore], full: float) -> float | None:
    """Return the mean of all samples, failed ones included, as the tool formed it.

    None if one has no number from 0 to full marks: then the tool's number is not the mean of such.
    """
    values: list[float] = []
    for sample in samples:
        if sample.value is None or not 0 <= sample.value <= full:
            return None
        values.append(sample.value / full)
    return math.fsum(values) / len(values) if values else None


def find_full_marks(
    what: str, printed: float, samples: Sequence[SampleScore], chosen: float | None, known: float | None = None
) -> float:
    """Return the full marks of a tool's scale: 1 or 100.

    `chosen` is the user's, `known` what the tool's files say. Otherwise the samples decide, then the number itself.
    Raises UserError where nothing does: a number of up to 1 may be a share or a percentage.
    """
    full = chosen or known
    if full is None:
        for candidate in FULL_MARKS:
            mean = _mean_of(samples, 1.0)  # samples have 0 to 1
            if mean and abs(mean - printed / candidate) <= TOLERANCE:
                full = candidate
    if full is None and printed > 1:
        full = 100.0
    if full is None:
        raise UserError(f"{what}: {printed:g} may be a share or a percentage: give --full 1 or --full 100")
    if not 0 <= printed <= full:
        raise UserError(f"{what}: {printed:g} is not between 0 and {full:g}: such a metric has no place on a card")
    return full
