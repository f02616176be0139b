"""What the records of ROVER-IG and ROVER-TG have in common."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.rover.files import RoverFiles, RoverSubset, find_records
from weft.benchmarks.table_records import TableRecords
from weft.store.blobs import Blobs
from weft.types import Dataset


class RoverRecords(TableRecords):
    """Reads records of either subset. A subclass implements `sample`."""

    def __init__(self, files: RoverFiles, blobs: Blobs) -> None:
        super().__init__(files.file, files.file.parent, blobs)
        self.dimension_names = files.dimension_names
        self.problems.extend(files.problems)

    @classmethod
    def load(cls, data: Path, subset: RoverSubset, blobs: Blobs) -> Dataset:
        files = find_records(data, subset)
        return cls(files, blobs).dataset(subset.name.lower(), files.rows)

    def optional_text(self, name: str, record: Mapping[str, Any], field: str) -> str:
        """Return a text; several texts are joined with commas."""
        value: Any = record.get(field)
        if isinstance(value, list):
            texts = [text for text in cast(list[Any], value) if text is not None]
            if all(isinstance(text, str) for text in texts):
                record = {field: ", ".join(filter(None, texts))}
        return super().optional_text(name, record, field)
