"""OpenING's records as Samples: test_data.jsonl, with pictures under images/ beside it. An item is known by its
`total_uid`; outputs made elsewhere are called by that. Markers for places of pictures are left out of the words, and
the picture follows them."""

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
ROOTS = ("", "OpenING-benchmark", "OpenING-Benchmark")
TEST = 2160  # items of the test split
MARKERS = ("<BEGIN>", "<image>")
OWN = "own items"


class OpeningGold(Struct, frozen=True):
    """How many steps, each a text and a picture, the reference has."""

    steps: int


def load(data: Path, blobs: Blobs) -> Dataset:
    file = find_file(data)
    found = OpeningRecords(file, file.parent, blobs).dataset(OWN, read_json_lines(file))
    if found.name == OWN and found.records == TEST:
        return replace(found, name="opening")
    return found


def find_file(data: Path) -> Path:
    if data.is_file():
        return data
    places = [data / root / name for root in ROOTS for name in FILES]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UserError(
            f"{data} has no {FILES[0]}: give the folder OpenING-benchmark of OpenING's repository, with its pictures"
        )
    return found


def strip_markers(text: str) -> str:
    """Without markers. Spaces beside one stay, as the released scripts leave them."""
    text = text.strip()
    for marker in MARKERS:
        text = text.replace(marker, "")
    return text


class OpeningRecords(Records):
    id_field = "total_uid"

    def record_label(self, at: int, record: Any) -> str:
        own = dict_or_empty(record).get("total_uid")
        return f"record {at}" + (f" ({own[:40]})" if isinstance(own, str) and own else "")

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        own = self.text(name, record, "total_uid").strip()
        if len(own) > 40 or not own.isalnum():
            self.fail(name, "total_uid", "must be letters and digits, at most 40")
        turns = self._turns(name, record)
        ask = self._parts(name, turns[0], "input")
        truth = self._parts(name, turns[1], "output")
        steps = max(sum(isinstance(part, Image) for part in truth), 1)
        groups = {
            "task": self._group(name, record, "meta_task_name"),
            "subtask": self._group(name, record, "subtask_name"),
        }
        return Sample(own, (Turn(0, ask, "interleaved", truth, None, f"{own}.json", OpeningGold(steps)),), (), groups)

    def _turns(self, name: str, record: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        found: Any = record.get("conversations")
        some = [dict_or_empty(one) for one in cast(list[Any], found)] if isinstance(found, list) else []
        asked = next((one for one in some if "input" in one), None)
        answer = next((one for one in some if "output" in one), None)
        if asked is None or answer is None:
            self.fail(name, "conversations", "must be a list with an `input` and an `output`")
        return asked, answer

    def _parts(self, name: str, turn: Mapping[str, Any], field: str) -> tuple[Part, ...]:
        parts = read_parts(self, name, turn, field, strip_markers)
        if field == "input" and not any(isinstance(part, Text) and part.text.strip() for part in parts):
            self.fail(name, field, "has no text: say what is asked for")
        return parts

    def _group(self, name: str, record: Mapping[str, Any], field: str) -> str:
        return " ".join(self.optional_text(name, record, field).split()) or "unnamed"
