"""GEdit-Bench's records as samples: one request about one image, in English or in Chinese."""

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.edits.files import EditFiles, EditSource, find_records
from weft.benchmarks.table_records import TableRecords
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Sample, Text, Turn

TASKS = (
    "background_change",
    "color_alter",
    "material_alter",
    "motion_change",
    "ps_human",
    "style_change",
    "subject-add",
    "subject-remove",
    "subject-replace",
    "text_change",
    "tone_transfer",
)
LANGUAGES = ("en", "cn")
PUBLISHED_RECORDS = 1212  # 606 in each language
OWN_DATA = "own edits"  # the dataset's name where it is not GEdit-Bench
COLUMNS = ("task_type", "key", "instruction", "instruction_language", "input_image", "Intersection_exist")
SOURCE = EditSource(
    ("gedit", "gedit-bench", "gedit_bench"),
    COLUMNS,
    ("input_image_raw",),
    "get stepfun-ai/GEdit-Bench from the Hugging Face hub, after reading its licence there (`weft data get "
    "stepfun-ai/GEdit-Bench --out gedit`), or give gedit.jsonl with its images in the same folder",
)


class GEditGold(Struct, frozen=True):
    """What is known of a request besides its words."""

    source: Image  # that the edit is judged against; the model may get a larger one
    is_in_intersection: bool  # among the requests that all methods of the paper answered


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset; it is called `gedit` if it has as many records as the published one."""
    files = find_records(data, SOURCE)
    dataset = GEditRecords(files, blobs).dataset(OWN_DATA, files.rows)
    if dataset.name == OWN_DATA and dataset.records == PUBLISHED_RECORDS:
        return replace(dataset, name="gedit")
    return dataset


class GEditRecords(TableRecords):
    """Reads one record."""

    id_field = "key"

    def __init__(self, files: EditFiles, blobs: Blobs) -> None:
        super().__init__(files.file, files.file.parent, blobs)
        self.problems.extend(files.problems)

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        key = self.read_id(name, record)
        task = self._one_of(name, record, "task_type", TASKS)
        language = self._one_of(name, record, "instruction_language", LANGUAGES)
        instruction = self.text(name, record, "instruction")
        is_in_intersection = record.get("Intersection_exist")
        if not isinstance(is_in_intersection, bool):
            self.fail(name, "Intersection_exist", "must be true or false")
        source = self.image(name, record, "input_image")
        shown = self.optional_image(name, record, "input_image_raw") or source
        turn = Turn(
            0,
            (shown, Text(instruction)),
            "image",
            reference=(),
            file=f"fullset/{task}/{language}/{key}.png",
            gold=GEditGold(source, is_in_intersection),
        )
        subset = "intersection" if is_in_intersection else "rest"
        groups = {"language": language, "task": task, "subset": subset}
        return Sample(f"{language}-{key}", (turn,), groups=groups)

    def _one_of(self, name: str, record: dict[str, Any], field: str, known: tuple[str, ...]) -> str:
        value = self.text(name, record, field)
        if value not in known:
            self.fail(name, field, f"is {value[:40]!r}; there is {', '.join(known)}")
        return value
