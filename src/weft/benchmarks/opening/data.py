"""OpenING's records as Samples: test_data.jsonl, with its images under images/ in the same folder.

An item is known by its `total_uid`; outputs made elsewhere are named by it. Markers for the places of images are left
out of the text, and the image follows the text.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.interleaved_outputs import read_parts
from weft.benchmarks.record_files import read_json_lines
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Part, Sample, Text, Turn
from weft.untrusted import dict_or_empty

FILES = ("test_data.jsonl", "dev_data.jsonl")
ROOTS = ("", "OpenING-benchmark", "OpenING-Benchmark")  # where FILES may be in the folder that a user names
TEST_ITEMS = 2160  # of the published test split
MARKERS = ("<BEGIN>", "<image>")
OWN_DATA = "own items"  # the dataset's name where it is not OpenING's


class OpeningGold(Struct, frozen=True):
    """What is known of an item besides its prompt and reference."""

    steps: int  # of the reference; each is a text and an image


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset in a folder or file; it is called `opening` if it has as many items as the test split."""
    file = find_file(data)
    dataset = OpeningRecords(file, file.parent, blobs).dataset(OWN_DATA, read_json_lines(file))
    if dataset.name == OWN_DATA and dataset.records == TEST_ITEMS:
        return replace(dataset, name="opening")
    return dataset


def find_file(data: Path) -> Path:
    """Return the file of records. Raises UserError if there is none."""
    if data.is_file():
        return data
    for root in ROOTS:
        for name in FILES:
            path = data / root / name
            if path.is_file():
                return path
    raise UserError(
        f"{data} has no {FILES[0]}: give the folder OpenING-benchmark of OpenING's repository, with its images"
    )


def strip_markers(text: str) -> str:
    """Remove the markers. Spaces next to a marker stay, as the released scripts leave them."""
    text = text.strip()
    for marker in MARKERS:
        text = text.replace(marker, "")
    return text


class OpeningRecords(Records):
    """Reads one record: a conversation with an input and an output."""

    id_field = "total_uid"

    def record_label(self, at: int, record: Any) -> str:
        uid = dict_or_empty(record).get("total_uid")
        if isinstance(uid, str) and uid:
            return f"record {at} ({uid[:40]})"
        return f"record {at}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        uid = self.text(name, record, "total_uid").strip()
        if len(uid) > 40 or not uid.isalnum():
            self.fail(name, "total_uid", "must be letters and digits, at most 40")
        input_turn = self._find_turn(name, record, "input")
        output_turn = self._find_turn(name, record, "output")
        prompt = self._read_parts(name, input_turn, "input")
        reference = self._read_parts(name, output_turn, "output")
        steps = max(sum(isinstance(part, Image) for part in reference), 1)
        groups = {
            "task": self._read_group(name, record, "meta_task_name"),
            "subtask": self._read_group(name, record, "subtask_name"),
        }
        turn = Turn(0, prompt, "interleaved", reference, None, f"{uid}.json", OpeningGold(steps))
        return Sample(uid, (turn,), (), groups)

    def _find_turn(self, name: str, record: Mapping[str, Any], field: str) -> Mapping[str, Any]:
        """Return the first turn of the conversation that has this field."""
        turns: Any = record.get("conversations")
        if isinstance(turns, list):
            for turn in cast(list[Any], turns):
                if field in dict_or_empty(turn):
                    return dict_or_empty(turn)
        self.fail(name, "conversations", "must be a list with an `input` and an `output`")

    def _read_parts(self, name: str, turn: Mapping[str, Any], field: str) -> tuple[Part, ...]:
        parts = read_parts(self, name, turn, field, strip_markers)
        if field == "input" and not any(isinstance(part, Text) and part.text.strip() for part in parts):
            self.fail(name, field, "has no text: say what is asked for")
        return parts

    def _read_group(self, name: str, record: Mapping[str, Any], field: str) -> str:
        return " ".join(self.optional_text(name, record, field).split()) or "unnamed"
