"""A journal of the first version opens: its runs are reported, and its answers are used."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

import weft
from server import Provider
from weft.api import report
from weft.run import load_run
from weft.store.journal import Journal
from weft.store.schema import VERSION

OLD = """
CREATE TABLE calls (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, request_digest TEXT NOT NULL, run TEXT NOT NULL, role TEXT NOT NULL,
  endpoint TEXT NOT NULL, model TEXT NOT NULL, served TEXT NOT NULL, request TEXT NOT NULL, outcome TEXT NOT NULL,
  reply TEXT NOT NULL, raw TEXT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, cost REAL,
  latency REAL NOT NULL, attempts INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE voids (call INTEGER NOT NULL, run TEXT NOT NULL, round INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE TABLE runs (
  id TEXT PRIMARY KEY, manifest TEXT NOT NULL, round INTEGER NOT NULL, state TEXT NOT NULL, started REAL NOT NULL,
  ended REAL, left_out TEXT NOT NULL DEFAULT '[]', benchmark TEXT NOT NULL DEFAULT '', begun REAL NOT NULL DEFAULT 0);
CREATE TABLE replies (
  run TEXT NOT NULL, sample TEXT NOT NULL, turn INTEGER NOT NULL, position INTEGER NOT NULL, groups TEXT NOT NULL,
  want TEXT NOT NULL, seen TEXT NOT NULL, reply TEXT NOT NULL, about TEXT NOT NULL DEFAULT '{}', PRIMARY KEY (run, sample, turn));
CREATE TABLE verdicts (
  run TEXT NOT NULL, sample TEXT NOT NULL, turn INTEGER NOT NULL, metric TEXT NOT NULL, verdict TEXT NOT NULL,
  PRIMARY KEY (run, sample, turn, metric));
PRAGMA user_version = 1;
"""


def made_old(new: Path, old: Path) -> None:
    """What the first version would have written of the same run: a view in the manifest, points for verdicts, no variants."""
    old.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(old)
    db.executescript(OLD)
    db.execute("ATTACH ? AS new", (str(new),))
    db.execute("INSERT INTO calls SELECT * FROM new.calls")
    db.execute("INSERT INTO replies SELECT run, sample, turn, position, groups, want, seen, reply, about FROM new.replies")
    for run, manifest, state, benchmark in db.execute("SELECT id, manifest, state, benchmark FROM new.runs").fetchall():
        told = msgspec.json.decode(manifest)
        told["view"] = told.pop("options")
        del told["told"], told["judge_repeats"]
        values = (run, msgspec.json.encode(told).decode(), state, benchmark)
        db.execute("INSERT INTO runs (id, manifest, round, state, started, ended, benchmark) VALUES (?, ?, 1, ?, 1.0, 2.0, ?)", values)
    for run, sample, turn, metric, text in db.execute("SELECT run, sample, turn, metric, verdict FROM new.verdicts").fetchall():
        verdict = msgspec.json.decode(text)
        verdict["value"] = verdict.pop("score", verdict["value"])
        db.execute("INSERT INTO verdicts VALUES (?, ?, ?, ?, ?)", (run, sample, turn, metric, msgspec.json.encode(verdict).decode()))
    db.commit()
    db.close()


@pytest.fixture
def both(toy: Path, tmp_path: Path, serve: "type[Provider]") -> tuple[Provider, weft.Run, Path]:
    provider = serve()
    ends = {"model": f"openai-chat/model@{provider.url}", "judge": f"openai-chat/judge@{provider.url}"}
    run = weft.evaluate("weave", data=toy, home=tmp_path / "new", history="full", **ends)
    made_old(tmp_path / "new" / "journal.sqlite", tmp_path / "old" / "journal.sqlite")
    (tmp_path / "old" / "blobs").symlink_to(tmp_path / "new" / "blobs")
    return provider, run, tmp_path / "old"


def test_a_finished_run_is_reported_as_it_was(both: tuple[Provider, weft.Run, Path]):
    _, run, old = both
    journal = Journal(old / "journal.sqlite", readonly=True)
    found = load_run(journal, "last")
    assert found.name == run.name == "openai-chat/model [full]" and found.verdicts[0].score is not None
    assert report([found], "csv") == run.report("csv")
    journal.close()


def test_the_same_command_makes_no_call_and_the_journal_is_brought_up_to_date(toy: Path, both: tuple[Provider, weft.Run, Path]):
    provider, run, old = both
    calls = provider.count
    ends = {"model": f"openai-chat/model@{provider.url}", "judge": f"openai-chat/judge@{provider.url}"}
    again = weft.evaluate("weave", data=toy, home=old, history="full", **ends)
    assert provider.count == calls and again.report("csv") == run.report("csv")
    db = sqlite3.connect(old / "journal.sqlite")
    assert db.execute("PRAGMA user_version").fetchone()[0] == VERSION
    db.close()
    journal = Journal(old / "journal.sqlite", readonly=True)
    assert report([load_run(journal, run.id)], "csv") == run.report("csv"), "the old run is still what it was"
    journal.close()
