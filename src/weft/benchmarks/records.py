"""From records to Samples, for every benchmark whose data are records and pictures.

A record that cannot be used is left out, with every one of its problems named by file, record and field; the others are loaded. Pictures
are found through the record, never through other files' names, and must lie inside the dataset.
"""

import hashlib
import itertools
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NoReturn, cast

import msgspec

from weft.errors import PictureError, StoreError, UserError
from weft.store.blobs import Blobs
from weft.store.images import MAX_BYTES
from weft.types import Dataset, Image, Problem, Sample
from weft.untrusted import read_file

OTHERS = {"tabletop.json": "tabletop"}  # a file beside the data that tells that they are not the benchmark's own

LONGEST = 200_000  # characters of a field
IN_HAND = 12  # records that are being read at a time
PROBE, QUICK = 16, 0.002  # so many records are read first, and are quick if they take so many seconds each


class LeftOut(Exception):
    """A record cannot be used any further."""


class Records:
    """A benchmark writes `sample`; `called` is what problems call a record."""

    id_field = "id"
    repeated = "repeats the {field} of {first}: {id}"

    def __init__(self, file: Path, pictures: Path, blobs: Blobs) -> None:
        self._file, self._blobs = file, blobs
        self._pictures = pictures.resolve()
        root = Path(os.path.commonpath([file.parent.absolute(), pictures.absolute()])).resolve()  # of file and pictures together
        if not self._pictures.is_relative_to(root):
            raise UserError(
                f"{pictures} leads out of the dataset, to {self._pictures}: put the pictures there, or give the folder it leads to"
            )
        self._known: dict[str, Image] = {}
        self.problems: list[Problem] = []

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        raise TypeError(f"{type(self).__name__} has no sample")

    def called(self, at: int, record: Any) -> str:
        return f"record {at}"

    def dataset(self, name: str, records: Iterable[Any]) -> Dataset:
        """All that can be used. A record may be bytes, or raw JSON: it is read when its turn comes, and let go; so that records which come
        one by one are never there all together."""
        read = list(self._read_all(enumerate(records)))
        first: dict[str, str] = {}
        for at, (called, sample) in enumerate(read):
            if sample is not None and sample.id in first:
                told = self.repeated.format(field=self.id_field, first=first[sample.id], id=sample.id)
                self.say("error", called, self.id_field, told)
                read[at] = (called, None)
            elif sample is not None:
                first[sample.id] = called
        kept = tuple(sample for _, sample in read if sample is not None)
        order = {called: at for at, (called, _) in enumerate(read)}
        problems = sorted(self.problems, key=lambda problem: (order.get(problem.record, -1), problem.field))
        other = next((what for beside, what in OTHERS.items() if (self._file.parent / beside).exists()), name)
        return Dataset(other, digest_of(kept), kept, tuple(problems), len(read))

    def picture(self, name: str, field: str, path: str) -> Image:
        """A picture of the dataset, in the store. One that many records show is read once."""
        if path in self._known:
            return self._known[path]
        full = self._pictures / path
        try:
            inside = not PurePosixPath(path).is_absolute() and full.resolve().is_relative_to(self._pictures)
        except (OSError, ValueError, RuntimeError) as error:  # a NUL in it, links in a circle
            self.fail(name, field, f"{path!r} cannot be read: {error}")
        if not inside:
            self.fail(name, field, f"{path!r} leads out of the dataset")
        try:
            self._known[path] = self._blobs.put(read_file(full, MAX_BYTES, PictureError), durable=False)
            return self._known[path]
        except PictureError as error:
            self.fail(name, field, f"{path} {error}")
        except OSError as error:
            why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            self.fail(name, field, f"{path} {why}")

    def held(self, name: str, field: str, data: bytes) -> Image:
        """A picture that the record itself holds, in the store."""
        if len(data) > MAX_BYTES:
            self.fail(name, field, f"has {len(data):,} bytes, more than the limit of {MAX_BYTES:,}")
        try:
            return self._blobs.put(data, durable=False)
        except PictureError as error:
            self.fail(name, field, str(error))

    def text(self, name: str, record: Mapping[str, Any], field: str) -> str:
        """A text that must be there."""
        found = self.text_or_none(name, record, field)
        if not found.strip():
            self.fail(name, field, "is missing or empty")
        return found

    def text_or_none(self, name: str, record: Mapping[str, Any], field: str) -> str:
        found: Any = record.get(field)
        if found is not None and not isinstance(found, str):
            self.fail(name, field, f"must be text, not {type(found).__name__}")
        if found is not None and len(found) > LONGEST:
            self.fail(name, field, f"has {len(found):,} characters, more than the limit of {LONGEST:,}")
        return found or ""

    def fail(self, name: str, field: str, message: str) -> NoReturn:
        self.say("error", name, field, message)
        raise LeftOut

    def say(self, severity: Literal["error", "warning"], name: str, field: str, message: str) -> None:
        self.problems.append(Problem(severity, self._file.name, name, field, message))

    def _read_all(self, numbered: Iterable[tuple[int, Any]]) -> Iterator[tuple[str, Sample | None]]:
        """In threads where pictures have to be decoded, which takes long and lets others work; else threads would only get in each other's
        way. Few records are in hand at a time."""
        rest = iter(numbered)
        began = time.perf_counter()
        for one in itertools.islice(rest, PROBE):
            yield self._read(one)
        if time.perf_counter() - began < PROBE * QUICK:
            yield from map(self._read, rest)
            return
        with ThreadPoolExecutor(4) as pool:
            reading: deque[Future[tuple[str, Sample | None]]] = deque()
            for one in rest:
                reading.append(pool.submit(self._read, one))
                if len(reading) >= IN_HAND:
                    yield reading.popleft().result()
            while reading:
                yield reading.popleft().result()

    def _read(self, numbered: tuple[int, Any]) -> tuple[str, Sample | None]:
        at, record = numbered
        name = f"record {at}"
        try:
            if isinstance(record, (bytes, msgspec.Raw)):
                record = msgspec.json.decode(record)
            name = self.called(at, record)
            if not isinstance(record, dict) or not record:
                self.fail(name, "", "must be an object")
            return name, self.sample(name, cast(dict[str, Any], record))
        except StoreError:  # not the record's fault, and it would go on with the next
            raise
        except LeftOut:
            return name, None
        except (msgspec.DecodeError, UnicodeError) as error:
            self.say("error", name, "", f"broken JSON: {error}")
        except RecursionError:
            self.say("error", name, "", "broken JSON: it is nested too deep")
        except Exception as error:  # whatever a record holds, it costs only itself
            self.say("error", name, "", f"cannot be read: {type(error).__name__}: {error}")
        return name, None


def digest_of(samples: Sequence[Sample]) -> str:
    """Of the samples as one JSON array, which is never there as a whole."""
    digest = hashlib.sha256(b"[")
    for at, sample in enumerate(samples):
        digest.update((b"," if at else b"") + msgspec.json.encode(sample, order="deterministic"))
    digest.update(b"]")
    return digest.hexdigest()
