"""What follows from how many pictures a document has, whatever a judge says of it; the judge's own score stays beside
it, for the official row, which has no such rules.

    no picture, though there should be      input-to-image, entity consistency and style are 0
    one picture, or collages alone, where several separate ones were asked for
                                            entity consistency and style are 0: there is nothing to be consistent with
    one picture, where one is enough        entity consistency and style are of nothing: in no mean
    a collage among separate pictures       the count is missed, however many files there are
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from weft.benchmarks.base import average_variants
from weft.benchmarks.weaverbench.facts import DocumentFacts, read_document_facts
from weft.benchmarks.weaverbench.rubric import COUNT, ENTITY, SEPARATE, STYLE, TO_IMAGE
from weft.types import OfficialReading, Verdict


def apply_rules(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Settled; what a judge left open is of nobody's making, and in no mean."""
    of: dict[str, dict[str, Verdict]] = {}
    for one in average_variants(verdicts):
        of.setdefault(one.sample, {})[one.metric] = one
    return [one for some in of.values() for one in _ruled(some)]


def _ruled(some: Mapping[str, Verdict]) -> Iterator[Verdict]:
    count = some.get(COUNT)
    if count is not None:
        facts = read_document_facts(count)
    else:
        facts = DocumentFacts()
    known = count is not None and count.value is not None and count.by != "failure"
    made = facts.images
    required = facts.required
    several = required is not None and required > 1
    if several and made and SEPARATE in some:
        collages = count_collages(some[SEPARATE])
    else:
        collages = 0
    alone = (
        {metric: some[metric].value for metric in (ENTITY, STYLE) if metric in some}
        if made == 1 and not several
        else {}
    )
    for metric, one in some.items():
        if one.value is None and one.undecided:
            continue
        if not known or metric not in (COUNT, TO_IMAGE, ENTITY, STYLE):
            yield one
        elif metric == COUNT:
            yield _counted(one, made, collages, alone)
        elif made == 0:
            yield _zero(one, "there is no picture")
        elif metric == TO_IMAGE:
            yield one
        elif several and made - (collages or 0) < 2:
            if made == 1 and not collages:
                what = "one picture"
            else:
                what = f"{made - (collages or 0)} separate pictures"
            yield _zero(one, f"{what} where {required} were asked for: nothing to be consistent with")
        elif several and collages is None:
            yield _unknown(one)
        elif made > 1:
            yield one


def _counted(one: Verdict, made: int, collages: int | None, alone: Mapping[str, float | None]) -> Verdict:
    """As many as were asked for, each a picture of its own. What a judge said of the consistency of one picture is kept
    with it."""
    if alone:
        return replace(one, detail=replace(read_document_facts(one), single_image_scores=dict(alone)))
    if not one.value or collages == 0:
        return one
    if collages is None:
        return _unknown(one)
    return _zero(
        one,
        f"{collages} of {made} {'is a collage' if collages == 1 else 'are collages'} where separate pictures were asked for",
    )


def _unknown(one: Verdict) -> Verdict:
    why = "whether its pictures are separate could not be judged"
    return replace(one, value=None, score=None, reason=why, standard_deviation=None, reading=OfficialReading(one.value))


def count_collages(verdict: Verdict) -> int | None:
    """How many of the pictures are collages: what parts of a long document come to together, and what most of several
    judgements say. None where a part could not be judged."""
    said: dict[str, list[int]] = {}
    for one in verdict.merged_from or (verdict,):
        counts = said.setdefault(one.variant.partition(",")[0] if one.variant.startswith("part ") else "", [])
        if one.value is not None:
            counts.append(read_document_facts(one).collages)
    if all(said.values()):
        return sum(statistics.median_low(counts) for counts in said.values())
    return None


def _zero(one: Verdict, why: str) -> Verdict:
    """What the judge would have given stays, for the official row."""
    told = f"by rule: {why}" + (f"; the judge: {one.reason}" if one.by == "judge" and one.reason else "")
    return replace(
        one, value=0.0, score=0.0, reason=told, by="rule", standard_deviation=None, reading=OfficialReading(one.value)
    )
