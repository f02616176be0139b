"""The append-only record of every call, and of what each run made of them (SQLite, WAL).

Guarantees: `record` returns only after its row is on disk, so an answer that anyone uses survives kill -9; one thread
writes, and commits whatever has gathered in one transaction; readers may open the file while a run writes. Calls are
never changed or deleted. A call that led to nothing usable is marked void, and is asked anew by the next round of any
run."""

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UserError, WeftError
from weft.store.manifest import Manifest, parse_manifest
from weft.store.records import (
    CallRecord,
    CallTotals,
    ExpectedCounts,
    RunRecord,
    Shard,
    StoredVerdict,
    TurnRecord,
    VerdictInterner,
)
from weft.store.schema import VERSION, create_tables, open_read_only
from weft.types import Reply, Verdict

PUT_TURN = "INSERT OR REPLACE INTO replies (run, sample, turn, position, groups, want, seen, reply, about) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
PUT_VERDICT = "INSERT OR REPLACE INTO verdicts (run, sample, turn, metric, variant, verdict) VALUES (?, ?, ?, ?, ?, ?)"
RUN_COLUMNS = (
    *("id", "manifest", "round", "state", "started", "ended", "left_out", "benchmark"),
    *("data", "names", "gist", "shards", "samples", "turns"),
)
PLACED = (PUT_TURN, PUT_VERDICT)
# what SQLite says where the trouble is not in the file
ELSEWHERE = ("unable to open", "locked", "readonly", "I/O", "full")


class DamagedJournal(UserError):
    """A journal that cannot be read."""

    def __init__(self, path: Path, why: object) -> None:
        if str(path.parent) == ".weft":
            home = ""
        else:
            home = f" --home {path.parent}"
        saves = f"if it is one that was damaged, `weft journal check{home}` says what can be saved, and saves it"
        # SQLite quotes what it cannot read
        told = " ".join((str(why) or type(why).__name__).split(" with text ")[0].split())[:200]
        super().__init__(f"{path} cannot be used as a journal: {told}; {saves}")


class Journal:
    """`Journal(path)` reads and writes; `Journal(path, readonly=True)` only reads, and needs the file to exist."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        if readonly and not path.exists():
            raise UserError(f"there is no journal at {path}; run an evaluation first, or name its folder with --home")
        if not readonly:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._reader = self._connect(readonly)
        self._readonly = readonly
        self._queue: queue.SimpleQueue[tuple[str, Sequence[Any], Future[None] | None] | None] = queue.SimpleQueue()
        self._failure: WeftError | None = None
        self._thread = threading.Thread(target=self._write, name="journal", daemon=True)
        if not readonly:
            self._writer = self._connect(False)  # here, where whoever waits is told if it cannot be had
            self._thread.start()

    def _connect(self, readonly: bool) -> sqlite3.Connection:
        try:
            if readonly:
                db = open_read_only(self.path)
            else:
                db = sqlite3.connect(self.path, check_same_thread=False)
            db.execute("PRAGMA busy_timeout = 30000")
            db.execute("PRAGMA trusted_schema = OFF")  # a journal that was received runs nothing
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if readonly and not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
                raise UserError(f"{self.path} is no journal of weft, or nothing was ever run with it")
            if found not in (0, VERSION):
                raise UserError(
                    f"{self.path} was written by another weft (journal version {found}, this one writes {VERSION})"
                )
            if not readonly:
                create_tables(db)
        except sqlite3.OperationalError as error:
            if any(word in str(error) for word in ELSEWHERE):
                raise UserError(f"{self.path} cannot be used as a journal: {error}") from None
            raise DamagedJournal(self.path, error) from None
        except sqlite3.Error as error:
            raise DamagedJournal(self.path, error) from None
        except (OverflowError, ValueError, MemoryError) as error:
            raise DamagedJournal(self.path, error) from None
        return db

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self._each(sql, values))

    def _each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Row by row, for those that are not kept as they are."""
        try:
            for row in self._reader.execute(sql, values):  # noqa: UP028 (`yield from` would close the cursor after its journal)
                yield row
        # bytes that are no UTF-8 as well
        except (sqlite3.DatabaseError, UnicodeError, OverflowError, MemoryError) as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise WeftError(f"the journal {self.path} is locked by another process") from None
            raise DamagedJournal(self.path, error) from None

    def _read(self, text: Any, kind: Any, what: str) -> Any:
        try:
            return msgspec.json.decode(text, type=kind)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
            raise DamagedJournal(self.path, f"{what}: {error}") from None

    def _write(self) -> None:
        db = self._writer
        while (first := self._queue.get()) is not None:
            batch = [first]
            while not self._queue.empty() and len(batch) < 4096:
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                batch.append(more)
            try:
                for sql, rows in _grouped(batch):
                    db.executemany(sql, rows)
                db.commit()
            except Exception:  # one bad row must not take the others with it
                db.rollback()
                for one in batch:
                    self._write_one(db, *one)
            else:
                for _, _, done in batch:
                    _tell(done)
        db.close()

    def _write_one(self, db: sqlite3.Connection, sql: str, values: Sequence[Any], done: Future[None] | None) -> None:
        try:
            db.execute(sql, values)
            db.commit()
        except Exception as error:
            db.rollback()
            self._failure = WeftError(f"the journal {self.path} cannot be written: {error}")
            if done is not None and not done.cancelled():
                done.set_exception(self._failure)
        else:
            _tell(done)

    def _put(self, sql: str, values: Sequence[Any]) -> Future[None]:
        done: Future[None] = Future()
        self._queue.put((sql, values, done))
        return done

    def _place(self, sql: str, values: Sequence[Any]) -> None:
        """A row that nobody waits for: it is made anew from the calls, if it must be. That it was written is known when
        the run ends."""
        self._queue.put((sql, values, None))

    def flush(self) -> None:
        """Wait for everything handed in so far to be on disk. Who only reads has handed in nothing."""
        if not self._readonly:
            self._put("DELETE FROM tickets WHERE 0", ()).result()

    def close(self) -> None:
        """Wait for everything handed in to be on disk."""
        if not self._readonly and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._reader.close()

    # calls

    def put_call(self, call: CallRecord, *, drop_ticket: bool = False) -> Future[None]:
        """Done when the row is on disk; the ticket of a call that `was_pending` goes with it."""
        columns = CallRecord.__struct_fields__
        marks = ", ".join("?" * len(columns))
        done = self._put(f"INSERT INTO calls ({', '.join(columns)}) VALUES ({marks})", msgspec.structs.astuple(call))
        if drop_ticket and call.outcome != "failed":
            self.drop_ticket(call.key)
        return done

    def adopt_calls(self, before: str, run: str) -> Future[None]:
        """Calls that were booked under a name of their own before their run had one are the run's."""
        return self._put("UPDATE calls SET run = ? WHERE run = ?", (run, before))

    def put_ticket(self, key: str, ticket: str, endpoint: str) -> Future[None]:
        """A request was handed in; done when that is on disk."""
        return self._put("INSERT OR REPLACE INTO tickets VALUES (?, ?, ?, ?)", (key, ticket, endpoint, time.time()))

    def find_ticket(self, key: str) -> str | None:
        """What to collect the answer to a request with, if it was handed in and is not back yet."""
        rows = self._rows("SELECT ticket FROM tickets WHERE key = ?", (key,))
        if rows:
            return rows[0][0]
        return None

    def count_tickets(self, endpoint: str) -> int:
        return self._rows("SELECT COUNT(*) FROM tickets WHERE endpoint = ?", (endpoint,))[0][0]

    def drop_ticket(self, key: str) -> Future[None]:
        return self._put("DELETE FROM tickets WHERE key = ?", (key,))

    def find_reply(self, key: str, run: str, round: int) -> tuple[int, Reply] | None:
        """The latest usable answer under this key. Failed calls do not count; void ones only in the round that voided
        them."""
        rows = self._rows(
            "SELECT id, reply FROM calls WHERE key = ? AND outcome != 'failed' AND NOT EXISTS (SELECT 1 FROM voids "
            "WHERE voids.call = calls.id AND (voids.run != ? OR voids.round != ?)) ORDER BY id DESC LIMIT 1",
            (key, run, round),
        )
        if rows:
            return (rows[0][0], self._read(rows[0][1], Reply, f"call {rows[0][0]}"))
        return None

    def void_calls(self, key: str, run: str, round: int, reason: str) -> Future[None]:
        """The answers under this key led to nothing: the next round asks again."""
        return self._put(
            "INSERT INTO voids SELECT id, ?, ?, ? FROM calls WHERE key = ? AND outcome != 'failed' AND NOT EXISTS "
            "(SELECT 1 FROM voids WHERE voids.call = calls.id)",
            (run, round, reason, key),
        )

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
        """Start a run, or go on with it: an unfinished run keeps its round, a finished one begins another. What the run
        made of its calls so far is made anew from them; of a shard, what that shard made. `benchmark` and `data` are
        where its code and its dataset can be found again, `names` what the user calls its model and its judge."""
        before = next((record for record in self.runs() if record.id == run), None)
        round = 1
        kept = dict[str, str]()
        if before is not None:
            round = before.round + (before.state == "finished" or str(shard) in before.shards)
            kept = {name: value for name, value in before.names.items() if name in ("tag", "suite")}
        self._put(  # `begun` is an order more than a time: a clock that was set back does not change who was last
            "INSERT INTO runs (id, manifest, round, state, started, left_out, benchmark, begun, data, names) VALUES "
            "(?1, ?2, ?3, 'running', ?4, ?5, ?6, MAX(?4, (SELECT COALESCE(MAX(MAX(begun, started)), 0) + 0.001 FROM runs)), ?7, ?8) "
            "ON CONFLICT (id) DO UPDATE SET round = excluded.round, state = 'running', ended = NULL, left_out = excluded.left_out, "
            "benchmark = excluded.benchmark, begun = excluded.begun, data = excluded.data, "
            "names = excluded.names, gist = '{}'",
            (
                run,
                _json(manifest),
                round,
                time.time(),
                _json(left_out),
                benchmark,
                data,
                _json({**kept, **(names or {})}),
            ),
        ).result()
        which, values = _of(shard)
        for table in ("replies", "verdicts", "traces"):
            self._put(f"DELETE FROM {table} WHERE run = ?{which}", (run, *values))
        if shard is None:
            self._put("UPDATE runs SET shards = '{}' WHERE id = ?", (run,))
        else:
            self._put("UPDATE runs SET shards = json_remove(shards, ?) WHERE id = ?", (_key(shard), run))
        return round

    def set_expected(self, run: str, samples: int, turns: int) -> None:
        """How much the whole run asks about, once its dataset has been read to the end."""
        self._put("UPDATE runs SET samples = ?, turns = ? WHERE id = ?", (samples, turns, run)).result()

    def end_run(
        self, run: str, state: str, expected: tuple[int, int] | None = None, shard: Shard | None = None
    ) -> None:
        """Raises if anything handed in since the start could not be written, or if a run that says it is finished has
        not the turns and verdicts that are due: a run that lost a row is not finished. Nor is one of which only some
        shards are: that is a `part`."""
        self.flush()
        failure, self._failure = self._failure, None
        if (
            failure is None
            and expected is not None
            and state == "finished"
            and (there := self.count_done(run, shard)) != expected
        ):
            if there[0] != expected[0]:
                what = "turns"
            else:
                what = "verdicts"
            found, planned = (there[0], expected[0]) if there[0] != expected[0] else (there[1], expected[1])
            failure = WeftError(
                f"the run is not finished: {found} of {planned} {what} are in the journal: run the same command again"
            )
        if failure:
            state = "stopped"
        if shard is not None and state == "finished" and expected is not None:
            self._put(
                "UPDATE runs SET shards = json_set(shards, ?, json(?)) WHERE id = ?",
                (_key(shard), _json(expected), run),
            ).result()
            state = self.state_of_shards(run)
        self._put("UPDATE runs SET state = ?, ended = ? WHERE id = ?", (state, time.time(), run)).result()
        if failure:
            raise failure

    def state_of_shards(self, run: str) -> str:
        """`finished` where all shards of a run are done and nothing of them is missing, else `part`."""
        shards = next((record.shards for record in self.runs() if record.id == run), dict[str, list[int]]())
        for many in {one.partition("/")[2] for one in shards}:
            mine = [due for one, due in shards.items() if one.partition("/")[2] == many]
            if many.isdigit() and len(mine) == int(many):
                turns, verdicts = (sum(side) for side in zip(*mine, strict=True))
                if self.count_done(run) == (turns, verdicts):
                    return "finished"
                return "part"
        return "part"

    def set_left_out(self, run: str, left_out: list[str]) -> None:
        """Which records are left out of a run."""
        self._put("UPDATE runs SET left_out = ? WHERE id = ?", (_json(left_out), run))

    def has_records(self, run: str) -> bool:
        """Whether there is anything of a run: a turn, a verdict, a call, whatever became of it."""
        self.flush()
        tables = ("replies", "verdicts", "calls")
        return any(self._rows(f"SELECT 1 FROM {table} WHERE run = ? LIMIT 1", (run,)) for table in tables)

    def set_state(self, run: str, state: str) -> None:
        """It has come to be so, without anyone at work on it."""
        self._put("UPDATE runs SET state = ? WHERE id = ?", (state, run)).result()

    def set_names(self, run: str, **names: str) -> None:
        """What the user calls it (`tag`)."""
        for name, value in names.items():
            self._put("UPDATE runs SET names = json_set(names, ?, ?) WHERE id = ?", (f"$.{name}", value, run)).result()

    def set_gist(self, run: str, gist: Any) -> None:
        """Its main number, for those who list many runs."""
        self._put("UPDATE runs SET gist = ? WHERE id = ?", (_json(gist), run)).result()

    def remove_run(self, run: str) -> None:
        """The run, what it made of its calls, and what people said of it; the calls stay, others may have use of
        them."""
        self._put("DELETE FROM runs WHERE id = ?", (run,)).result()
        for table in ("replies", "verdicts", "traces", "ratings", "studies"):
            self._put(f"DELETE FROM {table} WHERE run = ?", (run,)).result()

    def runs(self) -> list[RunRecord]:
        """All runs, the one that was last begun or gone on with last."""
        rows = self._rows(f"SELECT {', '.join(RUN_COLUMNS)} FROM runs ORDER BY MAX(begun, started), id")
        return [self._run(dict(zip(RUN_COLUMNS, row, strict=True))) for row in rows]

    def _run(self, row: dict[str, Any]) -> RunRecord:
        try:
            return parse_run_record(row)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
            raise DamagedJournal(self.path, f"run {row['id']}: {error}") from None

    @contextlib.contextmanager
    def snapshot(self) -> Generator[None]:
        """What is read inside is of one moment, while a run may be writing."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._rows("COMMIT")

    # what a run made of its turns

    def put_turn(self, run: str, turn: TurnRecord) -> None:
        self._place(
            PUT_TURN,
            (
                run,
                turn.sample,
                turn.turn,
                turn.position,
                _json(turn.groups),
                turn.modality,
                turn.messages_json,
                _json(turn.reply),
                turn.dataset_json,
            ),
        )

    def put_verdict(self, run: str, verdict: Verdict) -> None:
        self._place(
            PUT_VERDICT,
            (run, verdict.sample, verdict.turn, verdict.metric, verdict.variant, _json(verdict)),
        )

    def put_trace(self, run: str, sample: str, turn: int, trace: str) -> None:
        self._place(
            "INSERT OR REPLACE INTO traces (run, sample, turn, trace) VALUES (?, ?, ?, ?)", (run, sample, turn, trace)
        )

    def traces(self, run: str, sample: str) -> dict[int, list[str]]:
        """Tracebacks of what a benchmark raised, by turn."""
        made: dict[int, list[str]] = {}
        for turn, trace in self._rows(
            "SELECT turn, trace FROM traces WHERE run = ? AND sample = ? ORDER BY turn", (run, sample)
        ):
            made.setdefault(turn, []).append(trace)
        return made

    def turns(self, run: str) -> list[TurnRecord]:
        rows = self._each(
            "SELECT sample, turn, position, groups, want, seen, reply, about FROM replies WHERE run = ? ORDER BY position, turn",
            (run,),
        )
        groups: dict[str, dict[str, str]] = {}  # many turns have the same
        return [self._turn(row, groups) for row in rows]

    def _turn(self, row: Sequence[Any], known: dict[str, dict[str, str]]) -> TurnRecord:
        sample, turn, position, groups, want, seen, reply, about = row
        what = f"sample {sample}, turn {turn + 1 if isinstance(turn, int) else turn}"
        if not all(isinstance(one, str) for one in (sample, groups, want, seen, about)) or not isinstance(turn, int):
            raise DamagedJournal(self.path, what)
        if groups not in known:
            known[groups] = self._read(groups, dict[str, str], what)
        return TurnRecord(sample, turn, position, known[groups], want, seen, self._read(reply, Reply, what), about)

    def groups(self, run: str) -> dict[str, dict[str, str]]:
        """By sample, in the order of the dataset; equal ones are one object."""
        sql = "SELECT sample, groups FROM replies WHERE run = ? GROUP BY sample ORDER BY MIN(position)"
        known: dict[str, dict[str, str]] = {}
        made: dict[str, dict[str, str]] = {}
        for sample, groups in self._each(sql, (run,)):
            if groups not in known:
                known[groups] = self._read(groups, dict[str, str], f"sample {sample}")
            made[sample] = known[groups]
        return made

    def replies(self, run: str) -> Iterator[Reply]:
        """One after the other; none is kept."""
        for sample, reply in self._each("SELECT sample, reply FROM replies WHERE run = ?", (run,)):
            yield self._read(reply, Reply, f"sample {sample}")

    def calls(self, keys: Sequence[str]) -> dict[str, CallRecord]:
        """The latest call under each key."""
        columns = CallRecord.__struct_fields__
        marks = ", ".join("?" * len(keys))
        rows = self._rows(f"SELECT {', '.join(columns)} FROM calls WHERE key IN ({marks}) ORDER BY id", tuple(keys))
        return {row[0]: CallRecord(*row) for row in rows}

    def count_done(self, run: str, shard: Shard | None = None) -> tuple[int, int]:
        """Turns and verdicts that are there by now, of a run or a shard of it."""
        which, values = _of(shard)
        counts = (f"SELECT COUNT(*) FROM {table} WHERE run = ?{which}" for table in ("replies", "verdicts"))
        turns, verdicts = (self._rows(sql, (run, *values))[0][0] for sql in counts)
        return turns, verdicts

    def count_annotations(self, run: str) -> tuple[int, int]:
        """How many questions of a run people have rated, and how many people."""
        sql = "SELECT COUNT(*), COUNT(DISTINCT rater) FROM ratings WHERE run = ? AND NOT attention"
        count, people = self._rows(sql, (run,))[0]
        return count, people

    def verdicts(self, run: str) -> list[Verdict]:
        """In the order of the dataset. What many have alike (samples, reasons, numbers, details) is one object, and
        nobody's to change."""
        sql = "SELECT verdict FROM verdicts JOIN replies USING (run, sample, turn) WHERE run = ? ORDER BY position, turn, metric, variant"
        what = f"a verdict of {run}"
        lean = VerdictInterner(lambda text: self._read(text, Any, what))
        return [lean.intern(self._read(text, StoredVerdict, what)) for (text,) in self._each(sql, (run,))]

    def search(self, text: str) -> Iterator[tuple[str, str, int, str, str]]:
        """Turns whose record has a text (as JSON writes it): run, sample, turn, where, and the JSON that has it."""
        like = "%" + "".join(f"!{char}" if char in "!%_" else char for char in text) + "%"
        places = (("answered", "reply", "replies"), ("shown", "seen", "replies"), ("verdict", "verdict", "verdicts"))
        for where, column, table in places:
            rows = self._rows(
                f"SELECT run, sample, turn, {column} FROM {table} WHERE {column} LIKE ? ESCAPE '!'", (like,)
            )
            yield from ((run, sample, turn, where, said) for run, sample, turn, said in rows)

    def totals(self, run: str) -> list[CallTotals]:
        """Calls made on behalf of a run, by role; answers taken over from earlier runs are not among them."""
        rows = self._rows(
            "SELECT role, COUNT(*), SUM(outcome != 'failed'), SUM(tokens_in), SUM(tokens_out), "
            "CASE WHEN SUM(cost IS NULL AND outcome != 'failed') THEN NULL ELSE TOTAL(cost) END, SUM(attempts - 1), TOTAL(latency) "
            "FROM calls WHERE run = ? GROUP BY role ORDER BY role DESC",
            (run,),
        )
        try:
            return [
                msgspec.convert(dict(zip(CallTotals.__struct_fields__, row, strict=True)), CallTotals) for row in rows
            ]
        except msgspec.ValidationError as error:
            raise DamagedJournal(self.path, f"the calls of {run}: {error}") from None


def parse_run_record(row: Mapping[str, Any]) -> RunRecord:
    """A row of `runs`, by column. Raises msgspec.MsgspecError, or what else JSON can raise, for one that is not what it
    must be."""
    read = {key: msgspec.json.decode(row[key]) for key in ("left_out", "names", "gist", "shards")}
    counts = {key: row[key] for key in ("samples", "turns")}
    if None in counts.values():
        expected = None
    else:
        expected = msgspec.convert(counts, ExpectedCounts)
    return msgspec.convert(
        {**row, **read, "manifest": parse_manifest(row["manifest"]), "expected": expected}, RunRecord
    )


def _of(shard: Shard | None) -> tuple[str, tuple[str, ...]]:
    """The rows of a shard, or all."""
    if shard is None:
        return ("", ())
    return (" AND sample IN (SELECT value FROM json_each(?))", (_json(shard.samples),))


def _key(shard: Shard) -> str:
    return f'$."{shard}"'


def _tell(done: Future[None] | None) -> None:
    """The row is on disk; whoever waited may have been cancelled meanwhile."""
    if done is not None:
        with contextlib.suppress(InvalidStateError):
            done.set_result(None)


def _grouped(batch: Sequence[tuple[str, Sequence[Any], Any]]) -> Iterator[tuple[str, list[Sequence[Any]]]]:
    """Statements in their order, but rows that are only put in place (`PLACED`) go last and together, since nothing in
    a batch reads them: as one piece of JSON that SQLite takes apart by itself, so that this thread need not hold up the
    others for every row."""
    placed: dict[str, list[Sequence[Any]]] = {}
    for sql, values, _ in batch:
        # JSON of SQLite ends at a NUL
        if sql in PLACED and not any(isinstance(value, str) and "\0" in value for value in values):
            placed.setdefault(sql, []).append(values)
        else:
            yield sql, [values]
    for sql, rows in placed.items():
        values = ", ".join(f"json_extract(value, '$[{at}]')" for at in range(len(rows[0])))
        yield f"{sql.partition(' VALUES ')[0]} SELECT {values} FROM json_each(?)", [(_json(rows),)]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
