"""What the records of ROVER-IG and ROVER-TG have in common."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.records import Records
from weft.benchmarks.rover.files import UNREADABLE, RoverFiles, RoverSubset, TableRows, find_records
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Problem, Sample
from weft.untrusted import dict_or_empty


class RoverRecords(Records):
    """Reads records of either subset. A subclass implements `sample`."""

    def __init__(self, files: RoverFiles, blobs: Blobs) -> None:
        super().__init__(files.file, files.file.parent, blobs)
        self.dimension_names = files.dimension_names
        self.problems.extend(files.problems)

    @classmethod
    def load(cls, data: Path, subset: RoverSubset, blobs: Blobs) -> Dataset:
        files = find_records(data, subset)
        return cls(files, blobs).dataset(subset.name.lower(), files.rows)

    def __iter__(self) -> Iterator[Sample]:
        yield from super().__iter__()
        if isinstance(self._rows, TableRows):
            for message in self._rows.broken:
                problem = Problem("error", self._file.name, "", "", message)
                if problem not in self.problems:
                    self.problems.append(problem)

    def record_label(self, at: int, record: Any) -> str:
        record_id: Any = dict_or_empty(record).get("id")
        if isinstance(record_id, str) and record_id:
            return f"record {at} ({record_id[:80]})"
        return f"record {at}"

    def read_id(self, name: str, record: dict[str, Any]) -> str:
        """Return the record's id, which must be usable in file names."""
        if UNREADABLE in record:
            self.fail(name, "", f"cannot be read: {record[UNREADABLE]}")
        record_id = record.get("id")
        if isinstance(record_id, int) and not isinstance(record_id, bool):
            record_id = str(record_id)
        if not isinstance(record_id, str) or not record_id.strip():
            self.fail(name, "id", "is missing; every record needs its own")
        if set(record_id) & set("/\\\0") or record_id in (".", "..") or len(record_id) > 200:
            self.fail(name, "id", f"{record_id[:80]!r} cannot be part of a file's name")
        return record_id

    def optional_text(self, name: str, record: Mapping[str, Any], field: str) -> str:
        """Return a text; several texts are joined with commas."""
        value: Any = record.get(field)
        if isinstance(value, list):
            texts = [text for text in cast(list[Any], value) if text is not None]
            if all(isinstance(text, str) for text in texts):
                record = {field: ", ".join(filter(None, texts))}
        return super().optional_text(name, record, field)

    def image(self, name: str, record: dict[str, Any], field: str) -> Image:
        """Return an image that must be there."""
        image = self.optional_image(name, record, field)
        if image is None:
            self.fail(name, field, "has no image; it is null")
        return image

    def optional_image(self, name: str, record: dict[str, Any], field: str) -> Image | None:
        """Return an image given as a path, as bytes, or as a table's object with either; None if there is none."""
        value: Any = record.get(field)
        if value is None or value == "":
            return None
        if isinstance(value, str):
            return self.load_image(name, field, value)
        if isinstance(value, bytes):
            value = {"bytes": value}
        fields = dict_or_empty(value)
        data = fields.get("bytes")
        if isinstance(data, bytes) and data:
            return self.store_image(name, field, data)
        path = fields.get("path")
        if isinstance(path, str) and path:
            return self.load_image(name, field, path)
        self.fail(name, field, "is neither an image nor the path of one")
