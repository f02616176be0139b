import sqlite3
from pathlib import Path

import msgspec
import pytest

from manifests import manifest
from weft.errors import UserError
from weft.store.journal import CallRecord, Journal, TurnRecord
from weft.types import Reply, Text, Verdict


def call(key: str, outcome: str = "answered", said: str = "yes") -> CallRecord:
    reply = msgspec.json.encode(Reply(outcome, (Text(said),), keys=(key,))).decode()  # type: ignore[arg-type]
    return CallRecord(key, "d", "r", "judge", "http://x", "m", "m", "{}", outcome, reply, "{}", 3, 4, 0.5, 0.1, 1, 0.0)


def test_a_recorded_call_is_on_disk_before_the_caller_goes_on(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    journal.put_call(call("k")).result()
    other = sqlite3.connect(tmp_path / "journal.sqlite")  # a second connection sees only what is committed
    assert other.execute("SELECT outcome FROM calls").fetchall() == [("answered",)]
    journal.close()


def test_a_reader_can_look_while_a_run_writes(tmp_path: Path):
    writer = Journal(tmp_path / "journal.sqlite")
    writer.begin_run("r", manifest(), ["left"])
    reader = Journal(tmp_path / "journal.sqlite", readonly=True)
    for number in range(50):
        writer.put_turn("r", TurnRecord("s", number, 0, {"domain": "edit"}, "text", "[]", Reply("answered")))
        writer.flush()
        assert len(reader.turns("r")) == number + 1
    assert reader.runs()[0].state == "running" and reader.runs()[0].left_out == ["left"]
    writer.close()


def test_failed_calls_are_kept_but_never_taken_for_answers(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    journal.put_call(call("k", "failed")).result()
    assert journal.find_reply("k", "r", 1) is None
    journal.put_call(call("k", "refused")).result()
    found = journal.find_reply("k", "r", 1)
    assert found and found[1].outcome == "refused"
    assert [(t.calls, t.answered, t.tokens_in, t.cost) for t in journal.totals("r")] == [(2, 1, 6, 1.0)]


def test_a_void_answer_stands_in_its_own_round_and_is_asked_anew_in_the_next(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    round = journal.begin_run("r", manifest(), [])
    journal.put_call(call("k", said="nonsense")).result()
    journal.void_calls("k", "r", round, "no JSON").result()
    assert journal.find_reply("k", "r", round), "an unfinished run that goes on must come to the same result"
    assert journal.begin_run("r", manifest(), []) == round, "unfinished: the same round"
    journal.end_run("r", "finished")
    again = journal.begin_run("r", manifest(), [])
    assert again == round + 1
    assert journal.find_reply("k", "r", again) is None
    assert journal.find_reply("k", "other run", 1) is None
    journal.put_call(call("k", said="sense")).result()
    found = journal.find_reply("k", "r", again)
    assert found and found[1].text == "sense"


def test_verdicts_of_a_repeated_round_replace_earlier_ones(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    journal.put_turn("r", TurnRecord("s", 0, 0, {}, "text", "[]", Reply("answered")))
    journal.put_verdict("r", Verdict("s", 0, "accuracy", None, "down"))
    journal.flush()
    journal.put_verdict("r", Verdict("s", 0, "accuracy", 5.0))
    journal.flush()
    assert [verdict.value for verdict in journal.verdicts("r")] == [5.0]


def test_a_missing_or_foreign_journal_is_one_clear_line(tmp_path: Path):
    with pytest.raises(UserError, match="there is no journal at"):
        Journal(tmp_path / "nowhere.sqlite", readonly=True)
    (tmp_path / "note.sqlite").write_text("dear diary, this is not a database " * 10)
    with pytest.raises(UserError, match="cannot be used as a journal"):
        Journal(tmp_path / "note.sqlite")


def test_what_is_read_at_once_is_of_one_moment(tmp_path: Path):
    """A verdict of a turn that was not there yet when turns were read must not turn up among the verdicts."""
    writer, reader = Journal(tmp_path / "journal.sqlite"), Journal(tmp_path / "journal.sqlite", readonly=True)
    writer.begin_run("r", manifest(), [])
    writer.put_turn("r", TurnRecord("a", 0, 0, {}, "text", "[]", Reply("answered")))
    writer.flush()
    with reader.snapshot():
        turns = reader.turns("r")
        writer.put_turn("r", TurnRecord("b", 0, 1, {}, "text", "[]", Reply("answered")))
        writer.flush()
        writer.put_verdict("r", Verdict("b", 0, "m", 1.0))
        writer.flush()
        assert [turn.sample for turn in turns] == ["a"] and reader.verdicts("r") == []
    assert [verdict.sample for verdict in reader.verdicts("r")] == ["b"]
    writer.close()
    reader.close()


def test_the_last_run_is_the_one_last_begun_or_gone_on_with(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    for run in ("a", "b", "a"):
        journal.begin_run(run, manifest(), [])
        journal.end_run(run, "finished")
    assert [record.id for record in journal.runs()] == ["b", "a"]
    journal.close()


def test_a_file_that_is_no_journal_is_told(tmp_path: Path):
    (tmp_path / "journal.sqlite").write_bytes(b"")
    with pytest.raises(UserError, match="is no journal of weft"):
        Journal(tmp_path / "journal.sqlite", readonly=True)
