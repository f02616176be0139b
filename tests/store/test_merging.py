"""Journals of several homes: merged, exported, shrunk."""

import csv
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import UserError
from weft.report.export import export_run
from weft.results.run import load_run
from weft.store.journal import Journal
from weft.store.merge import merge_journal
from weft.store.prune import find_unused, remove_unused
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
