"""Finds the records of an editing benchmark in each of the forms that people have them in.

JSON              a .json or .jsonl file with its images in the same folder, named by path
parquet           as on the Hugging Face hub, images as bytes (extra `parquet`)
`datasets` save   written with save_to_disk (extra `parquet`)
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from msgspec import Struct

from weft.benchmarks.record_files import RecordRows, read_json_records
from weft.benchmarks.table_files import (
    OpenTable,
    TableRows,
    list_saved_files,
    one_line,
    open_arrow,
    open_parquet,
    require_pyarrow,
)
from weft.errors import UserError
from weft.types import Problem

FOLDER_DEPTHS = ("*", "*/*", "*/*/*")


class EditSource(Struct, frozen=True):
    """What is known of a dataset's files."""

    stems: tuple[str, ...]  # of its JSON files, in lower case; the first that is there counts
    columns: tuple[str, ...]  # that every table must have
    other_columns: tuple[str, ...]  # that are read where they are there
    help: str  # where the dataset comes from


class EditFiles(Struct, frozen=True):
    """The records of a dataset."""

    file: Path  # that problems name
    rows: RecordRows
    problems: tuple[Problem, ...] = ()


def find_records(data: Path, source: EditSource) -> EditFiles:
    """Return the records in a folder or a file. Raises UserError if there are none."""
    if not data.exists():
        raise UserError(f"there is no {data}: {source.help}")
    json_file = find_json_file(data, source.stems)
    if json_file is not None:
        return EditFiles(json_file, read_json_records(json_file))
    arrow_files = _find_arrow_files(data)
    if arrow_files:
        return _open_tables(arrow_files, source, open_arrow)
    parquet_files = _find_parquet_files(data)
    if parquet_files:
        return _open_tables(parquet_files, source, open_parquet)
    raise UserError(f"there are no records in {data}: {source.help}")


def find_json_file(data: Path, stems: Sequence[str]) -> Path | None:
    """Return the JSON file with one of these names, in a folder or in a folder inside it."""
    if data.is_file():
        return data if data.suffix in (".json", ".jsonl") else None
    paths: list[Path] = []
    for pattern in FOLDER_DEPTHS:
        paths += [path for path in sorted(data.glob(pattern)) if path.suffix in (".json", ".jsonl") and path.is_file()]
    for stem in stems:
        for path in paths:
            if path.stem.lower() == stem:
                return path
    return None


def _find_arrow_files(data: Path) -> list[Path]:
    """Return the tables of one split of a `datasets` save: in `train`, or right there."""
    if data.suffix == ".arrow":
        return [data]
    for split in (data / "train", data):
        if (split / "state.json").is_file():
            return list_saved_files(split)
    return []


def _find_parquet_files(data: Path) -> list[Path]:
    """Return the parquet files of the split `train`, or all where none is called so."""
    files: list[Path] = []
    if data.is_file():
        files.append(data)
    for pattern in FOLDER_DEPTHS:
        files += data.glob(f"{pattern}.parquet")
    files = [path for path in sorted(files) if path.suffix == ".parquet" and path.is_file()]
    return [path for path in files if path.name.lower().startswith("train")] or files


def _open_tables(
    files: Sequence[Path], source: EditSource, open_table: Callable[[Path, Collection[str]], OpenTable]
) -> EditFiles:
    """Open the files that have the columns; one that lacks some is reported."""
    require_pyarrow(files[0])
    problems: list[Problem] = []
    tables: list[OpenTable] = []
    used_files: list[Path] = []
    for path in files:
        try:
            table = open_table(path, (*source.columns, *source.other_columns))
        except Exception as error:  # pyarrow has many kinds
            problems.append(Problem("error", path.name, "", "", f"cannot be read: {one_line(error)}"))
            continue
        missing = [column for column in source.columns if column not in table.columns]
        if missing:
            message = f"has no column {', '.join(missing)}: all of its {table.count:,} records are left out"
            problems.append(Problem("error", path.name, "", missing[0], message))
            continue
        tables.append(table)
        used_files.append(path)
    if not tables:
        raise UserError(f"{files[0].parent}: none of its {len(files)} tables can be used; {problems[0]}: {source.help}")
    return EditFiles(files[0].parent / source.stems[0], TableRows(tables, used_files), tuple(problems))
