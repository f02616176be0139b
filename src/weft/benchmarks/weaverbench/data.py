"""WeaverBench's prompts as Samples. The paper's own files are not public; the shape is the neutral one that follows
from what it says:

    weaverbench.jsonl (one object a line), or weaverbench.json (a list), with pictures beside it
    {"id": "travel_guide_007", "category": "Travel Guide", "required_images": 3,
     "input": [{"text": "Write ... using exactly 3 images."}, {"image": "images/travel_guide_007_0.jpg"}]}

`required_images` is null, or not there, where a document may have as many pictures as it likes (one at least); 0 for a
question, which needs none; 1 for a single picture. Besides: `length` (short, medium or long; by its words where nothing
is said) and `output`, a reference document in the same form as `input`."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.interleaved_outputs import read_parts
from weft.benchmarks.record_files import RecordRows, read_json_records
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Part, Sample, Text, Turn
from weft.untrusted import dict_or_empty

CATEGORIES: Mapping[str, tuple[int, int]] = {  # prompts of words alone, and with pictures, in the paper (Table 1)
    "Encyclopedic Knowledge": (16, 19),
    "News Media": (16, 19),
    "Travel Guide": (17, 19),
    "Daily Life": (16, 19),
    "Food Cooking": (16, 19),
    "Education Tutorial": (17, 19),
    "Art Creation": (16, 19),
    "Fashion Beauty": (17, 19),
    "Media Entertainment": (16, 18),
    "Product Marketing": (16, 19),
    "Academic Research": (17, 18),
    "Document Guides": (17, 19),
    "Social Community": (15, 14),
    "Reasoning": (16, 16),
    "Multi-language": (28, 0),
}
COUNTED = 122  # prompts of the paper that say how many pictures
FILES = ("weaverbench.jsonl", "weaverbench.json", "prompts.jsonl", "prompts.json")
LENGTHS = ("short", "medium", "long")
# words up to which a prompt is called so; the paper's examples have about 20, 85 and 140
SHORT = 40
MEDIUM = 110
TEXT_INPUT = "text"
IMAGE_INPUT = "image+text"
EXACT = "exact"
FREE = "free"
NONE = "none"
KNOWN = ("id", "category", "input", "required_images", "length", "output")
MOST_PICTURES = 100
OWN = "own prompts"


class WeaverBenchGold(Struct, frozen=True):
    """What is due. `required` pictures exactly; None: one at least."""

    required: int | None
    category: str

    @property
    def wants_several_images(self) -> bool:
        """Whether separate pictures were asked for."""
        return self.required is not None and self.required > 1

    @property
    def kind(self) -> str:
        return {None: "document, free", 0: "question", 1: "picture"}.get(self.required, "document, exact")

    def is_met(self, pictures: int) -> bool:
        if self.required is None:
            return pictures > 0
        return pictures == self.required

    @property
    def expected_count(self) -> str:
        if self.required is None:
            return "one at least"
        return f"exactly {self.required}"


def canonical_group(axis: str, name: str) -> str:
    said = name.strip()
    if axis == "category":
        plain = {_plain(one): one for one in CATEGORIES}
        return plain.get(_plain(said), said)
    other = {
        "text-only": TEXT_INPUT,
        "words": TEXT_INPUT,
        "text only": TEXT_INPUT,
        "image": IMAGE_INPUT,
        "images": IMAGE_INPUT,
        "image-text": IMAGE_INPUT,
    }
    if axis == "input":
        return other.get(said.lower(), said.lower())
    return said.lower()


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def load(data: Path, blobs: Blobs) -> Dataset:
    file = find_file(data)
    rows = read_json_records(file)
    found = WeaverBenchRecords(file, file.parent, blobs).dataset(OWN, rows)
    if found.name == OWN and is_official(rows):
        return replace(found, name="weaverbench")
    return found


def find_file(data: Path) -> Path:
    if data.is_file():
        return data
    if not data.is_dir():
        raise UserError(f"there is no folder {data}; `weft data new weaverbench {data}` makes one to fill in")
    there = [data / name for name in FILES if (data / name).is_file()]
    if not there:
        raise UserError(
            f"{data} has none of {', '.join(FILES)}; `weft data new weaverbench DIR` makes a folder to fill in"
        )
    if len(there) > 1:
        raise UserError(f"{data} has both {there[0].name} and {there[1].name}: name the one that is meant")
    return there[0]


def is_official(rows: RecordRows) -> bool:
    """Whether there are as many prompts of each kind as in the paper. Its own are not public, so nothing else tells
    them apart."""
    due = {
        (name, kind): count
        for name, both in CATEGORIES.items()
        for kind, count in zip((TEXT_INPUT, IMAGE_INPUT), both, strict=True)
        if count
    }
    if rows.count != sum(due.values()):
        return False
    found = [_decoded(row) for row in rows]
    counts = Counter(
        (canonical_group("category", str(one.get("category"))), _kind_of(one.get("input"))) for one in found
    )
    return counts == due and sum(bool(one.get("required_images")) for one in found) == COUNTED


def _decoded(row: bytes) -> dict[str, Any]:
    try:
        return dict_or_empty(msgspec.json.decode(row))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def _kind_of(parts: Any) -> str:
    some = cast(list[Any], parts) if isinstance(parts, list) else []
    if any(dict_or_empty(part).get("image") for part in some):
        return IMAGE_INPUT
    return TEXT_INPUT


class WeaverBenchRecords(Records):
    def record_label(self, at: int, record: Any) -> str:
        own = dict_or_empty(record).get("id")
        return f"record {at}" + (f" ({own[:40]})" if isinstance(own, str) and own else "")

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        ask = read_parts(self, name, record, "input")
        words = " ".join(part.text for part in ask if isinstance(part, Text))
        if not words.strip():
            self.fail(name, "input", "has no text: say what is asked for")
        category = self._category(name, record)
        goal = WeaverBenchGold(self._required(name, record), category)
        if record.get("output") is not None:
            truth = read_parts(self, name, record, "output")
        else:
            truth = ()
        shown = sum(isinstance(part, Image) for part in truth)
        if truth and not goal.is_met(shown):
            self.report_problem("warning", name, "output", f"has {shown} pictures where {goal.expected_count} is due")
        self._unknown(name, record)
        own = self._id(name, record, ask)
        groups = {
            "category": category,
            "input": IMAGE_INPUT if any(isinstance(part, Image) for part in ask) else TEXT_INPUT,
            "length": self._length(name, record, words),
            "count": FREE if goal.required is None else EXACT if goal.required else NONE,
        }
        return Sample(own, (Turn(0, ask, "interleaved", truth, None, f"{own}.json", goal),), (), groups)

    def _unknown(self, name: str, record: Mapping[str, Any]) -> None:
        for field in record:
            near = (
                get_close_matches(field.lower(), [one for one in KNOWN if one not in record], 1, 0.7)
                if field not in KNOWN
                else []
            )
            if near:
                self.report_problem("warning", name, field, f"is no field that is known here; is {near[0]} meant?")

    def _category(self, name: str, record: Mapping[str, Any]) -> str:
        said = self.text(name, record, "category").strip()
        found = canonical_group("category", said)
        if found not in CATEGORIES:
            near = get_close_matches(said, CATEGORIES, 1, 0.6)
            if near:
                hint = f"; is {near[0]} meant?"
            else:
                hint = ""
            self.report_problem("warning", name, "category", f"{said[:60]!r} is none of WeaverBench's fifteen{hint}")
        return found

    def _required(self, name: str, record: Mapping[str, Any]) -> int | None:
        found = record.get("required_images")
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MOST_PICTURES:
            self.fail(
                name,
                "required_images",
                f"must be a whole number from 0 to {MOST_PICTURES}, or null for as many as it likes",
            )
        return found

    def _length(self, name: str, record: Mapping[str, Any], words: str) -> str:
        said = self.optional_text(name, record, "length").strip().lower()
        if said and said not in LENGTHS:
            self.fail(name, "length", f"{said[:40]!r} is none of {', '.join(LENGTHS)}")
        count = len(words.split())
        return said or ("short" if count <= SHORT else "medium" if count <= MEDIUM else "long")

    def _id(self, name: str, record: Mapping[str, Any], ask: Sequence[Part]) -> str:
        own = self.optional_text(name, record, "id").strip()
        if own and (len(own) > 120 or set(own) & set("/\\~\0") or own.startswith(".")):
            self.fail(
                name, "id", "must be text without slashes and `~`, of at most 120 characters, and not begin with a dot"
            )
        return own or hashlib.sha256(msgspec.json.encode(ask)).hexdigest()[:12]
