"""WebDataset: tar files of so many dialogues, each as `000123.json` and its images `000123.1.png`. No time, no owner:
the same data are the same bytes."""

import io
import itertools
import tarfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from weft.building.draft import Draft, Row
from weft.building.layouts.weave import EXTENSIONS, iterate_kept, to_record
from weft.store.blobs import Blobs

SHARD_ROWS = 1000


def write_webdataset(folder: Path, rows: Iterable[Row], blobs: Blobs) -> int:
    """Write the kept rows as `shard-00000.tar` and so on, one image at a time in memory. Return how many."""
    kept = iterate_kept(rows)
    count = 0
    first = next(kept, None)
    while first is not None:
        name = f"shard-{count // SHARD_ROWS:05d}.tar"
        with tarfile.open(folder / name, "w", format=tarfile.USTAR_FORMAT) as tar:
            for row, draft in itertools.islice(itertools.chain([first], kept), SHARD_ROWS):
                _add_dialogue(tar, row, draft, blobs)
                count += 1
        first = next(kept, None)
    return count


def _add_dialogue(tar: tarfile.TarFile, row: Row, draft: Draft, blobs: Blobs) -> None:
    key = f"{row.number + 1:08d}"
    names: list[str] = []
    for number, image in enumerate(draft.images, start=1):
        names.append(f"{key}.{number}.{EXTENSIONS.get(image.media_type, 'img')}")
        _add(tar, names[-1], blobs.read(image))
    _add(tar, f"{key}.json", msgspec.json.encode(to_record(row.number, draft, names)))


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o644
    tar.addfile(entry, io.BytesIO(data))
