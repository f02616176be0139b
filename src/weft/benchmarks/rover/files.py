"""Finds ROVER's records in each of the forms that people have them in, and reads them one by one.

    parquet           as on the hub: ROVER-IG/train-00000-of-00002.parquet, or a folder of such files (extra `parquet`)
    `datasets` save   written with save_to_disk, of one subset or of both (extra `parquet`)
    JSON              ROVER-IG.json or .jsonl with its images in the same folder; `image` is a path

Images are bytes in the first two. A file is never in memory as a whole. A file that lacks a column is left out, which
is reported once; the others are read.
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from weft.benchmarks.download import download_folders
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
from weft.untrusted import dict_or_empty, parse_json

HUB = "cheryyunl/ROVER"
HELP = (
    "get the dataset with `weft data get rover --out DIR` (online, extra `hub`), or download the folder {subset} of "
    f"huggingface.co/datasets/{HUB} with its .parquet files and give the folder that contains it; a `datasets` save or "
    "{subset}.jsonl with its images works as well"
)
COLUMNS = (
    "id",
    "dimension",
    "reasoning_type",
    "prompt",
    "target_description",
    "keywords",
    "image",
    "target_image",
    "problem_type",
    "image2",
    "example_image",
    "reasoning_image",
    "refer_image",
    "answer",
)


class RoverSubset(Struct, frozen=True):
    """ROVER-IG or ROVER-TG."""

    name: str  # on the hub
    columns: tuple[str, ...]  # that every record must have
    marker_column: str  # that the other subset does not have


class RoverFiles(Struct, frozen=True):
    """The records of a subset."""

    file: Path  # that problems name
    rows: RecordRows
    problems: tuple[Problem, ...] = ()
    dimension_names: tuple[str, ...] = ()  # what the numbers in the column `dimension` stand for


def find_records(data: Path, subset: RoverSubset) -> RoverFiles:
    """Return the records of a subset in a folder or file; by the dataset's name on the hub, from there.

    Raises UserError if there are none.
    """
    if not data.exists() and "/".join(data.parts[-2:]) == HUB:
        data = download_folders(HUB, None, [subset.name], subset.name)
    if not data.exists():
        raise UserError(f"there is no {data}: {_format_help(subset)}")
    json_file = _find_json_file(data, subset)
    if json_file is not None:
        return RoverFiles(json_file, read_json_records(json_file))
    arrow_files = _find_arrow_files(data, subset)
    if arrow_files:
        return _open_tables(arrow_files, subset, open_arrow)
    parquet_files = _find_parquet_files(data, subset)
    if parquet_files:
        return _open_tables(parquet_files, subset, open_parquet)
    raise UserError(f"there is nothing of {subset.name} in {data}: {_format_help(subset)}")


def _format_help(subset: RoverSubset) -> str:
    return HELP.format(subset=subset.name)


def _find_json_file(data: Path, subset: RoverSubset) -> Path | None:
    if data.is_file():
        if data.suffix in (".json", ".jsonl"):
            return data
        return None
    for path in sorted((*data.glob("*.json"), *data.glob("*.jsonl"))):
        if path.stem.lower() == subset.name.lower():
            return path
    return None


def _find_arrow_files(data: Path, subset: RoverSubset) -> list[Path]:
    """Return the tables of one split of a `datasets` save: in the subset's own folder, in `train`, or right there."""
    if data.suffix == ".arrow":
        return [data]
    folders = [path for path in sorted(data.glob("*")) if path.is_dir() and path.name.lower() == subset.name.lower()]
    for folder in (*folders, data):
        for split in (folder / "train", folder):
            if (split / "state.json").is_file():
                return list_saved_files(split)
    return []


def _find_parquet_files(data: Path, subset: RoverSubset) -> list[Path]:
    """Return the files whose path names the subset, or all; of those one split, as the released code takes it."""
    files = [data]
    if not data.is_file():
        files = sorted((*data.glob("*.parquet"), *data.glob("*/*.parquet"), *data.glob("*/*/*.parquet")))
    name = subset.name.lower()
    files = [path for path in files if name in str(path.relative_to(data.parent)).lower()] or files
    files = [path for path in files if path.name.lower().startswith("train")] or files
    return [path for path in files if path.is_file()]  # a pipe would be waited for


def _open_tables(
    files: Sequence[Path], subset: RoverSubset, open_table: Callable[[Path, Collection[str]], OpenTable]
) -> RoverFiles:
    """Open the files that have the subset's columns; one that lacks some is reported."""
    require_pyarrow(files[0])
    problems: list[Problem] = []
    tables: list[OpenTable] = []
    used_files: list[Path] = []
    dimension_names: tuple[str, ...] = ()
    for path in files:
        try:
            table = open_table(path, (*COLUMNS, *subset.columns))
        except Exception as error:  # pyarrow has many kinds
            problems.append(Problem("error", path.name, "", "", f"cannot be read: {one_line(error)}"))
            continue
        missing = [column for column in subset.columns if column not in table.columns]
        if subset.marker_column not in table.columns and len(missing) > 1:
            continue  # a table of the other subset, or of something else
        if missing:
            message = f"has no column {', '.join(missing)}: all of its {table.count:,} records are left out"
            problems.append(Problem("error", path.name, "", missing[0], message))
            continue
        tables.append(table)
        used_files.append(path)
        dimension_names = dimension_names or _read_dimension_names(table.column_info)
    if not tables:
        reason = ""
        if problems:
            reason = f"; {problems[0]}"
        raise UserError(
            f"{files[0].parent}: none of its {len(files)} tables is of {subset.name}{reason}: {_format_help(subset)}"
        )
    return RoverFiles(files[0].parent / subset.name, TableRows(tables, used_files), tuple(problems), dimension_names)


def _read_dimension_names(column_info: bytes) -> tuple[str, ...]:
    """Return what the numbers in `dimension` stand for; empty if the table does not say."""
    if not column_info:
        return ()
    try:
        description = dict_or_empty(parse_json(column_info, "the description of its columns"))
    except UserError:  # the dimension is read from the ids then
        return ()
    features = dict_or_empty(description.get("info")).get("features") or description.get("features")
    names: Any = dict_or_empty(dict_or_empty(features).get("dimension")).get("names")
    if isinstance(names, list):
        return tuple(map(str, cast(list[Any], names)))
    return ()
