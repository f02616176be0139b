"""What the records of both halves have in common."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.records import Records
from weft.benchmarks.rover.files import UNREADABLE, RoverFiles, RoverSubset, TableRows, find_records
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Problem, Sample
from weft.untrusted import dict_or_empty


class RoverRecords(Records):
    """A half writes `sample`."""

    def __init__(self, found: RoverFiles, blobs: Blobs) -> None:
        super().__init__(found.file, found.file.parent, blobs)
        self.dimension_names = found.dimension_names
        self.problems.extend(found.problems)

    @classmethod
    def load(cls, data: Path, half: RoverSubset, blobs: Blobs) -> Dataset:
        found = find_records(data, half)
        return cls(found, blobs).dataset(half.name.lower(), found.rows)

    def __iter__(self) -> Iterator[Sample]:
        yield from super().__iter__()
        if isinstance(self._rows, TableRows):
            broken = self._rows.broken
        else:
            broken = ()
        found = [Problem("error", self._file.name, "", "", why) for why in broken]
        self.problems += [problem for problem in found if problem not in self.problems]

    def record_label(self, at: int, record: Any) -> str:
        name: Any = dict_or_empty(record).get("id")
        return f"record {at}" + (f" ({name[:80]})" if isinstance(name, str) and name else "")

    def read_id(self, name: str, record: dict[str, Any]) -> str:
        """It is part of file names."""
        if UNREADABLE in record:
            self.fail(name, "", f"cannot be read: {record[UNREADABLE]}")
        found = record.get("id")
        if isinstance(found, int) and not isinstance(found, bool):
            found = str(found)
        if not isinstance(found, str) or not found.strip():
            self.fail(name, "id", "is missing; every record needs its own")
        if "/" in found or "\\" in found or "\0" in found or found in (".", "..") or len(found) > 200:
            self.fail(name, "id", f"{found[:80]!r} cannot be part of a file's name")
        return found

    def optional_text(self, name: str, record: Mapping[str, Any], field: str) -> str:
        """Several texts are one with commas."""
        found: Any = record.get(field)
        if isinstance(found, list) and all(one is None or isinstance(one, str) for one in cast(list[Any], found)):
            record = {field: ", ".join(one for one in cast(list[str | None], found) if one)}
        return super().optional_text(name, record, field)

    def image(self, name: str, record: dict[str, Any], field: str) -> Image:
        """A picture that must be there."""
        found = self.optional_image(name, record, field)
        if found is None:
            self.fail(name, field, "has no picture; it is null")
        return found

    def optional_image(self, name: str, record: dict[str, Any], field: str) -> Image | None:
        """A path, or what a table keeps of a picture: its bytes, or a path beside it."""
        found: Any = record.get(field)
        if found is None or found == "":
            return None
        if isinstance(found, str):
            return self.load_image(name, field, found)
        if isinstance(found, bytes):
            held = {"bytes": found}
        else:
            held = dict_or_empty(found)
        data = held.get("bytes")
        path = held.get("path")
        if isinstance(data, bytes) and data:
            return self.store_image(name, field, data)
        if isinstance(path, str) and path:
            return self.load_image(name, field, path)
        self.fail(name, field, "is neither a picture nor the path of one")
