"""Files of records, read record by record: one JSON array, or one JSON object a line.

A file is read once when it is opened: its JSON is validated, its digest computed, and each record's position stored.
After that records are read one by one, as often as needed, and none stays in memory: memory does not grow with the
file. A file that changes meanwhile is an error, never a mixture of two datasets.
"""

import hashlib
import json
import os
import re
import stat
from array import array
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from weft.errors import UserError
from weft.untrusted import parse_json, read_bytes_file

# the end of a JSON string that names an image file
IMAGE_SUFFIX = re.compile(rb'\.(?:png|jpe?g|webp|gif|bmp|tiff?)"', re.IGNORECASE)
MAX_NAME_LENGTH = 1000
FINGERPRINT_BYTES = 4096  # bytes at either end of an image that its fingerprint covers
LINE = re.compile(rb"[^\r\n]+")
ARRAY = re.compile(rb"[ \t\r\n]*\[")


class FileChangedError(UserError):
    """A file is not what it was when its digest was taken."""


def read_stamp(path: Path) -> tuple[int, int]:
    """Return a file's size and modification time, which change when it is written."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def check_stamp(path: Path, stamp: tuple[int, int]) -> None:
    """Raise FileChangedError if a file was written since: records of two versions are never mixed."""
    try:
        same = read_stamp(path) == stamp
    except FileNotFoundError:
        same = False
    if not same:
        raise FileChangedError(f"{path} has changed since it was opened: run the same command again")


class RecordRows:
    """Records that can be iterated repeatedly.

    `digest` covers all their bytes, `count` is their number, `images` are the image files that they name.
    """

    def __init__(self, digest: str, count: int, images: Iterable[str] = ()) -> None:
        self.digest = digest
        self.count = count
        self.images = frozenset(images)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{type(self).__name__} has no __iter__")


class ListRows(RecordRows):
    """Records that are in memory already."""

    def __init__(self, records: Iterable[Any]) -> None:
        self._records = list(records)
        data = msgspec.json.encode(self._records, enc_hook=str)
        super().__init__(hashlib.sha256(data).hexdigest(), len(self._records), find_image_names(data))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._records)


class FileRows(RecordRows):
    """Records of one file, as JSON bytes. `spans` are the start and end of each record in `data`."""

    def __init__(self, path: Path, data: bytes, spans: Iterable[tuple[int, int]]) -> None:
        self.path = path
        self._positions = array("Q")  # start and length of each record in turn
        for start, end in spans:
            self._positions.extend((start, end - start))
        self._stamp = read_stamp(path)
        self._skipped = self._stamp[0] - len(data)  # `data` has no byte order mark, the file may have one
        super().__init__(hashlib.sha256(data).hexdigest(), len(self._positions) // 2, find_image_names(data))

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            for index in range(0, len(self._positions), 2):
                file.seek(self._skipped + self._positions[index])
                record = file.read(self._positions[index + 1])
                check_stamp(self.path, self._stamp)
                yield record
            check_stamp(self.path, self._stamp)


def read_json_array(path: Path) -> FileRows:
    """Open a file that is one JSON array of records."""
    data = read_bytes_file(path)
    if ARRAY.match(data) is None:
        raise UserError(f"{path}: must be one JSON array of records, not {type(parse_json(data, path)).__name__}")
    return FileRows(path, data, _find_elements(data, path))


def read_json_lines(path: Path) -> FileRows:
    """Open a file with one JSON object per line. Blank lines are skipped; a line is parsed only when it is read."""
    data = read_bytes_file(path)
    return FileRows(path, data, (match.span() for match in LINE.finditer(data) if match.group().strip()))


def read_json_records(path: Path) -> FileRows:
    """Open a file that is an array, one object, or one object per line, whatever its suffix says."""
    data = read_bytes_file(path)
    first_line = data[:MAX_NAME_LENGTH].lstrip()[:200].split(b"\n")[0].strip()
    if first_line.startswith(b"[") and not (path.suffix == ".jsonl" and first_line.endswith(b"]")):
        return FileRows(path, data, _find_elements(data, path))
    if path.suffix == ".json" and not data.isspace() and data:
        parse_json(data, path)
        return FileRows(path, data, [(0, len(data))])
    return read_json_lines(path)


def _find_elements(data: bytes, path: Path) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each element of an array; only white space and commas lie between elements."""
    elements: list[msgspec.Raw] = parse_json(data, path, list[msgspec.Raw])
    end = data.index(b"[") + 1
    for element in elements:
        text = bytes(element)
        start = data.index(text, end)
        end = start + len(text)
        yield start, end


def find_image_names(data: bytes) -> set[str]:
    """Return the strings in JSON that end like the name of an image file."""
    names: set[bytes] = set()
    for match in IMAGE_SUFFIX.finditer(data):
        start = data.rfind(b'"', max(0, match.start() - MAX_NAME_LENGTH), match.start())
        names.add(data[start + 1 : match.end() - 1])
    return set(map(_decode_name, names))


def _decode_name(name: bytes) -> str:
    try:
        return json.loads(b'"' + name + b'"')
    except ValueError:
        return name.decode("utf-8", "replace")


def digest_dataset(digests: Iterable[str], images: Sequence[tuple[str, Path]]) -> str:
    """Compute the digest of a dataset from its files' digests and the images that they name, as (name, path).

    An image counts by its name, its size and the bytes at both ends. This digest identifies datasets only: images are
    cached under a digest of all their bytes.
    """
    with ThreadPoolExecutor(4) as pool:
        fingerprints = list(pool.map(_fingerprint, (path for _, path in images), chunksize=64))
    digest = hashlib.sha256()
    for file_digest in digests:
        digest.update(f"{file_digest}\n".encode())
    for (name, _), fingerprint in sorted(zip(images, fingerprints, strict=True)):
        digest.update(name.encode("utf-8", "replace") + b"\0" + fingerprint + b"\n")
    return digest.hexdigest()


def _fingerprint(path: Path) -> bytes:
    """Return an image file's size and a digest of its ends, or why there is none. Never blocks on a special file."""
    if ".." in PurePosixPath(path).parts:
        return b"outside"
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b"missing"
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return b"no file"
        head = os.pread(file, FINGERPRINT_BYTES, 0)
        tail = os.pread(file, FINGERPRINT_BYTES, max(0, status.st_size - FINGERPRINT_BYTES))
        return b"%d %s" % (status.st_size, hashlib.sha256(head + tail).digest())
    finally:
        os.close(file)


def digest_file(path: Path) -> str:
    """Compute the digest of all bytes of a file, which may be large. Raises UserError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
