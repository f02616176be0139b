"""What somebody may have done to a home before handing it over: files of other kinds, tables that compute, trees without
an end, and rows that lie."""

import json
import os
import random
import shutil
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.spoil import ODD, spoil_json
from weft.store.journal import Journal
from weft.store.recover import COLUMNS
from weft.store.schema import journal_file

Trap = Callable[[Path, random.Random], None]
SPARSE = 40 * 1024**3
OUTSIDE = "outside"  # a folder beside the home, in which nothing may change
NUMBERS: list[Any] = [
    -1,
    0,
    2**62,
    -(2**63),
    1e308,
    -1e308,
    1e18,
    4e9,
    2.5,
    "abc",
    "",
    b"\xff",
    None,
    "9" * 400,
    "1e999",
]
NAMES = [
    "../../../outside/x",
    "/tmp/x",
    "..",
    ".hidden",
    "a/b",
    "a\nb",
    "\x1b[31m",
    "x" * 5000,
    "",
    "-rf",
    "con\0trol",
    "é" * 150,
]


# files


def places(home: Path) -> list[Path]:
    """Every file and folder that a home has, and those that it may have."""
    images = sorted((home / "blobs").glob("??/*"))
    names = [
        *("journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "journal.sqlite-journal", "home.lock"),
        *("locks", "locks/run", "locks/home", "blobs", "shown", "shown/x", "weights.json", "annotation-links.json"),
        *(
            "judge-cards",
            "judge-cards/x.json",
            "tries",
            "demo",
            "imported",
            "imported/x.json",
            f"blobs/11/{'1' * 64}",
            "blobs/11",
        ),
    ]
    runs = [f"locks/{record.id}" for record in _records(home)]
    return [*(home / name for name in (*names, *runs)), *images[:1], *(path.parent for path in images[:1])]


def _records(home: Path) -> list[Any]:
    journal = Journal(journal_file(home), readonly=True)
    try:
        return journal.runs()
    finally:
        journal.close()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)


def make_socket(path: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def make_sparse(path: Path) -> None:
    begin = b"SQLite format 3\0" if path.name == "journal.sqlite" else b""
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(SPARSE)


def grow(path: Path) -> None:
    """A file that is sound as far as it goes, and goes on for ever."""
    os.truncate(path, SPARSE)


def other_kind(home: Path, chance: random.Random) -> None:
    become_other_kind(chance.choice(places(home)), home.parent / OUTSIDE, chance)


def become_other_kind(path: Path, outside: Path, chance: random.Random) -> None:
    """A file or a folder is now something else, or leads elsewhere."""
    kinds: list[Callable[[Path], object]] = [
        os.mkfifo,
        make_socket,
        make_sparse,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("/dev/tty"),
        lambda path: path.symlink_to(path),
        lambda path: path.symlink_to(outside / ("folder" if chance.random() < 0.5 else "file")),
        lambda path: path.mkdir(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(chance.randbytes(5000)),
    ]
    _remove(path)
    chance.choice(kinds)(path)


def longer_journal(home: Path, chance: random.Random) -> None:
    grow(journal_file(home))


# tables

VIEWS = {
    "endless": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n",
    "large": "SELECT {columns} FROM (SELECT zeroblob(1000000000) AS i)",
    "same": "SELECT {columns} FROM moved",
}


def view(home: Path, chance: random.Random) -> None:
    table = chance.choice([*COLUMNS, "traces"])
    columns = COLUMNS.get(table, ("run", "sample", "turn", "trace"))
    kind = chance.choice(list(VIEWS))
    named = ", ".join(columns if kind == "same" else [f"i AS {column}" for column in columns])
    with _edit(home) as db:
        db.execute(f"ALTER TABLE {table} RENAME TO moved")
        db.execute(f"CREATE VIEW {table} AS {VIEWS[kind].format(columns=named)}")


def trigger(home: Path, chance: random.Random) -> None:
    table = chance.choice(list(COLUMNS))
    when = chance.choice(["BEFORE INSERT", "AFTER UPDATE", "AFTER DELETE"])
    what = chance.choice(["DELETE FROM verdicts", "UPDATE runs SET state = 'finished'", "SELECT RAISE(IGNORE)"])
    with _edit(home) as db:
        db.execute(f"CREATE TRIGGER trap {when} ON {table} BEGIN {what}; END")


def computed_column(home: Path, chance: random.Random) -> None:
    """A column that costs a gigabyte to read, in a table that says that it is an index."""
    with _edit(home) as db:
        db.execute("ALTER TABLE verdicts RENAME TO moved")
        db.execute(
            "CREATE TABLE verdicts (run TEXT, sample TEXT, turn INTEGER, metric TEXT, variant TEXT, "
            "verdict TEXT AS (printf('%.*c', 900000000, 'x')))"
        )
        db.execute("INSERT INTO verdicts SELECT run, sample, turn, metric, variant FROM moved")
        if chance.random() < 0.5:
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_master SET type = 'index' WHERE name = 'verdicts'")


def virtual_table(home: Path, chance: random.Random) -> None:
    with _edit(home) as db:
        db.execute("ALTER TABLE runs RENAME TO moved")
        db.execute("CREATE VIRTUAL TABLE runs USING fts5(id, manifest)")


def endless_tree(home: Path, chance: random.Random) -> None:
    make_endless_tree(journal_file(home), chance.choice(["runs", "calls", "replies", "verdicts"]))


def make_endless_tree(path: Path, table: str, storeys: int = 15, branches: int = 200) -> None:
    """Let all branches of a table's tree lead to one page, storey after storey: it has more rows than there are atoms."""
    db = sqlite3.connect(path)
    root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    size = db.execute("PRAGMA page_size").fetchone()[0]
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.close()
    data = bytearray(path.read_bytes())
    leaf = bytes(data[(root - 1) * size : root * size])
    for storey in range(storeys):
        number = root if storey == 0 else pages + storey
        data[(number - 1) * size : number * size] = _branches_to(pages + storey + 1, branches, size)
    data += leaf
    data[28:32] = (len(data) // size).to_bytes(4, "big")
    path.write_bytes(data)


def _branches_to(page: int, count: int, size: int) -> bytes:
    """An interior page of a table, section 1.6 of https://www.sqlite.org/fileformat2.html."""
    to = page.to_bytes(4, "big")
    cells = (to + b"\x81\x00") * count
    begin = size - len(cells)
    header = b"\x05\0\0" + count.to_bytes(2, "big") + begin.to_bytes(2, "big") + b"\0" + to
    pointers = b"".join((begin + 6 * cell).to_bytes(2, "big") for cell in range(count))
    return (header + pointers).ljust(begin, b"\0") + cells


# rows


def odd_value(home: Path, chance: random.Random) -> None:
    """A column of one row, or of all, has a value of another kind."""
    table = chance.choice(list(COLUMNS))
    column = chance.choice(COLUMNS[table])
    value = chance.choice([*NUMBERS, *NAMES, *(one for one in ODD if isinstance(one, (str, int, float)))])
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = str(value)
    with _edit(home) as db:
        _update(db, table, column, value, chance)


def odd_name(home: Path, chance: random.Random) -> None:
    """A run, a sample, a study or a person has the name of a file elsewhere, everywhere."""
    name = chance.choice(NAMES)
    kind = chance.choice(["run", "sample", "study", "rater", "item", "metric"])
    with _edit(home) as db:
        for table, columns in COLUMNS.items():
            for column in columns:
                if column == kind or (column == "id" and table in ({"run": "runs", "study": "studies"}.get(kind), "")):
                    db.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (name,))


JSON_COLUMNS = {
    "calls": ("request", "reply", "raw"),
    "runs": ("manifest", "left_out", "names", "gist", "shards"),
    "replies": ("groups", "seen", "reply", "about"),
    "verdicts": ("verdict",),
    "studies": ("settings",),
    "ratings": ("verdicts", "answer"),
}


def odd_json(home: Path, chance: random.Random) -> None:
    """JSON in a column is changed in one to three places."""
    table = chance.choice(list(JSON_COLUMNS))
    column = chance.choice(JSON_COLUMNS[table])
    with _edit(home) as db:
        for number, text in db.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            try:
                changed = json.dumps(spoil_json(json.loads(text), chance))
            except (ValueError, TypeError):
                changed = json.dumps(chance.choice(ODD))
            db.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?", (changed, number))


SHARDS = ['{"1/1": [1]}', '{"1/1": [1, 2, 3]}', '{"1/0": [0, 0]}', '{"1/99999999999": [0, 0]}', '{"x": [1, 2]}', '{"2/1": [1, 2]}']  # fmt: skip


def odd_shards(home: Path, chance: random.Random) -> None:
    with _edit(home) as db:
        state = chance.choice(["part", "finished", "running"])
        db.execute("UPDATE runs SET shards = ?, state = ?", (chance.choice(SHARDS), state))


def odd_times(home: Path, chance: random.Random) -> None:
    """Clocks that were centuries off."""
    table, column = chance.choice(
        [("runs", "started"), ("runs", "begun"), ("runs", "ended"), ("calls", "at"), ("calls", "latency"), ("ratings", "at"), ("studies", "made"), ("tickets", "at")]
    )  # fmt: skip
    with _edit(home) as db:
        _update(db, table, column, chance.choice([0, -1e9, 1e11, 1e15, 1e18, 1e308, -1e308, 9e999]), chance)


def more_verdicts(home: Path, chance: random.Random) -> None:
    """More rows than there were, each of them well-formed, and fewer turns."""
    with _edit(home) as db:
        for number, text in db.execute("SELECT rowid, verdict FROM verdicts").fetchall():
            verdict = {**json.loads(text), "value": 1.0}
            db.execute("UPDATE verdicts SET verdict = ? WHERE rowid = ?", (json.dumps(verdict), number))
        rows = db.execute("SELECT run, sample, turn, metric, variant, verdict FROM verdicts").fetchall()
        for *key, metric, variant, text in rows:
            verdict = {**json.loads(text), "metric": f"{metric}-more", "value": 1.0}
            db.execute(
                "INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?)", (*key, f"{metric}-more", variant, json.dumps(verdict))
            )
        if chance.random() < 0.7:
            db.execute("DELETE FROM replies WHERE turn > 0")


def _update(db: sqlite3.Connection, table: str, column: str, value: Any, chance: random.Random) -> None:
    where = "" if chance.random() < 0.5 else f" WHERE rowid = (SELECT MIN(rowid) FROM {table})"
    db.execute(f"UPDATE OR IGNORE {table} SET {column} = CAST(? AS NUMERIC){where}" if value == 9e999 else f"UPDATE OR IGNORE {table} SET {column} = ?{where}", (value,))  # fmt: skip


class _edit:
    """The journal of a home, open for changes that weft would not make, in one file afterwards."""

    def __init__(self, home: Path) -> None:
        self._db = sqlite3.connect(journal_file(home))

    def __enter__(self) -> sqlite3.Connection:
        return self._db

    def __exit__(self, kind: Any, *rest: object) -> None:
        if kind is not None and issubclass(kind, sqlite3.IntegrityError):
            self._db.rollback()  # not a value that the column takes
        self._db.commit()
        self._db.close()
        return kind is not None and issubclass(kind, sqlite3.IntegrityError)  # type: ignore[return-value]


TRAPS: dict[str, tuple[Trap, int]] = {  # and how often
    "a file of another kind": (other_kind, 8),
    "a journal of 40 GB": (longer_journal, 1),
    "a view": (view, 2),
    "a trigger": (trigger, 1),
    "a computed column": (computed_column, 1),
    "a virtual table": (virtual_table, 1),
    "a tree without an end": (endless_tree, 1),
    "an odd value": (odd_value, 6),
    "an odd name": (odd_name, 2),
    "odd JSON": (odd_json, 4),
    "odd shards": (odd_shards, 1),
    "odd times": (odd_times, 2),
    "more verdicts": (more_verdicts, 1),
}
