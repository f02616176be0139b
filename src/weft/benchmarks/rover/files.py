"""Where ROVER's records are, in any of the forms that people have them in, read one by one.

    parquet      as on the hub: ROVER-IG/train-00000-of-00002.parquet, or any folder of such files (extra `parquet`)
    a save       what `datasets` writes with save_to_disk, of one half or of both (extra `parquet`)
    JSON         ROVER-IG.json or .jsonl beside its pictures; `image` is a path

Pictures are bytes in the first two. A file is never in memory as a whole. A file that lacks a column is left out, which
is said once; the others are read."""

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
CHUNK = 8  # records of a table that are in memory at a time
AGAIN = 64  # records after which a mapped file is opened anew, so that what was read of it is let go
UNREADABLE = "\0"  # a field that no record has: why one could not be read
NAMES = b"huggingface"  # under which the hub's tables keep what their columns are
HOW = (
    "get the dataset with `weft data get rover --out DIR` (online, extra `hub`), or download the folder {half} of huggingface.co/datasets/"
    + HUB
    + " with its .parquet files and give the folder it lies in; a `datasets` save or {half}.jsonl with its pictures will do as well"
)


class RoverSubset(Struct, frozen=True):
    """One of the two: its name on the hub, what its records must have, and the column that no other half has."""

    name: str
    columns: tuple[str, ...]
    marker_column: str


class RoverFiles(Struct, frozen=True):
    """`names`: those that the numbers of the column `dimension` stand for."""

    file: Path  # what problems are said of
    rows: RecordRows
    problems: tuple[Problem, ...] = ()
    dimension_names: tuple[str, ...] = ()


def find_records(data: Path, half: RoverSubset) -> RoverFiles:
    """The records of one half in a folder, or of a file; by the dataset's name on the hub, from there."""
    if not data.exists() and "/".join(data.parts[-2:]) == HUB:
        data = download_folders(HUB, None, [half.name], half.name)
    if not data.exists():
        raise UserError(f"there is no {data}: {HOW.format(half=half.name)}")
    if data.is_file():
        written = [data]
    else:
        written = _called(data, half, ("*.json", "*.jsonl"))
    written = [path for path in written if path.suffix in (".json", ".jsonl")]
    if written:
        return RoverFiles(written[0], read_json_records(written[0]))
    if data.suffix == ".arrow":
        saves = [data]
    else:
        saves = _saves(data, half)
    if saves:
        return _tables(saves, half, _mapped)
    if data.is_file():
        files = [data]
    else:
        files = sorted(path for depth in ("", "*/", "*/*/") for path in data.glob(f"{depth}*.parquet"))
    ours = [path for path in files if half.name.lower() in str(path.relative_to(data.parent)).lower()] or files
    # one split, as the released code takes it
    ours = [path for path in ours if path.name.lower().startswith("train")] or ours
    if not ours:
        raise UserError(f"there is nothing of {half.name} in {data}: {HOW.format(half=half.name)}")
    return _tables(ours, half, _parquet)


def _called(data: Path, half: RoverSubset, patterns: Sequence[str]) -> list[Path]:
    return sorted(path for pattern in patterns for path in data.glob(pattern) if path.stem.lower() == half.name.lower())


def _saves(data: Path, half: RoverSubset) -> list[Path]:
    """The tables of a `datasets` save, of one split: in the half's own folder, in `train`, or right there."""
    named = [path for path in sorted(data.glob("*")) if path.is_dir() and path.name.lower() == half.name.lower()]
    for folder in (*named, data):
        for inner in (folder / "train", folder):
            if (inner / "state.json").is_file():
                listed: Any = dict_or_empty(read_json_file(inner / "state.json")).get("_data_files")
                names = (
                    [str(dict_or_empty(one).get("filename", "")) for one in cast(list[Any], listed)]
                    if isinstance(listed, list)
                    else []
                )
                paths = [inner / Path(name).name for name in names] or sorted(inner.glob("*.arrow"))
                return [path for path in paths if path.is_file()]
    return []


class OpenTable(Struct, frozen=True):
    count: int
    columns: tuple[str, ...]
    column_info: bytes  # what the hub says of the columns, as JSON
    rows: Callable[[], Iterable[Mapping[str, Any]]]  # each may raise UserError where it cannot be read any further


def _tables(files: Sequence[Path], half: RoverSubset, opened: Any) -> RoverFiles:
    """Files that have the half's columns; one that lacks some is named."""
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        raise UserError(
            f"{files[0]}: tables are read with pyarrow, which is not here; install the extra, from the clone: pip install -e '.[parquet]'"
        ) from None
    problems: list[Problem] = []
    tables: list[OpenTable] = []
    used: list[Path] = []
    names: tuple[str, ...] = ()
    for path in files:
        try:
            one: OpenTable = opened(path, half)
        except (OSError, ValueError) as error:  # pyarrow's own are of these
            problems.append(Problem("error", path.name, "", "", f"cannot be read: {error}"))
            continue
        if half.marker_column not in one.columns and len(set(half.columns) & set(one.columns)) < len(half.columns) - 1:
            continue  # of the other half, or of something else
        missing = [column for column in half.columns if column not in one.columns]
        if missing:
            why = f"has no column {', '.join(missing)}: all of its {one.count:,} records are left out"
            problems.append(Problem("error", path.name, "", missing[0], why))
            continue
        tables.append(one)
        used.append(path)
        names = names or _names(one.column_info)
    if not tables:
        if problems:
            why = f"; {problems[0]}"
        else:
            why = ""
        raise UserError(
            f"{files[0].parent}: none of its {len(files)} tables is of {half.name}{why}: {HOW.format(half=half.name)}"
        )
    return RoverFiles(files[0].parent / half.name, TableRows(tables, used), tuple(problems), names)


class TableRows(RecordRows):
    """The records of several tables. Where one cannot be read any further, the next is read, and `broken` says why."""

    def __init__(self, tables: Sequence[OpenTable], files: Sequence[Path]) -> None:
        self._tables = list(zip(tables, files, map(read_stamp, files), strict=True))
        self.broken: list[str] = []
        digest = hashlib.sha256("\n".join(f"{path.name} {digest_file(path)}" for path in files).encode()).hexdigest()
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


def _names(about: bytes) -> tuple[str, ...]:
    """What the numbers in `dimension` stand for."""
    try:
        known = dict_or_empty(parse_json(about, "what it says of its columns")) if about else {}
    except UserError:  # then the numbers are told by the ids
        known = {}
    info = dict_or_empty(known.get("info"))
    label = dict_or_empty(dict_or_empty(info.get("features") or known.get("features")).get("dimension"))
    names: Any = label.get("names")
    if isinstance(names, list):
        return tuple(str(name) for name in cast(list[Any], names))
    return ()


def _parquet(path: Path, half: RoverSubset) -> OpenTable:
    parquet: Any = importlib.import_module("pyarrow.parquet")  # it has no types
    table = parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    schema = table.schema_arrow
    kept = [name for name in schema.names if name in half.columns or name in KNOWN]

    def rows() -> Iterator[Mapping[str, Any]]:
        for batch in _guarded(path, table.iter_batches(batch_size=CHUNK, columns=kept, use_threads=False)):
            yield from _rows(batch)

    return OpenTable(table.metadata.num_rows, tuple(schema.names), _about(schema), rows)


def _about(schema: Any) -> bytes:
    kept: Mapping[bytes, bytes] = schema.metadata or {}
    return kept.get(NAMES, b"")


def _mapped(path: Path, half: RoverSubset) -> OpenTable:
    pyarrow: Any = importlib.import_module("pyarrow")

    def reader() -> Iterable[Any]:
        return pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))

    opened: Any = reader()
    schema = opened.schema
    kept = [name for name in schema.names if name in half.columns or name in KNOWN]
    beside = path.parent / "dataset_info.json"
    if beside.is_file():
        about = read_bytes_file(beside)
    else:
        about = _about(schema)

    sizes = [batch.num_rows for batch in _guarded(path, reader())]

    def rows() -> Iterator[Mapping[str, Any]]:
        for number, size in enumerate(sizes):
            for start in range(0, size, AGAIN):
                batch: Any = next(islice(_guarded(path, reader()), number, None)).select(kept)
                yield from _rows(batch.slice(start, min(AGAIN, size - start)))

    return OpenTable(sum(sizes), tuple(schema.names), about, rows)


def _rows(batch: Any) -> Iterator[Mapping[str, Any]]:
    """One by one: a row that cannot be read (a text that is no UTF-8) costs itself alone."""
    for at in range(batch.num_rows):
        try:
            yield batch.slice(at, 1).to_pylist()[0]
        except (OSError, ValueError) as error:
            yield {UNREADABLE: str(error)}


def _guarded(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from batches
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read any further: {error}") from None


KNOWN = (
    *("id", "dimension", "reasoning_type", "prompt", "target_description", "keywords", "image", "target_image"),
    *("problem_type", "image2", "example_image", "reasoning_image", "refer_image", "answer"),
)
