"""From records to Samples, for every benchmark whose data are records and images.

A record that cannot be used is left out, with each of its problems named by file, record and field; the others are
loaded. Images are found through the record, never through other files' names, and must lie inside the dataset. Samples
are streamed: a dataset's digest comes from its files, then records are read on demand, a few ahead.

    class ColourRecords(Records):
        def sample(self, name, record):
            image = self.load_image(name, "image", record["image"])
            ...

    ColourRecords(file, folder, blobs).dataset("colours", read_json_array(file))
"""

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

Severity = Literal["error", "warning"]
FOREIGN_DATASETS = {"tabletop.json": "tabletop"}  # a file next to the data -> whose data they are
MAX_TEXT_LENGTH = 200_000
MAX_RECORDS_IN_FLIGHT = 12
PROBE_RECORDS = 16  # so many records are read first, without threads
QUICK_RECORD_S = 0.002  # if they took no longer than this each, threads would only slow the rest down
MAX_CACHED_IMAGES = 20_000  # by path: an image that many records show is read once


class UnusableRecord(Exception):
    """The record that is being read cannot be used; its problem has been reported."""


class RecordResult(msgspec.Struct, frozen=True):
    """What reading a record gave."""

    label: str  # the record's name in problems
    sample: Sample | None  # None if the record cannot be used
    problems: Sequence[Problem]


class Records:
    """The records of a dataset, as samples. A benchmark's subclass writes `sample`.

    Iterating yields the usable samples; `problems` has those of the records read so far.
    """

    id_field = "id"
    duplicate_message = "repeats the {field} of {first}: {id}"

    def __init__(self, file: Path, image_folder: Path, blobs: Blobs) -> None:
        self._file = file
        self._blobs = blobs
        self._image_folder = image_folder.resolve()
        root = Path(os.path.commonpath([file.parent.absolute(), image_folder.absolute()])).resolve()
        if not self._image_folder.is_relative_to(root):
            raise UserError(
                f"{image_folder} leads out of the dataset, to {self._image_folder}: put the images there, or give the "
                "folder it leads to"
            )
        self._images_by_path: dict[str, Image] = {}
        self._rows: RecordRows | None = None
        self._thread = threading.local()  # its `problems` are those of the record that the thread is reading
        self.problems: list[Problem] = []
        # A record may be read repeatedly, even by two iterations at a time; its problems are listed once.
        self._labels_with_problems: set[str] = set()

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        """Build the sample of a record. `name` is the record's label, for problems. Written by a subclass."""
        raise TypeError(f"{type(self).__name__} has no sample")

    def record_label(self, index: int, record: Any, /) -> str:
        """Return what problems call a record: by default its number, from 0."""
        return f"record {index}"

    def locate(self, image: str) -> Path:
        """Return the path of an image that the files name, for the dataset's digest."""
        return self._image_folder / image

    def dataset(self, name: str, rows: RecordRows | Iterable[Any], other_digests: Iterable[str] = ()) -> Dataset:
        """Build the dataset, streamed. `other_digests` are of further files that decide what a sample is."""
        if not isinstance(rows, RecordRows):
            rows = ListRows(rows)
        self._rows = rows
        images = [(image, self.locate(image)) for image in rows.images]
        digest = digest_dataset([rows.digest, *other_digests], images)
        for file, owner in FOREIGN_DATASETS.items():
            if (self._file.parent / file).exists():
                name = owner
                break
        return Dataset(name, digest, self, self.problems, rows.count)

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples in the order of the files. Of two records with the same id, the first counts."""
        labels_by_id: dict[str, str] = {}
        for result in self._read_all(enumerate(self._rows or ())):
            problems = list(result.problems)
            sample = result.sample
            if sample is not None and sample.id in labels_by_id:
                message = self.duplicate_message.format(
                    field=self.id_field, first=labels_by_id[sample.id], id=sample.id
                )
                problems.append(self._problem("error", result.label, self.id_field, message))
                sample = None
            if problems and result.label not in self._labels_with_problems:
                self._labels_with_problems.add(result.label)
                self.problems += sorted(problems, key=lambda problem: problem.field)
            if sample is not None:
                labels_by_id[sample.id] = result.label
                yield sample

    def load_image(self, name: str, field: str, path: str) -> Image:
        """Put an image file of the dataset into the blob store. An image that many records show is read once."""
        cached = self._images_by_path.get(path)
        if cached is not None:
            return cached
        full_path = self._image_folder / path
        try:
            is_inside = not PurePosixPath(path).is_absolute() and full_path.resolve().is_relative_to(self._image_folder)
        except (OSError, ValueError, RuntimeError) as error:  # a NUL in the path, circular links
            self.fail(name, field, f"{path!r} cannot be read: {error}")
        if not is_inside:
            self.fail(name, field, f"{path!r} leads out of the dataset")
        try:
            image = self._blobs.put_file(full_path)
        except ImageError as error:
            self.fail(name, field, f"{path} {error}")
        except FileNotFoundError:
            self.fail(name, field, f"{path} does not exist")
        except OSError as error:
            self.fail(name, field, f"{path} cannot be read: {error.strerror}")
        if len(self._images_by_path) >= MAX_CACHED_IMAGES:
            self._images_by_path.clear()
        self._images_by_path[path] = image
        return image

    def store_image(self, name: str, field: str, data: bytes) -> Image:
        """Put an image that the record itself contains into the blob store."""
        if len(data) > MAX_BYTES:
            self.fail(name, field, f"has {len(data):,} bytes, more than the limit of {MAX_BYTES:,}")
        try:
            return self._blobs.put(data, durable=False, unchanged=True)
        except ImageError as error:
            self.fail(name, field, str(error))

    def text(self, name: str, record: Mapping[str, Any], field: str) -> str:
        """Return a text field that must not be missing or empty."""
        text = self.optional_text(name, record, field)
        if not text.strip():
            self.fail(name, field, "is missing or empty")
        return text

    def optional_text(self, name: str, record: Mapping[str, Any], field: str) -> str:
        """Return a text field, or "" if it is missing or null."""
        value: Any = record.get(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.fail(name, field, f"must be text, not {type(value).__name__}")
        if len(value) > MAX_TEXT_LENGTH:
            self.fail(name, field, f"has {len(value):,} characters, more than the limit of {MAX_TEXT_LENGTH:,}")
        return value

    def fail(self, name: str, field: str, message: str) -> NoReturn:
        """Report an error of a record and leave the record out."""
        self.report_problem("error", name, field, message)
        raise UnusableRecord

    def report_problem(self, severity: Severity, name: str, field: str, message: str) -> None:
        """Report a problem of a record. A warning does not leave the record out."""
        self.add_problem(self._problem(severity, name, field, message))

    def _problem(self, severity: Severity, name: str, field: str, message: str) -> Problem:
        return Problem(severity, self._file.name, name, field, message)

    def add_problem(self, problem: Problem) -> None:
        """Add a problem to those of the record that this thread is reading, or to the dataset's if it reads none."""
        problems: list[Problem] = vars(self._thread).get("problems", self.problems)
        problems.append(problem)

    def _read_all(self, numbered: Iterable[tuple[int, Any]]) -> Iterator[RecordResult]:
        """Read records in order, a few ahead.

        Threads are used only where records are slow, because images must be decoded, which releases the GIL.
        """
        rest = iter(numbered)
        start = time.perf_counter()
        for numbered_record in itertools.islice(rest, PROBE_RECORDS):
            yield self._read(numbered_record)
        if time.perf_counter() - start < PROBE_RECORDS * QUICK_RECORD_S:
            yield from map(self._read, rest)
            return
        with ThreadPoolExecutor(4) as pool:
            in_flight: deque[Future[RecordResult]] = deque()
            for numbered_record in rest:
                in_flight.append(pool.submit(self._read, numbered_record))
                if len(in_flight) >= MAX_RECORDS_IN_FLIGHT:
                    yield in_flight.popleft().result()
            while in_flight:
                yield in_flight.popleft().result()

    def _read(self, numbered_record: tuple[int, Any]) -> RecordResult:
        """Read one record. Whatever it contains, it costs only itself; an error of the blob store is raised."""
        index, record = numbered_record
        label = f"record {index}"
        problems: list[Problem] = []
        self._thread.problems = problems
        try:
            if isinstance(record, (bytes, msgspec.Raw)):
                record = msgspec.json.decode(record)
            label = self.record_label(index, record)
            if not isinstance(record, dict) or not record:
                self.fail(label, "", "must be an object")
            return RecordResult(label, self.sample(label, cast(dict[str, Any], record)), problems)
        except StoreError:  # the next record would meet it again
            raise
        except UnusableRecord:
            pass
        except (msgspec.DecodeError, UnicodeError) as error:
            self.report_problem("error", label, "", f"broken JSON: {error}")
        except RecursionError:
            self.report_problem("error", label, "", "broken JSON: it is nested too deep")
        except Exception as error:
            self.report_problem("error", label, "", f"cannot be read: {type(error).__name__}: {error}")
        finally:
            del self._thread.problems
        return RecordResult(label, None, problems)


def digest_samples(samples: Sequence[Sample]) -> str:
    """Compute the digest of the samples as one JSON array, which is never in memory as a whole."""
    digest = hashlib.sha256(b"[")
    separator = b""
    for sample in samples:
        digest.update(separator + msgspec.json.encode(sample, order="deterministic"))
        separator = b","
    digest.update(b"]")
    return digest.hexdigest()
