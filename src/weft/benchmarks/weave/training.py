"""WEAVE-100k, WEAVE's training data: where its files are, and what the paper counts in them.

Its own files were not at hand when this was written. A folder is read in the shape of the test split (`idx`, `domain`,
`images`, `chats`), with domains and types named as in the paper's Table 5; other spellings of either are accepted, and
whatever is not understood is named. A dataset built in WEAVE's layout is read in the same way.
"""

import re
from pathlib import Path

from weft.benchmarks.data_format import DataFormat
from weft.benchmarks.joined_rows import JoinedRows
from weft.benchmarks.record_files import ARRAY, RecordRows, read_json_array, read_json_lines
from weft.benchmarks.weave.protocol import WeavePresentation
from weft.benchmarks.weave.statistics import WeaveStatistics
from weft.benchmarks.weave.training_names import TABLE_5, published_groups
from weft.benchmarks.weave.training_records import TrainingRecords
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset
from weft.untrusted import BYTE_ORDER_MARK

NAME = "weave-100k"
SUBFOLDERS = ("", "train", "test", "data")  # of the folder that a user names, where records may be
RECORD_SUFFIXES = (".json", ".jsonl")
PEEK_BYTES = 1_000_000  # of a file that are searched for a dialogue
MAX_LISTED = 20  # names of files in an error
DIALOGUE_FIELD = re.compile(rb'"(?:chats|conversations|messages)"\s*:')
PUBLISHED = {
    "dialogues": 100_750,
    "turns / dialogue": 3.79,
    "images": 505_186,
    "images / dialogue": 5.01,
    "most images": 8,
    "≥4 images": 100_584,
    "≥5 images": 60_361,
    "≥6 images": 31_571,
    "question characters": 195.49,
}


def load(data: Path, blobs: Blobs) -> Dataset:
    """Open a folder, or one file, of training dialogues, streamed."""
    files = find_files(data)
    root = data if data.is_dir() else data.parent
    rows = JoinedRows([_open(file) for file in files], [file.name for file in files])
    return TrainingRecords(files, root, rows, blobs).dataset(NAME, rows)


def find_files(data: Path) -> list[Path]:
    """Return the files with dialogues: the one that is named, or those of a folder. Raises UserError for none."""
    if data.is_file():
        return [data]
    if not data.is_dir():
        raise UserError(f"there is no {data}; `weft data get {NAME} --out {data}` downloads the training data")
    for subfolder in SUBFOLDERS:
        files = [file for file in _list_json(data / subfolder) if _has_dialogues(file)]
        if files:
            return files
    names = sorted(path.name for path in data.iterdir())
    listed = ", ".join(names[:MAX_LISTED]) or "nothing"
    if len(names) > MAX_LISTED:
        listed += f", and {len(names) - MAX_LISTED} more"
    raise UserError(
        f"{data} has no JSON file of dialogues, in it or in {', '.join(filter(None, SUBFOLDERS))}: a list of records "
        f"with `images` and `chats`, or one record a line, is expected; the folder has {listed}"
    )


def _list_json(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in sorted(folder.iterdir()) if path.suffix in RECORD_SUFFIXES and path.is_file()]


def _has_dialogues(file: Path) -> bool:
    """Whether a record near the beginning of the file has a dialogue; a card or a sidecar has none."""
    return DIALOGUE_FIELD.search(_peek(file)) is not None


def _peek(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(PEEK_BYTES).removeprefix(BYTE_ORDER_MARK)


def _open(file: Path) -> RecordRows:
    if ARRAY.match(_peek(file)):
        return read_json_array(file)
    return read_json_lines(file)


WEAVE_100K = DataFormat(
    name=NAME,
    load=load,
    axes=("domain", "type"),
    presentation=WeavePresentation(title="WEAVE-100k", axis_names={"domain": tuple(TABLE_5)}),
    statistics=WeaveStatistics(
        sequence_axes=("domain",),
        published={"WEAVE-100k (paper, Figure 4)": PUBLISHED},
        published_groups=dict(published_groups()),
    ),
)
