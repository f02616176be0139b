"""GenEval's prompts as samples: four images of each prompt, which are four turns that ask the same.

The long prompts are other words for the same rules, and a benchmark of their own: numbers of the two are not compared.
The authors' outputs hold the records as well, one in each folder, and can stand for the data.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.edits.files import find_json_file
from weft.benchmarks.geneval.rules import RELATIONS, ImageRules, ObjectRule
from weft.benchmarks.record_files import ListRows, RecordRows, read_json_records
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.judges.detections import COLORS
from weft.store.blobs import Blobs
from weft.types import Dataset, Sample, Text, Turn
from weft.untrusted import dict_or_empty, list_or_empty, read_json_file

TAGS = ("single_object", "two_object", "counting", "colors", "position", "color_attr")
IMAGES_PER_PROMPT = 4
MAX_COUNT = 16  # of one class: more are not counted
PUBLISHED_RECORDS = 553
OWN_DATA = "own prompts"  # the dataset's name where it is neither form of GenEval
METADATA = "metadata.jsonl"  # the record of a prompt, in the folder of its images
RELATION_NAMES = tuple(name for pair in RELATIONS for name in pair)


class PromptForm(Struct, frozen=True):
    """One of the two forms of the prompts."""

    name: str  # of the benchmark, and of its dataset
    stems: tuple[str, ...]  # of the file, in lower case
    is_long: bool
    help: str


SHORT = PromptForm(
    "geneval",
    ("evaluation_metadata", "geneval"),
    is_long=False,
    help="give prompts/evaluation_metadata.jsonl of a clone of djghosh13/geneval, or the folder that it is in",
)
LONG = PromptForm(
    "geneval-long",
    ("evaluation_metadata_long", "geneval_long"),
    is_long=True,
    help="give evaluation_metadata_long.jsonl of a clone of ByteDance-Seed/Bagel, or the folder that it is in",
)
SHORT_PROMPT = b'"a photo of '


def load(data: Path, blobs: Blobs, form: PromptForm) -> Dataset:
    """Return the dataset. It is called by the form's name if it has as many records as the published one.

    Raises UserError if there are no records, or if they are those of the other form.
    """
    if not data.exists():
        raise UserError(f"there is no {data}: {form.help}")
    file = find_json_file(data, form.stems)
    rows: RecordRows | None = None
    if file is not None:
        rows = read_json_records(file)
    elif data.is_dir():
        file = data / METADATA
        rows = _read_folders(data)
    if file is None or rows is None or not rows.count:
        raise UserError(f"there are no prompts in {data}: {form.help}")
    dataset = PromptRecords(file, file.parent, blobs).dataset(OWN_DATA, rows)
    if dataset.name != OWN_DATA or dataset.records != PUBLISHED_RECORDS:
        return dataset
    short = sum(SHORT_PROMPT in (row if isinstance(row, bytes) else msgspec.json.encode(row)) for row in rows)
    if form.is_long == (short > PUBLISHED_RECORDS / 2):
        other = SHORT if form.is_long else LONG
        raise UserError(f"{file} has the prompts of {other.name}, whose numbers are others: weft run {other.name}")
    return replace(dataset, name=form.name)


def _read_folders(data: Path) -> ListRows:
    """Return the records in the folders of the authors' outputs, in the order of their numbers."""
    folders = sorted((path for path in data.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name))
    with_record = [folder for folder in folders if (folder / METADATA).is_file()]
    return ListRows(_read_folder(folder) for folder in with_record)


def _read_folder(folder: Path) -> dict[str, Any]:
    return {**dict_or_empty(read_json_file(folder / METADATA)), "number": int(folder.name)}


class PromptRecords(Records):
    """Reads one record."""

    def record_label(self, index: int, record: Any, /) -> str:
        number = dict_or_empty(record).get("number")
        return f"prompt {index if number is None else number}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        rules = self._read_rules(name, record)
        prompt = self.text(name, record, "prompt")
        number = f"{int(name.removeprefix('prompt ')):05}"
        turns: list[Turn] = []
        for draw in range(IMAGES_PER_PROMPT):
            file = f"{number}/samples/{draw:04}.png"
            turns.append(Turn(draw, (Text(prompt),), "image", (), file=file, gold=rules, draw=draw))
        return Sample(number, tuple(turns), groups={"tag": rules.tag})

    def _read_rules(self, name: str, record: Mapping[str, Any]) -> ImageRules:
        tag = self.text(name, record, "tag")
        if tag not in TAGS:
            self.fail(name, "tag", f"is {tag[:40]!r}; there is {', '.join(TAGS)}")
        include: list[ObjectRule] = []
        for entry in list_or_empty(record.get("include")):
            include.append(self._read_rule(name, "include", entry, len(include)))
        if not include:
            self.fail(name, "include", "is missing: say which objects are to be in the image")
        exclude = [self._read_rule(name, "exclude", entry, 0) for entry in list_or_empty(record.get("exclude"))]
        return ImageRules(tag, tuple(include), tuple(exclude))

    def _read_rule(self, name: str, field: str, entry: Any, earlier: int) -> ObjectRule:
        """Read an object that is asked for or excluded. `earlier`: how many stand before it."""
        values = dict_or_empty(entry)
        label = self.text(name, values, "class")
        count: Any = values.get("count")
        if type(count) is not int or not 1 <= count <= MAX_COUNT:
            self.fail(name, f"{field}.count", f"must be a whole number from 1 to {MAX_COUNT}")
        color = self.optional_text(name, values, "color")
        if color and color not in COLORS:
            self.fail(name, f"{field}.color", f"is {color[:40]!r}; there is {', '.join(COLORS)}")
        position: Any = values.get("position")
        if position is None:
            return ObjectRule(label, count, color)
        relation, target = self._read_position(name, field, position, earlier)
        return ObjectRule(label, count, color, relation, target)

    def _read_position(self, name: str, field: str, position: Any, earlier: int) -> tuple[str, int]:
        entries = list_or_empty(position)
        if len(entries) != 2 or entries[0] not in RELATION_NAMES:
            self.fail(name, f"{field}.position", f"must be one of {', '.join(RELATION_NAMES)}, with a number")
        relation, target = entries
        if type(target) is not int or not 0 <= target < earlier:
            self.fail(name, f"{field}.position", "must name an object that stands before it, counted from 0")
        return relation, target
