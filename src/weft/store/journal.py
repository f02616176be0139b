"""The append-only record of every call, and of what each run made of them (SQLite, WAL).

    journal = Journal(path)
    journal.put_call(record).result()        # on disk
    journal.find_reply(key, run, round=1)

Guarantees: a call is on disk before anyone uses its answer, so it survives kill -9; one thread writes, and commits
whatever has gathered in one transaction; readers may open the file while a run writes. Calls are never changed or
deleted. A call that led to nothing usable is marked void, and is made again by the next round of any run.
"""

import contextlib
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UserError, WeftError
from weft.store.connection import UNREADABLE, DamagedJournal, explain_error, open_journal_file
from weft.store.journal_writer import JournalWriter
from weft.store.manifest import Manifest
from weft.store.records import (
    CallRecord,
    CallTotals,
    RunRecord,
    Shard,
    StoredVerdict,
    TurnRecord,
    VerdictInterner,
    parse_run_record,
    read_clock,
)
from weft.types import Reply, Verdict

PUT_TURN = (
    "INSERT OR REPLACE INTO replies (run, sample, turn, position, groups, want, seen, reply, about) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
PUT_VERDICT = "INSERT OR REPLACE INTO verdicts (run, sample, turn, metric, variant, verdict) VALUES (?, ?, ?, ?, ?, ?)"
PUT_TRACE = "INSERT OR REPLACE INTO traces (run, sample, turn, trace) VALUES (?, ?, ?, ?)"
# `begun` orders runs more than it tells the time: a clock that was set back does not change which run was last
PUT_RUN = (
    "INSERT INTO runs (id, manifest, round, state, started, left_out, benchmark, begun, data, names) "
    "VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6, "
    "MAX(?4, (SELECT COALESCE(MAX(MAX(begun, started)), 0) + 0.001 FROM runs)), ?7, ?8) "
    "ON CONFLICT (id) DO UPDATE SET round = excluded.round, state = 'running', ended = NULL, "
    "left_out = excluded.left_out, benchmark = excluded.benchmark, begun = excluded.begun, data = excluded.data, "
    "names = excluded.names, gist = '{}'"
)
SOURCE_NAMES = ("source", "judge_source")
RUN_COLUMNS = (
    *("id", "manifest", "round", "state", "started", "ended", "left_out", "benchmark"),
    *("data", "names", "gist", "shards", "samples", "turns", "begun"),
)
PUT_FEATURE = "INSERT OR REPLACE INTO features (digest, kind, version, value) VALUES (?, ?, ?, ?)"
BULK = (PUT_TURN, PUT_VERDICT)


class Journal:
    """`Journal(path)` reads and writes; `Journal(path, readonly=True)` only reads, and needs the file to exist."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        if readonly and not path.exists():
            raise UserError(f"there is no journal at {path}; run an evaluation first, or name its folder with --home")
        if not readonly:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._reader = self._connect(readonly)
        self._writer: JournalWriter | None = None
        if not readonly:
            # connected here and not in the writer's thread, so that an error is raised to whoever opens the journal
            self._writer = JournalWriter(path, self._connect(False), BULK)

    def _connect(self, readonly: bool) -> sqlite3.Connection:
        return open_journal_file(self.path, readonly=readonly)

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self._iterate(sql, values))

    def _iterate(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield rows one by one, for results that need not be in memory together."""
        try:
            for row in self._reader.execute(sql, values):  # noqa: UP028 (`yield from` would close the cursor too late)
                yield row
        except (sqlite3.DatabaseError, UnicodeError, OverflowError, MemoryError) as error:  # bytes may be invalid UTF-8
            raise explain_error(self.path, error) from None

    def _parse(self, text: Any, type: Any, what: str) -> Any:
        try:
            return msgspec.json.decode(text, type=type)
        except UNREADABLE as error:
            raise DamagedJournal(self.path, f"{what}: {error}") from None

    def _put(self, sql: str, values: Sequence[Any]) -> Future[None]:
        return self._open_writer().put(sql, values)

    def _put_unwaited(self, sql: str, values: Sequence[Any]) -> None:
        """Write a row that can be made anew from the calls. Whether it was written is checked when the run ends."""
        self._open_writer().put_unwaited(sql, values)

    def _open_writer(self) -> JournalWriter:
        if self._writer is None:
            raise WeftError(f"the journal {self.path} was opened for reading")
        return self._writer

    def flush(self) -> None:
        """Wait for everything put so far to be on disk."""
        if self._writer is not None:
            self._writer.put("DELETE FROM tickets WHERE 0", ()).result()

    def close(self) -> None:
        """Wait for everything put to be on disk, and close the file."""
        if self._writer is not None:
            self._writer.close()
        self._reader.close()

    # calls

    def put_call(self, call: CallRecord, *, drop_ticket: bool = False) -> Future[None]:
        """Record a call; the future is done when it is on disk. `drop_ticket`: an answered call's ticket goes too."""
        columns = CallRecord.__struct_fields__
        marks = ", ".join("?" * len(columns))
        done = self._put(f"INSERT INTO calls ({', '.join(columns)}) VALUES ({marks})", msgspec.structs.astuple(call))
        if drop_ticket and call.outcome != "failed":
            self.drop_ticket(call.key)
        return done

    def adopt_calls(self, booking_name: str, run: str) -> Future[None]:
        """Give a run the calls that were made for it under another name, before it had an id."""
        return self._put("UPDATE calls SET run = ? WHERE run = ?", (run, booking_name))

    def put_ticket(self, key: str, ticket: str, endpoint: str) -> Future[None]:
        """Record that a request was submitted; the future is done when that is on disk."""
        return self._put("INSERT OR REPLACE INTO tickets VALUES (?, ?, ?, ?)", (key, ticket, endpoint, read_clock()))

    def find_ticket(self, key: str) -> str | None:
        """Return the ticket of a request that was submitted and not answered yet."""
        rows = self._rows("SELECT ticket FROM tickets WHERE key = ?", (key,))
        if rows:
            return rows[0][0]
        return None

    def count_tickets(self, endpoint: str) -> int:
        """Count the requests that an endpoint has not answered yet."""
        return self._rows("SELECT COUNT(*) FROM tickets WHERE endpoint = ?", (endpoint,))[0][0]

    def drop_ticket(self, key: str) -> Future[None]:
        """Forget a submitted request."""
        return self._put("DELETE FROM tickets WHERE key = ?", (key,))

    def find_reply(self, key: str, run: str, round: int) -> tuple[int, Reply] | None:
        """Return the latest usable answer under a cache key, with the id of its call.

        Failed calls do not count, and void ones only in the round that voided them.
        """
        rows = self._rows(
            "SELECT id, reply FROM calls WHERE key = ? AND outcome != 'failed' AND NOT EXISTS (SELECT 1 FROM voids "
            "WHERE voids.call = calls.id AND (voids.run != ? OR voids.round != ?)) ORDER BY id DESC LIMIT 1",
            (key, run, round),
        )
        if not rows:
            return None
        call, reply = rows[0]
        return call, self._parse(reply, Reply, f"call {call}")

    def void_calls(self, key: str, run: str, round: int, reason: str) -> Future[None]:
        """Mark the answers under a cache key as unusable: the next round, begun after the run finishes, asks again."""
        return self._put(
            "INSERT INTO voids SELECT id, ?, ?, ? FROM calls WHERE key = ? AND outcome != 'failed' AND NOT EXISTS "
            "(SELECT 1 FROM voids WHERE voids.call = calls.id)",
            (run, round, reason, key),
        )

    def calls(self, keys: Sequence[str]) -> dict[str, CallRecord]:
        """Return the latest call under each cache key."""
        columns = CallRecord.__struct_fields__
        marks = ", ".join("?" * len(keys))
        rows = self._rows(f"SELECT {', '.join(columns)} FROM calls WHERE key IN ({marks}) ORDER BY id", tuple(keys))
        return {row[0]: CallRecord(*row) for row in rows}

    def totals(self, run: str) -> list[CallTotals]:
        """Sum up the calls made for a run, by role. Cached answers from earlier runs are not counted."""
        rows = self._rows(
            "SELECT role, COUNT(*), SUM(outcome != 'failed'), SUM(tokens_in), SUM(tokens_out), "
            "CASE WHEN SUM(cost IS NULL AND outcome != 'failed') THEN NULL ELSE TOTAL(cost) END, "
            "SUM(attempts - 1), TOTAL(latency) FROM calls WHERE run = ? GROUP BY role ORDER BY role DESC",
            (run,),
        )
        totals: list[CallTotals] = []
        try:
            for row in rows:
                values = dict(zip(CallTotals.__struct_fields__, row, strict=True))
                totals.append(msgspec.convert(values, CallTotals))
        except msgspec.ValidationError as error:
            raise DamagedJournal(self.path, f"the calls of {run}: {error}") from None
        return totals

    # features

    def find_feature(self, digest: str, kind: str, version: str) -> str | None:
        """Return what was computed from the image with this digest; None if it was not yet."""
        sql = "SELECT value FROM features WHERE digest = ? AND kind = ? AND version = ?"
        rows = self._rows(sql, (digest, kind, version))
        if rows:
            return str(rows[0][0])
        return None

    def put_feature(self, digest: str, kind: str, version: str, value: str) -> Future[None]:
        """Store what was computed from an image; the future is done when it is on disk."""
        return self._put(PUT_FEATURE, (digest, kind, version, value))

    # runs

    def begin_run(
        self,
        run: str,
        manifest: Manifest,
        left_out: list[str],
        benchmark: str = "",
        data: str = "",
        names: dict[str, str] | None = None,
        shard: Shard | None = None,
    ) -> int:
        """Start a run, or continue it, and return its round: a finished run begins another.

        Turns and verdicts of the run, or of the shard, are deleted: they are made anew from the calls. `benchmark` and
        `data` are where its code and its dataset are found again, `names` what the user calls its model and its judge.
        """
        round = 1
        all_names: dict[str, str] = {}
        before = self._find_run(run)
        if before is not None:
            round = before.round + (before.state == "finished" or str(shard) in before.shards)
            all_names = {name: value for name, value in before.names.items() if name in ("tag", "suite", "sweep")}
        all_names |= names or {}
        if before is not None:  # its answers are of the code that made them first
            all_names |= {name: value for name, value in before.names.items() if name in SOURCE_NAMES}
        values = (run, _json(manifest), round, read_clock(), _json(left_out), benchmark, data, _json(all_names))
        self._put(PUT_RUN, values).result()
        condition, shard_values = _shard_condition(shard)
        for table in ("replies", "verdicts", "traces"):
            self._put(f"DELETE FROM {table} WHERE run = ?{condition}", (run, *shard_values))
        if shard is None:
            self._put("UPDATE runs SET shards = '{}' WHERE id = ?", (run,))
        else:
            self._put("UPDATE runs SET shards = json_remove(shards, ?) WHERE id = ?", (_shard_path(shard), run))
        return round

    def set_expected(self, run: str, samples: int, turns: int) -> None:
        """Record the size of the whole run, once its dataset has been read to the end."""
        self._put("UPDATE runs SET samples = ?, turns = ? WHERE id = ?", (samples, turns, run)).result()

    def end_run(
        self, run: str, state: str, expected: tuple[int, int] | None = None, shard: Shard | None = None
    ) -> None:
        """Record how a run ended; of one with missing shards the state is `part`.

        Raises WeftError, and records `stopped`, if a row could not be written since the start, or if a finished run
        does not have the expected turns and verdicts.
        """
        self.flush()
        failure = self._open_writer().take_failure()
        if failure is None and expected is not None and state == "finished":
            failure = self._find_missing_rows(run, expected, shard)
        if failure:
            state = "stopped"
        if shard is not None and state == "finished" and expected is not None:
            self._put(
                "UPDATE runs SET shards = json_set(shards, ?, json(?)) WHERE id = ?",
                (_shard_path(shard), _json(expected), run),
            ).result()
            state = self.state_of_shards(run)
        self._put("UPDATE runs SET state = ?, ended = ? WHERE id = ?", (state, read_clock(), run)).result()
        if failure:
            raise failure

    def _find_missing_rows(self, run: str, expected: tuple[int, int], shard: Shard | None) -> WeftError | None:
        done = self.count_done(run, shard)
        for what, count, expected_count in zip(("turns", "verdicts"), done, expected, strict=True):
            if count != expected_count:
                return WeftError(
                    f"the run is not finished: {count} of {expected_count} {what} are in the journal: "
                    "run the same command again"
                )
        return None

    def state_of_shards(self, run: str) -> str:
        """Return `finished` if all shards of a run are done and none of their rows is missing, else `part`."""
        record = self._find_run(run)
        if record is None:
            return "part"
        return record.state_of_shards(self.count_done(run))

    def set_left_out(self, run: str, left_out: list[str]) -> None:
        """Record which records of the dataset a run leaves out."""
        self._put("UPDATE runs SET left_out = ? WHERE id = ?", (_json(left_out), run))

    def has_records(self, run: str) -> bool:
        """Return whether a run has any turn, verdict or call, failed ones included."""
        self.flush()
        for table in ("replies", "verdicts", "calls"):
            if self._rows(f"SELECT 1 FROM {table} WHERE run = ? LIMIT 1", (run,)):
                return True
        return False

    def set_state(self, run: str, state: str) -> None:
        """Record a state that changed while the run was not active."""
        self._put("UPDATE runs SET state = ? WHERE id = ?", (state, run)).result()

    def set_names(self, run: str, **names: str) -> None:
        """Record what the user calls a run (`tag`)."""
        for name, value in names.items():
            self._put("UPDATE runs SET names = json_set(names, ?, ?) WHERE id = ?", (f"$.{name}", value, run)).result()

    def set_gist(self, run: str, gist: Any) -> None:
        """Record a run's headline score, for lists of many runs."""
        self._put("UPDATE runs SET gist = ? WHERE id = ?", (_json(gist), run)).result()

    def remove_run(self, run: str) -> None:
        """Delete a run, its turns, verdicts and annotations. Its calls stay: other runs may use them."""
        self._put("DELETE FROM runs WHERE id = ?", (run,)).result()
        for table in ("replies", "verdicts", "traces", "ratings", "studies"):
            self._put(f"DELETE FROM {table} WHERE run = ?", (run,)).result()

    def runs(self) -> list[RunRecord]:
        """Return all runs, sorted by when they were last begun or continued."""
        rows = self._rows(f"SELECT {', '.join(RUN_COLUMNS)} FROM runs ORDER BY MAX(begun, started), id")
        return [self._parse_run(row) for row in rows]

    def _parse_run(self, row: Sequence[Any]) -> RunRecord:
        columns = dict(zip(RUN_COLUMNS, row, strict=True))
        try:
            return parse_run_record(columns)
        except UNREADABLE as error:
            raise DamagedJournal(self.path, f"run {columns['id']}: {error}") from None

    def _find_run(self, run: str) -> RunRecord | None:
        return next((record for record in self.runs() if record.id == run), None)

    @contextlib.contextmanager
    def snapshot(self) -> Generator[None]:
        """Read everything inside as of one moment, while a run may be writing."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._rows("COMMIT")

    # turns and verdicts of a run

    def put_turn(self, run: str, turn: TurnRecord) -> None:
        """Store a turn. It is on disk after `flush`."""
        values = (
            *(run, turn.sample, turn.turn, turn.position, _json(turn.groups)),
            *(turn.modality, turn.messages_json, _json(turn.reply), turn.dataset_json),
        )
        self._put_unwaited(PUT_TURN, values)

    def put_verdict(self, run: str, verdict: Verdict) -> None:
        """Store a verdict. It is on disk after `flush`."""
        values = (run, verdict.sample, verdict.turn, verdict.metric, verdict.variant, _json(verdict))
        self._put_unwaited(PUT_VERDICT, values)

    def put_trace(self, run: str, sample: str, turn: int, trace: str) -> None:
        """Store the traceback of what a benchmark or a user's model raised."""
        self._put_unwaited(PUT_TRACE, (run, sample, turn, trace))

    def traces(self, run: str, sample: str) -> dict[int, list[str]]:
        """Return the tracebacks of a sample, by turn."""
        traces: dict[int, list[str]] = {}
        sql = "SELECT turn, trace FROM traces WHERE run = ? AND sample = ? ORDER BY turn"
        for turn, trace in self._rows(sql, (run, sample)):
            traces.setdefault(turn, []).append(trace)
        return traces

    def turns(self, run: str) -> list[TurnRecord]:
        """Return the turns of a run, in the order of the dataset. Equal groups are one object."""
        rows = self._iterate(
            "SELECT sample, turn, position, groups, want, seen, reply, about FROM replies "
            "WHERE run = ? ORDER BY position, turn",
            (run,),
        )
        groups: dict[str, dict[str, str]] = {}
        return [self._parse_turn(row, groups) for row in rows]

    def _parse_turn(self, row: Sequence[Any], groups_by_text: dict[str, dict[str, str]]) -> TurnRecord:
        sample, turn, position, groups, modality, messages, reply, dataset = row
        if not isinstance(turn, int):
            raise DamagedJournal(self.path, f"sample {sample}, turn {turn}")
        what = f"sample {sample}, turn {turn + 1}"
        if not all(isinstance(text, str) for text in (sample, groups, modality, messages, dataset)):
            raise DamagedJournal(self.path, what)
        if groups not in groups_by_text:
            groups_by_text[groups] = self._parse(groups, dict[str, str], what)
        parsed_reply = self._parse(reply, Reply, what)
        return TurnRecord(sample, turn, position, groups_by_text[groups], modality, messages, parsed_reply, dataset)

    def groups(self, run: str) -> dict[str, dict[str, str]]:
        """Return the groups of each sample, in the order of the dataset. Equal groups are one object."""
        sql = "SELECT sample, groups FROM replies WHERE run = ? GROUP BY sample ORDER BY MIN(position)"
        groups_by_text: dict[str, dict[str, str]] = {}
        groups: dict[str, dict[str, str]] = {}
        for sample, text in self._iterate(sql, (run,)):
            if text not in groups_by_text:
                groups_by_text[text] = self._parse(text, dict[str, str], f"sample {sample}")
            groups[sample] = groups_by_text[text]
        return groups

    def replies(self, run: str) -> Iterator[Reply]:
        """Yield the replies of a run, one at a time in memory."""
        for sample, reply in self._iterate("SELECT sample, reply FROM replies WHERE run = ?", (run,)):
            yield self._parse(reply, Reply, f"sample {sample}")

    def verdicts(self, run: str) -> list[Verdict]:
        """Return the verdicts of a run, in the order of the dataset.

        Equal samples, reasons, numbers and details are one object, which must not be changed.
        """
        rows = self._iterate(
            "SELECT sample, turn, metric, variant, verdict FROM verdicts JOIN replies USING (run, sample, turn) "
            "WHERE run = ? ORDER BY position, turn, metric, variant",
            (run,),
        )
        what = f"a verdict of {run}"
        interner = VerdictInterner(lambda text: self._parse(text, Any, what))
        verdicts: list[Verdict] = []
        for *place, text in rows:
            stored = self._parse(text, StoredVerdict, what)
            if [stored.sample, stored.turn, stored.metric, stored.variant] != place:
                raise DamagedJournal(self.path, f"{what} is about another turn than its row")
            verdicts.append(interner.intern(stored))
        return verdicts

    def count_done(self, run: str, shard: Shard | None = None) -> tuple[int, int]:
        """Count the turns and verdicts that a run, or a shard of it, has so far."""
        condition, values = _shard_condition(shard)
        turns = self._rows(f"SELECT COUNT(*) FROM replies WHERE run = ?{condition}", (run, *values))
        verdicts = self._rows(f"SELECT COUNT(*) FROM verdicts WHERE run = ?{condition}", (run, *values))
        return turns[0][0], verdicts[0][0]

    def count_annotations(self, run: str) -> tuple[int, int]:
        """Count the annotations of a run, attention checks aside, and the annotators."""
        sql = "SELECT COUNT(*), COUNT(DISTINCT rater) FROM ratings WHERE run = ? AND NOT attention"
        count, annotators = self._rows(sql, (run,))[0]
        return count, annotators

    def search(self, text: str) -> Iterator[tuple[str, str, int, str, str]]:
        """Yield run, sample, turn, where, and the JSON of every record that contains a text (escaped as in JSON)."""
        pattern = text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        places = (("answered", "reply", "replies"), ("shown", "seen", "replies"), ("verdict", "verdict", "verdicts"))
        for where, column, table in places:
            sql = f"SELECT run, sample, turn, {column} FROM {table} WHERE {column} LIKE ? ESCAPE '!'"
            for run, sample, turn, record in self._rows(sql, (f"%{pattern}%",)):
                yield run, sample, turn, where, record


def _shard_condition(shard: Shard | None) -> tuple[str, tuple[str, ...]]:
    """Return the SQL condition, and its values, for the rows of a shard, or of the whole run."""
    if shard is None:
        return "", ()
    return " AND sample IN (SELECT value FROM json_each(?))", (_json(shard.samples),)


def _shard_path(shard: Shard) -> str:
    return f'$."{shard}"'


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
