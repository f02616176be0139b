"""Merges another journal's calls, runs and images into this one: from another machine, another home, or another shard.

Every row is checked before it is accepted: a journal may come from anywhere. What is here already is not added twice:
a merge that was killed, or is done again, has the same result. All calls are added; where both journals have an answer
under one cache key, ours stays the one in use. Of a run that both have, each sample comes from the journal that has
more of it; a run whose shards are all there is finished. Of two annotations of one question by one person the later one
counts.
"""

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.store.blobs import DIGEST, blobs_folder, write_file
from weft.store.journal import Journal
from weft.store.locks import find_active_run
from weft.store.records import CallRecord
from weft.store.recover import COLUMNS, SqlRow, validate_row
from weft.store.schema import JOURNAL, journal_file

BATCH = 500  # rows or images between two messages
MERGED = "another answer to the same question was here first"  # the reason in `voids`
Tell = Callable[[str], None]


class MergeResult(Struct, frozen=True):
    """How much the other journal has, and how much of it was new."""

    calls: int
    new_calls: int
    images: int
    new_images: int
    runs: tuple[str, ...]  # that are new, or have more than before
    damaged: int = 0  # rows and images that could not be read
    annotations: int = 0
    new_annotations: int = 0


def merge_journal(home: Path, other: Path, tell: Tell | None = None) -> MergeResult:
    """Merge a home, or the journal in it, into `home`. Raises UserError if a run is active in one of the two."""
    if other.name == JOURNAL:
        other = other.parent
    if not journal_file(other).is_file():
        raise UserError(f"there is no journal at {journal_file(other)}")
    if home.exists() and other.resolve() == home.resolve():
        raise UserError(f"{other} is the journal that it is to be merged into")
    for folder in (home, other):
        active_run = find_active_run(folder)
        if active_run:
            raise UserError(f"run {active_run} is going on in {folder}: wait for it")
    with tempfile.TemporaryDirectory(prefix="weft-merge-") as temporary:
        theirs = sqlite3.connect(_copy_journal(other, Path(temporary)))
        Journal(journal_file(home)).close()  # creates it where there is none
        ours = sqlite3.connect(journal_file(home))
        ours.execute("PRAGMA busy_timeout = 30000")
        try:
            images, new_images, damaged_images = _merge_images(home, other, tell)
            merge = _Merge(ours, theirs, tell)
            calls, new_calls = merge.merge_calls()
            runs = merge.merge_runs()
            annotations, new_annotations = merge.merge_annotations()
        finally:
            theirs.close()
            ours.close()
    _finish_sharded_runs(home, runs)
    return MergeResult(
        calls,
        new_calls,
        images,
        new_images,
        tuple(runs),
        merge.damaged + damaged_images,
        annotations,
        new_annotations,
    )


def _copy_journal(home: Path, folder: Path) -> Path:
    """Copy a journal, and bring the copy to this version. Opening the original might change it."""
    copy = journal_file(folder)
    for suffix in ("", "-wal"):
        file = home / f"{JOURNAL}{suffix}"
        if file.is_file():
            shutil.copyfile(file, copy.with_name(copy.name + suffix))
    Journal(copy).close()
    return copy


def _merge_images(home: Path, other: Path, tell: Tell | None) -> tuple[int, int, int]:
    """Copy images whose bytes match their names. Return how many there are, how many were new, and damaged."""
    total = 0
    new = 0
    damaged = 0
    for file in sorted(blobs_folder(other).glob("??/*")):
        if DIGEST.fullmatch(file.name) is None or file.is_symlink() or not file.is_file():
            continue
        total += 1
        target = blobs_folder(home) / file.name[:2] / file.name
        if target.is_file() and target.stat().st_size == file.stat().st_size:
            continue
        data = file.read_bytes()
        if hashlib.sha256(data).hexdigest() != file.name:
            damaged += 1
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, data, durable=True)
        new += 1
        if tell is not None and new % BATCH == 0:
            tell(f"{new} images")
    return total, new, damaged


class _Merge:
    """Adds the rows of one journal (`theirs`) to another (`ours`)."""

    def __init__(self, ours: sqlite3.Connection, theirs: sqlite3.Connection, tell: Tell | None) -> None:
        self._ours = ours
        self._theirs = theirs
        self._tell = tell
        self.damaged = 0  # rows of theirs that could not be read

    def merge_calls(self) -> tuple[int, int]:
        """Add calls with their void marks, and tickets. Return how many calls there are, and how many were new."""
        total, new, ids = self._add_calls()
        self._add_voids(ids)
        self._add_tickets()
        return total, new

    def merge_runs(self) -> list[str]:
        """Add runs with their turns and verdicts. Return those that are new or have more than before."""
        changed: list[str] = []
        for row in list(self._rows("runs")):
            columns = dict(zip(COLUMNS["runs"], row, strict=True))
            if self._merge_run(columns):
                changed.append(str(columns["id"]))
        return changed

    def merge_annotations(self) -> tuple[int, int]:
        """Add studies and annotations. Return how many annotations there are, and how many were new.

        A study of which we only imported annotations is replaced by the study itself.
        """
        is_whole = "json_extract(settings, '$.orders') IS NOT NULL"
        for row in self._rows("studies"):
            study, _, _, settings = row
            self._ours.execute("INSERT OR IGNORE INTO studies VALUES (?, ?, ?, ?)", row)
            if "orders" in _parse_object(settings):
                sql = f"UPDATE studies SET settings = ? WHERE id = ? AND NOT ({is_whole})"
                self._ours.execute(sql, (settings, study))
        find = "SELECT at FROM ratings WHERE run = ? AND study = ? AND item = ? AND rater = ?"
        total = 0
        new = 0
        for row in self._rows("ratings"):
            total += 1
            created_at = dict(zip(COLUMNS["ratings"], row, strict=True))["at"]
            our_row = self._ours.execute(find, row[:4]).fetchone()
            if our_row is None or created_at > our_row[0]:
                self._put("ratings", row)
                new += 1
        self._ours.commit()
        return total, new

    def _rows(self, table: str, where: str = "", values: tuple[Any, ...] = ()) -> Iterator[SqlRow]:
        """Yield their valid rows, and count the others."""
        for row in self._theirs.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table} {where}", values):
            valid = validate_row(table, row)
            if valid is None:
                self.damaged += 1
            else:
                yield valid

    def _put(self, table: str, row: SqlRow) -> None:
        columns = COLUMNS[table]
        marks = ", ".join("?" * len(columns))
        self._ours.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)

    def _add_calls(self) -> tuple[int, int, dict[int, int]]:
        """Add the calls that are not here. Also return our call ids by theirs."""
        our_ids: dict[tuple[str, float, str], int] = {}
        for call, key, at, role in self._ours.execute("SELECT id, key, at, role FROM calls"):
            our_ids[key, at, role] = call
        is_usable = "outcome != 'failed' AND id NOT IN (SELECT call FROM voids)"
        answered = {row[0] for row in self._ours.execute(f"SELECT DISTINCT key FROM calls WHERE {is_usable}")}
        columns = CallRecord.__struct_fields__
        insert = f"INSERT INTO calls ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        ids: dict[int, int] = {}
        total = 0
        new = 0
        for their_id, *values in self._rows("calls", "ORDER BY id"):
            total += 1
            call = dict(zip(columns, values, strict=True))
            identity = (call["key"], call["at"], call["role"])
            if identity in our_ids:
                ids[their_id] = our_ids[identity]
                continue
            our_id = cast(int, self._ours.execute(insert, values).lastrowid)
            ids[their_id] = our_id
            our_ids[identity] = our_id
            if call["outcome"] != "failed" and call["key"] in answered:
                self._ours.execute(
                    "INSERT INTO voids VALUES (?, ?, ?, ?)", (our_id, f"merged {call['run']}", 0, MERGED)
                )
            new += 1
            if new % BATCH == 0:
                self._ours.commit()
                if self._tell is not None:
                    self._tell(f"{new} calls")
        self._ours.commit()
        return total, new, ids

    def _add_voids(self, ids: dict[int, int]) -> None:
        present = set(self._ours.execute("SELECT call, run, round FROM voids"))
        for call, run, round, reason in self._rows("voids"):
            if call in ids and (ids[call], run, round) not in present:
                self._ours.execute("INSERT INTO voids VALUES (?, ?, ?, ?)", (ids[call], run, round, reason))
        self._ours.commit()

    def _add_tickets(self) -> None:
        """Add the tickets of requests that are not answered here."""
        for row in self._rows("tickets"):
            key = row[:1]
            if not self._ours.execute("SELECT 1 FROM calls WHERE key = ? AND outcome != 'failed'", key).fetchone():
                self._ours.execute("INSERT OR IGNORE INTO tickets VALUES (?, ?, ?, ?)", row)
        self._ours.commit()

    def _merge_run(self, theirs: dict[str, Any]) -> bool:
        """Merge one run in one transaction. Return whether it is new here or has more than before."""
        run = str(theirs["id"])
        ours = self._ours.execute("SELECT state, names, shards FROM runs WHERE id = ?", (run,)).fetchone()
        if ours is None:
            self._put("runs", tuple(theirs.values()))
        changed = self._merge_samples(run) > 0
        if ours is not None:
            our_state, our_names, our_shards = ours
            shards = {**_parse_object(our_shards), **_parse_object(theirs["shards"])}
            if changed:
                names = {**_parse_object(theirs["names"]), **_parse_object(our_names)}
                self._update_run(theirs, _merged_state(our_state, theirs["state"], shards), names, shards)
            elif shards != _parse_object(our_shards):
                sql = "UPDATE runs SET shards = ?, gist = '{}' WHERE id = ?"
                self._ours.execute(sql, (msgspec.json.encode(shards).decode(), run))
                changed = True
        self._ours.execute(
            "UPDATE runs SET samples = COALESCE(samples, ?), turns = COALESCE(turns, ?) WHERE id = ?",
            (theirs["samples"], theirs["turns"], run),
        )
        self._ours.commit()
        return ours is None or changed

    def _update_run(self, theirs: dict[str, Any], state: str, names: dict[str, Any], shards: dict[str, Any]) -> None:
        self._ours.execute(
            "UPDATE runs SET round = MAX(round, ?), state = ?, names = ?, shards = ?, gist = '{}', "
            "ended = COALESCE(ended, ?) WHERE id = ?",
            (
                theirs["round"],
                state,
                msgspec.json.encode(names).decode(),
                msgspec.json.encode(shards).decode(),
                theirs["ended"],
                theirs["id"],
            ),
        )

    def _merge_samples(self, run: str) -> int:
        """Replace the samples of which they have more. Return how many those are."""
        our_sizes = _sample_sizes(self._ours, run)
        their_sizes = _sample_sizes(self._theirs, run)
        larger = [sample for sample, size in their_sizes.items() if size > our_sizes.get(sample, (0, 0))]
        for sample in larger:
            for table in ("replies", "verdicts"):
                self._ours.execute(f"DELETE FROM {table} WHERE run = ? AND sample = ?", (run, sample))
                for row in self._rows(table, "WHERE run = ? AND sample = ?", (run, sample)):
                    self._put(table, row)
        return len(larger)


def _merged_state(ours: str, theirs: str, shards: dict[str, Any]) -> str:
    if "finished" in (ours, theirs):
        return "finished"
    if shards:
        return "part"
    return "stopped"


def _sample_sizes(db: sqlite3.Connection, run: str) -> dict[str, tuple[int, int]]:
    """Return how many scored verdicts and how many turns each sample has."""
    turns = dict(db.execute("SELECT sample, COUNT(*) FROM replies WHERE run = ? GROUP BY sample", (run,)))
    scored_sql = (
        "SELECT sample, SUM(json_extract(verdict, '$.value') IS NOT NULL) FROM verdicts "
        "WHERE run = ? AND json_valid(verdict) GROUP BY sample"
    )
    scored = dict(db.execute(scored_sql, (run,)))
    return {sample: (int(scored.get(sample, 0)), int(count)) for sample, count in turns.items()}


def _finish_sharded_runs(home: Path, runs: list[str]) -> None:
    """Update the state of runs whose shards may be complete by now."""
    journal = Journal(journal_file(home))
    try:
        records = {record.id: record for record in journal.runs()}
        for run in runs:
            if records[run].shards and records[run].state != "finished":
                journal.set_state(run, journal.state_of_shards(run))
    finally:
        journal.close()


def _parse_object(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
