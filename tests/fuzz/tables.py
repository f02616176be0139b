"""Parquet and Arrow tables whose columns are of other types, names and shapes, or whose bytes were changed: each record
is loaded, or left out and named, and no error has two lines."""

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz import Broken
from fuzz.spoil import ODD, spoil_bytes
from rover import as_table, puzzles, tasks
from weft import benchmarks
from weft.errors import UserError
from weft.store.blobs import Blobs

NAMES = ["", "prompt", "image", "\0", "\x1b[31m", "x" * 5000, "id", "../../x", "dimension", "é\u202e"]
NESTING = 200
MANY_COLUMNS = 3000


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    try:
        import pyarrow as pa
    except ImportError:
        print("  pyarrow is not here, so tables are not attacked", flush=True)
        return Counter({"skipped": 1})
    done: Counter[str] = Counter()
    for number in range(count):
        half, records = chance.choice([("ROVER-IG", tasks()), ("ROVER-TG", puzzles())])
        data = folder / f"tables-{number}" / half
        data.mkdir(parents=True)
        change = chance.choice(list(CHANGES))
        table = as_table(records)
        try:
            table = CHANGES[change](pa, table, chance)
            file = _write(pa, table, data, chance)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):  # not a table that pyarrow writes
            done["not written"] += 1
            shutil.rmtree(data.parent)
            continue
        if chance.random() < 0.2:
            file.write_bytes(spoil_bytes(file.read_bytes(), chance))
        done[_load(half, data.parent, change)] += 1
        shutil.rmtree(data.parent)
    done["tables"] = count
    return done


def _load(half: str, data: Path, change: str) -> str:
    benchmark = benchmarks.load_benchmark(half.lower())
    try:
        dataset = benchmark.load(data, Blobs(data / "blobs")).load_all()
    except UserError as error:
        if "\n" in str(error):
            raise Broken(f"{change}: an error of more than one line: {error}") from None
        return "refused whole"
    for problem in dataset.problems:
        if "\n" in str(problem):
            raise Broken(f"{change}: a problem of more than one line: {problem}")
    return "loaded" if dataset.samples else "all left out"


def _write(pa: Any, table: Any, data: Path, chance: random.Random) -> Path:
    from pyarrow import parquet

    if chance.random() < 0.6:
        file = data / "train.parquet"
        parquet.write_table(table, file, compression=chance.choice(["snappy", "gzip", "zstd", "none"]))
        return file
    file = data / "data-00000-of-00001.arrow"
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    (data / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    return file


def _column(table: Any, chance: random.Random) -> int:
    return chance.randrange(len(table.schema.names))


def other_type(pa: Any, table: Any, chance: random.Random) -> Any:
    rows = table.num_rows
    numbers = pa.array([chance.choice([0, -1, 2**62, -(2**63)]) for _ in range(rows)], pa.int64())
    arrays: list[Callable[[], Any]] = [
        lambda: numbers,
        lambda: pa.nulls(rows),
        lambda: numbers.view(pa.timestamp("ns", tz="No/Where")),
        lambda: numbers.view(pa.timestamp("s")),
        lambda: numbers.view(pa.duration("s")),
        lambda: numbers.view(pa.date64()),
        lambda: numbers.view(pa.time64("ns")),
        lambda: pa.array([float("nan"), float("inf"), -0.0, 1e308, 1.0][:rows], pa.float64()),
        lambda: pa.array([True] * rows),
        lambda: pa.array([b"\xff\xfe"] * rows, pa.binary()).view(pa.string()),
        lambda: pa.array(["a"] * rows).dictionary_encode(),
        lambda: pa.array([[("k", 1), ("k", 2)]] * rows, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([10**70] * rows, pa.decimal256(76)),
        lambda: pa.array([(2**31 - 1, -(2**31), 2**63 - 1)] * rows, pa.month_day_nano_interval()),
        lambda: pa.StructArray.from_arrays([numbers, numbers], names=["bytes", "bytes"]),
        lambda: pa.StructArray.from_arrays([numbers, numbers], names=["bytes", "path"]),
        lambda: pa.array([["x"] * 1000] * rows),
        lambda: pa.array(["x" * 5_000_000] * rows, pa.large_string()),
        lambda: _nested(pa, rows),
        lambda: pa.RunEndEncodedArray.from_arrays([rows], ["x"]),
        lambda: pa.UnionArray.from_sparse(pa.array([0] * rows, pa.int8()), [numbers]),
        lambda: pa.array([chance.choice([one for one in ODD if isinstance(one, str)]) for _ in range(rows)]),
    ]
    at = _column(table, chance)
    return table.set_column(at, table.schema.names[at], chance.choice(arrays)())


def _nested(pa: Any, rows: int) -> Any:
    array = pa.array([1] * rows)
    for _ in range(NESTING):
        array = pa.StructArray.from_arrays([array], names=["a"])
    return array


def other_name(pa: Any, table: Any, chance: random.Random) -> Any:
    names = list(table.schema.names)
    names[_column(table, chance)] = chance.choice(NAMES)
    return table.rename_columns(names)


def same_name(pa: Any, table: Any, chance: random.Random) -> Any:
    at = _column(table, chance)
    return table.append_column(table.schema.names[at], table.column(_column(table, chance)))


def many_columns(pa: Any, table: Any, chance: random.Random) -> Any:
    more = {f"c{number}": pa.nulls(table.num_rows) for number in range(MANY_COLUMNS)}
    return pa.table({**{name: table.column(name) for name in table.schema.names}, **more})


def no_column(pa: Any, table: Any, chance: random.Random) -> Any:
    return table.remove_column(_column(table, chance))


def no_rows(pa: Any, table: Any, chance: random.Random) -> Any:
    return table.slice(0, 0)


def odd_metadata(pa: Any, table: Any, chance: random.Random) -> Any:
    text = chance.choice([b"", b"{", b"[" * 5000, b"5", b'{"info": 5}', b'{"info": {"features": {"dimension": {"names": {"a": 1}}}}}', b"\xff"])  # fmt: skip
    return table.replace_schema_metadata({b"huggingface": text, b"ARROW:schema": b"x"})


CHANGES: dict[str, Callable[[Any, Any, random.Random], Any]] = {
    "another type": other_type,
    "another type again": other_type,
    "another name": other_name,
    "a name twice": same_name,
    "many columns": many_columns,
    "no column": no_column,
    "no rows": no_rows,
    "odd metadata": odd_metadata,
}
