"""From records to Samples, for every benchmark whose data are records and images.

A record that cannot be used is left out, with every one of its problems named by file, record and field; the others are
loaded. Images are found through the record, never through other files' names, and must lie inside the dataset. Samples
are streamed: a dataset's digest comes from its files, then records are read as they are wanted, a few ahead."""

import hashlib
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NoReturn, cast

import msgspec

from weft.benchmarks.record_files import ListRows, RecordRows, digest_dataset
from weft.errors import ImageError, StoreError, UserError
from weft.store.blobs import Blobs
from weft.store.images import MAX_BYTES
from weft.types import Dataset, Image, Problem, Sample
from weft.untrusted import read_file

OTHERS = {"tabletop.json": "tabletop"}  # a file beside the data that tells that they are not the benchmark's own
LONGEST = 200_000  # characters of a field
IN_HAND = 12  # records that are being read at a time
# so many records are read first, and are quick if they take so many seconds each
PROBE = 16
QUICK = 0.002
MOST_KNOWN = 20_000  # images that are remembered by their path, so that one which many records show is read once


class UnusableRecord(Exception):
    """A record cannot be used any further."""


class RecordResult(msgspec.Struct, frozen=True):
    """A record that was read: what problems call it, its sample if it can be used, and its problems."""

    called: str
    sample: Sample | None
    problems: Sequence[Problem]


class Records:
    """A benchmark writes `sample`; `called` is what problems call a record. Iterating gives the samples; `problems` are
    those found by then."""

    id_field = "id"
    duplicate_message = "repeats the {field} of {first}: {id}"

    def __init__(self, file: Path, pictures: Path, blobs: Blobs) -> None:
        self._file = file
        self._blobs = blobs
        self._pictures = pictures.resolve()
        # of file and pictures together
        root = Path(os.path.commonpath([file.parent.absolute(), pictures.absolute()])).resolve()
        if not self._pictures.is_relative_to(root):
            raise UserError(
                f"{pictures} leads out of the dataset, to {self._pictures}: put the pictures there, or give the folder it leads to"
            )
        self._known: dict[str, Image] = {}
        self._rows: RecordRows | None = None
        self._own = threading.local()  # the problems of the record that a thread reads
        self.problems: list[Problem] = []
        # records whose problems are there: it may be read more than once, and by two at a time
        self._told: set[str] = set()

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        raise TypeError(f"{type(self).__name__} has no sample")

    def record_label(self, at: int, record: Any) -> str:
        return f"record {at}"

    def locate(self, image: str) -> Path:
        """Where an image lies that the files name, for the dataset's digest."""
        return self._pictures / image

    def dataset(self, name: str, rows: RecordRows | Iterable[Any], beside: Iterable[str] = ()) -> Dataset:
        """What can be used of the records, streamed. `beside` are digests of other files that decide what a sample
        is."""
        self._rows = found = rows if isinstance(rows, RecordRows) else ListRows(rows)
        digest = digest_dataset([found.digest, *beside], [(image, self.locate(image)) for image in found.images])
        other = next((what for file, what in OTHERS.items() if (self._file.parent / file).exists()), name)
        return Dataset(other, digest, self, self.problems, found.count)

    def __iter__(self) -> Iterator[Sample]:
        """In the order of the files; of two with one id the first counts."""
        first: dict[str, str] = {}
        for read in self._read_all(enumerate(self._rows or ())):
            problems = list(read.problems)
            if read.sample is not None and read.sample.id in first:
                told = self.duplicate_message.format(
                    field=self.id_field, first=first[read.sample.id], id=read.sample.id
                )
                problems.append(self._problem("error", read.called, self.id_field, told))
            if problems and read.called not in self._told:
                self._told.add(read.called)
                self.problems += sorted(problems, key=lambda problem: problem.field)
            if read.sample is None or read.sample.id in first:
                continue
            first[read.sample.id] = read.called
            yield read.sample

    def load_image(self, name: str, field: str, path: str) -> Image:
        """A picture of the dataset, in the store. One that many records show is read once."""
        known = self._known.get(path)
        if known is not None:
            return known
        full = self._pictures / path
        try:
            inside = not PurePosixPath(path).is_absolute() and full.resolve().is_relative_to(self._pictures)
        except (OSError, ValueError, RuntimeError) as error:  # a NUL in it, links in a circle
            self.fail(name, field, f"{path!r} cannot be read: {error}")
        if not inside:
            self.fail(name, field, f"{path!r} leads out of the dataset")
        try:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[path] = image = self._blobs.put(read_file(full, MAX_BYTES, ImageError), durable=False)
            return image
        except ImageError as error:
            self.fail(name, field, f"{path} {error}")
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                why = "does not exist"
            else:
                why = f"cannot be read: {error.strerror}"
            self.fail(name, field, f"{path} {why}")

    def store_image(self, name: str, field: str, data: bytes) -> Image:
        """A picture that the record itself holds, in the store."""
        if len(data) > MAX_BYTES:
            self.fail(name, field, f"has {len(data):,} bytes, more than the limit of {MAX_BYTES:,}")
        try:
            return self._blobs.put(data, durable=False)
        except ImageError as error:
            self.fail(name, field, str(error))

    def text(self, name: str, record: Mapping[str, Any], field: str) -> str:
        """A text that must be there."""
        found = self.optional_text(name, record, field)
        if not found.strip():
            self.fail(name, field, "is missing or empty")
        return found

    def optional_text(self, name: str, record: Mapping[str, Any], field: str) -> str:
        found: Any = record.get(field)
        if found is not None and not isinstance(found, str):
            self.fail(name, field, f"must be text, not {type(found).__name__}")
        if found is not None and len(found) > LONGEST:
            self.fail(name, field, f"has {len(found):,} characters, more than the limit of {LONGEST:,}")
        return found or ""

    def fail(self, name: str, field: str, message: str) -> NoReturn:
        self.report_problem("error", name, field, message)
        raise UnusableRecord

    def report_problem(self, severity: Literal["error", "warning"], name: str, field: str, message: str) -> None:
        self.add_problem(self._problem(severity, name, field, message))

    def _problem(self, severity: Literal["error", "warning"], name: str, field: str, message: str) -> Problem:
        return Problem(severity, self._file.name, name, field, message)

    def add_problem(self, problem: Problem) -> None:
        """Of the record that is being read, or of none."""
        found: list[Problem] | None = vars(self._own).get("problems")
        (self.problems if found is None else found).append(problem)

    def _read_all(self, numbered: Iterable[tuple[int, Any]]) -> Iterator[RecordResult]:
        """In threads where pictures have to be decoded, which takes long and lets others work; else threads would only
        get in each other's way. Few records are in hand at a time."""
        rest = iter(numbered)
        began = time.perf_counter()
        for one in itertools.islice(rest, PROBE):
            yield self._read(one)
        if time.perf_counter() - began < PROBE * QUICK:
            yield from map(self._read, rest)
            return
        with ThreadPoolExecutor(4) as pool:
            reading: deque[Future[RecordResult]] = deque()
            for one in rest:
                reading.append(pool.submit(self._read, one))
                if len(reading) >= IN_HAND:
                    yield reading.popleft().result()
            while reading:
                yield reading.popleft().result()

    def _read(self, numbered: tuple[int, Any]) -> RecordResult:
        at, record = numbered
        name = f"record {at}"
        self._own.problems = problems = list[Problem]()
        try:
            if isinstance(record, (bytes, msgspec.Raw)):
                record = msgspec.json.decode(record)
            name = self.record_label(at, record)
            if not isinstance(record, dict) or not record:
                self.fail(name, "", "must be an object")
            return RecordResult(name, self.sample(name, cast(dict[str, Any], record)), problems)
        except StoreError:  # not the record's fault, and it would go on with the next
            raise
        except UnusableRecord:
            return RecordResult(name, None, problems)
        except (msgspec.DecodeError, UnicodeError) as error:
            self.report_problem("error", name, "", f"broken JSON: {error}")
        except RecursionError:
            self.report_problem("error", name, "", "broken JSON: it is nested too deep")
        except Exception as error:  # whatever a record holds, it costs only itself
            self.report_problem("error", name, "", f"cannot be read: {type(error).__name__}: {error}")
        finally:
            del self._own.problems
        return RecordResult(name, None, problems)


def digest_samples(samples: Sequence[Sample]) -> str:
    """Of the samples as one JSON array, which is never there as a whole."""
    digest = hashlib.sha256(b"[")
    for at, sample in enumerate(samples):
        digest.update((b"," if at else b"") + msgspec.json.encode(sample, order="deterministic"))
    digest.update(b"]")
    return digest.hexdigest()
