"""The journal, statement by statement: what is written is what is read, in order, and nothing of another run."""

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from manifests import manifest
from weft.errors import UserError, WeftError
from weft.store import journal as module
from weft.store import records
from weft.store.journal import CallRecord, CallTotals, DamagedJournal, Journal, RunRecord, TurnRecord
from weft.store.journal_writer import group_statements
from weft.store.records import ExpectedCounts
from weft.types import OfficialReading, Reply, Text, Usage, Verdict


@pytest.fixture
def journal(tmp_path: Path):
    made = Journal(tmp_path / "j" / "journal.sqlite")
    yield made
    made.close()


def call(key: str, **more: Any) -> CallRecord:
    reply = module._json(Reply("answered", (Text(key),)))
    usual: dict[str, Any] = {
        "key": key, "request_digest": "d", "run": "r", "role": "model", "endpoint": "e", "model": "m", "served": "s", "request": "{}",
        "outcome": "answered", "reply": reply, "raw": "raw", "tokens_in": 10, "tokens_out": 5, "cost": 0.5, "latency": 1.5,
        "attempts": 1, "at": 7.0,
    }  # fmt: skip
    return CallRecord(**{**usual, **more})


def turn(sample: str, number: int, position: int = 0, **more: Any) -> TurnRecord:
    return TurnRecord(sample, number, position, {"g": sample}, "text", "[]", Reply("answered", (Text("t"),)), **more)


def test_a_call_comes_back_as_it_went(journal: Journal):
    sent = call("k", tokens_in=3, cost=None, latency=0.25, attempts=4)
    journal.put_call(sent).result()
    assert journal.calls(["k", "other"]) == {"k": sent} and journal.calls([]) == {}
    later = call("k", raw="later")
    journal.put_call(later).result()
    assert journal.calls(["k"])["k"].raw == "later", "the latest under a key"
    assert journal.find_reply("k", "r", 1) == (2, Reply("answered", (Text("k"),)))


def test_failed_calls_are_no_answers_and_void_ones_only_in_their_own_round(journal: Journal):
    journal.put_call(call("k", outcome="failed")).result()
    assert journal.find_reply("k", "r", 1) is None
    journal.put_call(call("k")).result()
    journal.put_call(call("other")).result()
    journal.void_calls("k", "r", 1, "useless").result()
    assert (
        journal.find_reply("k", "r", 1) is not None
        and journal.find_reply("k", "r", 2) is None
        and journal.find_reply("k", "s", 1) is None
    )
    journal.void_calls("k", "r", 2, "again").result()
    assert journal._rows("SELECT call, run, round, reason FROM voids") == [(2, "r", 1, "useless")], (
        "once, and no failed one"
    )
    assert journal.find_reply("other", "x", 9) is not None
    journal.put_call(call("k", raw="new")).result()
    assert journal.find_reply("k", "s", 5) is not None


def test_tickets_stay_until_their_answer_is_recorded(journal: Journal):
    journal.put_ticket("k", "t1", "e").result()
    journal.put_ticket("k", "t2", "e").result()
    journal.put_ticket("l", "u", "e").result()
    assert journal.find_ticket("k") == "t2" and journal.find_ticket("l") == "u" and journal.find_ticket("m") is None
    journal.put_call(call("k", outcome="failed"), drop_ticket=True).result()
    journal.flush()
    assert journal.find_ticket("k") == "t2", "a call that failed may yet be collected"
    journal.put_call(call("k")).result()
    journal.flush()
    assert journal.find_ticket("k") == "t2"
    journal.put_call(call("k"), drop_ticket=True).result()
    journal.flush()
    assert journal.find_ticket("k") is None and journal.find_ticket("l") == "u"
    journal.drop_ticket("l").result()
    assert journal.find_ticket("l") is None


def test_rounds_go_on_with_what_is_unfinished_and_begin_anew_after_the_end(journal: Journal):
    assert journal.begin_run("r", manifest("a"), ["x"], "b", "d") == 1
    assert journal.begin_run("r", manifest("b"), [], "c", "e") == 1, "it was not ended"
    (record,) = journal.runs()
    assert (record.manifest, record.left_out, record.benchmark, record.data, record.state) == (
        manifest("a"),
        [],
        "c",
        "e",
        "running",
    )
    journal.end_run("r", "stopped")
    assert (
        journal.runs()[0].state == "stopped"
        and journal.runs()[0].ended is not None
        and journal.begin_run("r", manifest(), []) == 1
    )
    assert journal.runs()[0].ended is None
    journal.end_run("r", "finished")
    assert journal.begin_run("r", manifest(), []) == 2 and journal.begin_run("s", manifest(), []) == 1
    assert {record.id: record.round for record in journal.runs()} == {"r": 2, "s": 1}


def test_how_much_a_run_asks_about_is_unknown_until_it_is_said_and_stays(journal: Journal):
    journal.begin_run("r", manifest(), [])
    (record,) = journal.runs()
    assert record.expected is None and not record.is_complete(5) and record.format_turn_count(5) == "5 turns"
    journal.set_expected("r", 2, 5)
    journal.end_run("r", "finished")
    journal.begin_run("r", manifest(), [])
    (record,) = journal.runs()
    assert record.expected == ExpectedCounts(2, 5) and record.is_complete(5) and not record.is_complete(4)
    assert record.format_turn_count(4) == "4 of 5 turns" and record.format_turn_count(4, "of its") == "4 of its 5 turns"


BAD = {
    "no object": ("[]", "Expected `object`"),
    "a number for the model": ("json_set(manifest, '$.model', 5)", "Expected `object`, got `int` - at `$.model`"),
    "a judge without a name": ("json_remove(manifest, '$.judge.name')", "missing required field `name` - at `$.judge`"),
    "no prompts": ("json_remove(manifest, '$.prompts')", "missing required field `prompts`"),
    "a list of groups": ("json_set(manifest, '$.where', json('[1]'))", "Expected `object`, got `array` - at `$.where`"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_manifest_of_another_shape_is_one_line_that_says_what_is_wrong(case: str, journal: Journal):
    made, why = BAD[case]
    journal.begin_run("r", manifest(), [])
    journal._put(f"UPDATE runs SET manifest = {made if made != '[]' else repr(made)}", ()).result()
    with pytest.raises(DamagedJournal) as raised:
        journal.runs()
    assert "run r: " in str(raised.value) and why in str(raised.value) and "\n" not in str(raised.value)


def test_counts_that_are_none_are_damage(journal: Journal):
    journal.begin_run("r", manifest(), [])
    journal._put("UPDATE runs SET samples = 'many', turns = 3", ()).result()
    with pytest.raises(DamagedJournal, match="run r: Expected `int`, got `str`"):
        journal.runs()


def test_what_a_run_made_is_made_anew_when_it_goes_on(journal: Journal):
    journal.begin_run("r", manifest(), [])
    journal.begin_run("s", manifest(), [])
    for run in ("r", "s"):
        journal.put_turn(run, turn("a", 0))
        journal.put_verdict(run, Verdict("a", 0, "m", 0.5))
    journal.flush()
    assert journal.count_done("r") == (1, 1) == journal.count_done("s")
    journal.begin_run("r", manifest(), [])
    journal.flush()
    assert journal.count_done("r") == (0, 0) and journal.count_done("s") == (1, 1)


def test_turns_and_verdicts_come_in_the_order_of_the_dataset(journal: Journal):
    journal.begin_run("r", manifest(), [])
    for sample, number, position in (("b", 1, 0), ("a", 0, 1), ("b", 0, 0), ("a", 2, 1)):
        journal.put_turn("r", turn(sample, number, position, dataset_json='{"x": 1}'))
        for metric, variant in (("z", ""), ("m", "repeat 2"), ("m", "repeat 1")):
            journal.put_verdict("r", Verdict(sample, number, metric, 0.25, variant=variant))
    journal.put_turn("other", turn("c", 0))
    journal.put_verdict("r", Verdict("b", 1, "m", 1.0, "changed", variant="repeat 1"))
    journal.flush()
    assert [(one.sample, one.turn, one.position) for one in journal.turns("r")] == [
        ("b", 0, 0),
        ("b", 1, 0),
        ("a", 0, 1),
        ("a", 2, 1),
    ]
    assert journal.turns("r")[0] == turn("b", 0, 0, dataset_json='{"x": 1}')
    found = journal.verdicts("r")
    assert [(one.sample, one.turn, one.metric, one.variant) for one in found[:6]] == [
        ("b", number, metric, variant)
        for number in (0, 1)
        for metric, variant in (("m", "repeat 1"), ("m", "repeat 2"), ("z", ""))
    ]
    assert len(found) == 12 and found[3].reason == "changed", "the same verdict again takes its place"


def test_totals_are_of_one_run_by_role(journal: Journal):
    journal.put_call(call("a", latency=2.0, attempts=3))
    journal.put_call(call("b", outcome="failed", cost=0.25, tokens_in=1, tokens_out=0))
    journal.put_call(call("c", role="judge", cost=None))
    journal.put_call(call("d", role="judge", outcome="failed", cost=None))
    journal.put_call(call("e", run="other")).result()
    assert journal.totals("r") == [
        CallTotals("model", 2, 1, 11, 5, 0.75, 2, 3.5),
        CallTotals("judge", 2, 1, 20, 10, None, 0, 3.0),
    ]
    assert journal.totals("nobody") == []
    journal.put_call(call("f", run="q", role="judge", outcome="failed", cost=None)).result()
    assert journal.totals("q")[0].cost == 0.0, "what failed and has no price cost nothing that is known"


def test_a_search_finds_texts_with_marks_of_sql_in_them(journal: Journal):
    journal.begin_run("r", manifest(), [])
    journal.put_turn("r", TurnRecord("a", 0, 0, {}, "text", '["50% off_!"]', Reply("answered", (Text("a_b"),))))
    journal.put_verdict("r", Verdict("a", 0, "m", 1.0, "it said 50%"))
    journal.flush()
    assert {found[3] for found in journal.search("50%")} == {"shown", "verdict"}
    assert (
        [found[3] for found in journal.search("a_b")] == ["answered"]
        and not list(journal.search("axb"))
        and not list(journal.search("5%f"))
    )
    assert [found[:4] for found in journal.search("off_!")] == [("r", "a", 0, "shown")]


def test_a_row_that_cannot_be_written_is_told_at_the_end_and_costs_no_other(journal: Journal):
    journal.begin_run("r", manifest(), [])
    journal.put_turn("r", turn("a", 0))
    journal._put_unwaited("INSERT INTO nowhere VALUES (?)", (1,))
    journal.put_turn("r", turn("b", 0))
    with pytest.raises(WeftError, match="cannot be written: no such table: nowhere"):
        journal.end_run("r", "finished")
    assert journal.runs()[0].state == "stopped" and len(journal.turns("r")) == 2
    journal.end_run("r", "finished")
    assert journal.runs()[0].state == "finished", "it is told once"
    with pytest.raises(WeftError):
        journal._put("INSERT INTO nowhere VALUES (?)", (1,)).result()


def test_a_run_that_has_not_all_that_is_due_is_not_finished(journal: Journal):
    journal.begin_run("r", manifest(), [])
    journal.put_turn("r", turn("a", 0))
    for metric in "mn":
        journal.put_verdict("r", Verdict("a", 0, metric, 1.0))
    for due, told in (
        ((3, 2), "1 of 3 turns"),
        ((1, 4), "2 of 4 verdicts"),
        ((0, 2), "1 of 0 turns"),
        ((3, 5), "1 of 3 turns"),
    ):
        with pytest.raises(WeftError, match=f"the run is not finished: {told} are in the journal"):
            journal.end_run("r", "finished", expected=due)
        assert journal.runs()[0].state == "stopped"
    journal.end_run("r", "stopped", expected=(9, 9))
    journal.end_run("r", "finished", expected=(1, 2))
    assert journal.runs()[0].state == "finished"


def test_rows_with_a_nul_go_their_own_way_and_the_others_together(journal: Journal):
    batch = [
        (module.PUT_VERDICT, ("r", "a", 0, "m", "", "{}"), None),
        ("DELETE FROM x", (), None),
        (module.PUT_VERDICT, ("r", "b\0", 0, "m", "", "{}"), None),
    ]
    grouped = list(group_statements(batch, module.BULK))
    assert [sql.split()[0] for sql, _ in grouped] == ["DELETE", "INSERT", "INSERT"] and len(grouped[1][1]) == 1
    assert "json_each" in grouped[2][0] and "json_each" not in grouped[1][0]
    assert grouped[2][0].count("json_extract") == 6 and "'$[0]'" in grouped[2][0] and "'$[5]'" in grouped[2][0]


def test_many_rows_at_once_are_all_written(journal: Journal):
    journal.begin_run("r", manifest(), [])
    for number in range(9000):
        journal.put_turn("r", turn(f"s{number}", 0, number))
    journal.flush()
    assert journal.count_done("r")[0] == 9000 and journal.turns("r")[8999].sample == "s8999"


def test_who_only_reads_needs_a_journal_and_writes_nothing(tmp_path: Path, journal: Journal):
    with pytest.raises(UserError, match="there is no journal at .*; run an evaluation first"):
        Journal(tmp_path / "none" / "journal.sqlite", readonly=True)
    assert not (tmp_path / "none").exists()
    empty = tmp_path / "empty.sqlite"
    sqlite3.connect(empty).close()
    empty.touch()
    with pytest.raises(UserError, match="is no journal of weft, or nothing was ever run with it"):
        Journal(empty, readonly=True)
    other = Journal(tmp_path / "other.sqlite")
    other.close()
    for version in (4, 6):
        db = sqlite3.connect(tmp_path / "other.sqlite")
        db.execute(f"PRAGMA user_version = {version}")
        db.commit()
        db.close()
        for readonly in (True, False):
            with pytest.raises(
                UserError, match=f"was written by another weft .journal version {version}, this one writes 5"
            ):
                Journal(tmp_path / "other.sqlite", readonly=readonly)
    journal.begin_run("r", manifest(), [])
    reader = Journal(journal.path, readonly=True)
    assert reader._writer is None and [record.id for record in reader.runs()] == ["r"]
    assert not reader.has_records("r"), "who only reads has nothing to wait for"
    with pytest.raises(DamagedJournal):
        reader._rows("INSERT INTO tickets VALUES ('a', 'b', 'c', 1)")
    reader.close()


def test_the_file_is_set_to_lose_nothing(journal: Journal):
    assert journal._rows("PRAGMA journal_mode") == [("wal",)] and journal._rows("PRAGMA synchronous") == [(2,)]
    assert journal._rows("PRAGMA user_version") == [(5,)] and journal._rows("PRAGMA busy_timeout") == [(30000,)]


def test_records_that_are_none_are_damage(journal: Journal):
    journal.begin_run("r", manifest(), [])
    journal.put_turn("r", turn("a", 0))
    journal.flush()
    db = sqlite3.connect(journal.path)
    for column, value in (
        ("seen", b"\xff"),
        ("want", 5.5),
        ("groups", "[]"),
        ("reply", "{}"),
        ("sample", b"x"),
        ("about", 5.5),
    ):
        (before,) = db.execute(f"SELECT {column} FROM replies").fetchone()
        db.execute(f"UPDATE replies SET {column} = ?", (value,))
        db.commit()
        if column in ("seen", "groups", "reply", "sample"):
            with pytest.raises(DamagedJournal, match="cannot be used as a journal"):
                journal.turns("r")
        db.execute(f"UPDATE replies SET {column} = ?", (before,))
        db.commit()
    assert len(journal.turns("r")) == 1
    db.execute("UPDATE replies SET turn = 'one'")
    db.commit()
    with pytest.raises(DamagedJournal):
        journal.turns("r")


def test_a_clock_that_goes_on_orders_runs_and_equal_times_by_name(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "time", lambda: 50.0)
    for run in ("b", "a"):
        journal.begin_run(run, manifest(), [])
    assert [record.id for record in journal.runs()] == ["b", "a"]
    assert journal._rows("SELECT begun FROM runs WHERE id = 'a'")[0][0] == pytest.approx(50.001)
    monkeypatch.setattr(time, "time", lambda: 60.0)
    journal.begin_run("b", manifest(), [])
    assert journal._rows("SELECT begun FROM runs WHERE id = 'b'") == [(60.0,)]
    assert journal.runs()[0] == RunRecord("a", manifest(), 1, "running", 50.0, None, [], "")


def test_damage_is_told_in_one_short_line(tmp_path: Path):
    told = str(DamagedJournal(tmp_path / "journal.sqlite", "Could not decode column 'x' with text 'a\nb'"))
    assert "\n" not in told and "with text" not in told and f"--home {tmp_path}" in told
    assert "--home" not in str(DamagedJournal(Path(".weft") / "journal.sqlite", "x"))
    assert (
        len(str(DamagedJournal(Path("j"), "y " * 5000))) < 500
        and str(DamagedJournal(Path("j"), "Y" * 500)).count("Y") == 200
    )
    assert ": MemoryError; " in str(DamagedJournal(Path("j"), MemoryError())), "what says nothing is called by its name"


def test_records_are_what_was_written_and_stay_so(journal: Journal, tmp_path: Path):
    record = RunRecord("a", manifest(), 1, "running", 50.0, None, [], "")
    for thing in (record, call("k"), turn("a", 0), CallTotals("model", 1, 1, 1, 1, None, 0)):
        with pytest.raises(AttributeError):
            setattr(thing, thing.__struct_fields__[0], "other")
    deep = Journal(tmp_path / "a" / "b" / "c" / "journal.sqlite")
    deep.close()
    Journal(tmp_path / "a" / "b" / "c" / "journal.sqlite").close()


def test_a_journal_may_be_read_from_any_thread(journal: Journal):
    import threading

    journal.begin_run("r", manifest(), [])
    found: list[Any] = []
    for one in (journal, Journal(journal.path, readonly=True)):
        thread = threading.Thread(target=lambda one=one: found.append([record.id for record in one.runs()]))
        thread.start()
        thread.join()
    assert found == [["r"], ["r"]]


@pytest.mark.parametrize(
    ("said", "damaged"),
    [("no such table: x", True), ("malformed schema", True), ("table x has no column y", True), ("odd", True)]
    + [
        (word, False)
        for word in ("unable to open database file", "database is locked", "attempt to write a readonly database")
    ]
    + [("disk I/O error", False), ("database or disk is full", False)],
)
def test_which_trouble_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, damaged: bool):
    def refused(*rest: Any, **named: Any) -> Any:
        raise sqlite3.OperationalError(said)

    monkeypatch.setattr(sqlite3, "connect", refused)
    with pytest.raises(UserError, match=said) as caught:
        Journal(tmp_path / "journal.sqlite")
    assert isinstance(caught.value, DamagedJournal) == damaged


def test_what_cannot_be_opened_is_not_called_damaged_and_what_is_damaged_is(tmp_path: Path):
    folder = tmp_path / "folder.sqlite"
    folder.mkdir()
    with pytest.raises(UserError, match="cannot be used as a journal: unable to open database file$"):
        Journal(folder)
    with pytest.raises(UserError, match="cannot be (opened|used)"):
        Journal(folder, readonly=True)
    for at, (statement, why) in enumerate(
        (
            ("UPDATE sqlite_master SET sql = 'CREATE GARBAGE' WHERE name = 'calls'", "malformed"),
            (
                "UPDATE sqlite_master SET sql = 'CREATE TABLE replies (run TEXT)' WHERE name = 'replies'",
                "about|no such|malformed|column",
            ),
        )
    ):
        path = tmp_path / f"{at}.sqlite"
        Journal(path).close()
        db = sqlite3.connect(path)
        db.execute("PRAGMA writable_schema = ON")
        db.execute(statement)
        db.commit()
        db.close()
        with pytest.raises(UserError, match=why) as caught:
            broken = Journal(path, readonly=True)
            broken.turns("r")
        assert isinstance(caught.value, DamagedJournal) and "weft journal check" in str(caught.value)


def test_usages_of_replies_survive(journal: Journal):
    reply = Reply("answered", (Text("x"),), "why", Usage(1, 2, 0.5), ("k1", "k2"))
    journal.begin_run("r", manifest(), [])
    journal.put_turn("r", TurnRecord("a", 0, 0, {}, "text", "[]", reply))
    journal.flush()
    assert journal.turns("r")[0].reply == reply


def test_a_verdict_comes_back_with_every_field(tmp_path: Path):
    """Each field has a value of its own here: one that is added later is not forgotten."""
    whole = Verdict(
        "s",
        1,
        "metric",
        0.25,
        "why",
        "rule",
        ("a", "b"),
        {"fact": 1},
        "repeat 2",
        2.0,
        0.5,
        (),
        OfficialReading(0.1, "x"),
        OfficialReading(0.2),
        True,
    )
    assert all(
        value != field.default
        for value, field in zip(structs.astuple(whole), structs.fields(Verdict), strict=True)
        if value != ()
    )
    journal = Journal(tmp_path / "journal.sqlite")
    journal.put_turn("run", TurnRecord("s", 1, 0, {}, "text", "[]", Reply("answered")))
    journal.put_verdict("run", whole)
    journal.flush()
    assert journal.verdicts("run") == [whole]
    journal.close()


def test_verdicts_share_what_they_have_alike_and_are_what_was_put(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    put = [
        Verdict(
            str(sample),
            0,
            metric,
            0.25,
            f"why {sample % 2}",
            keys=(f"call {sample}",),
            detail={"official": [sample % 2]},
            score=2.5,
        )
        for sample in range(6)
        for metric in ("a", "b")
    ]
    journal.begin_run("r", manifest(), [])
    for verdict in put:
        journal.put_turn("r", TurnRecord(verdict.sample, 0, int(verdict.sample), {}, "text", "[]", Reply("answered")))
        journal.put_verdict("r", verdict)
    journal.flush()
    found = journal.verdicts("r")
    assert found == put and len({id(one.detail) for one in found}) == 2 and len({id(one.keys) for one in found}) == 6
    monkeypatch.setattr(records, "MAX_INTERNED", 1)
    assert journal.verdicts("r") == put, "what is not remembered is read all the same"
