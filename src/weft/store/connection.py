"""How a journal's file is opened, copied and read. It may come from anybody: before the first query it must be a
regular file with plain tables; no query may go on for ever, and what SQLite raises becomes one line."""

import contextlib
import re
import shutil
import sqlite3
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import StoreError, UserError, WeftError
from weft.store.schema import FOLDERS, SCHEMA, VERSION

SUFFIXES = ("", "-wal", "-shm", "-journal")  # SQLite reads these files along with the journal
BUSY_TIMEOUT_S = 30.0
NOT_DAMAGED = ("unable to open", "locked", "readonly", "I/O", "full")  # SQLite's words for other trouble
DISK_TROUBLE = ("unable to open", "I/O", "full")
UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError)  # what a row's value can raise
STEPS_AT_A_TIME = 1_000_000  # of SQLite's machine, between two looks at their number
MIN_STEPS = 5_000_000
STEPS_PER_BYTE = 20  # of the file; the most that a query of weft's takes is one in three bytes
MIN_SPARSE_BYTES = 64 * 1024**2
MAX_SPARSENESS = 100  # bytes of a file for each that is on disk; texts that a file system compresses have fewer


class DamagedJournal(UserError):
    """A journal that cannot be read."""

    def __init__(self, path: Path, reason: object) -> None:
        home = ""
        if str(path.parent) != ".weft":
            home = f" --home {path.parent}"
        text = str(reason) or type(reason).__name__
        text = text.partition(" with text ")[0]  # SQLite quotes what it cannot read
        text = " ".join(text.split())[:200]
        self.reason = text
        super().__init__(
            f"{path} cannot be used as a journal: {text}; if it is one that was damaged, "
            f"`weft journal check{home}` reports what can be recovered, and recovers it"
        )


class _StepCounter:
    """Ends a query that takes more steps than all rows of its file could need: a tree's branches may all lead to one
    page, so that a small file has more rows than can ever be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.steps = 0

    def add(self) -> bool:
        self.steps += STEPS_AT_A_TIME
        return self.steps > MIN_STEPS and self.steps > MIN_STEPS + STEPS_PER_BYTE * _allocated_bytes(self._path)


class JournalConnection(sqlite3.Connection):
    """A connection whose queries end."""

    counter: _StepCounter | None = None

    def watch(self, path: Path) -> None:
        """Limit the steps of every query from now on."""
        self.counter = _StepCounter(path)
        self.set_progress_handler(self.counter.add, STEPS_AT_A_TIME)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if self.counter is not None:
            self.counter.steps = 0
        return super().execute(sql, parameters)


def open_journal_file(path: Path, *, readonly: bool = False, autocommit: bool = False) -> sqlite3.Connection:
    """Open a journal, which is created unless `readonly`; on a read-only file system too.

    Raises UserError if it cannot be used, and DamagedJournal if it is none.
    """
    check_files(path)
    try:
        if readonly:
            db = _connect_read_only(path)
        else:
            db = _connect(str(path), path, autocommit=autocommit)
        _check_schema(db)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if readonly and not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            raise UserError(f"{path} is no journal of weft, or nothing was ever run with it")
        if version not in (0, VERSION):
            raise UserError(
                f"{path} was written by another weft (journal version {version}, this one writes {VERSION})"
            )
        if not readonly:
            _create_tables(db)
    except (sqlite3.Error, OverflowError, ValueError, MemoryError) as error:
        if isinstance(error, sqlite3.OperationalError) and any(words in str(error) for words in NOT_DAMAGED):
            raise UserError(f"{path} cannot be used as a journal: {error}") from None
        raise DamagedJournal(path, error) from None
    return db


def _connect(database: str, path: Path, *, uri: bool = False, autocommit: bool = False) -> JournalConnection:
    db = sqlite3.connect(
        database,
        timeout=BUSY_TIMEOUT_S,
        uri=uri,
        check_same_thread=False,
        isolation_level=None if autocommit else "DEFERRED",
        factory=JournalConnection,
    )
    db.watch(path)
    db.execute("PRAGMA trusted_schema = OFF")  # a journal from elsewhere must not run code
    return db


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Open a journal for reading. Where nobody may write, SQLite must be told that nobody does (`immutable`).

    It then reads no rows that are still in the file beside the journal: with those, a copy is read.
    """
    try:
        return _connect_by(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
    waiting = path.with_name(f"{path.name}-wal")
    if not waiting.exists() or waiting.stat().st_size == 0:
        return _connect_by(path, "mode=ro&immutable=1")
    return _connect_to_copy(path)


def _connect_by(path: Path, mode: str) -> sqlite3.Connection:
    db = _connect(f"{path.absolute().as_uri()}?{mode}", path, uri=True)
    try:
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


def _connect_to_copy(path: Path) -> sqlite3.Connection:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="weft-read-") as folder:
        copy = Path(folder) / path.name
        copy_journal(path, copy)
        db = sqlite3.connect(copy)
        db.execute("PRAGMA journal_mode = DELETE")  # puts all rows into the one file
        db.close()
        return _connect_by(copy, "mode=ro&immutable=1")  # an open file stays readable when its name is removed


def check_files(path: Path) -> None:
    """Raise UserError if a file of a journal is a link, a pipe, a socket or a device: a pipe would be waited for.

    No folder beside it may be a link either: what is written to a home, or removed from it, would be elsewhere.
    """
    for suffix in SUFFIXES:
        file = path.with_name(path.name + suffix)
        kind = _kind_of(file)
        if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise UserError(f"{file} cannot be used as a journal: it is not a regular file")
    for name in FOLDERS:
        if stat.S_ISLNK(_kind_of(path.with_name(name))):
            raise UserError(
                f"{path.with_name(name)} is a symbolic link, which a home must not have (the home itself may be one)"
            )


def _kind_of(path: Path) -> int:
    """Return the mode of a file or link; 0 if there is none."""
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def copy_journal(path: Path, copy: Path) -> None:
    """Copy a journal with the rows that are still beside it: opening the original might change it.

    Raises UserError if it is no regular file, claims to be larger than it can be, or is too large for the disk.
    """
    check_files(path)
    sizes: dict[Path, int] = {}
    for suffix in ("", "-wal"):
        file = path.with_name(path.name + suffix)
        if not file.exists():
            continue
        size = file.stat().st_size
        if size > MIN_SPARSE_BYTES and size > MAX_SPARSENESS * _allocated_bytes(file):
            raise UserError(f"{file} cannot be used as a journal: most of its {size:,} bytes were never written")
        sizes[copy.with_name(copy.name + suffix)] = size
        free = shutil.disk_usage(copy.parent).free
        if sum(sizes.values()) > free:
            raise UserError(
                f"{file} is to be copied to {copy.parent}, which has no room for it ({free:,} bytes): set TMPDIR to a "
                "folder that has"
            )
        shutil.copyfile(file, copy.with_name(copy.name + suffix))


def _allocated_bytes(path: Path) -> int:
    """Return how many bytes of a file are on disk."""
    try:
        status = path.stat()
    except OSError:
        return 0
    return min(status.st_size, status.st_blocks * 512)


def _check_schema(db: sqlite3.Connection) -> None:
    """Raise ValueError if a journal has more than tables and indexes: a view or a trigger could run for ever."""
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master"):
        is_automatic = kind == "index" and sql is None
        if not is_automatic and not re.match(r"CREATE (TABLE|INDEX) ", str(sql)):
            raise ValueError(f"it has a {kind} {name}")
        if str(sql).startswith("CREATE TABLE "):  # `type` may say anything
            columns = db.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (name,))
            if any(hidden for _, hidden in columns):
                raise ValueError(f"its table {name} computes columns")


def _create_tables(db: sqlite3.Connection) -> None:
    """Create the tables of a journal that is opened for writing."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.executescript(SCHEMA)
    db.execute(f"PRAGMA user_version = {VERSION}")


def explain_error(path: Path, error: BaseException) -> WeftError:
    """Return what an error of SQLite means for the person who must act."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if "locked" in text:
            return WeftError(f"the journal {path} is locked by another process")
        if "interrupted" in text:
            return DamagedJournal(path, "a table of it has more rows than its file can hold")
        if any(words in text for words in DISK_TROUBLE):
            return StoreError(f"the journal {path} cannot be written: {text}")
    return DamagedJournal(path, error)


@contextlib.contextmanager
def explain_errors(path: Path) -> Generator[None]:
    """Raise what SQLite, or a row that is none, raises inside as one line: the disk is full, the journal is damaged."""
    try:
        yield
    except (sqlite3.Error, OverflowError, *UNREADABLE) as error:
        raise explain_error(path, error) from None
