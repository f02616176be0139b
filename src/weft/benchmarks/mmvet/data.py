"""MM-Vet's records as samples: one image, one question, and the right answer in words.

The authors' file is one object of records by id, `mm-vet.json`, with `images/` beside it; a list of records or a table
with a column `image` is read as well. In an answer `<AND>` stands between elements of which each is needed, `<OR>`
between elements of which one is enough.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.edits.files import EditSource, find_json_file, find_records
from weft.benchmarks.record_files import ListRows, RecordRows
from weft.benchmarks.table_records import TableRecords
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Sample, Text, Turn
from weft.untrusted import dict_or_empty, read_json_file

CAPABILITIES = {
    "rec": "recognition",
    "ocr": "OCR",
    "know": "knowledge",
    "gen": "language generation",
    "spat": "spatial awareness",
    "math": "math",
}
JOINED = " + "  # between the capabilities of a sample
AND = "<AND>"
OR = "<OR>"
PUBLISHED_RECORDS = 218
OWN_DATA = "own questions"  # the dataset's name where it is not MM-Vet
STEMS = ("mm-vet", "mmvet", "mm_vet")
IMAGES = "images"
SOURCE = EditSource(
    STEMS,
    ("image", "question", "answer", "capability"),
    ("question_id", "id"),
    "unpack mm-vet.zip of the repository yuweihao/MM-Vet, after reading its licence there (CC BY-NC 4.0), and give "
    "the folder with mm-vet.json and images/",
)


class AnswerGold(Struct, frozen=True):
    """What is known of a question besides its words."""

    answer: str  # with <AND> and <OR>
    capabilities: tuple[str, ...]


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset; it is called `mmvet` if it has as many records as the published one."""
    if not data.exists():
        raise UserError(f"there is no {data}: {SOURCE.help}")
    file = find_json_file(data, STEMS)
    rows: RecordRows
    if file is not None:
        rows = ListRows(_list_records(file))
    else:
        files = find_records(data, SOURCE)
        file, rows = files.file, files.rows
    dataset = AnswerRecords(file, file.parent, blobs).dataset(OWN_DATA, rows)
    if dataset.name == OWN_DATA and dataset.records == PUBLISHED_RECORDS:
        return replace(dataset, name="mmvet")
    return dataset


def _list_records(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSON file, each with its id and the path of its image."""
    content: Any = read_json_file(file)
    if isinstance(content, list):
        yield from map(dict_or_empty, cast(list[Any], content))
        return
    for record_id, record in dict_or_empty(content).items():
        fields = dict_or_empty(record)
        image = fields.get("imagename")
        path = f"{IMAGES}/{image}" if isinstance(image, str) else image
        yield {"image": path, **fields, "id": record_id}


class AnswerRecords(TableRecords):
    """Reads one record."""

    id_field = "id"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        if "id" not in record and "question_id" in record:
            record = {**record, "id": record["question_id"]}
        sample_id = self.read_id(name, record)
        question = self.text(name, record, "question")
        answer = self.text(name, record, "answer")
        capabilities = self._read_capabilities(name, record)
        image = self.image(name, record, "image")
        gold = AnswerGold(answer, capabilities)
        turn = Turn(0, (image, Text(question)), "text", reference=(Text(answer),), file=sample_id, gold=gold)
        return Sample(sample_id, (turn,), groups={"capabilities": JOINED.join(capabilities)})

    def _read_capabilities(self, name: str, record: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the capabilities in the order of the paper; a table has them as text with commas."""
        value: Any = record.get("capability")
        entries = value.split(",") if isinstance(value, str) else value
        if not isinstance(entries, list) or not entries:
            self.fail(name, "capability", f"must be a list of {', '.join(CAPABILITIES)}")
        names = {str(entry).strip() for entry in cast(list[Any], entries)}
        unknown = sorted(names - set(CAPABILITIES))
        if unknown:
            self.fail(name, "capability", f"is {unknown[0][:40]!r}; there is {', '.join(CAPABILITIES)}")
        return tuple(capability for capability in CAPABILITIES if capability in names)


def list_capabilities(groups: Mapping[str, str]) -> list[str]:
    """Return the capabilities of a sample, from its groups."""
    return groups["capabilities"].split(JOINED)


def list_elements(answer: str) -> list[list[str]]:
    """Return the elements of an answer that are all needed, each with its alternatives."""
    return [[one.strip() for one in element.split(OR)] for element in answer.split(AND)]
