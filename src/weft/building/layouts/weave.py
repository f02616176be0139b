"""WEAVE's own files: `test.json`, one array of records, and `imgs/`, from which `weft run weave` and `weft data` read.

A build with a test part has the other records in `train.json`, and those of the test part in `test/test.json` with
`test/imgs/`: `weft run weave` then reads the test part, `weft data stats weave-100k` the other one.

Images are hard links to the image store where the file system has them, so that they take no space a second time.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from weft.building.draft import Draft, Row
from weft.building.provenance import Describe
from weft.store.blobs import Blobs
from weft.types import Image

RECORDS = "test.json"
TRAINING_RECORDS = "train.json"  # of a build that has a test part
PROVENANCE = "provenance.jsonl"  # where each dialogue's images and sentences come from, by `idx`
TEST_FOLDER = "test"
IMAGES = "imgs"
PER_FOLDER = 1000  # dialogues whose images share a folder
EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif", "image/bmp": "bmp"}


def write_weave(folder: Path, rows: Iterable[Row], blobs: Blobs, describe: Describe) -> int:
    """Write the kept rows into an empty folder, one at a time in memory. Return how many."""
    count = 0
    with ExitStack() as open_files:
        provenance = open_files.enter_context((folder / PROVENANCE).open("wb"))
        main = open_files.enter_context(_RecordFile(folder / RECORDS))
        test: _RecordFile | None = None
        for row, draft in iterate_kept(rows):
            target, root = main, folder
            if draft.split == "test":
                root = folder / TEST_FOLDER
                if test is None:
                    root.mkdir()
                    test = open_files.enter_context(_RecordFile(root / RECORDS))
                target = test
            paths = [image_path(row.number, number, image) for number, image in enumerate(draft.images, start=1)]
            for path, image in zip(paths, draft.images, strict=True):
                link_image(blobs, image, root / path)
            target.add(to_record(row.number, draft, paths))
            provenance.write(msgspec.json.encode(describe(row)) + b"\n")
            count += 1
    if test is not None:
        (folder / RECORDS).rename(folder / TRAINING_RECORDS)
    return count


class _RecordFile:
    """One JSON array, written a record at a time."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._count = 0

    def __enter__(self) -> "_RecordFile":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.write(b"\n]\n" if self._count else b"[]\n")
        self._file.close()

    def add(self, record: dict[str, Any]) -> None:
        self._file.write(b",\n" if self._count else b"[\n")
        self._file.write(msgspec.json.encode(record))
        self._count += 1


def iterate_kept(rows: Iterable[Row]) -> Iterator[tuple[Row, Draft]]:
    """Yield the rows that were kept, with their dialogues."""
    for row in rows:
        if row.outcome == "kept" and row.draft is not None:
            yield row, row.draft


def image_path(row: int, number: int, image: Image) -> str:
    """Return where an image of a dialogue is, relative to the records."""
    extension = EXTENSIONS.get(image.media_type, "img")
    return f"{IMAGES}/{row // PER_FOLDER:04d}/{row + 1}_{number}.{extension}"


def to_record(number: int, draft: Draft, paths: list[str]) -> dict[str, Any]:
    """Return a dialogue as a record of WEAVE's files. `idx` counts from 1."""
    chats: list[dict[str, Any]] = []
    for turn in draft.turns:
        chats.append({"role": "user", "type": "text", "content": turn.text})
        if turn.makes is None:
            reply: dict[str, Any] = {"type": "text", "content": turn.answer, "key_point": None}
        else:
            reply = {"type": "image", "content": f"Image #{turn.makes}", "key_point": dict(turn.key_points)}
        chats.append({"role": "assistant", **reply})
    record: dict[str, Any] = {"idx": number + 1, "domain": draft.domain}
    if draft.subdomain:
        record["sub_domain"] = draft.subdomain
    return {**record, "images": paths, "chats": chats}


def link_image(blobs: Blobs, image: Image, target: Path) -> None:
    """Put an image of the store at a path: as a hard link, or as a copy where there are none.

    Raises ImageError for an image that is not in the store, or not as it was.
    """
    data = blobs.read(image)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(blobs.path(image.digest), target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        target.write_bytes(data)
