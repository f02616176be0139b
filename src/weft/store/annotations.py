"""What people say, in the journal beside what judges say: studies, and ratings as verdicts by people. On disk when
`put` returns.

ratings = Ratings(journal_file(home)) ratings.put(Rating("weave-tiny-1a2b3c4d", "study-1", "q7", "ann", (Verdict("s3",
0, "key_point", 0.8, by="person"),), {"score": 8})) ratings.of("weave-tiny-1a2b3c4d")

A journal from before people rated has none; opened `readonly`, it is not changed by looking."""

import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from weft.store.journal import DamagedJournal
from weft.store.schema import create_tables, open_read_only
from weft.types import Verdict

Said = tuple[Verdict, ...]
PUT = "INSERT OR REPLACE INTO ratings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
BEGIN = "INSERT OR REPLACE INTO studies VALUES (?, ?, ?, ?)"


class Annotation(Struct, frozen=True):
    """One question as one person answered it: a verdict for each of its metrics (`by` a person), and what was filled
    in."""

    run: str
    study: str
    item: str  # the question, within its study
    annotator: str = field(name="rater")
    verdicts: tuple[Verdict, ...]
    answer: dict[str, Any] = {}
    created_at: float = field(default=0.0, name="at")
    seconds: float = 0.0  # that it took
    # a question whose answer was known: it is in no number, and says how far its rater can be trusted
    is_attention_check: bool = field(default=False, name="attention")


class Study(Struct, frozen=True):
    """Which questions of a run are rated by whom. `settings` is the business of those who make it."""

    id: str
    run: str
    created_at: float = field(name="made")
    settings: dict[str, Any] = {}


class Annotations:
    """Any thread may use it."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self._path = path
        self._lock = threading.Lock()
        if readonly:
            self._db = open_read_only(path)
        else:
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=30.0)
        self._db.execute("PRAGMA busy_timeout = 30000")
        if not readonly:
            create_tables(self._db)

    def close(self) -> None:
        self._db.close()

    def add(self, rating: Annotation) -> None:
        """A second rating of the same question by the same person takes the place of the first."""
        self.add_all([rating])

    def add_all(self, ratings: Sequence[Annotation], studies: Sequence[Study] = ()) -> None:
        """All of them, or none."""
        rows = [_row(rating) for rating in ratings]
        with self._lock, self._db:
            self._db.executemany(BEGIN, [_study(study) for study in studies])
            self._db.executemany(PUT, rows)

    def remove(self, study: str, item: str, rater: str) -> None:
        with self._lock, self._db:
            self._db.execute("DELETE FROM ratings WHERE study = ? AND item = ? AND rater = ?", (study, item, rater))

    def find(self, run: str, study: str = "", rater: str = "") -> list[Annotation]:
        """In the order in which they were given."""
        rows = self._rows(
            "SELECT run, study, item, rater, verdicts, answer, at, seconds, attention FROM ratings"
            " WHERE run = ? AND (? = '' OR study = ?) AND (? = '' OR rater = ?) ORDER BY at, study, item, rater",
            (run, study, study, rater, rater),
        )
        try:
            return [
                Annotation(
                    run,
                    study,
                    item,
                    rater,
                    msgspec.json.decode(said, type=Said),
                    _object(answer),
                    at,
                    seconds,
                    bool(known),
                )
                for run, study, item, rater, said, answer, at, seconds, known in rows
            ]
        except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
            raise DamagedJournal(self._path, f"a rating of {run}: {error}") from None

    def add_study(self, study: Study) -> None:
        with self._lock, self._db:
            self._db.execute(BEGIN, _study(study))

    def studies(self, run: str) -> list[Study]:
        rows = self._rows("SELECT id, run, made, settings FROM studies WHERE run = ? ORDER BY made, id", (run,))
        try:
            return [Study(study, run, made, _object(settings)) for study, run, made, settings in rows]
        except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
            raise DamagedJournal(self._path, f"a study of {run}: {error}") from None

    def _rows(self, sql: str, values: Sequence[Any]) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise DamagedJournal(self._path, error) from None


def _row(rating: Annotation) -> tuple[Any, ...]:
    at = rating.created_at or time.time()
    said, answer = (msgspec.json.encode(one).decode() for one in (rating.verdicts, rating.answer))
    return (
        rating.run,
        rating.study,
        rating.item,
        rating.annotator,
        said,
        answer,
        at,
        rating.seconds,
        int(rating.is_attention_check),
    )


def _study(study: Study) -> tuple[Any, ...]:
    return study.id, study.run, study.created_at, msgspec.json.encode(study.settings).decode()


def _object(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
