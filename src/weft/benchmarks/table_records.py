"""Records that stand in tables or in JSON files, with images as bytes or as paths.

class GEditRecords(TableRecords):
    def sample(self, name, record):
        source = self.image(name, record, "input_image")
        ...
"""

from collections.abc import Iterator
from typing import Any

from weft.benchmarks.records import Records
from weft.benchmarks.table_files import UNREADABLE, TableRows
from weft.types import Image, Problem, Sample
from weft.untrusted import dict_or_empty

MAX_ID = 200  # characters


class TableRecords(Records):
    """Reads records of a table or of a JSON file. A subclass implements `sample`."""

    def __iter__(self) -> Iterator[Sample]:
        yield from super().__iter__()
        if isinstance(self._rows, TableRows):
            for message in self._rows.broken:
                problem = Problem("error", self._file.name, "", "", message)
                if problem not in self.problems:
                    self.problems.append(problem)

    def record_label(self, at: int, record: Any) -> str:
        record_id: Any = dict_or_empty(record).get(self.id_field)
        if isinstance(record_id, str) and record_id:
            return f"record {at} ({record_id[:80]})"
        return f"record {at}"

    def read_id(self, name: str, record: dict[str, Any]) -> str:
        """Return the record's id, which must be usable in file names."""
        if UNREADABLE in record:
            self.fail(name, "", f"cannot be read: {record[UNREADABLE]}")
        record_id = record.get(self.id_field)
        if isinstance(record_id, int) and not isinstance(record_id, bool):
            record_id = str(record_id)
        if not isinstance(record_id, str) or not record_id.strip():
            self.fail(name, self.id_field, "is missing; every record needs its own")
        if set(record_id) & set("/\\\0") or record_id in (".", "..") or len(record_id) > MAX_ID:
            self.fail(name, self.id_field, f"{record_id[:80]!r} cannot be part of a file's name")
        return record_id

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
