"""ROVER-TG's records as Samples: one question about one or two images.

It can be asked in three ways, which are the sample's turns and do not see each other: turn 0 with an image of the
model's own before the answer, turn 1 in text alone, turn 2 with the reference image where its own would stand. A record
without a reference image has no turn 2.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from weft.benchmarks.rover.files import RoverSubset
from weft.benchmarks.rover.records import RoverRecords
from weft.benchmarks.rover.tg import paths
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Part, Sample, Text, Turn

SUBSET = RoverSubset("ROVER-TG", ("id", "problem_type", "prompt", "image", "answer"), "problem_type")
TYPES = ("physical", "embodied", "logical", "jigsaw", "multi-view")
SCENARIOS = {
    **dict.fromkeys(("physical", "embodied"), "Physical World"),
    "logical": "Logical Assistant",
    **dict.fromkeys(("jigsaw", "multi-view"), "Visual Perception"),
}
ALIASES = {
    "type": {
        "multi_view": "multi-view",
        "multiview": "multi-view",
        "perception": "jigsaw",
        "perception_next": "multi-view",
    },
    "scenario": {
        **dict.fromkeys(("physical world", "physical world model", "physical"), "Physical World"),
        **dict.fromkeys(("logical assistant", "logical assistance", "logical"), "Logical Assistant"),
        **dict.fromkeys(("visual perception", "visual perception enhancement", "perception"), "Visual Perception"),
    },
}
# the turns
VISUAL_TURN = 0
TEXT_TURN = 1
GIVEN_TURN = 2


class RoverTGGold(Struct, frozen=True):
    """What a judge is told of a question."""

    kind: str
    answer: str  # the correct one
    source: Image
    second: Image | None = None  # another view
    example: Image | None = None  # how a path is drawn
    reference: Image | None = None  # the intermediate image

    @property
    def is_track(self) -> bool:
        """Whether the answer is a list of points."""
        return self.kind == "embodied"

    @property
    def has_judgeable_image(self) -> bool:
        """Whether there is anything to compare the intermediate image with."""
        return self.reference is not None or self.kind == "multi-view"

    def input_images(self, turn: int) -> list[Image]:
        """Return the images of the question. How a path is drawn is only shown where one is to be drawn."""
        images = [self.source]
        if self.kind == "embodied":
            extra = self.example
            if turn == TEXT_TURN:
                extra = None
        elif self.kind in ("physical", "multi-view"):
            extra = self.second
        else:
            extra = self.example or self.second
        if extra is not None:
            images.append(extra)
        return images


def canonical_group(axis: str, name: str) -> str:
    """Return the name of a scenario or type as samples have it, however it is spelled."""
    name = name.strip()
    aliases: Mapping[str, str] = ALIASES.get(axis, {})
    if name.lower() in aliases:
        return aliases[name.lower()]
    if axis == "type":
        return name.lower()
    return name


def load(data: Path, blobs: Blobs) -> Dataset:
    return RoverTGRecords.load(data, SUBSET, blobs)


class RoverTGRecords(RoverRecords):
    """Reads one record: a question, its images and its answer."""

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        task = self.read_id(name, record)
        kind = canonical_group("type", self.text(name, record, "problem_type"))
        if kind not in TYPES:
            self.fail(name, "problem_type", f"{kind!r} is none of {', '.join(TYPES)}")
        prompt = self.text(name, record, "prompt")
        answer = self._read_answer(name, record.get("answer"))
        if kind == "embodied" and len(paths.parse_points(answer)) < 2:
            self.fail(name, "answer", f"is no list of points such as [[12, 40], [18, 44]]: {answer[:80]!r}")
        source = self.image(name, record, "image")
        second = self.optional_image(name, record, "image2")
        example = self.optional_image(name, record, "example_image")
        reference_field = "refer_image"
        if record.get("reasoning_image") is not None:
            reference_field = "reasoning_image"
        reference = self.optional_image(name, record, reference_field)
        if kind == "multi-view" and second is None:
            self.fail(name, "image2", "has no image; a question about two views needs both")
        gold = RoverTGGold(kind, answer, source, second, example, reference)
        if not gold.has_judgeable_image:
            message = "is null: the intermediate image cannot be judged, the answer can"
            self.report_problem("warning", name, "reasoning_image", message)
        final_answer = Text(f"Final Answer: {answer}")
        visual_reference: tuple[Part, ...] = ()
        if reference is not None:
            visual_reference = (reference, final_answer)
        parts = (Text(prompt), source)
        visual = Turn(VISUAL_TURN, parts, "interleaved", visual_reference, None, f"gen_{task}.png", gold)
        text = Turn(TEXT_TURN, parts, "text", (final_answer,), None, f"gen_{task}.text.txt", gold)
        turns = [visual, text]
        if reference is not None:
            file = f"gen_{task}.given.txt"
            turns.append(Turn(GIVEN_TURN, (*parts, reference), "text", (final_answer,), None, file, gold))
        return Sample(task, tuple(turns), (), {"scenario": SCENARIOS[kind], "type": kind})

    def _read_answer(self, name: str, value: Any) -> str:
        """Return an answer, given as a text, a number, or a list of either. A list of points keeps its form."""
        if isinstance(value, (list, tuple)):
            return self._read_answer_list(name, cast(Sequence[Any], value))
        if isinstance(value, bool) or value is None or (isinstance(value, str) and not value.strip()):
            self.fail(name, "answer", "is missing or empty")
        if isinstance(value, (float, Decimal)) and value == int(value):
            return str(int(value))
        if not isinstance(value, (str, int, float, Decimal)):
            self.fail(name, "answer", f"must be text, a number or a list, not {type(value).__name__}")
        return str(value).strip()

    def _read_answer_list(self, name: str, items: Sequence[Any]) -> str:
        if not items:
            self.fail(name, "answer", "is an empty list")
        if all(isinstance(item, (list, tuple)) for item in items):
            return str([list(point) for point in items])
        return ", ".join(self._read_answer(name, item) for item in items)
