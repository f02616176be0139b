"""Finds ROVER's records in each of the forms that people have them in, and reads them one by one.

    parquet           as on the hub: ROVER-IG/train-00000-of-00002.parquet, or a folder of such files (extra `parquet`)
    `datasets` save   written with save_to_disk, of one subset or of both (extra `parquet`)
    JSON              ROVER-IG.json or .jsonl with its images in the same folder; `image` is a path

Images are bytes in the first two. A file is never in memory as a whole. A file that lacks a column is left out, which
is reported once; the others are read.
"""

import hashlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from weft.benchmarks.download import download_folders
from weft.benchmarks.record_files import (
    FileChangedError,
    RecordRows,
    check_stamp,
    digest_file,
    read_json_records,
    read_stamp,
)
from weft.errors import UserError
from weft.types import Problem
from weft.untrusted import dict_or_empty, parse_json, read_bytes_file, read_json_file

HUB = "cheryyunl/ROVER"
BATCH_ROWS = 8  # rows of a parquet file in memory at a time
REOPEN_AFTER = 64  # rows after which a mapped file is reopened, so that the pages read so far are released
UNREADABLE = "\0"  # a field that no record has: why a row could not be read
MAX_REASON = 200  # characters of what the library says
HUB_METADATA = b"huggingface"  # the key under which the hub's tables describe their columns
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


class OpenTable(Struct, frozen=True):
    """A parquet or arrow file."""

    count: int  # of rows
    columns: tuple[str, ...]
    column_info: bytes  # the hub's description of the columns, as JSON
    rows: Callable[[], Iterable[Mapping[str, Any]]]  # raises UserError where the file cannot be read any further


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
        return _open_tables(arrow_files, subset, _open_arrow)
    parquet_files = _find_parquet_files(data, subset)
    if parquet_files:
        return _open_tables(parquet_files, subset, _open_parquet)
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
                return _list_saved_files(split)
    return []


def _list_saved_files(folder: Path) -> list[Path]:
    """Return the files that a save's state lists; without a list, all arrow files."""
    entries: Any = dict_or_empty(read_json_file(folder / "state.json")).get("_data_files")
    paths: list[Path] = []
    if isinstance(entries, list):
        for entry in cast(list[Any], entries):
            filename = str(dict_or_empty(entry).get("filename", ""))
            paths.append(folder / Path(filename).name)
    if not paths:
        paths = sorted(folder.glob("*.arrow"))
    return [path for path in paths if path.is_file()]


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
    files: Sequence[Path], subset: RoverSubset, open_table: Callable[[Path, RoverSubset], OpenTable]
) -> RoverFiles:
    """Open the files that have the subset's columns; one that lacks some is reported."""
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        raise UserError(
            f"{files[0]}: tables are read with pyarrow, which is not installed; install the extra, from the clone: "
            "pip install -e '.[parquet]'"
        ) from None
    problems: list[Problem] = []
    tables: list[OpenTable] = []
    used_files: list[Path] = []
    dimension_names: tuple[str, ...] = ()
    for path in files:
        try:
            table = open_table(path, subset)
        except Exception as error:  # pyarrow has many kinds
            problems.append(Problem("error", path.name, "", "", f"cannot be read: {_one_line(error)}"))
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


class TableRows(RecordRows):
    """The records of several tables. Where one cannot be read any further, the next is read, and `broken` says why."""

    def __init__(self, tables: Sequence[OpenTable], files: Sequence[Path]) -> None:
        self._tables = list(zip(tables, files, map(read_stamp, files), strict=True))
        self.broken: list[str] = []
        lines = [f"{path.name} {digest_file(path)}" for path in files]
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        super().__init__(digest, sum(table.count for table in tables))

    def __iter__(self) -> Iterator[Any]:
        self.broken.clear()
        for table, path, stamp in self._tables:
            try:
                for row in table.rows():
                    check_stamp(path, stamp)
                    yield row
            except FileChangedError:
                raise
            except UserError as error:
                self.broken.append(str(error))


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


def _open_parquet(path: Path, subset: RoverSubset) -> OpenTable:
    parquet: Any = importlib.import_module("pyarrow.parquet")  # it has no types
    table = parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    schema = table.schema_arrow
    columns = _select_columns(schema, subset)

    def rows() -> Iterator[Mapping[str, Any]]:
        batches = table.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False)
        for batch in _guard_batches(path, batches):
            yield from _read_rows(batch)

    return OpenTable(table.metadata.num_rows, tuple(schema.names), _read_column_info(schema), rows)


def _select_columns(schema: Any, subset: RoverSubset) -> list[str]:
    """Return the columns that are read. Raises ValueError if one of them is there twice."""
    columns = [name for name in schema.names if name in subset.columns or name in COLUMNS]
    for name in columns:
        if columns.count(name) > 1:
            raise ValueError(f"it has two columns {name}")
    return columns


def _read_column_info(schema: Any) -> bytes:
    metadata: Mapping[bytes, bytes] = schema.metadata or {}
    return metadata.get(HUB_METADATA, b"")


def _open_arrow(path: Path, subset: RoverSubset) -> OpenTable:
    pyarrow: Any = importlib.import_module("pyarrow")

    def open_stream() -> Any:
        return pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))

    schema = open_stream().schema
    columns = _select_columns(schema, subset)
    column_info = _read_column_info(schema)
    info_file = path.parent / "dataset_info.json"
    if info_file.is_file():
        column_info = read_bytes_file(info_file)
    sizes = [batch.num_rows for batch in _guard_batches(path, open_stream())]

    def rows() -> Iterator[Mapping[str, Any]]:
        for number, size in enumerate(sizes):
            for start in range(0, size, REOPEN_AFTER):
                batch: Any = next(islice(_guard_batches(path, open_stream()), number, None)).select(columns)
                yield from _read_rows(batch.slice(start, min(REOPEN_AFTER, size - start)))

    return OpenTable(sum(sizes), tuple(schema.names), column_info, rows)


def _read_rows(batch: Any) -> Iterator[Mapping[str, Any]]:
    """Yield rows one by one: a row that cannot be read (a text that is no UTF-8) costs only itself."""
    for index in range(batch.num_rows):
        try:
            row = batch.slice(index, 1)
            row.validate(full=True)  # an offset that leads out of its buffer would be read there, and end the process
            yield row.to_pylist()[0]
        except Exception as error:  # a time or a number that Python does not have is an error of any kind
            yield {UNREADABLE: _one_line(error)}


def _guard_batches(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from batches
    except Exception as error:
        raise UserError(f"{path} cannot be read any further: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:MAX_REASON] or type(error).__name__
