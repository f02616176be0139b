"""ImgEdit-Bench's files as samples: JSON objects of items by key, as the repository and `Benchmark.tar` have them.

    basic        items with `edit_type`        Basic/basic_edit.json
    uge          items with `id` and `prompt`  UGE/UGE_edit.json
    multi-turn   items with `turn1`, ...       a file for each task

An item's `id` is the path of its image, below the JSON file's folder or any folder of the dataset.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.table_records import TableRecords
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Sample, Text, Turn
from weft.untrusted import dict_or_empty, read_json_file

TYPES = ("add", "adjust", "extract", "replace", "remove", "background", "style", "compose", "action")
BASIC = "basic"
UGE = "uge"
MULTI_TURN = "multi-turn"
SUITES = (BASIC, UGE, MULTI_TURN)
FOLDERS = {BASIC: "Basic", UGE: "UGE", MULTI_TURN: "Multiturn"}
PUBLISHED_BASIC = 737
OWN_DATA = "own edits"  # the dataset's name where it has not the published edits of the basic suite
MAX_TURNS = 9
MAX_DEPTH = 3  # folders below the dataset's in which files and images are looked for
MAX_FOLDERS = 500
OTHER_FILES = ("tabletop.json", "prompts.json", "result.json")
HELP = (
    "give the folder with basic_edit.json, UGE_edit.json or the multi-turn files, and the images of Benchmark.tar "
    "(sysuyy/ImgEdit on the Hugging Face hub, after reading its licence there)"
)


class ImgEditGold(Struct, frozen=True):
    """What is known of a request besides its words."""

    suite: str
    edit_type: str  # of the basic suite; else empty
    source: Image  # the image that the first request is about


class ItemFile(Struct, frozen=True):
    """A file of items, and what its items are."""

    path: Path
    suite: str
    task: str  # of a multi-turn file: its name, or that of its folder
    items: Mapping[str, Any]


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset; it is called `imgedit` if its basic suite has as many edits as the published one."""
    root = data.parent if data.is_file() else data
    files = find_files(data)
    folders = list_folders(root)
    records: list[dict[str, Any]] = []
    for file in files:
        place = _find_image_folder(file, root, folders)
        for key, item in file.items.items():
            fields = dict_or_empty(item)
            name = fields.get("id")
            image = (place / name).as_posix() if isinstance(name, str) else name
            own = {"key": key, "suite": file.suite, "task": file.task, "image": image}
            records.append({**fields, **own, "file": file.path.relative_to(root).as_posix()})
    dataset = ImgEditRecords(root / "edits", root, blobs).dataset(OWN_DATA, records)
    basic = sum(record["suite"] == BASIC for record in records)
    if dataset.name == OWN_DATA and basic == PUBLISHED_BASIC:
        return replace(dataset, name="imgedit")
    return dataset


def find_files(data: Path) -> list[ItemFile]:
    """Return the files of items in a folder, or the one that is given. Raises UserError if there are none."""
    if not data.exists():
        raise UserError(f"there is no {data}: {HELP}")
    paths = [data]
    if data.is_dir():
        paths = sorted(path for folder in list_folders(data) for path in folder.glob("*.json") if path.is_file())
    files: list[ItemFile] = []
    for path in paths:
        if path.name in OTHER_FILES:
            continue
        items = dict_or_empty(read_json_file(path))
        suite = _find_suite(items)
        if suite:
            task = path.parent.name if path.parent != data and suite == MULTI_TURN else path.stem
            files.append(ItemFile(path, suite, task, items))
    if not files:
        raise UserError(f"there are no edits in {data}: {HELP}")
    return files


def _find_suite(items: Mapping[str, Any]) -> str:
    """Return the suite of a file's items; empty if they are something else."""
    for item in items.values():
        fields = dict_or_empty(item)
        if "turn1" in fields:
            return MULTI_TURN
        if "edit_type" in fields:
            return BASIC
        if "id" in fields and "prompt" in fields:
            return UGE
    return ""


def list_folders(root: Path) -> list[Path]:
    """Return the folders of a dataset, its own first; hidden ones and links are left out."""
    folders = [root]
    level = [root]
    for _ in range(MAX_DEPTH):
        inner: list[Path] = []
        for folder in level:
            inner += sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
        level = [folder for folder in inner if not folder.name.startswith(".")]
        folders += level
        if len(folders) > MAX_FOLDERS:
            break
    return folders[:MAX_FOLDERS]


def _find_image_folder(file: ItemFile, root: Path, folders: Sequence[Path]) -> PurePosixPath:
    """Return the folder that an image's path begins at, relative to the dataset: the first one that has an image."""
    own = [folder for folder in folders if folder.is_relative_to(file.path.parent)]
    for name in _list_image_names(file):
        for folder in (*own, *folders):
            if (folder / name).is_file():
                return PurePosixPath(folder.relative_to(root).as_posix())
    return PurePosixPath(file.path.parent.relative_to(root).as_posix())


def _list_image_names(file: ItemFile) -> Iterator[str]:
    for item in file.items.values():
        name = dict_or_empty(item).get("id")
        if isinstance(name, str) and name and "\0" not in name and not name.startswith("/") and ".." not in name:
            yield name


class ImgEditRecords(TableRecords):
    """Reads one item."""

    id_field = "key"

    def record_label(self, at: int, record: Any) -> str:
        return f"{record['file']}: {record['key'][:80]}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        key = self.read_id(name, record)
        suite = record["suite"]
        source = self.image(name, record, "image")
        if suite == MULTI_TURN:
            return self._read_dialogue(name, record, key, source)
        edit_type = ""
        if suite == BASIC:
            edit_type = self.text(name, record, "edit_type")
            if edit_type not in TYPES:
                self.fail(name, "edit_type", f"is {edit_type[:40]!r}; there is {', '.join(TYPES)}")
        prompt = self.text(name, record, "prompt")
        gold = ImgEditGold(suite, edit_type, source)
        file = f"{FOLDERS[suite]}/{key}.png"
        turn = Turn(0, (source, Text(prompt)), "image", reference=(), file=file, gold=gold)
        return Sample(f"{suite}-{key}", (turn,), groups={"suite": suite, "type": edit_type or suite})

    def _read_dialogue(self, name: str, record: dict[str, Any], key: str, source: Image) -> Sample:
        """Read the requests `turn1`, `turn2`, ... as turns; the first comes with the image."""
        task = record["task"]
        turns: list[Turn] = []
        for number in range(1, MAX_TURNS + 1):
            prompt = self.optional_text(name, record, f"turn{number}")
            if not prompt.strip():
                break
            parts = (source, Text(prompt)) if number == 1 else (Text(prompt),)
            file = f"{FOLDERS[MULTI_TURN]}/{task}/{key}_turn{number}.png"
            gold = ImgEditGold(MULTI_TURN, "", source)
            turns.append(Turn(number - 1, parts, "image", reference=(), file=file, gold=gold))
        if not turns:
            self.fail(name, "turn1", "is missing or empty")
        return Sample(f"{MULTI_TURN}-{task}-{key}", tuple(turns), groups={"suite": MULTI_TURN, "type": task})
