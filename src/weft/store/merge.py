"""Merges another journal's calls, runs and images into this one: from another machine, another home, or another shard.

Every row is checked before it is counted or accepted: a journal may come from anywhere, and nothing that is here is
replaced by less, or by something else. All rows are merged in one transaction, after the images: a merge that was
killed is done again, with the same result, and two merges at once wait for each other. All calls are added; where both
journals have an answer under one cache key, ours stays the one in use. Of a run that both have, a sample comes from
theirs if that has all of it that is here, and more; a run whose shards are all there is finished. Of two annotations of
one question by one person the later one counts.
"""

import hashlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.store.blobs import blobs_folder, list_images, write_file
from weft.store.connection import DamagedJournal, copy_journal, explain_error, explain_errors, open_journal_file
from weft.store.images import MAX_BYTES
from weft.store.locks import find_active_run, maintain_home
from weft.store.records import CallRecord, parse_run_record
from weft.store.recover import COLUMNS, SqlRow, validate_row
from weft.store.schema import JOURNAL, journal_file
from weft.untrusted import read_file

SAMPLE_TABLES = ("replies", "verdicts")
TURN = COLUMNS["verdicts"].index("turn")  # in `replies`, too
VERDICT = COLUMNS["verdicts"].index("verdict")
REPLY = COLUMNS["replies"].index("reply")
LAST_KEY_COLUMN = {"replies": "turn", "verdicts": "variant"}
SAMPLES_OF_RUN = "SELECT DISTINCT sample FROM replies WHERE run = ?"
OF_SAMPLE = "WHERE run = ? AND sample = ?"
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
    active_run = find_active_run(other)
    if active_run:
        raise UserError(f"run {active_run} is going on in {other}: wait for it")
    with maintain_home(home), tempfile.TemporaryDirectory(prefix="weft-merge-") as temporary:
        theirs = _open_copy(other, Path(temporary))
        ours = open_journal_file(journal_file(home), autocommit=True)  # which creates it where there is none
        try:
            images, new_images, damaged_images = _merge_images(home, other, tell)
            merge = _Merge(ours, theirs, journal_file(other), tell)
            with explain_errors(journal_file(home)):
                ours.execute("BEGIN IMMEDIATE")
                calls, new_calls = merge.merge_calls()
                runs = merge.merge_runs()
                annotations, new_annotations = merge.merge_annotations()
                ours.execute("COMMIT")
        finally:
            theirs.close()
            ours.close()  # without COMMIT nothing of it happened
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


def _open_copy(home: Path, folder: Path) -> sqlite3.Connection:
    """Open a copy of a home's journal. Opening the original might change it."""
    copy = journal_file(folder)
    copy_journal(journal_file(home), copy)
    try:
        return open_journal_file(copy)
    except DamagedJournal as error:
        raise DamagedJournal(journal_file(home), error.reason) from None


def _merge_images(home: Path, other: Path, tell: Tell | None) -> tuple[int, int, int]:
    """Copy images whose bytes match their names. Return how many there are, how many were new, and damaged."""
    total = 0
    new = 0
    damaged = 0
    for file in list_images(other):
        total += 1
        target = blobs_folder(home) / file.name[:2] / file.name
        if target.is_file() and target.stat().st_size == file.stat().st_size:
            continue
        try:
            data = read_file(file, MAX_BYTES)
        except (UserError, OSError):  # too large for an image, or not readable
            damaged += 1
            continue
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

    def __init__(
        self, ours: sqlite3.Connection, theirs: sqlite3.Connection, their_path: Path, tell: Tell | None
    ) -> None:
        self._ours = ours
        self._theirs = theirs
        self._their_path = their_path  # which errors about their rows name
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
        return total, new

    def _rows(self, table: str, where: str = "", values: tuple[Any, ...] = ()) -> Iterator[SqlRow]:
        """Yield their valid rows, and count the others."""
        for row in self._their_rows(f"SELECT {', '.join(COLUMNS[table])} FROM {table} {where}", values):
            valid = validate_row(table, row)
            if valid is None:
                self.damaged += 1
            else:
                yield valid

    def _their_rows(self, sql: str, values: tuple[Any, ...] = ()) -> Iterator[SqlRow]:
        """Yield rows of theirs. Raises DamagedJournal, which names their journal, where SQLite cannot read them."""
        try:
            for row in self._theirs.execute(sql, values):  # noqa: UP028 (`yield from` would close the cursor too late)
                yield row
        except (sqlite3.Error, UnicodeError, OverflowError, MemoryError) as error:
            raise explain_error(self._their_path, error) from None

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
            if new % BATCH == 0 and self._tell is not None:
                self._tell(f"{new} calls")
        return total, new, ids

    def _add_voids(self, ids: dict[int, int]) -> None:
        present = set(self._ours.execute("SELECT call, run, round FROM voids"))
        for call, run, round, reason in self._rows("voids"):
            if call in ids and (ids[call], run, round) not in present:
                self._ours.execute("INSERT INTO voids VALUES (?, ?, ?, ?)", (ids[call], run, round, reason))

    def _add_tickets(self) -> None:
        """Add the tickets of requests that are not answered here."""
        for row in self._rows("tickets"):
            key = row[:1]
            if not self._ours.execute("SELECT 1 FROM calls WHERE key = ? AND outcome != 'failed'", key).fetchone():
                self._ours.execute("INSERT OR IGNORE INTO tickets VALUES (?, ?, ?, ?)", row)

    def _merge_run(self, theirs: dict[str, Any]) -> bool:
        """Merge one run. Return whether it is new here or has more than before."""
        run = str(theirs["id"])
        ours = self._ours.execute("SELECT state, names, shards FROM runs WHERE id = ?", (run,)).fetchone()
        damaged_before = self.damaged
        changed = self._merge_samples(run, finished=ours is not None and ours[0] == "finished") > 0
        if theirs["state"] == "finished" and (self.damaged > damaged_before or self._lacks_turns(theirs)):
            theirs["state"] = "stopped"  # the same command makes anew what is missing
        if ours is None:
            self._put("runs", tuple({**theirs, "gist": "{}"}.values()))  # its numbers are computed here
        else:
            our_state, our_names, our_shards = ours
            shards = {**_parse_object(theirs["shards"]), **_parse_object(our_shards)}
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
        self._finish_shards(run)
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

    def _lacks_turns(self, theirs: dict[str, Any]) -> bool:
        """Return whether a run has fewer turns here than it says that it has in all."""
        count = self._ours.execute("SELECT COUNT(*) FROM replies WHERE run = ?", (theirs["id"],)).fetchone()[0]
        return theirs["turns"] is not None and count < theirs["turns"]

    def _finish_shards(self, run: str) -> None:
        """Update the state of a run whose shards may all be here by now."""
        columns = ", ".join(COLUMNS["runs"])
        row = self._ours.execute(f"SELECT {columns} FROM runs WHERE id = ?", (run,)).fetchone()
        record = parse_run_record(dict(zip(COLUMNS["runs"], row, strict=True)))
        if record.shards and record.state != "finished":
            counts = [
                self._ours.execute(f"SELECT COUNT(*) FROM {table} WHERE run = ?", (run,)).fetchone()[0]
                for table in ("replies", "verdicts")
            ]
            state = record.state_of_shards((counts[0], counts[1]))
            self._ours.execute("UPDATE runs SET state = ? WHERE id = ?", (state, run))

    def _merge_samples(self, run: str, *, finished: bool) -> int:
        """Replace the samples of which they have all turns and scored verdicts that are here, and more. Return how many
        those are. In a run that is `finished` here, only what failed or is unscored is filled in.
        """
        replaced = 0
        for (sample,) in list(self._their_rows(SAMPLES_OF_RUN, (run,))):
            if not isinstance(sample, str):
                self.damaged += 1
                continue
            rows = {table: list(self._rows(table, OF_SAMPLE, (run, sample))) for table in SAMPLE_TABLES}
            ours = {table: self._our_rows(table, run, sample) for table in SAMPLE_TABLES}
            if not _contents_of(rows) > _contents_of(ours) or not _has_all_of(rows, ours, finished=finished):
                continue
            replaced += 1
            for table, sound_rows in rows.items():
                self._ours.execute(f"DELETE FROM {table} {OF_SAMPLE}", (run, sample))
                for row in sound_rows:
                    self._put(table, row)
        return replaced

    def _our_rows(self, table: str, run: str, sample: str) -> list[SqlRow]:
        sql = f"SELECT {', '.join(COLUMNS[table])} FROM {table} {OF_SAMPLE}"
        return self._ours.execute(sql, (run, sample)).fetchall()


def _contents_of(rows: Mapping[str, Sequence[SqlRow]]) -> set[tuple[Any, ...]]:
    """Return which turns and scored verdicts there are of a sample."""
    turns = {("turn", row[TURN]) for row in rows["replies"]}
    return turns | {row[TURN:VERDICT] for row in rows["verdicts"] if _is_scored(row)}


def _has_all_of(
    theirs: Mapping[str, Sequence[SqlRow]], ours: Mapping[str, Sequence[SqlRow]], *, finished: bool
) -> bool:
    """Return whether their rows have every row of ours as it is, but for what failed or is unscored here.

    `finished`: they must have no other rows.
    """
    for table in SAMPLE_TABLES:
        key_end = COLUMNS[table].index(LAST_KEY_COLUMN[table]) + 1
        our_rows = {row[:key_end]: row for row in ours[table]}
        their_rows = {row[:key_end]: row for row in theirs[table]}
        if finished and our_rows.keys() != their_rows.keys():
            return False
        if any(their_rows.get(key) != row and not _is_open(table, row) for key, row in our_rows.items()):
            return False
    return True


def _is_open(table: str, row: SqlRow) -> bool:
    """Return whether a reply failed, a verdict is unscored, or neither can be read."""
    if table == "verdicts":
        return not _is_scored(row)
    return _read_field(row[REPLY], "outcome") in (None, "failed")


def _is_scored(row: SqlRow) -> bool:
    """Return whether a row of `verdicts` has a value."""
    return _read_field(row[VERDICT], "value") is not None


def _read_field(text: str, name: str) -> Any:
    """Return a field of a JSON object; None if there is none."""
    try:
        return _parse_object(text).get(name)
    except (msgspec.MsgspecError, TypeError):
        return None


def _merged_state(ours: str, theirs: str, shards: dict[str, Any]) -> str:
    if "finished" in (ours, theirs):
        return "finished"
    if shards:
        return "part"
    return "stopped"


def _parse_object(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
