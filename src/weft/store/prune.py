"""What of a journal no run needs any more: calls of runs that were removed or never came to be, and pictures that
nothing shows.

A call is needed if it was made for a run that is there, or stands behind a reply or a verdict of one; a picture, if its
digest stands anywhere in what is needed, and so if people are shown it. What people said is always needed. Nothing is
removed by looking."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.store.blobs import DIGEST, blobs_folder
from weft.store.locks import find_active_run
from weft.store.schema import journal_file
from weft.types import Reply, Verdict

HEX = re.compile("[0-9a-f]{64}")


class UnusedData(Struct, frozen=True):
    calls: tuple[int, ...]
    all_calls: int
    rows: int  # of runs that are gone
    images: tuple[Path, ...]
    all_images: int
    size: int  # bytes of the pictures

    def __bool__(self) -> bool:
        return bool(self.calls or self.images or self.rows)


def find_unused(home: Path) -> UnusedData:
    """Raises UserError where somebody is at work."""
    if busy := find_active_run(home):
        raise UserError(f"run {busy} is going on: wait for it")
    db = sqlite3.connect(f"{journal_file(home).absolute().as_uri()}?mode=ro", uri=True)
    try:
        keys = _keys(db)
        runs = {row[0] for row in db.execute("SELECT id FROM runs")}
        kept = list[int]()
        gone = list[int]()
        shown = set[str]()
        for number, key, run in db.execute("SELECT id, key, run FROM calls"):
            (kept if run in runs or key in keys else gone).append(number)
        rows = sum(
            db.execute(f"SELECT COUNT(*) FROM {table} WHERE run NOT IN (SELECT id FROM runs)").fetchone()[0]
            for table in ("replies", "verdicts")
        )
        for text in _texts(db, set(kept)):
            shown.update(HEX.findall(text))
    finally:
        db.close()
    there = [file for file in blobs_folder(home).glob("??/*") if DIGEST.fullmatch(file.name) and file.is_file()]
    pictures = tuple(file for file in there if file.name not in shown)
    return UnusedData(
        tuple(gone), len(kept) + len(gone), rows, pictures, len(there), sum(file.stat().st_size for file in pictures)
    )


def _keys(db: sqlite3.Connection) -> set[str]:
    """Of the calls behind what runs have, and of those that are handed in."""
    found = {row[0] for row in db.execute("SELECT key FROM tickets")}
    for (reply,) in db.execute("SELECT reply FROM replies WHERE run IN (SELECT id FROM runs)"):
        found.update(msgspec.json.decode(reply, type=Reply).keys)
    for (text,) in db.execute("SELECT verdict FROM verdicts WHERE run IN (SELECT id FROM runs)"):
        found.update(msgspec.json.decode(text, type=Verdict).keys)
    return found


def _texts(db: sqlite3.Connection, kept: set[int]) -> Iterator[str]:
    """All that is needed, as text."""
    for number, request, reply, raw in db.execute("SELECT id, request, reply, raw FROM calls"):
        if number in kept:
            yield from (request, reply, raw)
    for row in db.execute("SELECT seen, reply, about FROM replies WHERE run IN (SELECT id FROM runs)"):
        yield from row
    for row in db.execute("SELECT verdict FROM verdicts WHERE run IN (SELECT id FROM runs)"):
        yield from row
    for row in db.execute("SELECT settings FROM studies"):
        yield from row


def remove_unused(home: Path, what: UnusedData) -> int:
    """Remove it; gives how many bytes the journal's file is smaller. Pictures go last: one that nothing shows any more
    costs only room."""
    path = journal_file(home)
    before = path.stat().st_size
    db = sqlite3.connect(path)
    try:
        db.executemany("DELETE FROM calls WHERE id = ?", ((number,) for number in what.calls))
        db.execute("DELETE FROM voids WHERE call NOT IN (SELECT id FROM calls)")
        for table in ("replies", "verdicts", "traces"):
            db.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT id FROM runs)")
        db.commit()
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()
    for file in what.images:
        file.unlink(missing_ok=True)
    return before - path.stat().st_size
