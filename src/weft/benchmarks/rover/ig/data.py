"""ROVER-IG's records as Samples: one request about one picture, and what the picture that comes back must show.

Names are those of the released code (`imaginative`, `culture`); what the paper or the released prompts call them
(Synthetic, Humanity, Nature Science, ...) means the same, in the data and on the command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.benchmarks.rover.files import RoverSubset
from weft.benchmarks.rover.records import RoverRecords
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Sample, Text, Thought, Turn

SUBSET = RoverSubset("ROVER-IG", ("id", "dimension", "reasoning_type", "prompt", "image"), "reasoning_type")
DIMENSIONS = ("science", "culture", "common_sense", "logic")
TYPES = ("temporal", "spatial", "causal", "imaginative", "quantitative", "mathematical", "abstract", "logical")
ALIASES: Mapping[str, Mapping[str, str]] = {
    "dimension": {
        **dict.fromkeys(
            ("nature science", "natural science", "nature_science", "natural_science", "nature"), "science"
        ),
        **dict.fromkeys(("humanity", "humanities", "culture/art", "culture_art", "culture / art", "art"), "culture"),
        **dict.fromkeys(("common sense", "common-sense", "commonsense"), "common_sense"),
    },
    "type": {"synthetic": "imaginative", "math": "mathematical", "logic": "logical"},
}


class RoverIGGold(Struct, frozen=True):
    """What a judge is told of a task. `target` is a picture of it, where there is one."""

    description: str
    keywords: str
    dimension: str  # as the data call it
    kind: str  # the reasoning type
    source: Image
    target: Image | None = None


def canonical_group(axis: str, name: str) -> str:
    """What a dimension or a type is called here, whatever it is called there."""
    said = name.strip().lower()
    return ALIASES.get(axis, {}).get(said, said)


def parse_id(task: str) -> tuple[str, str]:
    """Dimension and type as an id tells them, which is how the released summary sorts its results."""
    parts = task.split("_")
    if parts[:2] == ["common", "sense"] and len(parts) > 2:
        parts = ["common_sense", *parts[2:]]
    if len(parts) > 1:
        kind = parts[1]
    else:
        kind = ""
    return parts[0], "mathematical" if kind == "math" else kind


def load(data: Path, blobs: Blobs) -> Dataset:
    return RoverIGRecords.load(data, SUBSET, blobs)


class RoverIGRecords(RoverRecords):
    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        task = self.read_id(name, record)
        told = self._dimension(name, task, record.get("dimension"))
        dimension = canonical_group("dimension", told)
        kind = canonical_group("type", self.text(name, record, "reasoning_type"))
        if kind not in TYPES:
            self.fail(name, "reasoning_type", f"{kind!r} is none of {', '.join(TYPES)}")
        prompt = self.text(name, record, "prompt")
        source = self.image(name, record, "image")
        target = self.optional_image(name, record, "target_image")
        description, keywords = (
            self.optional_text(name, record, field) for field in ("target_description", "keywords")
        )
        if not description.strip() and target is None:
            self.report_problem(
                "warning",
                name,
                "target_description",
                "is empty, and there is no target_image: a judge has the request alone",
            )
        if parse_id(task) != (dimension, kind):
            by_id = " ".join(parse_id(task))
            self.report_problem(
                "warning",
                name,
                "id",
                f"tells {by_id or 'nothing'}, its fields {dimension} {kind}: official tables sort by the id",
            )
        goal = RoverIGGold(description, keywords, told, kind, source, target)
        truth = (Thought(description or prompt), *((target,) if target else ()))
        turn = Turn(0, (Text(prompt), source), "image", truth, None, f"gen_{task}.png", goal)
        return Sample(task, (turn,), (), {"dimension": dimension, "type": kind})

    def _dimension(self, name: str, task: str, found: Any) -> str:
        """A name, or the number of one."""
        if isinstance(found, int) and not isinstance(found, bool):
            if self.dimension_names and not 0 <= found < len(self.dimension_names):
                self.fail(name, "dimension", f"is {found}; the table names {len(self.dimension_names)} of them")
            if self.dimension_names:
                found = self.dimension_names[found]
            else:
                found = parse_id(task)[0]
        if not isinstance(found, str) or canonical_group("dimension", found) not in DIMENSIONS:
            self.fail(name, "dimension", f"{found!r} is none of {', '.join(DIMENSIONS)}")
        return found
