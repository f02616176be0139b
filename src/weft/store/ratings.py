"""What people say, in the journal beside what judges say: studies, and ratings as verdicts by people. On disk when `put` returns.

ratings = Ratings(home / "journal.sqlite")
ratings.put(Rating("weave-tiny-1a2b3c4d", "study-1", "q7", "ann", (Verdict("s3", 0, "key_point", 0.8, by="person"),), {"score": 8}))
ratings.of("weave-tiny-1a2b3c4d")
"""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.store.schema import prepare
from weft.types import Verdict

Said = tuple[Verdict, ...]


class Rating(Struct, frozen=True):
    """One question as one person answered it: a verdict for each of its metrics (`by` a person), and what was filled in."""

    run: str
    study: str
    item: str  # the question, within its study
    rater: str
    verdicts: tuple[Verdict, ...]
    answer: dict[str, Any] = {}
    at: float = 0.0
    seconds: float = 0.0  # that it took
    attention: bool = False  # a question whose answer was known: it is in no number, and says how far its rater can be trusted


class Study(Struct, frozen=True):
    """Which questions of a run are rated by whom. `settings` is the business of those who make it."""

    id: str
    run: str
    made: float
    settings: dict[str, Any] = {}


class Ratings:
    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False, timeout=30.0)
        prepare(self._db)

    def close(self) -> None:
        self._db.close()

    def put(self, rating: Rating) -> None:
        """A second rating of the same question by the same person takes the place of the first."""
        at = rating.at or time.time()
        values = (
            *(rating.run, rating.study, rating.item, rating.rater, msgspec.json.encode(rating.verdicts).decode()),
            *(msgspec.json.encode(rating.answer).decode(), at, rating.seconds, int(rating.attention)),
        )
        self._write("INSERT OR REPLACE INTO ratings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def take_back(self, study: str, item: str, rater: str) -> None:
        self._write("DELETE FROM ratings WHERE study = ? AND item = ? AND rater = ?", (study, item, rater))

    def of(self, run: str, study: str = "", rater: str = "") -> list[Rating]:
        """In the order in which they were given."""
        rows = self._db.execute(
            "SELECT run, study, item, rater, verdicts, answer, at, seconds, attention FROM ratings"
            " WHERE run = ? AND (? = '' OR study = ?) AND (? = '' OR rater = ?) ORDER BY at, item",
            (run, study, study, rater, rater),
        ).fetchall()
        return [
            Rating(run, study, item, rater, msgspec.json.decode(said, type=Said), msgspec.json.decode(answer), at, seconds, bool(known))
            for run, study, item, rater, said, answer, at, seconds, known in rows
        ]

    def begin(self, study: Study) -> None:
        values = (study.id, study.run, study.made, msgspec.json.encode(study.settings).decode())
        self._write("INSERT OR REPLACE INTO studies VALUES (?, ?, ?, ?)", values)

    def studies(self, run: str) -> list[Study]:
        rows = self._db.execute("SELECT id, run, made, settings FROM studies WHERE run = ? ORDER BY made", (run,)).fetchall()
        return [Study(study, run, made, msgspec.json.decode(settings)) for study, run, made, settings in rows]

    def _write(self, sql: str, values: Sequence[Any]) -> None:
        self._db.execute(sql, values)
        self._db.commit()
