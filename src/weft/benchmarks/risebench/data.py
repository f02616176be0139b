"""RISEBench's records as samples: one image, one request, and the right result in words or as an image.

The records of the repository (64) and of the Hugging Face hub (360) have the same form. Which columns there are decides
how the released scripts score: a column counts for them as soon as one record has it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.edits.files import find_json_file
from weft.benchmarks.record_files import FileRows, read_json_records
from weft.benchmarks.risebench.facts import EditRules
from weft.benchmarks.table_records import TableRecords
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Sample, Text, Turn

CATEGORIES = {
    "temporal_reasoning": "temporal",
    "causal_reasoning": "causal",
    "spatial_reasoning": "spatial",
    "logical_reasoning": "logical",
}
STEMS = ("risebench", "datav2_total_w_subtask", "data_total")
PUBLISHED_RECORDS = 360
OWN_DATA = "own edits"  # the dataset's name where it is not RISEBench
HELP = (
    "get PhoenixZ/RISEBench from the Hugging Face hub, after reading its licence there, or give the folder `data` of "
    "the repository PhoenixZ810/RISEBench"
)
FREE_COLUMN = b'"consistency_free"'
WITHOUT_COLUMN = b'"reasoning_wo_ins"'


class RiseColumns(Struct, frozen=True):
    """Columns that some record has."""

    consistency_free: bool
    reasoning_wo_ins: bool


class RiseGold(Struct, frozen=True):
    """What is known of a request besides its words."""

    category: str  # temporal, causal, spatial or logical
    source: Image
    reference_text: str  # the right result in words; empty if it is an image
    reference_image: Image | None
    shows_source: bool  # whether the released scripts show the source beside the words of the right result
    hides_request: bool  # whether they leave the request out where the right result is an image
    rules: EditRules


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset; it is called `risebench` if it has as many records as the published one."""
    file = find_json_file(data, STEMS)
    if file is None:
        raise UserError(f"there are no records in {data}: {HELP}")
    rows = read_json_records(file)
    dataset = RiseRecords(file, blobs, find_columns(rows)).dataset(OWN_DATA, rows)
    if dataset.name == OWN_DATA and dataset.records == PUBLISHED_RECORDS:
        return replace(dataset, name="risebench")
    return dataset


def find_columns(rows: FileRows) -> RiseColumns:
    """Return which of the columns that are tested as a whole some record has."""
    free = False
    without = False
    for record in rows:
        free = free or FREE_COLUMN in record
        without = without or WITHOUT_COLUMN in record
    return RiseColumns(free, without)


class RiseRecords(TableRecords):
    """Reads one record."""

    id_field = "index"

    def __init__(self, file: Path, blobs: Blobs, columns: RiseColumns) -> None:
        super().__init__(file, file.parent, blobs)
        self._columns = columns

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        index = self.read_id(name, record)
        long_category = self.text(name, record, "category")
        if long_category not in CATEGORIES:
            self.fail(name, "category", f"is {long_category[:40]!r}; there is {', '.join(CATEGORIES)}")
        category = CATEGORIES[long_category]
        instruction = self.text(name, record, "instruction")
        source = self.image(name, record, "image")
        reference_image = self.optional_image(name, record, "reference_img")
        if category in ("temporal", "causal"):
            reference_image = None
        text_field = "reference_txt" if category == "logical" else "reference"
        reference_text = self.optional_text(name, record, text_field)
        if category == "logical" and reference_text:
            reference_image = None
        if category == "spatial" and reference_image is not None:
            reference_text = ""
        if not reference_text.strip() and reference_image is None:
            self.fail(name, text_field, "is missing: say or show what the right result is")
        gold = RiseGold(
            category,
            source,
            reference_text,
            reference_image,
            shows_source=record.get("reasoning_img") is not None,
            hides_request=self._columns.reasoning_wo_ins,
            rules=self._read_rules(record, category),
        )
        reference = () if reference_image is None else (reference_image,)
        file = f"images/{long_category}/{index}.png"
        turn = Turn(0, (source, Text(instruction)), "image", reference, file=file, gold=gold)
        subtask = " ".join(self.optional_text(name, record, "subtask").split()) or "unnamed"
        return Sample(index, (turn,), groups={"category": category, "subtask": subtask})

    def _read_rules(self, record: Mapping[str, Any], category: str) -> EditRules:
        is_logical = category == "logical"
        is_free = not is_logical and record.get("consistency_free") is not None
        counts_as_free = self._columns.consistency_free
        if "consistency_free" in record:
            counts_as_free = bool(record["consistency_free"])
        return EditRules(is_logical, is_free, counts_as_free)
