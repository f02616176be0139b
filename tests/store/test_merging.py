"""Journals of several homes: merged, exported, shrunk."""

import csv
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from waiting import HANGS
from weft.errors import StoreError, UserError
from weft.report.export import export_run
from weft.results.run import load_run
from weft.store.blobs import find_missing_images
from weft.store.connection import JournalConnection
from weft.store.journal import Journal
from weft.store.locks import lock_run, use_home
from weft.store.merge import merge_journal
from weft.store.prune import find_unused, remove_unused
from weft.store.recover import check_journal
from weft_tabletop.make import make

WAY: dict[str, Any] = {"model": "tabletop/tiny", "model_options": {"temperature": 1.5}, "judge": "tabletop/exact"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "tables"
    make("tabletop-weave", folder, samples=8, seed=0)
    return folder


def state(home: Path) -> tuple[str, str]:
    record = Journal(home / "journal.sqlite", readonly=True).runs()[-1]
    return record.id, record.state


def test_eight_shards_of_two_homes_are_the_run_that_one_command_makes(tables: Path, tmp_path: Path):
    whole = weft.evaluate("weave", data=tables, home=tmp_path / "whole", **WAY)
    for number in range(1, 9):
        part = weft.evaluate(
            "weave", data=tables, home=tmp_path / ("a" if number % 2 else "b"), shard=f"{number}/8", **WAY
        )
        assert part.id == whole.id, "a shard is of the run, and no run of its own"
    assert state(tmp_path / "a") == (whole.id, "part")
    first = merge_journal(tmp_path / "all", tmp_path / "a")
    assert first.runs == (whole.id,) and state(tmp_path / "all")[1] == "part"
    second = merge_journal(tmp_path / "all", tmp_path / "b")
    assert state(tmp_path / "all") == (whole.id, "finished") and first.new_calls + second.new_calls == sum(
        t.calls for t in whole.totals
    )
    merged = weft.load("last", home=tmp_path / "all")
    assert merged.report("csv") == whole.report("csv") and len(merged.turns) == len(whole.turns)
    again = merge_journal(tmp_path / "all", tmp_path / "a")
    assert (again.new_calls, again.new_images, again.runs) == (0, 0, ()), "twice is once"
    more = weft.evaluate("weave", data=tables, home=tmp_path / "all", **WAY)
    assert sum(total.calls for total in more.totals) == first.new_calls + second.new_calls, "nothing is asked again"


def test_shards_are_disjoint_and_together_all(tables: Path, tmp_path: Path):
    seen: list[str] = []
    for number in (1, 2, 3):
        run = weft.evaluate(
            "weave", data=tables, model="copy", judge="constant/5", home=tmp_path / str(number), shard=f"{number}/3"
        )
        seen += {turn.sample for turn in run.turns}
    whole = weft.evaluate("weave", data=tables, model="copy", judge="constant/5", home=tmp_path / "whole")
    assert sorted(seen) == sorted({turn.sample for turn in whole.turns})
    for wrong in ("0/3", "4/3", "x", "2", "1/0"):
        with pytest.raises(UserError, match="which of how many"):
            weft.evaluate("weave", data=tables, model="copy", judge="constant/5", home=tmp_path / "wrong", shard=wrong)


def test_shards_in_one_home_add_up(tables: Path, tmp_path: Path):
    for number in (2, 1):
        run = weft.evaluate("weave", data=tables, home=tmp_path, shard=f"{number}/2", **WAY)
    assert state(tmp_path) == (run.id, "finished")


def test_a_random_sample_is_the_same_everywhere(tables: Path, tmp_path: Path):
    def drawn(home: str, **more: Any) -> list[str]:
        run = weft.evaluate("weave", data=tables, model="copy", judge="constant/5", home=tmp_path / home, **more)
        return list(dict.fromkeys(turn.sample for turn in run.turns))

    assert drawn("a", sample=3, seed=1) == drawn("b", sample=3, seed=1) and len(drawn("c", sample=3, seed=1)) == 3
    assert any(drawn("d", sample=3, seed=1) != drawn("d", sample=3, seed=seed) for seed in (2, 3, 4))
    assert set(drawn("e", sample=2, seed=1)) < set(drawn("e", sample=3, seed=1)), "a larger one has the smaller in it"


def test_where_both_have_an_answer_ours_stays_and_theirs_is_kept(tables: Path, tmp_path: Path):
    ours = weft.evaluate("weave", data=tables, home=tmp_path / "ours", limit=2, **WAY)
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    other = sqlite3.connect(tmp_path / "theirs" / "journal.sqlite")
    other.execute("UPDATE calls SET at = at + 1")
    other.commit()
    other.close()
    made = merge_journal(tmp_path / "ours", tmp_path / "theirs")
    assert made.new_calls == made.calls > 0, "what was paid for is kept"
    again = weft.evaluate("weave", data=tables, home=tmp_path / "ours", limit=2, **WAY)
    assert again.report("csv") == ours.report("csv")
    assert len(Journal(tmp_path / "ours" / "journal.sqlite", readonly=True).runs()) == 1


def test_a_foreign_journal_is_taken_for_what_is_sound_in_it(tables: Path, tmp_path: Path):
    weft.evaluate("weave", data=tables, home=tmp_path / "theirs", limit=2, **WAY)
    db = sqlite3.connect(tmp_path / "theirs" / "journal.sqlite")
    db.execute("UPDATE calls SET reply = '{' WHERE id = 1")
    db.execute("UPDATE replies SET reply = 'x' WHERE turn = 0")
    db.commit()
    db.close()
    blob = next((tmp_path / "theirs" / "blobs").glob("??/*"))
    blob.write_bytes(b"not what its name says")
    (blob.parent / "evil.txt").write_text("x")
    made = merge_journal(tmp_path / "ours", tmp_path / "theirs")
    assert made.damaged >= 3 and made.new_calls == made.calls
    assert not list((tmp_path / "ours").rglob("evil.txt"))
    with pytest.raises(UserError, match="no journal"):
        merge_journal(tmp_path / "ours", tmp_path / "nowhere")
    with pytest.raises(UserError, match="to be merged into"):
        merge_journal(tmp_path / "ours", tmp_path / "ours")


def test_what_no_run_needs_can_go_and_what_is_shared_stays(tables: Path, tmp_path: Path):
    first = weft.evaluate("weave", data=tables, home=tmp_path, **WAY)
    second = weft.evaluate("weave", data=tables, home=tmp_path, limit=2, **WAY)
    assert not find_unused(tmp_path).calls, "all of them are somebody's"
    journal = Journal(tmp_path / "journal.sqlite")
    journal.remove_run(first.id)
    journal.close()
    found = find_unused(tmp_path)
    assert 0 < len(found.calls) < found.all_calls and found.images
    before = second.report("csv")
    remove_unused(tmp_path, found)
    assert not find_unused(tmp_path).calls and weft.load(second.id, home=tmp_path).report("csv") == before
    again = weft.evaluate("weave", data=tables, home=tmp_path, limit=2, **WAY)
    assert again.report("csv") == before and not again.totals, "its answers were another's, and are still there"


def test_what_a_run_has_used_since_the_first_look_stays(tables: Path, tmp_path: Path):
    first = weft.evaluate("weave", data=tables, home=tmp_path, **WAY)
    journal = Journal(tmp_path / "journal.sqlite")
    journal.remove_run(first.id)
    journal.close()
    found = find_unused(tmp_path)
    second = weft.evaluate(
        "weave", data=tables, home=tmp_path, limit=4, **WAY
    )  # while somebody is asked whether to go on
    before = second.report("csv")
    remove_unused(tmp_path, found)
    again = weft.evaluate("weave", data=tables, home=tmp_path, limit=4, **WAY)
    assert again.report("csv") == before and not again.totals, "no answer was asked for again"
    assert not list(find_missing_images(tmp_path, (turn.reply for turn in again.turns)))
    assert not find_unused(tmp_path).calls, "the rest is gone"


def test_nothing_is_removed_or_merged_while_calls_are_made(tables: Path, tmp_path: Path):
    weft.evaluate("weave", data=tables, home=tmp_path / "a", limit=2, **WAY)
    weft.evaluate("weave", data=tables, home=tmp_path / "b", limit=2, **WAY)
    with use_home(tmp_path / "a"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("weft.store.locks.MAINTENANCE_TRIES", 2)
        with pytest.raises(UserError, match="in use by another process"):
            remove_unused(tmp_path / "a", find_unused(tmp_path / "a"))
        with pytest.raises(UserError, match="in use by another process"):
            merge_journal(tmp_path / "a", tmp_path / "b")
    with lock_run(tmp_path / "a", "some-run"), pytest.raises(UserError, match="some-run is in progress"):
        merge_journal(tmp_path / "a", tmp_path / "b")


def test_two_merges_at_once_are_one_after_the_other(tables: Path, tmp_path: Path):
    whole = weft.evaluate("weave", data=tables, home=tmp_path / "theirs", limit=4, **WAY)
    command = [
        sys.executable,
        "-m",
        "weft",
        "journal",
        "merge",
        str(tmp_path / "theirs"),
        "--home",
        str(tmp_path / "ours"),
    ]
    merges = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [merge.communicate(timeout=HANGS) for merge in merges]
    assert [merge.returncode for merge in merges] == [0, 0], outputs
    merged = weft.load("last", home=tmp_path / "ours")
    assert merged.totals == whole.totals and merged.report("csv") == whole.report("csv"), "no call is there twice"


def test_an_unsound_home_takes_nothing_from_a_sound_one(tables: Path, tmp_path: Path):
    for home in ("ours", "theirs"):
        run = weft.evaluate("weave", data=tables, home=tmp_path / home, limit=3, **WAY)
    db = sqlite3.connect(tmp_path / "theirs" / "journal.sqlite")
    db.execute("UPDATE replies SET reply = '{\"outcome\": 5}'")
    # more rows than ours, none of them sound
    db.execute(
        "INSERT INTO verdicts SELECT run, sample, turn, metric || '-more', variant, '{\"value\": 1}' FROM verdicts"
    )
    db.commit()
    db.close()
    result = merge_journal(tmp_path / "ours", tmp_path / "theirs")
    assert result.damaged and result.runs == ()
    assert state(tmp_path / "ours") == (run.id, "finished")
    assert weft.load("last", home=tmp_path / "ours").report("csv") == run.report("csv")
    alone = merge_journal(tmp_path / "new", tmp_path / "theirs")
    assert alone.damaged and state(tmp_path / "new") == (run.id, "stopped"), "half a run is not a finished one"


def edit(home: Path, *statements: str) -> None:
    db = sqlite3.connect(home / "journal.sqlite")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


LIES = {
    "more verdicts, and fewer turns": (
        "INSERT INTO verdicts SELECT run, sample, turn, metric || '-more', variant, "
        "json_set(verdict, '$.metric', metric || '-more', '$.value', 1.0) FROM verdicts",
        "DELETE FROM replies WHERE turn > 0",
    ),
    "more verdicts": (
        "UPDATE verdicts SET verdict = json_set(verdict, '$.value', 1.0)",
        "INSERT INTO verdicts SELECT run, sample, turn, metric || '-more', variant, "
        "json_set(verdict, '$.metric', metric || '-more') FROM verdicts",
    ),
    "another sample": (
        "INSERT INTO replies SELECT run, 'more', turn, position, groups, want, seen, reply, about FROM replies "
        "WHERE position = 0",
        "INSERT INTO verdicts SELECT run, 'more', turn, metric, variant, json_set(verdict, '$.sample', 'more') "
        "FROM verdicts WHERE sample = (SELECT sample FROM replies WHERE position = 0)",
    ),
    "verdicts about others": ("UPDATE verdicts SET verdict = json_set(verdict, '$.sample', 'x', '$.value', 1.0)",),
    "no numbers": ("UPDATE OR IGNORE replies SET position = 'first'", "UPDATE OR IGNORE verdicts SET turn = 'one'"),
    "a headline": ("UPDATE runs SET gist = '{\"value\": 99.0}'",),
    "shards": ("UPDATE runs SET shards = '{\"1/1\": [1]}', state = 'part'",),
    "times": ("UPDATE runs SET begun = 1e308, started = 1e308",),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_is_whole_here_stays_whatever_the_other_home_says(lie: str, tables: Path, tmp_path: Path):
    for home in ("ours", "theirs"):
        run = weft.evaluate("weave", data=tables, home=tmp_path / home, limit=2, **WAY)
    before = run.report("csv")
    edit(tmp_path / "theirs", *LIES[lie])
    merge_journal(tmp_path / "ours", tmp_path / "theirs")
    assert state(tmp_path / "ours") == (run.id, "finished")
    assert weft.load("last", home=tmp_path / "ours").report("csv") == before
    assert not check_journal(tmp_path / "ours" / "journal.sqlite", save=False).problems
    merge_journal(tmp_path / "new", tmp_path / "theirs")
    journal = Journal(tmp_path / "new" / "journal.sqlite", readonly=True)
    for record in journal.runs():
        assert not record.gist, "numbers are computed here"
        assert record.state == "finished" or "fewer" in lie or "others" in lie or "no numbers" in lie
        journal.turns(record.id), journal.verdicts(record.id)  # type: ignore[unused-expression]
    journal.close()


def test_what_was_not_scored_in_a_finished_run_is_filled_in_and_nothing_else(tables: Path, tmp_path: Path):
    for home in ("whole", "ours", "theirs"):
        run = weft.evaluate("weave", data=tables, home=tmp_path / home, limit=2, **WAY)
    unscored = (
        "UPDATE verdicts SET verdict = json_set(verdict, '$.value', NULL) WHERE turn = 0 AND metric = 'key_point'"
    )
    edit(tmp_path / "ours", unscored)
    lacking = weft.load("last", home=tmp_path / "ours").report("csv")
    edit(tmp_path / "theirs", "UPDATE verdicts SET verdict = json_set(verdict, '$.value', 0.25)")
    merge_journal(tmp_path / "ours", tmp_path / "theirs")
    assert weft.load("last", home=tmp_path / "ours").report("csv") == lacking != run.report("csv")
    merge_journal(tmp_path / "ours", tmp_path / "whole")
    assert weft.load("last", home=tmp_path / "ours").report("csv") == run.report("csv")


def test_a_sample_of_which_both_have_something_else_stays_ours(tables: Path, tmp_path: Path):
    for home in ("ours", "theirs"):
        run = weft.evaluate("weave", data=tables, home=tmp_path / home, limit=2, **WAY)
    edit(tmp_path / "ours", "DELETE FROM verdicts WHERE turn = 0", "UPDATE runs SET state = 'stopped'")
    edit(tmp_path / "theirs", "DELETE FROM replies WHERE turn = 1", "UPDATE runs SET state = 'stopped'")
    before = Journal(tmp_path / "ours" / "journal.sqlite", readonly=True).count_done(run.id)
    merge_journal(tmp_path / "ours", tmp_path / "theirs")
    assert Journal(tmp_path / "ours" / "journal.sqlite", readonly=True).count_done(run.id) == before


def test_a_removal_that_fails_is_told_in_one_line(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    weft.evaluate("weave", data=tables, home=tmp_path, limit=2, **WAY)
    edit(tmp_path, "DELETE FROM runs")
    unused = find_unused(tmp_path)
    real = JournalConnection.execute
    for statement, found in (("BEGIN", "cannot be written"), ("VACUUM", "it was removed, but")):

        def full(self: Any, sql: str, *rest: Any, statement: str = statement) -> Any:
            if sql.startswith(statement):
                raise sqlite3.OperationalError("database or disk is full")
            return real(self, sql, *rest)

        monkeypatch.setattr(JournalConnection, "execute", full)
        with pytest.raises(StoreError, match=f"{found}.*disk is full"):
            remove_unused(tmp_path, unused)
    monkeypatch.undo()
    assert not find_unused(tmp_path)
    weft.evaluate("weave", data=tables, home=tmp_path, limit=2, **WAY)
    edit(tmp_path, "UPDATE replies SET reply = '{' WHERE turn = 0")
    with pytest.raises(UserError, match="journal check"):
        find_unused(tmp_path)


def test_a_merge_that_is_killed_changes_nothing(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    weft.evaluate("weave", data=tables, home=tmp_path / "theirs", limit=2, **WAY)
    monkeypatch.setattr("weft.store.merge._Merge.merge_annotations", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        merge_journal(tmp_path / "ours", tmp_path / "theirs")
    db = sqlite3.connect(tmp_path / "ours" / "journal.sqlite")
    assert [db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in ("calls", "runs", "replies")] == [
        0
    ] * 3
    monkeypatch.undo()
    merge_journal(tmp_path / "ours", tmp_path / "theirs")
    assert state(tmp_path / "ours") == state(tmp_path / "theirs")


def test_a_run_as_plain_files(tables: Path, tmp_path: Path):
    run = weft.evaluate("weave", data=tables, home=tmp_path / "home", limit=2, **WAY)
    stored = load_run(Journal(tmp_path / "home" / "journal.sqlite", readonly=True), run.id)
    counts = export_run(stored, tmp_path / "home", tmp_path / "out")
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    lines = [json.loads(line) for line in (tmp_path / "out" / "replies.jsonl").read_text().splitlines()]
    assert counts["replies"] == len(lines) == len(run.turns) and told["run"] == run.id and told["counts"] == counts
    pictures = [part for line in lines for part in line["parts"] if part["type"] == "image"]
    assert pictures and all(
        (tmp_path / "out" / part["file"]).is_file() and part["file"] in told["files"] for part in pictures
    )
    rows = list(csv.DictReader((tmp_path / "out" / "verdicts.csv").open()))
    assert len(rows) == len(run.verdicts) and min(int(row["turn"]) for row in rows) == 1
