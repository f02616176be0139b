"""What follows from the number of images in a document, whatever a judge says of it.

    no image, though there should be        input-to-image, entity consistency and style are 0
    one image, or only collages, where several separate ones were asked for
                                            entity consistency and style are 0: there is nothing to be consistent with
    one image, where one is enough          entity consistency and style are in no mean: they do not apply
    a collage among separate images         the count is missed, however many files there are
    only collages, where any number will do the count is missed: no image is an image of its own

The judge's own score is stored with each verdict for the official row, which has no such rules.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import average_variants
from weft.benchmarks.weaverbench.facts import DocumentFacts, read_document_facts
from weft.benchmarks.weaverbench.rubric import COUNT, ENTITY, SEPARATE, STYLE, TO_IMAGE
from weft.types import OfficialReading, Verdict


class _Count(Struct, frozen=True):
    """The number of images in a document, and of collages among them."""

    images: int
    required: int | None
    collages: int | None  # None: it could not be judged

    @property
    def wants_several(self) -> bool:
        return self.required is not None and self.required > 1

    @property
    def allows_several(self) -> bool:
        return self.required is None or self.wants_several

    @property
    def separate(self) -> int:
        return self.images - (self.collages or 0)


def apply_rules(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Average the variants of each metric, and apply the rules sample by sample.

    A verdict that a judge left undecided is dropped: it is in no mean.
    """
    by_sample: dict[str, dict[str, Verdict]] = {}
    for verdict in average_variants(verdicts):
        by_sample.setdefault(verdict.sample, {})[verdict.metric] = verdict
    merged: list[Verdict] = []
    for by_metric in by_sample.values():
        merged += _apply_to_sample(by_metric)
    return merged


def _apply_to_sample(by_metric: Mapping[str, Verdict]) -> Iterator[Verdict]:
    count_verdict = by_metric.get(COUNT)
    is_counted = count_verdict is not None and count_verdict.value is not None and count_verdict.by != "failure"
    count = _read_count(by_metric)
    for metric, verdict in by_metric.items():
        if verdict.value is None and verdict.undecided:
            continue
        if not is_counted or metric not in (COUNT, TO_IMAGE, ENTITY, STYLE):
            yield verdict
        elif metric == COUNT:
            yield _apply_to_count(verdict, count, by_metric)
        elif count.images == 0:
            yield _set_zero(verdict, "there is no image")
        elif metric == TO_IMAGE:
            yield verdict
        elif count.wants_several and count.separate < 2:
            have = f"{count.separate} separate images"
            if count.images == 1 and not count.collages:
                have = "one image"
            yield _set_zero(verdict, f"{have} where {count.required} were asked for: nothing to be consistent with")
        elif count.wants_several and count.collages is None:
            yield _set_unscored(verdict)
        elif count.images > 1:
            yield verdict


def _read_count(by_metric: Mapping[str, Verdict]) -> _Count:
    facts = DocumentFacts()
    if COUNT in by_metric:
        facts = read_document_facts(by_metric[COUNT])
    count = _Count(facts.images, facts.required, collages=0)
    separate = by_metric.get(SEPARATE)
    if separate is None or not count.allows_several or not count.images:
        return count
    if separate.undecided and separate.by == "rule":  # a plan: each order is an image of its own
        return count
    return replace(count, collages=count_collages(separate))


def _apply_to_count(verdict: Verdict, count: _Count, by_metric: Mapping[str, Verdict]) -> Verdict:
    """Return the verdict on the count: as many as were asked for, each an image of its own.

    The judge's scores for the consistency of a single image are stored with it.
    """
    if count.images == 1 and not count.wants_several:
        judged = [by_metric[metric] for metric in (ENTITY, STYLE) if metric in by_metric]
        scores = {verdict.metric: verdict.value for verdict in judged if not verdict.undecided}
        if scores:
            verdict = replace(verdict, detail=replace(read_document_facts(verdict), single_image_scores=scores))
    if not verdict.value or count.collages == 0:
        return verdict
    if count.collages is None:
        return _set_unscored(verdict)
    if not count.wants_several and count.separate:
        return verdict
    verb = "are collages"
    if count.collages == 1:
        verb = "is a collage"
    expected = "separate images were asked for"
    if not count.wants_several:
        expected = "an image of its own was expected"
    return _set_zero(verdict, f"{count.collages} of {count.images} {verb} where {expected}")


def count_collages(verdict: Verdict) -> int | None:
    """Return how many images are collages: the sum over the parts of a long document, the median over repeats.

    Returns None if a part could not be judged.
    """
    counts_by_part: dict[str, list[int]] = {}
    for repeat in verdict.merged_from or (verdict,):
        part = ""
        if repeat.variant.startswith("part "):
            part = repeat.variant.partition(",")[0]
        counts = counts_by_part.setdefault(part, [])
        if repeat.value is not None:
            counts.append(read_document_facts(repeat).collages)
    if all(counts_by_part.values()):
        return sum(map(statistics.median_low, counts_by_part.values()))
    return None


def _set_unscored(verdict: Verdict) -> Verdict:
    return replace(
        verdict,
        value=None,
        score=None,
        reason="whether its images are separate could not be judged",
        standard_deviation=None,
        reading=OfficialReading(verdict.value),
    )


def _set_zero(verdict: Verdict, reason: str) -> Verdict:
    """Return the verdict with value 0. The judge's score stays as its `reading`, for the official row."""
    reason = f"by rule: {reason}"
    if verdict.by == "judge" and verdict.reason:
        reason += f"; the judge: {verdict.reason}"
    return replace(
        verdict,
        value=0.0,
        score=0.0,
        reason=reason,
        by="rule",
        standard_deviation=None,
        reading=OfficialReading(verdict.value),
    )
