"""WebDataset: tar files of so many dialogues, each as `000123.json` and its images `000123.1.png`. No time, no owner:
the same data are the same bytes. A test part has shards of its own, `test-00000.tar`."""

import io
import tarfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from weft.building.draft import Draft, Row
from weft.building.layouts.weave import EXTENSIONS, iterate_kept, to_record
from weft.building.provenance import Describe
from weft.store.blobs import Blobs

SHARD_ROWS = 1000
PREFIXES = {"train": "shard", "test": "test"}


def write_webdataset(folder: Path, rows: Iterable[Row], blobs: Blobs, describe: Describe) -> int:
    """Write the kept rows as `shard-00000.tar` and so on, one image at a time in memory. Return how many."""
    counts: Counter[str] = Counter()
    open_tars: dict[str, tarfile.TarFile] = {}
    try:
        for row, draft in iterate_kept(rows):
            split = draft.split
            if counts[split] % SHARD_ROWS == 0:
                if split in open_tars:
                    open_tars[split].close()
                name = f"{PREFIXES[split]}-{counts[split] // SHARD_ROWS:05d}.tar"
                open_tars[split] = tarfile.open(folder / name, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
            _add_dialogue(open_tars[split], row, draft, blobs, describe)
            counts[split] += 1
    finally:
        for tar in open_tars.values():
            tar.close()
    return counts.total()


def _add_dialogue(tar: tarfile.TarFile, row: Row, draft: Draft, blobs: Blobs, describe: Describe) -> None:
    key = f"{row.number + 1:08d}"
    names: list[str] = []
    for number, image in enumerate(draft.images, start=1):
        names.append(f"{key}.{number}.{EXTENSIONS.get(image.media_type, 'img')}")
        _add(tar, names[-1], blobs.read(image))
    record = {**to_record(row.number, draft, names), "provenance": describe(row)}
    _add(tar, f"{key}.json", msgspec.json.encode(record))


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o644
    tar.addfile(entry, io.BytesIO(data))
