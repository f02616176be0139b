"""WeaverBench's prompts as Samples. The paper's own files are not public; this neutral format follows from its text.

    weaverbench.jsonl (one object a line), or weaverbench.json (a list), with its images in the same folder
    {"id": "travel_guide_007", "category": "Travel Guide", "required_images": 3,
     "input": [{"text": "Write ... using exactly 3 images."}, {"image": "images/travel_guide_007_0.jpg"}]}

`required_images` is null or absent where a document may have any number of images (at least one); 0 for a question,
which needs none; 1 for a single image. Optional fields: `length` (short, medium or long; by the number of words where
it is absent) and `output`, a reference document in the same form as `input`.
"""

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

CATEGORIES: Mapping[str, tuple[int, int]] = {  # prompts of text only, and with images (paper, Table 1)
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
COUNTED_PROMPTS = 122  # of the paper's prompts say how many images they want
FILES = ("weaverbench.jsonl", "weaverbench.json", "prompts.jsonl", "prompts.json")
LENGTHS = ("short", "medium", "long")
# Limits in words. The paper's examples have about 20, 85 and 140 words.
MAX_SHORT_WORDS = 40
MAX_MEDIUM_WORDS = 110
TEXT_INPUT = "text"
IMAGE_INPUT = "image+text"
INPUT_ALIASES = {
    "text-only": TEXT_INPUT,
    "words": TEXT_INPUT,
    "text only": TEXT_INPUT,
    "image": IMAGE_INPUT,
    "images": IMAGE_INPUT,
    "image-text": IMAGE_INPUT,
}
EXACT = "exact"
FREE = "free"
NONE = "none"
FIELDS = ("id", "category", "input", "required_images", "length", "output")
MAX_REQUIRED_IMAGES = 100
MAX_ID_LENGTH = 120
OWN_DATA = "own prompts"  # the dataset's name where it is not WeaverBench's


class WeaverBenchGold(Struct, frozen=True):
    """The expected output of a prompt."""

    required: int | None  # exact number of images; None: at least one
    category: str

    @property
    def wants_several_images(self) -> bool:
        return self.required is not None and self.required > 1

    @property
    def allows_several_images(self) -> bool:
        return self.required is None or self.required > 1

    def is_met(self, images: int) -> bool:
        """Whether a document with so many images has the expected number."""
        if self.required is None:
            return images > 0
        return images == self.required

    @property
    def expected_count(self) -> str:
        if self.required is None:
            return "at least one"
        return f"exactly {self.required}"


def canonical_group(axis: str, name: str) -> str:
    """Return the name of a group as samples have it, however a user spells it."""
    name = name.strip()
    if axis == "category":
        for category in CATEGORIES:
            if _squeeze(category) == _squeeze(name):
                return category
        return name
    if axis == "input":
        return INPUT_ALIASES.get(name.lower(), name.lower())
    return name.lower()


def _squeeze(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset in a folder or file; it is called `weaverbench` if its counts are those of the paper."""
    file = find_file(data)
    rows = read_json_records(file)
    dataset = WeaverBenchRecords(file, file.parent, blobs).dataset(OWN_DATA, rows)
    if dataset.name == OWN_DATA and is_official(rows):
        return replace(dataset, name="weaverbench")
    return dataset


def find_file(data: Path) -> Path:
    """Return the file of prompts. Raises UserError if there is none, or more than one."""
    if data.is_file():
        return data
    if not data.is_dir():
        raise UserError(f"there is no folder {data}; `weft data new weaverbench {data}` makes one to fill in")
    files = [data / name for name in FILES if (data / name).is_file()]
    if not files:
        raise UserError(
            f"{data} has none of {', '.join(FILES)}; `weft data new weaverbench DIR` makes a folder to fill in"
        )
    if len(files) > 1:
        raise UserError(f"{data} has both {files[0].name} and {files[1].name}: name the one that is meant")
    return files[0]


def is_official(rows: RecordRows) -> bool:
    """Whether there are as many prompts of each kind as in the paper. Its own are not public, so nothing else tells
    them apart."""
    expected: dict[tuple[str, str], int] = {}
    for category, (text_only, with_images) in CATEGORIES.items():
        expected[category, TEXT_INPUT] = text_only
        if with_images:
            expected[category, IMAGE_INPUT] = with_images
    if rows.count != sum(expected.values()):
        return False
    counts: Counter[tuple[str, str]] = Counter()
    counted_prompts = 0
    for row in rows:
        record = _decode(row)
        category = canonical_group("category", str(record.get("category")))
        counts[category, _find_input_kind(record.get("input"))] += 1
        counted_prompts += bool(record.get("required_images"))
    return counts == expected and counted_prompts == COUNTED_PROMPTS


def _decode(row: bytes) -> dict[str, Any]:
    try:
        return dict_or_empty(msgspec.json.decode(row))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def _find_input_kind(parts: Any) -> str:
    if isinstance(parts, list):
        for part in cast(list[Any], parts):
            if dict_or_empty(part).get("image"):
                return IMAGE_INPUT
    return TEXT_INPUT


class WeaverBenchRecords(Records):
    """Reads one record: a prompt of text and images, and perhaps a reference document."""

    def record_label(self, at: int, record: Any) -> str:
        record_id = dict_or_empty(record).get("id")
        if isinstance(record_id, str) and record_id:
            return f"record {at} ({record_id[:40]})"
        return f"record {at}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        prompt = read_parts(self, name, record, "input")
        text = " ".join(part.text for part in prompt if isinstance(part, Text))
        if not text.strip():
            self.fail(name, "input", "has no text: say what is asked for")
        category = self._read_category(name, record)
        gold = WeaverBenchGold(self._read_required_images(name, record), category)
        reference: tuple[Part, ...] = ()
        if record.get("output") is not None:
            reference = read_parts(self, name, record, "output")
        images = sum(isinstance(part, Image) for part in reference)
        if reference and not gold.is_met(images):
            message = f"has {images} images where {gold.expected_count} is expected"
            self.report_problem("warning", name, "output", message)
        self._check_field_names(name, record)
        sample_id = self._read_id(name, record, prompt)
        groups = {
            "category": category,
            "input": TEXT_INPUT,
            "length": self._read_length(name, record, text),
            "count": EXACT,
        }
        if any(isinstance(part, Image) for part in prompt):
            groups["input"] = IMAGE_INPUT
        if gold.required is None:
            groups["count"] = FREE
        elif gold.required == 0:
            groups["count"] = NONE
        turn = Turn(0, prompt, "interleaved", reference, None, f"{sample_id}.json", gold)
        return Sample(sample_id, (turn,), (), groups)

    def _check_field_names(self, name: str, record: Mapping[str, Any]) -> None:
        """Warn of a field whose name is close to one that is missing."""
        missing = [field for field in FIELDS if field not in record]
        for field in record:
            if field in FIELDS:
                continue
            matches = get_close_matches(field.lower(), missing, 1, 0.7)
            if matches:
                self.report_problem("warning", name, field, f"is an unknown field; did you mean {matches[0]}?")

    def _read_category(self, name: str, record: Mapping[str, Any]) -> str:
        text = self.text(name, record, "category").strip()
        category = canonical_group("category", text)
        if category not in CATEGORIES:
            hint = ""
            matches = get_close_matches(text, CATEGORIES, 1, 0.6)
            if matches:
                hint = f"; did you mean {matches[0]}?"
            self.report_problem("warning", name, "category", f"{text[:60]!r} is none of WeaverBench's fifteen{hint}")
        return category

    def _read_required_images(self, name: str, record: Mapping[str, Any]) -> int | None:
        count = record.get("required_images")
        if count is None:
            return None
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_REQUIRED_IMAGES:
            message = f"must be a whole number from 0 to {MAX_REQUIRED_IMAGES}, or null for any number"
            self.fail(name, "required_images", message)
        return count

    def _read_length(self, name: str, record: Mapping[str, Any], text: str) -> str:
        length = self.optional_text(name, record, "length").strip().lower()
        if length:
            if length not in LENGTHS:
                self.fail(name, "length", f"{length[:40]!r} is none of {', '.join(LENGTHS)}")
            return length
        words = len(text.split())
        if words <= MAX_SHORT_WORDS:
            return "short"
        if words <= MAX_MEDIUM_WORDS:
            return "medium"
        return "long"

    def _read_id(self, name: str, record: Mapping[str, Any], prompt: Sequence[Part]) -> str:
        """Return the record's own id, or a digest of its prompt."""
        record_id = self.optional_text(name, record, "id").strip()
        if not record_id:
            return hashlib.sha256(msgspec.json.encode(prompt)).hexdigest()[:12]
        if len(record_id) > MAX_ID_LENGTH or set(record_id) & set("/\\~\0") or record_id.startswith("."):
            self.fail(
                name, "id", "must be text without slashes and `~`, of at most 120 characters, and not begin with a dot"
            )
        return record_id
