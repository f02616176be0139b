"""What people say, in the journal next to what judges say: studies, and annotations as verdicts by people.

    annotations = Annotations(journal_file(home))
    verdict = Verdict("s3", 0, "key_point", 0.8, by="person")
    annotations.add(Annotation("weave-tiny-1a2b3c4d", "study-1", "q7", "ann", (verdict,), {"score": 8}))
    annotations.find("weave-tiny-1a2b3c4d")

An annotation is on disk when `add` returns. Opened `readonly`, a journal is never changed.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from weft.store.connection import UNREADABLE, DamagedJournal, explain_errors, open_journal_file
from weft.store.records import read_clock
from weft.store.study_settings import parse_study_settings
from weft.types import Verdict

PUT_ANNOTATION = "INSERT OR REPLACE INTO ratings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
PUT_STUDY = "INSERT OR REPLACE INTO studies VALUES (?, ?, ?, ?)"


class Annotation(Struct, frozen=True):
    """One question as one person answered it."""

    run: str
    study: str
    item: str  # the question, within its study
    annotator: str = field(name="rater")
    verdicts: tuple[Verdict, ...]  # one for each metric of the question, `by` a person
    answer: dict[str, Any] = {}  # the form as it was filled in
    created_at: float = field(default=0.0, name="at")
    seconds: float = 0.0  # that the answer took
    # the answer is known in advance: it is in no score, and tells how reliable the annotator is
    is_attention_check: bool = field(default=False, name="attention")


class Study(Struct, frozen=True):
    """Which questions of a run are annotated, and by whom."""

    id: str
    run: str
    created_at: float = field(name="made")
    settings: dict[str, Any] = {}  # see weft.judge_eval.annotation.study


class Annotations:
    """The annotations and studies of a journal. Any thread may use it."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._db = open_journal_file(path, readonly=readonly)

    def close(self) -> None:
        self._db.close()

    def add(self, annotation: Annotation) -> None:
        """Store an annotation. It replaces an earlier one of the same question by the same person."""
        self.add_all([annotation])

    def add_all(self, annotations: Sequence[Annotation], studies: Sequence[Study] = ()) -> None:
        """Store all of them, or none."""
        annotation_rows = [_annotation_row(annotation) for annotation in annotations]
        study_rows = [_study_row(study) for study in studies]
        with self._lock, explain_errors(self._path), self._db:
            self._db.executemany(PUT_STUDY, study_rows)
            self._db.executemany(PUT_ANNOTATION, annotation_rows)

    def remove(self, study: str, item: str, annotator: str) -> None:
        """Delete one person's annotation of one question."""
        sql = "DELETE FROM ratings WHERE study = ? AND item = ? AND rater = ?"
        with self._lock, explain_errors(self._path), self._db:
            self._db.execute(sql, (study, item, annotator))

    def find(self, run: str, study: str = "", annotator: str = "") -> list[Annotation]:
        """Return the annotations of a run, of one study or annotator if given, oldest first."""
        rows = self._rows(
            "SELECT run, study, item, rater, verdicts, answer, at, seconds, attention FROM ratings"
            " WHERE run = ? AND (? = '' OR study = ?) AND (? = '' OR rater = ?) ORDER BY at, study, item, rater",
            (run, study, study, annotator, annotator),
        )
        try:
            return [_parse_annotation(row) for row in rows]
        except UNREADABLE as error:
            raise DamagedJournal(self._path, f"an annotation of {run}: {error}") from None

    def add_study(self, study: Study) -> None:
        """Store a study. It replaces an earlier one with the same id."""
        with self._lock, explain_errors(self._path), self._db:
            self._db.execute(PUT_STUDY, _study_row(study))

    def studies(self, run: str) -> list[Study]:
        """Return the studies of a run, oldest first."""
        rows = self._rows("SELECT id, run, made, settings FROM studies WHERE run = ? ORDER BY made, id", (run,))
        try:
            return [parse_study(row) for row in rows]
        except UNREADABLE as error:
            raise DamagedJournal(self._path, f"a study of {run}: {error}") from None

    def _rows(self, sql: str, values: Sequence[Any]) -> list[Any]:
        with self._lock, explain_errors(self._path):
            return self._db.execute(sql, values).fetchall()


def parse_study(row: Sequence[Any]) -> Study:
    """Parse a row of `studies`. Raises msgspec.MsgspecError if it is invalid."""
    id, run, created_at, settings = row
    values = {"id": id, "run": run, "made": created_at, "settings": parse_study_settings(settings)}
    return msgspec.convert(values, Study)


def _parse_annotation(row: Sequence[Any]) -> Annotation:
    run, study, item, annotator, verdicts, answer, created_at, seconds, attention = row
    values = {
        "run": run,
        "study": study,
        "item": item,
        "rater": annotator,
        "verdicts": msgspec.json.decode(verdicts),
        "answer": msgspec.json.decode(answer),
        "at": created_at,
        "seconds": seconds,
        "attention": bool(attention),
    }
    return msgspec.convert(values, Annotation)


def _annotation_row(annotation: Annotation) -> tuple[Any, ...]:
    return (
        annotation.run,
        annotation.study,
        annotation.item,
        annotation.annotator,
        msgspec.json.encode(annotation.verdicts).decode(),
        msgspec.json.encode(annotation.answer).decode(),
        annotation.created_at or read_clock(),
        annotation.seconds,
        int(annotation.is_attention_check),
    )


def _study_row(study: Study) -> tuple[Any, ...]:
    return study.id, study.run, study.created_at, msgspec.json.encode(study.settings).decode()
