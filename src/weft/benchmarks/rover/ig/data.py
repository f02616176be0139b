"""ROVER-IG's records as Samples: one request about one image, and what the image that comes back must show.

Names are those of the released code (`imaginative`, `culture`); the names of the paper and of the released prompts
(Synthetic, Humanity, Nature Science, ...) mean the same, in the data and on the command line.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.benchmarks.rover.files import RoverSubset
from weft.benchmarks.rover.records import RoverRecords
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Part, Sample, Text, Thought, Turn

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
    """What a judge is told of a task."""

    description: str | None  # of the expected result; null where the data have null, which official prompts show
    keywords: str
    dimension: str  # as the data call it
    kind: str  # the reasoning type
    source: Image
    target: Image | None = None  # the reference image, where there is one


def canonical_group(axis: str, name: str) -> str:
    """Return the name of a dimension or type as samples have it, however it is spelled."""
    name = name.strip().lower()
    return ALIASES.get(axis, {}).get(name, name)


def parse_id(task: str) -> tuple[str, str]:
    """Return dimension and type from an id, which is how the released summary sorts its results."""
    parts = task.split("_")
    if parts[:2] == ["common", "sense"] and len(parts) > 2:
        parts = ["common_sense", *parts[2:]]
    dimension = parts[0]
    if len(parts) == 1:
        return dimension, ""
    if parts[1] == "math":
        return dimension, "mathematical"
    return dimension, parts[1]


def load(data: Path, blobs: Blobs) -> Dataset:
    return RoverIGRecords.load(data, SUBSET, blobs)


class RoverIGRecords(RoverRecords):
    """Reads one record: a prompt, its image, and what is known of the result."""

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        task = self.read_id(name, record)
        stored_dimension = self._read_dimension(name, task, record.get("dimension"))
        dimension = canonical_group("dimension", stored_dimension)
        kind = canonical_group("type", self.text(name, record, "reasoning_type"))
        if kind not in TYPES:
            self.fail(name, "reasoning_type", f"{kind!r} is none of {', '.join(TYPES)}")
        prompt = self.text(name, record, "prompt")
        source = self.image(name, record, "image")
        target = self.optional_image(name, record, "target_image")
        description = self.optional_text(name, record, "target_description")
        keywords = self.optional_text(name, record, "keywords")
        if not description.strip() and target is None:
            message = "is empty, and there is no target_image: a judge has the request alone"
            self.report_problem("warning", name, "target_description", message)
        if parse_id(task) != (dimension, kind):
            by_id = " ".join(parse_id(task)) or "nothing"
            message = f"says {by_id}, its fields {dimension} {kind}: official tables sort by the id"
            self.report_problem("warning", name, "id", message)
        is_null = "target_description" in record and record["target_description"] is None
        gold = RoverIGGold(None if is_null else description, keywords, stored_dimension, kind, source, target)
        reference: tuple[Part, ...] = (Thought(description or prompt),)
        if target is not None:
            reference = (*reference, target)
        turn = Turn(0, (Text(prompt), source), "image", reference, None, f"gen_{task}.png", gold)
        return Sample(task, (turn,), (), {"dimension": dimension, "type": kind})

    def _read_dimension(self, name: str, task: str, value: Any) -> str:
        """Return the dimension, given as a name or as the number of one."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = self._find_dimension(name, task, value)
        if not isinstance(value, str) or canonical_group("dimension", value) not in DIMENSIONS:
            self.fail(name, "dimension", f"{value!r} is none of {', '.join(DIMENSIONS)}")
        return value

    def _find_dimension(self, name: str, task: str, number: int) -> str:
        if not self.dimension_names:
            return parse_id(task)[0]
        if not 0 <= number < len(self.dimension_names):
            self.fail(name, "dimension", f"is {number}; the table names {len(self.dimension_names)} of them")
        return self.dimension_names[number]
