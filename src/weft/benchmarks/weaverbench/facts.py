"""What WeaverBench's rules and tables know of a verdict besides its value."""

from collections.abc import Mapping

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.types import Verdict


class DocumentFacts(Struct, frozen=True, omit_defaults=True):
    images: int = 0  # that the document has, or that the judge looked at
    required: int | None = None  # how many were asked for; None: any number
    collages: int = 0  # among those that the judge looked at
    sheets: int = 0  # on which the judge saw them, if not one by one
    single_image_scores: Mapping[str, float | None] = {}  # by metric, what a judge said of the consistency of one image


def read_document_facts(verdict: Verdict) -> DocumentFacts:
    return read_facts(verdict.detail, DocumentFacts)
