"""Tables of records with images: parquet files as on the Hugging Face hub, and `datasets` saves (extra `parquet`).

Images are bytes in their rows. A file is never in memory as a whole; a row that cannot be read costs only itself.
"""

import hashlib
import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from weft.benchmarks.record_files import FileChangedError, RecordRows, check_stamp, digest_file, read_stamp
from weft.errors import UserError
from weft.untrusted import dict_or_empty, read_bytes_file, read_json_file

BATCH_ROWS = 8  # rows of a parquet file in memory at a time
REOPEN_AFTER = 64  # rows after which a mapped file is reopened, so that the pages read so far are released
UNREADABLE = "\0"  # a field that no record has: why a row could not be read
MAX_REASON = 200  # characters of what the library says
HUB_METADATA = b"huggingface"  # the key under which the hub's tables describe their columns


class OpenTable(Struct, frozen=True):
    """A parquet or arrow file."""

    count: int  # of rows
    columns: tuple[str, ...]
    column_info: bytes  # the hub's description of the columns, as JSON
    rows: Callable[[], Iterable[Mapping[str, Any]]]  # raises UserError where the file cannot be read any further


def require_pyarrow(file: Path) -> None:
    """Raise UserError if tables cannot be read here."""
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        raise UserError(
            f"{file}: tables are read with pyarrow, which is not installed; install the extra, from the clone: "
            "pip install -e '.[parquet]'"
        ) from None


def list_saved_files(folder: Path) -> list[Path]:
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


def open_parquet(path: Path, wanted: Collection[str]) -> OpenTable:
    """Open a parquet file; of its columns only those that are wanted are read."""
    parquet: Any = importlib.import_module("pyarrow.parquet")  # it has no types
    table = parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    schema = table.schema_arrow
    columns = _select_columns(schema, wanted)

    def rows() -> Iterator[Mapping[str, Any]]:
        batches = table.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False)
        for batch in _guard_batches(path, batches):
            yield from _read_rows(batch)

    return OpenTable(table.metadata.num_rows, tuple(schema.names), _read_column_info(schema), rows)


def _select_columns(schema: Any, wanted: Collection[str]) -> list[str]:
    """Return the columns that are read. Raises ValueError if one of them is there twice."""
    columns = [name for name in schema.names if name in wanted]
    for name in columns:
        if columns.count(name) > 1:
            raise ValueError(f"it has two columns {name}")
    return columns


def _read_column_info(schema: Any) -> bytes:
    metadata: Mapping[bytes, bytes] = schema.metadata or {}
    return metadata.get(HUB_METADATA, b"")


def open_arrow(path: Path, wanted: Collection[str]) -> OpenTable:
    """Open a table of a `datasets` save; of its columns only those that are wanted are read."""
    pyarrow: Any = importlib.import_module("pyarrow")

    def open_stream() -> Any:
        return pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))

    schema = open_stream().schema
    columns = _select_columns(schema, wanted)
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
            yield {UNREADABLE: one_line(error)}


def _guard_batches(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from batches
    except Exception as error:
        raise UserError(f"{path} cannot be read any further: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """Return what an error says, in one line."""
    return " ".join(str(error).split())[:MAX_REASON] or type(error).__name__
