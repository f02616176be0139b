"""The `detail` of WeaverBench's verdicts: what its rules and tables know besides the value."""

from collections.abc import Mapping

from msgspec import Struct

from weft.benchmarks.facts import read_facts
from weft.types import Verdict


class DocumentFacts(Struct, frozen=True, omit_defaults=True):
    images: int = 0  # in the document, or seen by the judge
    required: int | None = None  # how many images the prompt asks for; None: any number
    collages: int = 0  # among the images that the judge saw
    sheets: int = 0  # on which the judge saw the images; 0: it saw them one by one
    single_image_scores: Mapping[str, float | None] = {}  # metric -> the judge's score for consistency of one image


def read_document_facts(verdict: Verdict) -> DocumentFacts:
    return read_facts(verdict.detail, DocumentFacts)
