"""The append-only record of every call, and of what each run made of them (SQLite, WAL).

Guarantees: `record` returns only after its row is on disk, so an answer that anyone uses survives kill -9; one thread
writes, and commits whatever has gathered in one transaction; readers may open the file while a run writes. Calls are never
changed or deleted. A call that led to nothing usable is marked void, and is asked anew by the next round of any run.
"""

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError, WeftError
from weft.types import Reply, Verdict

VERSION = 2
SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, request_digest TEXT NOT NULL, run TEXT NOT NULL, role TEXT NOT NULL,
  endpoint TEXT NOT NULL, model TEXT NOT NULL, served TEXT NOT NULL, request TEXT NOT NULL, outcome TEXT NOT NULL,
  reply TEXT NOT NULL, raw TEXT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, cost REAL,
  latency REAL NOT NULL, attempts INTEGER NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key);
CREATE INDEX IF NOT EXISTS calls_by_run ON calls (run);
CREATE TABLE IF NOT EXISTS voids (call INTEGER NOT NULL, run TEXT NOT NULL, round INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS voids_by_call ON voids (call);
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, manifest TEXT NOT NULL, round INTEGER NOT NULL, state TEXT NOT NULL, started REAL NOT NULL,
  ended REAL, left_out TEXT NOT NULL DEFAULT '[]', benchmark TEXT NOT NULL DEFAULT '', begun REAL NOT NULL DEFAULT 0,
  data TEXT NOT NULL DEFAULT '', version INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS replies (
  run TEXT NOT NULL, sample TEXT NOT NULL, turn INTEGER NOT NULL, position INTEGER NOT NULL, groups TEXT NOT NULL,
  want TEXT NOT NULL, seen TEXT NOT NULL, reply TEXT NOT NULL, about TEXT NOT NULL DEFAULT '{}', PRIMARY KEY (run, sample, turn));
CREATE TABLE IF NOT EXISTS verdicts (
  run TEXT NOT NULL, sample TEXT NOT NULL, turn INTEGER NOT NULL, metric TEXT NOT NULL, variant TEXT NOT NULL DEFAULT '',
  verdict TEXT NOT NULL, PRIMARY KEY (run, sample, turn, metric, variant));
CREATE TABLE IF NOT EXISTS pending (key TEXT PRIMARY KEY, ticket TEXT NOT NULL, endpoint TEXT NOT NULL, at REAL NOT NULL);
"""

ADDED = (  # since the first journals
    ("replies", "about", "TEXT NOT NULL DEFAULT '{}'"),
    ("runs", "begun", "REAL NOT NULL DEFAULT 0"),
    ("runs", "data", "TEXT NOT NULL DEFAULT ''"),
    ("runs", "version", "INTEGER NOT NULL DEFAULT 1"),
)
BEFORE = (("begun", "started"), ("data", "''"), ("version", "1"))  # what stands for a column in a journal that is only read
WITH_VARIANTS = """
ALTER TABLE verdicts RENAME TO verdicts_before;
CREATE TABLE verdicts (
  run TEXT NOT NULL, sample TEXT NOT NULL, turn INTEGER NOT NULL, metric TEXT NOT NULL, variant TEXT NOT NULL DEFAULT '',
  verdict TEXT NOT NULL, PRIMARY KEY (run, sample, turn, metric, variant));
INSERT INTO verdicts SELECT run, sample, turn, metric, '', verdict FROM verdicts_before;
DROP TABLE verdicts_before;
"""

PUT_TURN = (
    "INSERT OR REPLACE INTO replies (run, sample, turn, position, groups, want, seen, reply, about) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
UNNAMED = "before "  # how the run of a call is called that was made before its run had a name
PUT_VERDICT = "INSERT OR REPLACE INTO verdicts (run, sample, turn, metric, variant, verdict) VALUES (?, ?, ?, ?, ?, ?)"
PLACED = (PUT_TURN, PUT_VERDICT)
ELSEWHERE = ("unable to open", "locked", "readonly", "I/O", "full")  # what SQLite says where the trouble is not in the file


class Damaged(UserError):
    """A journal that cannot be read."""

    def __init__(self, path: Path, why: object) -> None:
        home = "" if str(path.parent) == ".weft" else f" --home {path.parent}"
        saves = f"if it is one that was damaged, `weft journal check{home}` says what can be saved, and saves it"
        told = " ".join((str(why) or type(why).__name__).split(" with text ")[0].split())[:200]  # SQLite quotes what it cannot read
        super().__init__(f"{path} cannot be used as a journal: {told}; {saves}")


class CallRecord(Struct, frozen=True):
    """One row of `calls`, without its id."""

    key: str
    request_digest: str
    run: str
    role: str
    endpoint: str
    model: str
    served: str
    request: str
    outcome: str
    reply: str
    raw: str
    tokens_in: int
    tokens_out: int
    cost: float | None
    latency: float
    attempts: int
    at: float


class RunRecord(Struct, frozen=True):
    id: str
    manifest: dict[str, Any]
    round: int
    state: str
    started: float
    ended: float | None
    left_out: list[str]
    benchmark: str  # where its code can be found again
    data: str = ""  # where its dataset was
    version: int = VERSION  # of the journal when it was last begun: verdicts of version 1 are points, later ones shares


class TurnRecord(Struct, frozen=True):
    """What a run made of one turn. `seen` is what the model was shown, after the fit; `about` what the dataset has of the turn (ask, truth,
    gold), so that a report needs no dataset."""

    sample: str
    turn: int
    position: int
    groups: dict[str, str]
    want: str
    seen: str
    reply: Reply
    about: str = "{}"


class Totals(Struct, frozen=True):
    role: str
    calls: int
    answered: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    retries: int
    seconds: float = 0.0  # waited for, all calls together


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
            db = self._opened_to_read() if readonly else sqlite3.connect(self.path, check_same_thread=False)
            db.execute("PRAGMA busy_timeout = 30000")
            db.execute("PRAGMA trusted_schema = OFF")  # a journal that was received runs nothing
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if readonly and not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
                raise UserError(f"{self.path} is no journal of weft, or nothing was ever run with it")
            if found > VERSION:
                raise UserError(f"{self.path} was written by another weft (journal version {found}, this one writes {VERSION})")
            if not readonly:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
                db.executescript(SCHEMA)
                db.execute("BEGIN IMMEDIATE")  # whoever else opens it now waits, and finds it done
                if not _has(db, "verdicts", "variant"):
                    for statement in WITH_VARIANTS.split(";"):
                        db.execute(statement)
                db.commit()
                for table, column, kind in ADDED:
                    if not _has(db, table, column):
                        db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
                db.execute(f"PRAGMA user_version = {VERSION}")
        except sqlite3.OperationalError as error:
            if any(word in str(error) for word in ELSEWHERE):
                raise UserError(f"{self.path} cannot be used as a journal: {error}") from None
            raise Damaged(self.path, error) from None
        except sqlite3.Error as error:
            raise Damaged(self.path, error) from None
        except (OverflowError, ValueError, MemoryError) as error:
            raise Damaged(self.path, error) from None
        return db

    def _opened_to_read(self) -> sqlite3.Connection:
        """On a disk that cannot be written to at all, SQLite must be told that nobody else writes there either."""
        for how in ("mode=ro", "mode=ro&immutable=1"):
            db = sqlite3.connect(f"{self.path.absolute().as_uri()}?{how}", uri=True, check_same_thread=False)
            try:
                db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                return db
            except sqlite3.OperationalError as error:
                if "unable to open" not in str(error) and "readonly" not in str(error):
                    return db
                db.close()
        raise UserError(f"{self.path} cannot be opened")

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self._each(sql, values))

    def _each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Row by row, for those that are not kept as they are."""
        try:
            for row in self._reader.execute(sql, values):  # noqa: UP028 (`yield from` would close the cursor after its journal)
                yield row
        except (sqlite3.DatabaseError, UnicodeError, OverflowError, MemoryError) as error:  # bytes that are no UTF-8 as well
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise WeftError(f"the journal {self.path} is locked by another process") from None
            raise Damaged(self.path, error) from None

    def _has(self, table: str, column: str) -> bool:
        return any(row[1] == column for row in self._rows(f"PRAGMA table_info({table})"))

    def _read(self, text: Any, kind: Any, what: str) -> Any:
        try:
            return msgspec.json.decode(text, type=kind)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
            raise Damaged(self.path, f"{what}: {error}") from None

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
        """A row that nobody waits for: it is made anew from the calls, if it must be. That it was written is known when the run ends."""
        self._queue.put((sql, values, None))

    def flush(self) -> None:
        """Wait for everything handed in so far to be on disk."""
        self._put("DELETE FROM pending WHERE 0", ()).result()

    def close(self) -> None:
        """Wait for everything handed in to be on disk."""
        if not self._readonly and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._reader.close()

    # calls

    def record(self, call: CallRecord, *, was_pending: bool = False) -> Future[None]:
        """Done when the row is on disk; the ticket of a call that `was_pending` goes with it."""
        columns = CallRecord.__struct_fields__
        marks = ", ".join("?" * len(columns))
        done = self._put(f"INSERT INTO calls ({', '.join(columns)}) VALUES ({marks})", msgspec.structs.astuple(call))
        if was_pending and call.outcome != "failed":
            self.drop_ticket(call.key)
        return done

    def adopt(self, before: str, run: str) -> Future[None]:
        """Calls that were made before their run had a name are its own."""
        return self._put("UPDATE calls SET run = ? WHERE run = ?", (run, before))

    def has_orphans(self, role: str) -> bool:
        """Whether there are calls whose command ended before it came to have a run."""
        return bool(self._rows(f"SELECT 1 FROM calls WHERE run LIKE '{UNNAMED}%' AND role = ? LIMIT 1", (role,)))

    def claim(self, call: int, run: str) -> Future[None]:
        """A call is this run's, if it was nobody's."""
        return self._put(f"UPDATE calls SET run = ? WHERE id = ? AND run LIKE '{UNNAMED}%'", (run, call))

    def is_void(self, key: str) -> bool:
        return bool(self._rows("SELECT 1 FROM voids JOIN calls ON voids.call = calls.id WHERE calls.key = ? LIMIT 1", (key,)))

    def put_ticket(self, key: str, ticket: str, endpoint: str) -> Future[None]:
        """A request was handed in; done when that is on disk."""
        return self._put("INSERT OR REPLACE INTO pending VALUES (?, ?, ?, ?)", (key, ticket, endpoint, time.time()))

    def ticket(self, key: str) -> str | None:
        """What to collect the answer to a request with, if it was handed in and is not back yet."""
        rows = self._rows("SELECT ticket FROM pending WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def tickets(self, endpoint: str) -> int:
        return self._rows("SELECT COUNT(*) FROM pending WHERE endpoint = ?", (endpoint,))[0][0]

    def drop_ticket(self, key: str) -> Future[None]:
        return self._put("DELETE FROM pending WHERE key = ?", (key,))

    def find(self, key: str, run: str, round: int) -> tuple[int, Reply] | None:
        """The latest usable answer under this key. Failed calls do not count; void ones only in the round that voided them."""
        rows = self._rows(
            "SELECT id, reply FROM calls WHERE key = ? AND outcome != 'failed' AND NOT EXISTS (SELECT 1 FROM voids "
            "WHERE voids.call = calls.id AND (voids.run != ? OR voids.round != ?)) ORDER BY id DESC LIMIT 1",
            (key, run, round),
        )
        return (rows[0][0], self._read(rows[0][1], Reply, f"call {rows[0][0]}")) if rows else None

    def void(self, key: str, run: str, round: int, reason: str) -> Future[None]:
        """The answers under this key led to nothing: the next round asks again."""
        return self._put(
            "INSERT INTO voids SELECT id, ?, ?, ? FROM calls WHERE key = ? AND outcome != 'failed' AND NOT EXISTS "
            "(SELECT 1 FROM voids WHERE voids.call = calls.id)",
            (run, round, reason, key),
        )

    # runs

    def begin(self, run: str, manifest: dict[str, Any], left_out: list[str], benchmark: str = "", data: str = "") -> int:
        """Start a run, or go on with it: an unfinished run keeps its round, a finished one begins another. What the run made of its
        calls so far is made anew from them. `benchmark` and `data` are where its code and its dataset can be found again."""
        found = next((record for record in self.runs() if record.id == run), None)
        round = 1 if found is None else found.round + (found.state == "finished")
        self._put(  # `begun` is an order more than a time: a clock that was set back does not change who was last
            "INSERT INTO runs (id, manifest, round, state, started, left_out, benchmark, begun, data, version) VALUES "
            "(?1, ?2, ?3, 'running', ?4, ?5, ?6, MAX(?4, (SELECT COALESCE(MAX(MAX(begun, started)), 0) + 0.001 FROM runs)), ?7, ?8) "
            "ON CONFLICT (id) DO UPDATE SET round = excluded.round, state = 'running', ended = NULL, left_out = excluded.left_out, "
            "benchmark = excluded.benchmark, begun = excluded.begun, data = excluded.data, version = excluded.version",
            (run, _json(manifest), round, time.time(), _json(left_out), benchmark, data, VERSION),
        ).result()
        for table in ("replies", "verdicts"):
            self._put(f"DELETE FROM {table} WHERE run = ?", (run,))
        return round

    def end(self, run: str, state: str, due: tuple[int, int] | None = None) -> None:
        """Raises if anything handed in since the start could not be written, or if a run that says it is finished has not the turns and
        verdicts that are due: a run that lost a row is not finished."""
        self.flush()
        failure, self._failure = self._failure, None
        if failure is None and due is not None and state == "finished" and (there := self.progress(run)) != due:
            what = "turns" if there[0] != due[0] else "verdicts"
            found, planned = (there[0], due[0]) if there[0] != due[0] else (there[1], due[1])
            failure = WeftError(f"the run is not finished: {found} of {planned} {what} are in the journal: run the same command again")
        state = "stopped" if failure else state
        self._put("UPDATE runs SET state = ?, ended = ? WHERE id = ?", (state, time.time(), run)).result()
        if failure:
            raise failure

    def runs(self) -> list[RunRecord]:
        """All runs, the one that was last begun or gone on with last."""
        there = {column: column if self._has("runs", column) else usual for column, usual in BEFORE}
        rows = self._rows(
            "SELECT id, manifest, round, state, started, ended, left_out, benchmark, "
            f"{there['data']}, {there['version']} FROM runs ORDER BY MAX({there['begun']}, started), id"
        )
        return [self._run(row) for row in rows]

    def _run(self, row: Sequence[Any]) -> RunRecord:
        what = f"run {row[0]}"
        read = [*row]
        read[1], read[6] = self._read(row[1], dict[str, Any], what), self._read(row[6], list[str], what)
        try:
            return msgspec.convert(dict(zip(RunRecord.__struct_fields__, read, strict=True)), RunRecord)
        except msgspec.ValidationError as error:
            raise Damaged(self.path, f"{what}: {error}") from None

    @contextlib.contextmanager
    def at_once(self) -> Generator[None]:
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
            (run, turn.sample, turn.turn, turn.position, _json(turn.groups), turn.want, turn.seen, _json(turn.reply), turn.about),
        )

    def put_verdict(self, run: str, verdict: Verdict) -> None:
        self._place(
            PUT_VERDICT,
            (run, verdict.sample, verdict.turn, verdict.metric, verdict.variant, _json(verdict)),
        )

    def turns(self, run: str) -> list[TurnRecord]:
        about = "about" if self._has("replies", "about") else "'{}'"
        rows = self._each(
            f"SELECT sample, turn, position, groups, want, seen, reply, {about} FROM replies WHERE run = ? ORDER BY position, turn", (run,)
        )
        groups: dict[str, dict[str, str]] = {}  # many turns have the same
        return [self._turn(row, groups) for row in rows]

    def _turn(self, row: Sequence[Any], known: dict[str, dict[str, str]]) -> TurnRecord:
        sample, turn, position, groups, want, seen, reply, about = row
        what = f"sample {sample}, turn {turn + 1 if isinstance(turn, int) else turn}"
        if not all(isinstance(one, str) for one in (sample, groups, want, seen, about)) or not isinstance(turn, int):
            raise Damaged(self.path, what)
        if groups not in known:
            known[groups] = self._read(groups, dict[str, str], what)
        return TurnRecord(sample, turn, position, known[groups], want, seen, self._read(reply, Reply, what), about)

    def calls(self, keys: Sequence[str]) -> dict[str, CallRecord]:
        """The latest call under each key."""
        columns = CallRecord.__struct_fields__
        marks = ", ".join("?" * len(keys))
        rows = self._rows(f"SELECT {', '.join(columns)} FROM calls WHERE key IN ({marks}) ORDER BY id", tuple(keys))
        return {row[0]: CallRecord(*row) for row in rows}

    def progress(self, run: str) -> tuple[int, int]:
        """Turns and verdicts that are there by now."""
        turns, verdicts = (self._rows(f"SELECT COUNT(*) FROM {table} WHERE run = ?", (run,))[0][0] for table in ("replies", "verdicts"))
        return turns, verdicts

    def verdicts(self, run: str) -> list[Verdict]:
        variant = ", variant" if self._has("verdicts", "variant") else ""
        rows = self._each(
            f"SELECT verdict FROM verdicts JOIN replies USING (run, sample, turn) WHERE run = ? ORDER BY position, turn, metric{variant}",
            (run,),
        )
        return [self._read(row[0], Verdict, f"a verdict of {run}") for row in rows]

    def search(self, text: str) -> Iterator[tuple[str, str, int, str, str]]:
        """Turns whose record has a text (as JSON writes it): run, sample, turn, where, and the JSON that has it."""
        like = "%" + "".join(f"!{char}" if char in "!%_" else char for char in text) + "%"
        places = (("answered", "reply", "replies"), ("shown", "seen", "replies"), ("verdict", "verdict", "verdicts"))
        for where, column, table in places:
            rows = self._rows(f"SELECT run, sample, turn, {column} FROM {table} WHERE {column} LIKE ? ESCAPE '!'", (like,))
            yield from ((run, sample, turn, where, said) for run, sample, turn, said in rows)

    def totals(self, run: str) -> list[Totals]:
        """Calls made on behalf of a run, by role; answers taken over from earlier runs are not among them."""
        rows = self._rows(
            "SELECT role, COUNT(*), SUM(outcome != 'failed'), SUM(tokens_in), SUM(tokens_out), "
            "CASE WHEN SUM(cost IS NULL AND outcome != 'failed') THEN NULL ELSE TOTAL(cost) END, SUM(attempts - 1), TOTAL(latency) "
            "FROM calls WHERE run = ? GROUP BY role ORDER BY role DESC",
            (run,),
        )
        try:
            return [msgspec.convert(dict(zip(Totals.__struct_fields__, row, strict=True)), Totals) for row in rows]
        except msgspec.ValidationError as error:
            raise Damaged(self.path, f"the calls of {run}: {error}") from None


def _has(db: sqlite3.Connection, table: str, column: str) -> bool:
    return any(row[1] == column for row in db.execute(f"PRAGMA table_info({table})"))


def _tell(done: Future[None] | None) -> None:
    """The row is on disk; whoever waited may have been cancelled meanwhile."""
    if done is not None:
        with contextlib.suppress(InvalidStateError):
            done.set_result(None)


def _grouped(batch: Sequence[tuple[str, Sequence[Any], Any]]) -> Iterator[tuple[str, list[Sequence[Any]]]]:
    """Statements in their order, but rows that are only put in place (`PLACED`) go last and together, since nothing in a batch reads them:
    as one piece of JSON that SQLite takes apart by itself, so that this thread need not hold up the others for every row."""
    placed: dict[str, list[Sequence[Any]]] = {}
    for sql, values, _ in batch:
        if sql in PLACED and not any(isinstance(value, str) and "\0" in value for value in values):  # JSON of SQLite ends at a NUL
            placed.setdefault(sql, []).append(values)
        else:
            yield sql, [values]
    for sql, rows in placed.items():
        values = ", ".join(f"json_extract(value, '$[{at}]')" for at in range(len(rows[0])))
        yield f"{sql.partition(' VALUES ')[0]} SELECT {values} FROM json_each(?)", [(_json(rows),)]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
