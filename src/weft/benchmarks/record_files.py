"""Files of records, read record by record: one JSON array, or one JSON object a line.

A file is read once when it is opened: its JSON is proven as a whole, its digest taken, and where each record stands is
noted. After that records come one by one, as often as they are wanted, and none is kept: memory does not grow with the
file. A file that changes meanwhile is an error, never a mixture of two datasets."""

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

# how a text in JSON ends that names an image
IMAGE = re.compile(rb'\.(?:png|jpe?g|webp|gif|bmp|tiff?)"', re.IGNORECASE)
LONGEST_NAME = 1000
ENDS = 4096  # bytes at either end of an image that its fingerprint has
LINE = re.compile(rb"[^\r\n]+")
ARRAY = re.compile(rb"[ \t\r\n]*\[")


class FileChangedError(UserError):
    """A file is not what it was when its digest was taken."""


def read_stamp(path: Path) -> tuple[int, int]:
    """Its size, and when it was last written."""
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def check_stamp(path: Path, stamp: tuple[int, int]) -> None:
    """Raises Changed where a file was written since: a record of one version is never taken for one of another."""
    try:
        same = read_stamp(path) == stamp
    except FileNotFoundError:
        same = False
    if not same:
        raise FileChangedError(f"{path} has changed since it was opened: run the same command again")


class RecordRows:
    """Records that can be read again and again. `digest` is of all their bytes, `images` are the image files that they
    name."""

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
    """Records of one file, as bytes of JSON."""

    def __init__(self, path: Path, data: bytes, spans: Iterable[tuple[int, int]]) -> None:
        self.path = path
        self._marks = array("Q")
        for start, end in spans:
            self._marks.extend((start, end - start))
        self._stamp = read_stamp(path)
        self._skipped = self._stamp[0] - len(data)  # a byte order mark
        super().__init__(hashlib.sha256(data).hexdigest(), len(self._marks) // 2, find_image_names(data))

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            for at in range(0, len(self._marks), 2):
                file.seek(self._skipped + self._marks[at])
                record = file.read(self._marks[at + 1])
                check_stamp(self.path, self._stamp)
                yield record
            check_stamp(self.path, self._stamp)


def read_json_array(path: Path) -> FileRows:
    """A file that is one JSON array."""
    data = read_bytes_file(path)
    if ARRAY.match(data) is None:
        raise UserError(f"{path}: must be one JSON array of records, not {type(parse_json(data, path)).__name__}")
    return FileRows(path, data, _elements(data, path))


def read_json_lines(path: Path) -> FileRows:
    """A file with a JSON object a line; blank lines do not count. Whether a line is JSON shows when it is read."""
    data = read_bytes_file(path)
    return FileRows(path, data, (match.span() for match in LINE.finditer(data) if match.group().strip()))


def read_json_records(path: Path) -> FileRows:
    """An array, one object, or lines, whatever the file is called."""
    data = read_bytes_file(path)
    begins = data[:LONGEST_NAME].lstrip()[:200].split(b"\n")[0].strip()
    if begins.startswith(b"[") and not (path.suffix == ".jsonl" and begins.endswith(b"]")):
        return FileRows(path, data, _elements(data, path))
    if path.suffix == ".json" and not data.isspace() and data:
        parse_json(data, path)
        return FileRows(path, data, [(0, len(data))])
    return read_json_lines(path)


def _elements(data: bytes, path: Path) -> Iterator[tuple[int, int]]:
    """Where each element of an array stands: nothing but white space and a comma lies between one and the next."""
    raw: list[msgspec.Raw] = parse_json(data, path, list[msgspec.Raw])
    end = data.index(b"[") + 1
    for one in raw:
        text = bytes(one)
        start = data.index(text, end)
        end = start + len(text)
        yield start, end


def find_image_names(data: bytes) -> set[str]:
    """Texts in JSON that end like the name of an image file."""
    names: set[bytes] = set()
    for match in IMAGE.finditer(data):
        start = data.rfind(b'"', max(0, match.start() - LONGEST_NAME), match.start())
        names.add(data[start + 1 : match.end() - 1])
    return {_decoded(name) for name in names}


def _decoded(name: bytes) -> str:
    try:
        return json.loads(b'"' + name + b'"')
    except ValueError:
        return name.decode("utf-8", "replace")


def digest_dataset(digests: Iterable[str], images: Sequence[tuple[str, Path]]) -> str:
    """The digest of a dataset: of its files by their own digests, and of the images that they name by name, size and
    the bytes at both ends. An image is never cached under this digest but under that of all its bytes."""
    with ThreadPoolExecutor(4) as pool:
        marks = list(pool.map(_fingerprint, (path for _, path in images), chunksize=64))
    digest = hashlib.sha256()
    for one in digests:
        digest.update(f"{one}\n".encode())
    for (name, _), mark in sorted(zip(images, marks, strict=True)):
        digest.update(name.encode("utf-8", "replace") + b"\0" + mark + b"\n")
    return digest.hexdigest()


def _fingerprint(path: Path) -> bytes:
    if ".." in PurePosixPath(path).parts:
        return b"outside"
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b"missing"
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            return b"no file"
        head = os.pread(file, ENDS, 0)
        tail = os.pread(file, ENDS, max(0, about.st_size - ENDS))
        return b"%d %s" % (about.st_size, hashlib.sha256(head + tail).digest())
    finally:
        os.close(file)


def digest_file(path: Path) -> str:
    """Of all bytes of a file that may be large."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
