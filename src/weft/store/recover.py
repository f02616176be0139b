"""A damaged journal: what of it can be read is written into a new one, and the old one is kept beside it.

Rows are read one by one through SQLite, over whatever it cannot read. Calls are what was paid for: where SQLite does
not come to all of them, they are looked for page by page as well, which needs neither the file's directory nor its
trees. They are never changed once they are written, so that a row that is found anywhere is right if it is whole. What
runs made of their calls is made anew from them by the same command, at no cost."""

import contextlib
import math
import shutil
import sqlite3
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.store.annotations import Annotation, Study
from weft.store.journal import Journal, parse_run_record
from weft.store.records import CallRecord
from weft.store.schema import VERSION, journal_file
from weft.types import Reply, Verdict

COLUMNS = {
    "calls": ("id", *CallRecord.__struct_fields__),
    "voids": ("call", "run", "round", "reason"),
    "runs": (
        "id",
        "manifest",
        "round",
        "state",
        "started",
        "ended",
        "left_out",
        "benchmark",
        "begun",
        "data",
        "names",
        "gist",
        "shards",
        "samples",
        "turns",
    ),
    "replies": ("run", "sample", "turn", "position", "groups", "want", "seen", "reply", "about"),
    "verdicts": ("run", "sample", "turn", "metric", "variant", "verdict"),
    "studies": ("id", "run", "made", "settings"),
    "ratings": ("run", "study", "item", "rater", "verdicts", "answer", "at", "seconds", "attention"),
    "tickets": ("key", "ticket", "endpoint", "at"),
}
USUAL: dict[str, Any] = {
    "about": "{}",
    "begun": 0.0,
    "data": "",
    "variant": "",
    "benchmark": "",
    "left_out": "[]",
    "names": "{}",
    "gist": "{}",
    "shards": "{}",
}
NULLABLE = ("cost", "ended", "samples", "turns")
MAGIC = b"SQLite format 3\0"
Row = tuple[Any, ...]


class JournalHealth(Struct, frozen=True):
    """`problems`: what is wrong with it. `saved` and `lost`: rows by table; what is lost without a trace is not
    counted."""

    problems: list[str]
    recovered: dict[str, int]
    lost: dict[str, int]
    damaged_path: str = ""  # where the damaged one is now


def check_journal(path: Path, *, save: bool = True) -> JournalHealth:
    """Look at every row of a journal; if something is wrong with it and `save`, put what can be read in its place."""
    if not path.is_file():
        raise UserError(f"there is no journal at {path}")
    with tempfile.TemporaryDirectory(prefix=".check-", dir=path.parent if save else None) as folder:
        copy = Path(folder) / "copy.sqlite"
        for suffix in ("", "-wal"):  # never the original
            if path.with_name(path.name + suffix).is_file():
                shutil.copyfile(path.with_name(path.name + suffix), copy.with_name(copy.name + suffix))
        problems, rows, lost = _read_all(copy)
        saved = {table: len(some) for table, some in rows.items()}
        kept = ""
        if problems and save:
            made = journal_file(folder)
            _write(made, rows, whole=not any(lost.values()))
            kept = _replace(path, made)
    return JournalHealth(problems, saved, lost, kept)


def _read_all(copy: Path) -> tuple[list[str], dict[str, list[Row]], dict[str, int]]:
    problems: list[str] = []
    has: set[str] = set()
    rows: dict[str, list[Row]] = {table: [] for table in COLUMNS}
    lost = dict.fromkeys(COLUMNS, 0)
    data = bytearray(copy.read_bytes())
    if bytes(data[:16]) != MAGIC:
        problems.append("it does not begin as a journal does")
        data[:16] = MAGIC
        copy.write_bytes(data)
    db = sqlite3.connect(copy)
    db.text_factory = bytes
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if isinstance(version, int) and version != VERSION and 0 < version < 1000:  # more would be damage
            raise UserError(
                f"this journal was written by another weft (version {version}, this one knows {VERSION}): use that one"
            )
        found = [str(row[0].decode("utf-8", "replace")) for row in db.execute("PRAGMA integrity_check(5)")]
        problems += [" ".join(one.split())[:200] for one in found if one != "ok"]
    except (sqlite3.Error, UnicodeError, MemoryError) as error:  # SQLite may quote what is no text
        problems.append((str(error) or type(error).__name__).splitlines()[0])
    with contextlib.suppress(sqlite3.Error, UnicodeError, MemoryError):
        has = {row[0].decode() for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, columns in COLUMNS.items():
        if table not in has:
            problems.append(f"there is no table of {table}")
        there, bad = _walk(db, table, columns)
        rows[table] = [row for one in there if (row := validate_row(table, one)) is not None]
        lost[table] = len(there) - len(rows[table]) + bad
        if lost[table]:
            problems.append(f"{lost[table]} rows of {table} cannot be read")
    with contextlib.suppress(sqlite3.Error, UnicodeError, MemoryError):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    if problems:
        known = {row[0]: row for row in rows["calls"]}
        for raw in scan_pages(copy.read_bytes(), len(COLUMNS["calls"])):
            row = validate_row("calls", raw)
            if row is not None:
                known.setdefault(row[0], row)
        lost["calls"] = max(0, lost["calls"] - (len(known) - len(rows["calls"])))
        rows["calls"] = [known[number] for number in sorted(known)]
    return problems, rows, lost


def _walk(db: sqlite3.Connection, table: str, columns: Sequence[str]) -> tuple[list[Row], int]:
    """Every row that SQLite can read, and how many it cannot; one after the other where it cannot read on."""
    try:
        has = {row[1].decode() for row in db.execute(f"PRAGMA table_info({table})")}
    except (sqlite3.Error, UnicodeError, MemoryError):
        return [], 0
    if not has:
        return [], 0
    wanted = ", ".join(column if column in has else f"{_literal(USUAL.get(column))}" for column in columns)
    found: dict[int, Row] = {}
    failed = 0
    at = -1
    while failed < 2000:
        try:
            for number, *row in db.execute(
                f"SELECT rowid, {wanted} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid", (at,)
            ):
                found[number] = tuple(row)
                at = number
            break
        except (sqlite3.Error, UnicodeError, OverflowError, MemoryError):
            failed += 1
            at += 1
    if failed:  # from the other end, over what is in between
        try:
            for number, *row in db.execute(
                f"SELECT rowid, {wanted} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid DESC", (at,)
            ):
                found.setdefault(number, tuple(row))
        except (sqlite3.Error, UnicodeError, OverflowError, MemoryError):
            pass
    return [found[number] for number in sorted(found)], min(failed, 1)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return repr(value)
    return "'" + value.replace("'", "''") + "'"


def validate_row(table: str, row: Sequence[Any]) -> Row | None:
    """The row with its texts as text, if everything in it is what it must be."""
    try:
        made = tuple(one.decode() if isinstance(one, bytes) else one for one in row)
        named = dict(zip(COLUMNS[table], made, strict=True))
        for column, value in named.items():
            if (value is None and column not in NULLABLE) or (isinstance(value, float) and not math.isfinite(value)):
                return None
        if table == "calls":
            msgspec.convert(named, CallRecord)
            msgspec.json.decode(named["reply"], type=Reply)
            msgspec.json.decode(named["request"])
            int(named["id"])
        elif table == "runs":
            parse_run_record(named)
        elif table == "replies":
            for key, kind in (("reply", Reply), ("groups", dict[str, str]), ("seen", Any), ("about", Any)):
                msgspec.json.decode(named[key], type=kind)
        elif table == "verdicts":
            msgspec.json.decode(named["verdict"], type=Verdict)
        elif table == "ratings":
            decoded = {key: msgspec.json.decode(named[key]) for key in ("verdicts", "answer")}
            msgspec.convert({**named, **decoded, "attention": bool(named["attention"])}, Annotation)
        elif table == "studies":
            msgspec.convert({**named, "settings": msgspec.json.decode(named["settings"])}, Study)
        return made
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError, ValueError):
        return None


def _write(path: Path, rows: dict[str, list[Row]], *, whole: bool) -> None:
    Journal(path).close()
    db = sqlite3.connect(path)
    for table, columns in COLUMNS.items():
        marks = ", ".join("?" * len(columns))
        db.executemany(f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows[table])
    if not whole:  # the same command makes anew what is missing
        db.execute("UPDATE runs SET state = 'stopped' WHERE state = 'finished'")
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def _replace(path: Path, made: Path) -> str:
    """The new one in the place of the old, which is kept."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("-wal", "-shm"):
        if path.with_name(path.name + suffix).exists():
            path.with_name(path.name + suffix).rename(kept.with_name(kept.name + suffix))
    path.rename(kept)
    made.rename(path)
    return str(kept)


# pages, as https://www.sqlite.org/fileformat2.html has them


def scan_pages(data: bytes, columns: int) -> Iterator[Row]:
    """Rows with so many columns from every page that is a leaf of some table; the first, which is the row's own number,
    is put in."""
    size = int.from_bytes(data[16:18], "big")
    if size == 1:
        size = 65536
    if size < 512 or size & (size - 1):
        size = 4096
    usable = size - data[20]
    for start in range(0, len(data), size):
        page = data[start : start + size]
        if start == 0:
            head = 100
        else:
            head = 0
        if len(page) == size and page[head] == 0x0D:
            for at in range(min(int.from_bytes(page[head + 3 : head + 5], "big"), size // 4)):
                place = int.from_bytes(page[head + 8 + 2 * at : head + 10 + 2 * at], "big")
                try:
                    row = _cell(data, page, place, usable, size, columns)
                except (IndexError, ValueError, OverflowError):
                    continue
                if row is not None:
                    yield row


def _cell(data: bytes, page: bytes, place: int, usable: int, size: int, columns: int) -> Row | None:
    length, place = _varint(page, place)
    number, place = _varint(page, place)
    most = usable - 35
    local = length
    if length > most:
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        if not (local <= most):
            local = least
    if not 0 < length <= len(data) or place + local > len(page):
        return None
    payload = bytearray(page[place : place + local])
    if length > local:
        following = int.from_bytes(page[place + local : place + local + 4], "big")
    else:
        following = 0
    while len(payload) < length:
        if not 0 < following <= len(data) // size:
            return None
        more = data[(following - 1) * size : following * size]
        payload += more[4 : 4 + min(usable - 4, length - len(payload))]
        following = int.from_bytes(more[:4], "big")
    return _record(bytes(payload), number, columns)


def _record(payload: bytes, number: int, columns: int) -> Row | None:
    head, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < head:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    if len(kinds) != columns or at != head:
        return None
    values = list(_values(payload, head, kinds))
    if values[0] is None:
        values[0] = number
    return tuple(values)


def _values(payload: bytes, at: int, kinds: Iterable[int]) -> Iterator[Any]:
    sizes = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
    for kind in kinds:
        if kind < 10:
            size = sizes[kind]
        else:
            size = (kind - 12) // 2
        raw = payload[at : at + size]
        if len(raw) != size or kind in (10, 11):
            raise ValueError("cut short")
        at += size
        if kind == 0:
            yield None
        elif kind in (8, 9):
            yield kind - 8
        elif kind == 7:
            yield struct.unpack(">d", raw)[0]
        else:
            yield raw if kind > 9 else int.from_bytes(raw, "big", signed=True)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(9):
        byte = data[at + step]
        if step == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            return value, at + step + 1
    raise ValueError("no number")
