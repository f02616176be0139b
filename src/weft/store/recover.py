"""Recovers a damaged journal: everything that can be read is written into a new one, and the damaged one is kept.

Rows are read one by one through SQLite, skipping whatever it cannot read. Calls are what was paid for: where SQLite
does not reach all of them, they are also searched page by page, which needs neither the file's schema nor its trees. A
call is never changed once it is written, so a whole row is right wherever it is found. What runs made of their calls is
made anew from them by the same command, at no cost.
"""

import contextlib
import math
import mmap
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.store.annotations import Annotation, parse_study
from weft.store.connection import JournalConnection, copy_journal, explain_errors
from weft.store.journal import Journal
from weft.store.records import CallRecord, is_time, parse_run_record
from weft.store.schema import VERSION, journal_file
from weft.store.sqlite_pages import scan_pages
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
DEFAULTS: dict[str, Any] = {
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
COLUMN_TYPES: dict[str, type] = {  # of columns that more than one table has, or no type has
    **dict.fromkeys(("run", "sample", "metric", "variant", "key", "ticket", "endpoint", "reason", "want"), str),
    **dict.fromkeys(("turn", "position", "call", "round"), int),
}
TIMES = ("at", "made", "begun")
NULLABLE = ("cost", "ended", "samples", "turns")
SQLITE_HEADER = b"SQLite format 3\0"
MAX_SKIPPED_ROWS = 2000  # of a table, after which the rest is read from its end
SQLITE_ERRORS = (sqlite3.Error, UnicodeError, MemoryError)  # SQLite may quote bytes that are not UTF-8
SqlRow = tuple[Any, ...]


class JournalHealth(Struct, frozen=True):
    """What is wrong with a journal, and what was recovered."""

    problems: list[str]
    recovered: dict[str, int]  # rows by table
    lost: dict[str, int]  # rows by table; those that left no trace are not counted
    damaged_path: str = ""  # where the damaged journal is now


def check_journal(path: Path, *, save: bool = True) -> JournalHealth:
    """Check every row of a journal. If something is wrong and `save`, replace it by one with all readable rows."""
    if not path.is_file():
        raise UserError(f"there is no journal at {path}")
    folder = path.parent if save else None
    with tempfile.TemporaryDirectory(prefix=".check-", dir=folder) as temporary:
        copy = Path(temporary) / "copy.sqlite"
        copy_journal(path, copy)
        recovery = _Recovery(copy)
        recovered = {table: len(rows) for table, rows in recovery.rows.items()}
        damaged_path = ""
        if recovery.problems and save:
            new = journal_file(temporary)
            _write_journal(new, recovery.rows, whole=not any(recovery.lost.values()))
            damaged_path = _replace(path, new)
    return JournalHealth(recovery.problems, recovered, recovery.lost, damaged_path)


class _Recovery:
    """All readable rows of a copy of a journal, by table, and what is wrong with it. The copy may be changed."""

    def __init__(self, copy: Path) -> None:
        self.problems: list[str] = []
        self.rows: dict[str, list[SqlRow]] = {}
        self.lost: dict[str, int] = {}
        self._restore_header(copy)
        db = sqlite3.connect(copy, factory=JournalConnection)
        db.watch(copy)
        db.text_factory = bytes
        self._check_integrity(db)
        self._read_tables(db)
        with contextlib.suppress(*SQLITE_ERRORS):
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        if self.problems:
            self._scan_for_calls(copy)

    def _restore_header(self, copy: Path) -> None:
        with copy.open("r+b") as file:
            if file.read(len(SQLITE_HEADER)) != SQLITE_HEADER:
                self.problems.append("its header is not that of an SQLite file")
                file.seek(0)
                file.write(SQLITE_HEADER)

    def _check_integrity(self, db: sqlite3.Connection) -> None:
        """Ask SQLite what is wrong. Raises UserError for a journal of another version of weft."""
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if isinstance(version, int) and version != VERSION and 0 < version < 1000:  # more would be damage
                raise UserError(
                    f"this journal was written by another weft (version {version}, this one knows {VERSION}): "
                    "use that one"
                )
            for row in db.execute("PRAGMA integrity_check(5)"):
                message = str(row[0].decode("utf-8", "replace"))
                if message != "ok":
                    self.problems.append(" ".join(message.split())[:200])
            for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
                sql.decode()  # SQLite itself takes any bytes
        except SQLITE_ERRORS as error:
            self.problems.append((str(error) or type(error).__name__).splitlines()[0])

    def _read_tables(self, db: sqlite3.Connection) -> None:
        tables: set[str] = set()
        with contextlib.suppress(*SQLITE_ERRORS):  # what is no plain table could compute its rows for ever
            is_table = "type = 'table' AND sql LIKE 'CREATE TABLE %'"
            tables = {row[0].decode() for row in db.execute(f"SELECT name FROM sqlite_master WHERE {is_table}")}
        for table, columns in COLUMNS.items():
            rows: list[SqlRow] = []
            skipped = 0
            if table in tables:
                rows, skipped = _read_table(db, table, columns)
            else:
                self.problems.append(f"the table {table} is missing")
            self.rows[table] = []
            for row in rows:
                valid = validate_row(table, row)
                if valid is not None:
                    self.rows[table].append(valid)
            self.lost[table] = len(rows) - len(self.rows[table]) + skipped
            if self.lost[table]:
                self.problems.append(f"{self.lost[table]} rows of {table} cannot be read")

    def _scan_for_calls(self, copy: Path) -> None:
        """Add calls that SQLite did not reach."""
        before = len(self.rows["calls"])
        calls = {row[0]: row for row in self.rows["calls"]}
        with copy.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for row in scan_pages(data, len(COLUMNS["calls"])):
                valid = validate_row("calls", row)
                if valid is not None:
                    calls.setdefault(valid[0], valid)
        self.lost["calls"] = max(0, self.lost["calls"] - (len(calls) - before))
        self.rows["calls"] = [calls[call] for call in sorted(calls)]


def _read_table(db: sqlite3.Connection, table: str, columns: Sequence[str]) -> tuple[list[SqlRow], int]:
    """Return every row that SQLite can read, in order, and 1 if there are rows that it cannot, else 0."""
    try:
        present = {row[1].decode() for row in db.execute(f"PRAGMA table_info({table})")}
    except SQLITE_ERRORS:
        return [], 0
    if not present:
        return [], 0
    expressions = [column if column in present else _sql_literal(DEFAULTS.get(column)) for column in columns]
    select = f"SELECT rowid, {', '.join(expressions)} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
    rows: dict[int, SqlRow] = {}
    last = -1
    failures = 0
    while failures < MAX_SKIPPED_ROWS:
        try:
            for number, row in _numbered_rows(db, select, last):
                rows[number] = row
                last = number
            break
        except (*SQLITE_ERRORS, OverflowError) as error:
            failures += 1
            last += 1
            if "interrupted" in str(error):  # the tree has no end: whatever was not reached is searched on its pages
                return [rows[number] for number in sorted(rows)], 1
    if failures:  # also from the end, down to what cannot be read
        with contextlib.suppress(*SQLITE_ERRORS, OverflowError):
            for number, row in _numbered_rows(db, f"{select} DESC", last):
                rows.setdefault(number, row)
    return [rows[number] for number in sorted(rows)], min(failures, 1)


def _numbered_rows(db: sqlite3.Connection, select: str, after: int) -> Iterator[tuple[int, SqlRow]]:
    for number, *row in db.execute(select, (after,)):
        yield number, tuple(row)


def _sql_literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return repr(value)
    return "'" + value.replace("'", "''") + "'"


def validate_row(table: str, row: Sequence[Any]) -> SqlRow | None:
    """Return the row with its bytes decoded to text; None if any of its values is invalid."""
    try:
        decoded = [value.decode() if isinstance(value, bytes) else value for value in row]
        columns = dict(zip(COLUMNS[table], decoded, strict=True))
        for column, value in columns.items():
            if value is None and column not in NULLABLE:
                return None
            if isinstance(value, float) and not math.isfinite(value):
                return None
        for column, kinds in COLUMN_TYPES.items():
            if column in columns and not isinstance(columns[column], kinds):
                return None
        if not all(is_time(columns[column]) for column in TIMES if column in columns):
            return None
        _validate_json(table, columns)
        return tuple(decoded)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError, ValueError):
        return None


def _validate_json(table: str, columns: dict[str, Any]) -> None:
    """Raise an error if a column that holds JSON, or a whole row, cannot be parsed."""
    if table == "calls":
        msgspec.convert(columns, CallRecord)
        msgspec.json.decode(columns["reply"], type=Reply)
        msgspec.json.decode(columns["request"])
        int(columns["id"])
    elif table == "runs":
        parse_run_record(columns)
    elif table == "replies":
        for column, type in (("reply", Reply), ("groups", dict[str, str]), ("seen", Any), ("about", Any)):
            msgspec.json.decode(columns[column], type=type)
    elif table == "verdicts":
        verdict = msgspec.json.decode(columns["verdict"], type=Verdict)
        place = (verdict.sample, verdict.turn, verdict.metric, verdict.variant)
        if place != tuple(columns[column] for column in ("sample", "turn", "metric", "variant")):
            raise ValueError("it is about another turn than its row")
    elif table == "ratings":
        values = dict(columns)
        values["verdicts"] = msgspec.json.decode(columns["verdicts"])
        values["answer"] = msgspec.json.decode(columns["answer"])
        values["attention"] = bool(columns["attention"])
        msgspec.convert(values, Annotation)
    elif table == "studies":
        parse_study([columns[column] for column in COLUMNS[table]])


def _write_journal(path: Path, rows: dict[str, list[SqlRow]], *, whole: bool) -> None:
    Journal(path).close()
    db = sqlite3.connect(path)
    with contextlib.closing(db), explain_errors(path):
        for table, columns in COLUMNS.items():
            marks = ", ".join("?" * len(columns))
            db.executemany(f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows[table])
        if not whole:  # the same command makes anew what is missing
            db.execute("UPDATE runs SET state = 'stopped' WHERE state = 'finished'")
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _replace(path: Path, new: Path) -> str:
    """Rename the damaged journal, put the new one in its place, and return the damaged one's path."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    damaged = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        if file.exists():
            file.rename(damaged.with_name(damaged.name + suffix))
    path.rename(damaged)
    new.rename(path)
    return str(damaged)
