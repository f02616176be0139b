"""KRIS-Bench's files as samples: a folder for each of 20 categories, with `annotation.json` and images.

An item has one image and an instruction, several images to compose, or the other frames of a sequence. A script of the
authors is for some categories alone, and asks in its own way.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.table_records import TableRecords
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Part, Sample, Text, Turn
from weft.untrusted import dict_or_empty, read_json_file

DIMENSIONS: Mapping[str, tuple[str, ...]] = {  # with their categories
    "attribute": ("count_change", "color_change", "size_adjustment", "part_completion", "anomaly_correction"),
    "spatial": ("viewpoint_change", "position_movement"),
    "temporal": ("temporal_prediction",),
    "social": ("humanities", "practical_knowledge"),
    "natural": ("biology", "chemistry", "geography", "medicine", "mathematics", "physics"),
    "logical": ("abstract_reasoning", "rule-based_reasoning"),
    "decomposition": ("multi-element_composition", "multi-instruction_execution"),
}
WITH_KNOWLEDGE = ("social", "natural", "logical")  # dimensions in which knowledge is scored
CATEGORIES = {category: dimension for dimension, own in DIMENSIONS.items() for category in own}
Script = Literal["common", "knowledge", "view", "multi", "temporal"]
OWN_SCRIPTS: Mapping[str, Script] = {
    "viewpoint_change": "view",
    "multi-element_composition": "multi",
    "temporal_prediction": "temporal",
}
ANNOTATIONS = "annotation.json"
FRAME = re.compile(r"\d+-(\d+)\.")  # the number of a frame in a file's name, after that of its item
FRAMES = 4  # of a sequence, one of which is to be made
MAX_SOURCES = 8
PUBLISHED_RECORDS = 1267
OWN_DATA = "own edits"  # the dataset's name where it is not KRIS-Bench
HELP = (
    "give the folder KRIS_Bench of a clone of mercurystraw/Kris_Bench, or get Liang0223/KRIS_Bench from the Hugging "
    "Face hub, after reading its licence there"
)


class KrisGold(Struct, frozen=True):
    """What is known of a request besides its words."""

    script: Script
    sources: tuple[Image, ...]
    explanation: str  # what the result must show; empty where the request says all
    reference: Image | None  # the right result
    frames: tuple[int, ...] = ()  # the numbers of the sources in a sequence
    made_frame: int = 0  # the number of the frame that is asked for

    @property
    def has_knowledge(self) -> bool:
        return self.script == "knowledge"


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset; it is called `kris` if it has as many records as the published one."""
    if not data.is_dir():
        raise UserError(f"there is no folder {data}: {HELP}")
    root = data / "KRIS_Bench" if (data / "KRIS_Bench").is_dir() else data
    records: list[dict[str, Any]] = []
    for category in CATEGORIES:
        file = root / category / ANNOTATIONS
        if not file.is_file():
            continue
        for key, item in dict_or_empty(read_json_file(file)).items():
            fields = dict_or_empty(item)
            names = _list_names(fields.get("ori_img"))
            own = {"key": key, "category": category, "images": [f"{category}/{name}" for name in names]}
            reference = fields.get("gt_img")
            if isinstance(reference, str) and reference:
                own["reference"] = f"{category}/{reference}"
            records.append({**fields, **own})
    if not records:
        raise UserError(f"there are no edits in {data}: {HELP}")
    dataset = KrisRecords(root / ANNOTATIONS, root, blobs).dataset(OWN_DATA, records)
    if dataset.name == OWN_DATA and dataset.records == PUBLISHED_RECORDS:
        return replace(dataset, name="kris")
    return dataset


def _list_names(value: Any) -> list[str]:
    entries = cast(list[Any], value) if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, str) and entry]


class KrisRecords(TableRecords):
    """Reads one item."""

    id_field = "key"

    def record_label(self, at: int, record: Any) -> str:
        return f"{record['category']}: {record['key'][:80]}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        key = self.read_id(name, record)
        category: str = record["category"]
        instruction = self.text(name, record, "ins_en")
        explanation = self.optional_text(name, record, "explain_en")
        images: list[str] = record["images"]
        script = OWN_SCRIPTS.get(category) or ("knowledge" if CATEGORIES[category] in WITH_KNOWLEDGE else "common")
        is_one = script not in ("multi", "temporal")
        if not images or len(images) > MAX_SOURCES or (is_one and len(images) > 1):
            self.fail(name, "ori_img", "must be one image" if is_one else f"must be up to {MAX_SOURCES} images")
        sources = tuple(self.load_image(name, "ori_img", image) for image in images)
        reference = self.optional_image(name, record, "reference")
        if script == "view" and reference is None:
            self.fail(name, "gt_img", "is missing: the right view is needed")
        frames, made_frame = self._read_frames(name, images) if script == "temporal" else ((), 0)
        gold = KrisGold(script, sources, explanation, reference, frames, made_frame)
        parts: tuple[Part, ...] = (*sources, Text(instruction))
        shown = () if reference is None else (reference,)
        turn = Turn(0, parts, "image", shown, file=f"{category}/{key}.png", gold=gold)
        groups = {"dimension": CATEGORIES[category], "category": category}
        return Sample(f"{category}-{key}", (turn,), groups=groups)

    def _read_frames(self, name: str, images: Sequence[str]) -> tuple[tuple[int, ...], int]:
        """Return the numbers of the frames that are there, and that of the one that is not."""
        matches = [FRAME.search(image.rpartition("/")[2]) for image in images]
        numbers = [int(match[1]) for match in matches if match is not None]
        missing = sorted(set(range(1, FRAMES + 1)) - set(numbers))
        if len(numbers) != len(images) or len(missing) != 1:
            self.fail(name, "ori_img", f"must be all frames but one of {FRAMES}, such as 7-1.jpg, 7-2.jpg, 7-4.jpg")
        return tuple(numbers), missing[0]
