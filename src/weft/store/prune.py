"""Finds and removes what no run needs any more: calls of runs that were removed or never began, and images that nothing
refers to.

A call is needed if it was made for a run that exists, or a reply or a verdict of one was made from it. An image is
needed if its digest occurs anywhere in what is needed, or in a study. Annotations are always needed. So are the calls
of builds, and in a home with builds all images: their rows are in folders that the home does not know. Finding removes
nothing.
"""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from weft.errors import StoreError, UserError
from weft.store.blobs import list_images
from weft.store.connection import explain_errors, open_journal_file
from weft.store.locks import find_active_run, maintain_home
from weft.store.records import BUILD_PREFIX
from weft.store.schema import journal_file
from weft.types import Reply, Verdict

HEX = re.compile("[0-9a-f]{64}")
OF_A_RUN = "run IN (SELECT id FROM runs)"
OF_NO_RUN = "run NOT IN (SELECT id FROM runs)"


class UnusedData(Struct, frozen=True):
    """What can be removed from a home. It is false if there is nothing."""

    calls: tuple[int, ...]  # ids
    all_calls: int
    rows: int  # turns and verdicts of runs that were removed
    images: tuple[Path, ...]
    all_images: int
    size: int  # bytes of the images

    def __bool__(self) -> bool:
        return bool(self.calls or self.images or self.rows)


def find_unused(home: Path) -> UnusedData:
    """Find what no run needs. Raises UserError if a run is active in the home."""
    active_run = find_active_run(home)
    if active_run:
        raise UserError(f"run {active_run} is going on: wait for it")
    path = journal_file(home)
    db = open_journal_file(path, readonly=True)
    try:
        with explain_errors(path):
            return _find_unused(home, db)
    finally:
        db.close()


def remove_unused(home: Path, unused: UnusedData) -> int:
    """Remove what `find_unused` found, as far as it is still unused. Return by how many bytes the journal shrank.

    It looks again while nobody else may make calls here: since the first look a run may have used a call or an image.
    Images go last: if this is interrupted, one that nothing refers to costs only space. Raises UserError if a run is
    active.
    """
    path = journal_file(home)
    size_before = path.stat().st_size
    with maintain_home(home):
        db = open_journal_file(path, autocommit=True)
        try:
            with explain_errors(path):
                now = _remove_calls(home, db, unused)
        finally:
            db.close()
        for file in set(unused.images) & set(now.images):
            file.unlink(missing_ok=True)
        _vacuum_file(path)
    return size_before - path.stat().st_size


def _remove_calls(home: Path, db: sqlite3.Connection, unused: UnusedData) -> UnusedData:
    """Remove calls, and rows of runs that are gone, in one transaction. Return what is unused at this moment."""
    db.execute("BEGIN IMMEDIATE")
    now = _find_unused(home, db)
    calls = sorted(set(unused.calls) & set(now.calls))
    db.executemany("DELETE FROM calls WHERE id = ?", ((call,) for call in calls))
    db.execute("DELETE FROM voids WHERE call NOT IN (SELECT id FROM calls)")
    for table in ("replies", "verdicts", "traces"):
        db.execute(f"DELETE FROM {table} WHERE {OF_NO_RUN}")
    db.execute("COMMIT")
    return now


def _vacuum_file(path: Path) -> None:
    """Give the space of removed rows back. That writes the journal anew: what it needs, other removals made free."""
    db = open_journal_file(path, autocommit=True)
    try:
        with explain_errors(path):
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except StoreError as error:
        raise StoreError(f"it was removed, but the journal could not be made smaller: {error}") from None
    finally:
        db.close()


def _find_unused(home: Path, db: sqlite3.Connection) -> UnusedData:
    needed, unused = _divide_calls(db)
    rows = 0
    for table in ("replies", "verdicts"):
        rows += db.execute(f"SELECT COUNT(*) FROM {table} WHERE {OF_NO_RUN}").fetchone()[0]
    digests: set[str] = set()
    for text in _needed_texts(db, needed):
        digests.update(HEX.findall(text))
    images = list_images(home)
    has_builds = db.execute("SELECT 1 FROM calls WHERE run GLOB ? LIMIT 1", (f"{BUILD_PREFIX}*",)).fetchone()
    unused_images = tuple(file for file in images if not has_builds and file.name not in digests)
    size = sum(file.stat().st_size for file in unused_images)
    return UnusedData(tuple(unused), len(needed) + len(unused), rows, unused_images, len(images), size)


def _divide_calls(db: sqlite3.Connection) -> tuple[set[int], list[int]]:
    """Return the ids of calls that are needed, and of those that are not."""
    keys = _needed_keys(db)
    runs = {row[0] for row in db.execute("SELECT id FROM runs")}
    needed: set[int] = set()
    unused: list[int] = []
    for call, key, run in db.execute("SELECT id, key, run FROM calls"):
        if run in runs or key in keys or run.startswith(BUILD_PREFIX):
            needed.add(call)
        else:
            unused.append(call)
    return needed, unused


def _needed_keys(db: sqlite3.Connection) -> set[str]:
    """Return the cache keys of calls that replies and verdicts were made from, and of submitted requests."""
    keys = {row[0] for row in db.execute("SELECT key FROM tickets")}
    for (reply,) in db.execute(f"SELECT reply FROM replies WHERE {OF_A_RUN}"):
        keys.update(msgspec.json.decode(reply, type=Reply).keys)
    for (verdict,) in db.execute(f"SELECT verdict FROM verdicts WHERE {OF_A_RUN}"):
        keys.update(msgspec.json.decode(verdict, type=Verdict).keys)
    return keys


def _needed_texts(db: sqlite3.Connection, needed: set[int]) -> Iterator[str]:
    """Yield everything that is needed, as text."""
    for call, request, reply, raw in db.execute("SELECT id, request, reply, raw FROM calls"):
        if call in needed:
            yield from (request, reply, raw)
    for row in db.execute(f"SELECT seen, reply, about FROM replies WHERE {OF_A_RUN}"):
        yield from row
    for row in db.execute(f"SELECT verdict FROM verdicts WHERE {OF_A_RUN}"):
        yield from row
    for row in db.execute("SELECT settings FROM studies"):
        yield from row
