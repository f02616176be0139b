"""ROVER-IG's records as Samples: one request about one picture, and what the picture that comes back must show.

Names are those of the released code (`imaginative`, `culture`); what the paper or the released prompts call them (Synthetic, Humanity,
Nature Science, ...) means the same, in the data and on the command line.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.benchmarks.rover.files import Half
from weft.benchmarks.rover.records import RoverRecords
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Sample, Text, Thought, Turn

HALF = Half("ROVER-IG", ("id", "dimension", "reasoning_type", "prompt", "image"), "reasoning_type")
DIMENSIONS = ("science", "culture", "common_sense", "logic")
TYPES = ("temporal", "spatial", "causal", "imaginative", "quantitative", "mathematical", "abstract", "logical")
ALIASES: Mapping[str, Mapping[str, str]] = {
    "dimension": {
        **dict.fromkeys(("nature science", "natural science", "nature_science", "natural_science", "nature"), "science"),
        **dict.fromkeys(("humanity", "humanities", "culture/art", "culture_art", "culture / art", "art"), "culture"),
        **dict.fromkeys(("common sense", "common-sense", "commonsense"), "common_sense"),
    },
    "type": {"synthetic": "imaginative", "math": "mathematical", "logic": "logical"},
}


class Goal(Struct, frozen=True):
    """What a judge is told of a task. `target` is a picture of it, where there is one."""

    description: str
    keywords: str
    dimension: str  # as the data call it
    kind: str  # the reasoning type
    source: Image
    target: Image | None = None


def canonical(axis: str, name: str) -> str:
    """What a dimension or a type is called here, whatever it is called there."""
    said = name.strip().lower()
    return ALIASES.get(axis, {}).get(said, said)


def from_id(task: str) -> tuple[str, str]:
    """Dimension and type as an id tells them, which is how the released summary sorts its results."""
    parts = task.split("_")
    if parts[:2] == ["common", "sense"] and len(parts) > 2:
        parts = ["common_sense", *parts[2:]]
    kind = parts[1] if len(parts) > 1 else ""
    return parts[0], "mathematical" if kind == "math" else kind


def load(data: Path, blobs: Blobs) -> Dataset:
    return TaskRecords.load(data, HALF, blobs)


class TaskRecords(RoverRecords):
    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        task = self.id_of(name, record)
        told = self._dimension(name, task, record.get("dimension"))
        dimension = canonical("dimension", told)
        kind = canonical("type", self.text(name, record, "reasoning_type"))
        if kind not in TYPES:
            self.fail(name, "reasoning_type", f"{kind!r} is none of {', '.join(TYPES)}")
        prompt = self.text(name, record, "prompt")
        source, target = self.image(name, record, "image"), self.image_or_none(name, record, "target_image")
        description, keywords = (self.text_or_none(name, record, field) for field in ("target_description", "keywords"))
        if not description.strip() and target is None:
            self.say("warning", name, "target_description", "is empty, and there is no target_image: a judge has the request alone")
        if from_id(task) != (dimension, kind):
            by_id = " ".join(from_id(task))
            self.say("warning", name, "id", f"tells {by_id or 'nothing'}, its fields {dimension} {kind}: official tables sort by the id")
        goal = Goal(description, keywords, told, kind, source, target)
        truth = (Thought(description or prompt), *((target,) if target else ()))
        turn = Turn(0, (Text(prompt), source), "image", truth, None, f"gen_{task}.png", goal)
        return Sample(task, (turn,), (), {"dimension": dimension, "type": kind})

    def _dimension(self, name: str, task: str, found: Any) -> str:
        """A name, or the number of one."""
        if isinstance(found, int) and not isinstance(found, bool):
            if self.names and not 0 <= found < len(self.names):
                self.fail(name, "dimension", f"is {found}; the table names {len(self.names)} of them")
            found = self.names[found] if self.names else from_id(task)[0]
        if not isinstance(found, str) or canonical("dimension", found) not in DIMENSIONS:
            self.fail(name, "dimension", f"{found!r} is none of {', '.join(DIMENSIONS)}")
        return found
