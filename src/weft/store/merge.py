"""Another journal's calls, runs and pictures into this one: of another machine, another home, or the shards of a run.

Every row is checked before it is taken: a journal may come from anywhere. What is here already is not taken twice, so
that a merge that was killed, or is done again, comes to the same. Calls are all kept; where both have an answer to the
same question, ours stays the one that is used. Of a run that both have, each sample is taken from the side that has
more of it; a run whose shards are all there is finished. Of two ratings of one question by one person the later one
counts."""

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
from weft.store.records import CallRecord, RunRecord
from weft.store.recover import COLUMNS, validate_row
from weft.store.schema import JOURNAL, journal_file

BATCH = 500
MERGED = "another answer to the same question was here first"
Tell = Callable[[str], None]
Row = tuple[Any, ...]


class MergeResult(Struct, frozen=True):
    """What came, and what of it is new here."""

    calls: int
    new_calls: int
    images: int
    new_images: int
    runs: tuple[str, ...]  # that are new, or have more than before
    damaged: int = 0  # rows and pictures that could not be taken
    annotations: int = 0  # by people
    new_annotations: int = 0


def merge_journal(home: Path, other: Path, tell: Tell | None = None) -> MergeResult:
    """`other` is a home, or the journal in it. Raises UserError where somebody is at work in one of the two."""
    if other.name == JOURNAL:
        other = other.parent
    if not journal_file(other).is_file():
        raise UserError(f"there is no journal at {journal_file(other)}")
    if home.exists() and other.resolve() == home.resolve():
        raise UserError(f"{other} is the journal that it is to be merged into")
    for place in (home, other):
        if busy := find_active_run(place):
            raise UserError(f"run {busy} is going on in {place}: wait for it")
    with tempfile.TemporaryDirectory(prefix="weft-merge-") as folder:
        copy = journal_file(folder)
        for suffix in ("", "-wal"):  # never the original: to read it may be to change it
            if (other / f"{JOURNAL}{suffix}").is_file():
                shutil.copyfile(other / f"{JOURNAL}{suffix}", copy.with_name(copy.name + suffix))
        Journal(copy).close()  # of this version
        theirs = sqlite3.connect(copy)
        Journal(journal_file(home)).close()
        ours = sqlite3.connect(journal_file(home))
        ours.execute("PRAGMA busy_timeout = 30000")
        try:
            pictures = _pictures(home, other, tell)
            merging = _Merge(ours, theirs, tell)
            made = merging.all()
            people = merging.ratings()
        finally:
            theirs.close()
            ours.close()
    calls, new, runs = made
    _settle(home, runs)
    return MergeResult(calls, new, pictures[0], pictures[1], tuple(runs), merging.damaged + pictures[2], *people)


def _pictures(home: Path, other: Path, tell: Tell | None) -> tuple[int, int, int]:
    """Those that are what their names say; found, new here, and damaged."""
    found = new = damaged = 0
    for file in sorted(blobs_folder(other).glob("??/*")):
        if DIGEST.fullmatch(file.name) is None or file.is_symlink() or not file.is_file():
            continue
        found += 1
        place = blobs_folder(home) / file.name[:2] / file.name
        if place.is_file() and place.stat().st_size == file.stat().st_size:
            continue
        data = file.read_bytes()
        if hashlib.sha256(data).hexdigest() != file.name:
            damaged += 1
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        write_file(place, data, durable=True)
        new += 1
        if tell is not None and new % BATCH == 0:
            tell(f"{new} pictures")
    return found, new, damaged


class _Merge:
    def __init__(self, ours: sqlite3.Connection, theirs: sqlite3.Connection, tell: Tell | None) -> None:
        self._ours = ours
        self._theirs = theirs
        self._tell = tell
        self.damaged = 0

    def all(self) -> tuple[int, int, list[str]]:
        calls, new, numbers = self._calls()
        self._voids(numbers)
        self._tickets()
        runs = [run for row in list(self._rows("runs")) if (run := self._run(row))]
        return calls, new, runs

    def _rows(self, table: str, where: str = "", values: tuple[Any, ...] = ()) -> Iterator[Row]:
        """Rows of theirs that are what they must be."""
        for row in self._theirs.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table} {where}", values):
            good = validate_row(table, row)
            if good is None:
                self.damaged += 1
            else:
                yield good

    def _calls(self) -> tuple[int, int, dict[int, int]]:
        """All of theirs that are not here; and by their numbers there, the numbers here."""
        known = {
            (key, at, role): number
            for number, key, at, role in self._ours.execute("SELECT id, key, at, role FROM calls")
        }
        usable_ones = "outcome != 'failed' AND id NOT IN (SELECT call FROM voids)"
        answered = {row[0] for row in self._ours.execute(f"SELECT DISTINCT key FROM calls WHERE {usable_ones}")}
        columns = CallRecord.__struct_fields__
        put = f"INSERT INTO calls ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        numbers = dict[int, int]()
        count = 0
        new = 0
        for number, *values in self._rows("calls", "ORDER BY id"):
            count += 1
            call = dict(zip(columns, values, strict=True))
            mark = (call["key"], call["at"], call["role"])
            if mark in known:
                numbers[number] = known[mark]
                continue
            numbers[number] = known[mark] = cast(int, self._ours.execute(put, values).lastrowid)
            if call["outcome"] != "failed" and call["key"] in answered:
                self._ours.execute(
                    "INSERT INTO voids VALUES (?, ?, ?, ?)", (numbers[number], f"merged {call['run']}", 0, MERGED)
                )
            new += 1
            if new % BATCH == 0:
                self._ours.commit()
                if self._tell is not None:
                    self._tell(f"{new} calls")
        self._ours.commit()
        return count, new, numbers

    def _voids(self, numbers: dict[int, int]) -> None:
        there = set(self._ours.execute("SELECT call, run, round FROM voids"))
        for call, run, round, reason in self._rows("voids"):
            if call in numbers and (numbers[call], run, round) not in there:
                self._ours.execute("INSERT INTO voids VALUES (?, ?, ?, ?)", (numbers[call], run, round, reason))
        self._ours.commit()

    def _tickets(self) -> None:
        """What is out, and not answered here."""
        for row in self._rows("tickets"):
            if not self._ours.execute("SELECT 1 FROM calls WHERE key = ? AND outcome != 'failed'", row[:1]).fetchone():
                self._ours.execute("INSERT OR IGNORE INTO tickets VALUES (?, ?, ?, ?)", row)
        self._ours.commit()

    def ratings(self) -> tuple[int, int]:
        """What people said there, and how much of it is new here. A study that is only known from what was read in of
        it gives way to the study itself."""
        whole = "json_extract(settings, '$.orders') IS NOT NULL"
        for row in self._rows("studies"):
            self._ours.execute("INSERT OR IGNORE INTO studies VALUES (?, ?, ?, ?)", row)
            if "orders" in json(row[3]):
                self._ours.execute(f"UPDATE studies SET settings = ? WHERE id = ? AND NOT ({whole})", (row[3], row[0]))
        put = f"INSERT OR REPLACE INTO ratings ({', '.join(COLUMNS['ratings'])}) VALUES ({', '.join('?' * len(COLUMNS['ratings']))})"
        count = new = 0
        for row in self._rows("ratings"):
            count += 1
            named = dict(zip(COLUMNS["ratings"], row, strict=True))
            mine = self._ours.execute(
                "SELECT at FROM ratings WHERE run = ? AND study = ? AND item = ? AND rater = ?", row[:4]
            ).fetchone()
            if mine is None or named["at"] > mine[0]:
                self._ours.execute(put, row)
                new += 1
        self._ours.commit()
        return count, new

    def _run(self, row: Row) -> str:
        """Its name, if it is new here or has more than before. All of it in one go, or nothing."""
        named = dict(zip(COLUMNS["runs"], row, strict=True))
        run = str(named["id"])
        mine = self._ours.execute("SELECT round, state, names, shards FROM runs WHERE id = ?", (run,)).fetchone()
        if mine is None:
            marks = ", ".join("?" * len(row))
            self._ours.execute(f"INSERT INTO runs ({', '.join(COLUMNS['runs'])}) VALUES ({marks})", row)
        taken = self._samples(run)
        if mine is not None and taken:
            shards = {**json(mine[3]), **json(named["shards"])}
            names = {**json(named["names"]), **json(mine[2])}
            if "finished" in (mine[1], named["state"]):
                state = "finished"
            else:
                if shards:
                    state = "part"
                else:
                    state = "stopped"
            self._ours.execute(
                "UPDATE runs SET round = MAX(round, ?), state = ?, names = ?, shards = ?, gist = '{}', ended = COALESCE(ended, ?) "
                "WHERE id = ?",
                (
                    named["round"],
                    state,
                    msgspec.json.encode(names).decode(),
                    msgspec.json.encode(shards).decode(),
                    named["ended"],
                    run,
                ),
            )
        elif mine is not None and {**json(mine[3]), **json(named["shards"])} != json(mine[3]):
            shards = {**json(mine[3]), **json(named["shards"])}
            self._ours.execute(
                "UPDATE runs SET shards = ?, gist = '{}' WHERE id = ?", (msgspec.json.encode(shards).decode(), run)
            )
            taken = 1
        self._ours.execute(
            "UPDATE runs SET samples = COALESCE(samples, ?), turns = COALESCE(turns, ?) WHERE id = ?",
            (named["samples"], named["turns"], run),
        )
        self._ours.commit()
        if mine is None or taken:
            return run
        return ""

    def _samples(self, run: str) -> int:
        """How many samples are taken from theirs: those of which they have more."""
        worth = {side: self._worth(db, run) for side, db in (("ours", self._ours), ("theirs", self._theirs))}
        better = [sample for sample, value in worth["theirs"].items() if value > worth["ours"].get(sample, (0, 0))]
        for sample in better:
            for table in ("replies", "verdicts"):
                self._ours.execute(f"DELETE FROM {table} WHERE run = ? AND sample = ?", (run, sample))
                columns = COLUMNS[table]
                put = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
                for row in self._rows(table, "WHERE run = ? AND sample = ?", (run, sample)):
                    self._ours.execute(put, row)
        return len(better)

    def _worth(self, db: sqlite3.Connection, run: str) -> dict[str, tuple[int, int]]:
        """Verdicts that are scored, and turns, by sample."""
        turns = dict(db.execute("SELECT sample, COUNT(*) FROM replies WHERE run = ? GROUP BY sample", (run,)))
        scored = dict(
            db.execute(
                "SELECT sample, SUM(json_extract(verdict, '$.value') IS NOT NULL) FROM verdicts "
                "WHERE run = ? AND json_valid(verdict) GROUP BY sample",
                (run,),
            )
        )
        return {sample: (int(scored.get(sample, 0)), int(count)) for sample, count in turns.items()}


def _settle(home: Path, runs: list[str]) -> None:
    """Runs whose shards are all there by now are finished."""
    journal = Journal(journal_file(home))
    try:
        records: dict[str, RunRecord] = {record.id: record for record in journal.runs()}
        for run in runs:
            if records[run].shards and records[run].state != "finished":
                journal.set_state(run, journal.state_of_shards(run))
    finally:
        journal.close()


def json(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
