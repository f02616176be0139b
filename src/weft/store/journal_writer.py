"""The thread that writes a journal. It commits whatever has gathered in one transaction; a row that cannot be written
costs no other row.

    writer = JournalWriter(path, connection, bulk=(PUT_TURN,))
    writer.put("DELETE FROM tickets WHERE key = ?", ("k",)).result()      # on disk
    writer.close()
"""

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import WeftError

MAX_BATCH = 4096  # statements in one transaction
Statement = tuple[str, Sequence[Any], Future[None] | None]  # SQL, its values, and who waits for it


class JournalWriter:
    """Executes statements in the order in which they were put, in a thread of its own."""

    def __init__(self, path: Path, db: sqlite3.Connection, bulk: Sequence[str]) -> None:
        """`bulk` are INSERT statements whose rows are written together at the end of a transaction."""
        self._path = path
        self._db = db
        self._db.set_progress_handler(None, 0)  # the steps of all its statements, of days, would add up
        self._bulk = bulk
        self._queue: queue.SimpleQueue[Statement | None] = queue.SimpleQueue()
        self._failure: WeftError | None = None
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def put(self, sql: str, values: Sequence[Any]) -> Future[None]:
        """Hand in a statement; the future is done when it is on disk."""
        done: Future[None] = Future()
        self._queue.put((sql, values, done))
        return done

    def put_unwaited(self, sql: str, values: Sequence[Any]) -> None:
        """Hand in a statement that nobody waits for. A failure is reported by `take_failure`."""
        self._queue.put((sql, values, None))

    def take_failure(self) -> WeftError | None:
        """Return the last error since the previous call, once."""
        failure = self._failure
        self._failure = None
        return failure

    def close(self) -> None:
        """Wait for every statement to be on disk, and end the thread."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            if not batch:
                break
            self._write(batch)
        self._db.close()

    def _next_batch(self) -> list[Statement]:
        """Wait for a statement, and return all that have gathered; none once the writer is closed."""
        first = self._queue.get()
        if first is None:
            return []
        batch = [first]
        while not self._queue.empty() and len(batch) < MAX_BATCH:
            statement = self._queue.get()
            if statement is None:
                self._queue.put(None)
                break
            batch.append(statement)
        return batch

    def _write(self, batch: list[Statement]) -> None:
        try:
            for sql, rows in group_statements(batch, self._bulk):
                self._db.executemany(sql, rows)
            self._db.commit()
        except Exception:  # one bad row must not take the others with it
            self._db.rollback()
            for sql, values, done in batch:
                self._write_alone(sql, values, done)
        else:
            for _, _, done in batch:
                _set_done(done)

    def _write_alone(self, sql: str, values: Sequence[Any], done: Future[None] | None) -> None:
        try:
            self._db.execute(sql, values)
            self._db.commit()
        except Exception as error:
            self._db.rollback()
            self._failure = WeftError(f"the journal {self._path} cannot be written: {error}")
            if done is not None and not done.cancelled():
                done.set_exception(self._failure)
        else:
            _set_done(done)


def group_statements(batch: Sequence[Statement], bulk: Sequence[str]) -> Iterator[tuple[str, list[Sequence[Any]]]]:
    """Yield statements in their order, then the `bulk` rows of each statement together.

    Nothing in a batch reads those rows. They go as one JSON text that SQLite takes apart, so that this thread does not
    hold the interpreter's lock for every row.
    """
    bulk_rows: dict[str, list[Sequence[Any]]] = {}
    for sql, values, _ in batch:
        if sql in bulk and not _has_nul(values):
            bulk_rows.setdefault(sql, []).append(values)
        else:
            yield sql, [values]
    for sql, rows in bulk_rows.items():
        columns = ", ".join(f"json_extract(value, '$[{index}]')" for index in range(len(rows[0])))
        insert = sql.partition(" VALUES ")[0]
        yield f"{insert} SELECT {columns} FROM json_each(?)", [(msgspec.json.encode(rows).decode(),)]


def _has_nul(values: Sequence[Any]) -> bool:
    """Return whether a text has a NUL, at which SQLite's JSON would end."""
    return any(isinstance(value, str) and "\0" in value for value in values)


def _set_done(done: Future[None] | None) -> None:
    if done is not None:
        with contextlib.suppress(InvalidStateError):  # whoever waited may have been cancelled meanwhile
            done.set_result(None)
