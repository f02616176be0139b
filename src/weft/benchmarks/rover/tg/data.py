"""ROVER-TG's records as Samples: one question about a picture or two. It can be asked in two ways, which are the
sample's two turns and know nothing of each other: turn 0 with a picture of one's own before the answer, turn 1 in words
alone."""

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
# the two turns
VISUAL_TURN = 0
TEXT_TURN = 1


class RoverTGGold(Struct, frozen=True):
    """What a judge is told of a question. `second`: another view; `example`: how a path is drawn; `reference`: the true
    picture on the way."""

    kind: str
    answer: str
    source: Image
    second: Image | None = None
    example: Image | None = None
    reference: Image | None = None

    @property
    def is_track(self) -> bool:
        """Whether the answer is a list of points."""
        return self.kind == "embodied"

    @property
    def has_judgeable_image(self) -> bool:
        """Whether there is anything to hold the picture on the way against."""
        return self.reference is not None or self.kind == "multi-view"

    def input_images(self, turn: int) -> list[Image]:
        """The pictures of the question. How a path is drawn matters only to who draws one."""
        extra = {"embodied": self.example, "physical": self.second, "multi-view": self.second}.get(
            self.kind, self.example or self.second
        )
        if turn == TEXT_TURN and self.kind == "embodied":
            extra = None
        return [self.source, *([extra] if extra else [])]


def canonical_group(axis: str, name: str) -> str:
    said = name.strip()
    aliases: Mapping[str, str] = ALIASES.get(axis, {})
    return aliases.get(said.lower(), said.lower() if axis == "type" else said)


def load(data: Path, blobs: Blobs) -> Dataset:
    return RoverTGRecords.load(data, SUBSET, blobs)


class RoverTGRecords(RoverRecords):
    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        task = self.read_id(name, record)
        kind = canonical_group("type", self.text(name, record, "problem_type"))
        if kind not in TYPES:
            self.fail(name, "problem_type", f"{kind!r} is none of {', '.join(TYPES)}")
        prompt = self.text(name, record, "prompt")
        answer = self._answer(name, record.get("answer"))
        if kind == "embodied" and len(paths.parse_points(answer)) < 2:
            self.fail(name, "answer", f"is no list of points such as [[12, 40], [18, 44]]: {answer[:80]!r}")
        source = self.image(name, record, "image")
        if record.get("reasoning_image") is not None:
            field = "reasoning_image"
        else:
            field = "refer_image"
        second, example, reference = (
            self.optional_image(name, record, one) for one in ("image2", "example_image", field)
        )
        if kind == "multi-view" and second is None:
            self.fail(name, "image2", "has no picture; a question about two views needs both")
        puzzle = RoverTGGold(kind, answer, source, second, example, reference)
        if not puzzle.has_judgeable_image:
            self.report_problem(
                "warning", name, "reasoning_image", "is null: the picture on the way cannot be judged, the answer can"
            )
        truth: tuple[Part, ...] = (*((reference,) if reference else ()), Text(f"Final Answer: {answer}"))
        ask = (Text(prompt), source)
        visual = Turn(VISUAL_TURN, ask, "interleaved", truth if reference else (), None, f"gen_{task}.png", puzzle)
        words = Turn(TEXT_TURN, ask, "text", (Text(f"Final Answer: {answer}"),), None, f"gen_{task}.text.txt", puzzle)
        return Sample(task, (visual, words), (), {"scenario": SCENARIOS[kind], "type": kind})

    def _answer(self, name: str, found: Any) -> str:
        """A text, a number, or a list of either; one of points is written as it is."""
        if isinstance(found, (list, tuple)):
            items = cast(Sequence[Any], found)
            if items and all(isinstance(one, (list, tuple)) for one in items):
                return str([[*cast(Sequence[Any], one)] for one in items])
            if not items:
                self.fail(name, "answer", "is an empty list")
            return ", ".join(self._answer(name, one) for one in items)
        if isinstance(found, bool) or found is None or (isinstance(found, str) and not found.strip()):
            self.fail(name, "answer", "is missing or empty")
        if isinstance(found, (float, Decimal)) and found == int(found):
            return str(int(found))
        if not isinstance(found, (str, int, float, Decimal)):
            self.fail(name, "answer", f"must be text, a number or a list, not {type(found).__name__}")
        return str(found).strip()
