"""Homes, names and texts that came from somebody else."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from forked import run_forked
from fuzz.traps import make_endless_tree
from server import drawn
from toy import toy_records, write_weave
from weft import api
from weft.errors import StoreError, UserError
from weft.store.annotations import Annotations
from weft.store.blobs import Blobs, find_damaged_images, list_images
from weft.store.connection import DamagedJournal
from weft.store.journal import Journal
from weft.store.merge import merge_journal
from weft.store.recover import check_journal, validate_row
from weft.untrusted import escape_control_characters

ESC = "\x1b[31mred\x1b]0;title\x07"


@pytest.fixture
def received(toy: Path, tmp_path: Path) -> Path:
    """A home whose runs were made with a Python file that leaves a mark when it is run."""
    home = tmp_path / "received"
    (tmp_path / "evil.py").write_text(
        "from pathlib import Path\nfrom weft.benchmarks.weave import Weave\n"
        f"Path({str(tmp_path / 'ran')!r}).touch()\nclass Evil(Weave):\n    pass\n"
    )
    for judge in ("constant/5", "constant/10"):
        weft.evaluate(f"{tmp_path / 'evil.py'}:Evil", data=toy, model="reference", judge=judge, home=home)
    (tmp_path / "ran").unlink()
    return home


@pytest.mark.parametrize(
    "words",
    [
        ["report", "last"],
        ["report", "-f", "md"],
        ["compare", "last", "weave"],
        ["judge", "last", "--judge", "constant/0"],
        ["runs"],
    ],
)
def test_a_file_that_a_journal_names_is_not_run_unasked(received: Path, tmp_path: Path, words: list[str]):
    done = run_forked(*words, "--home", str(received), cwd=tmp_path)
    assert not (tmp_path / "ran").exists() and "Traceback" not in done.stderr
    if words != ["runs"] and words[0] != "compare":
        assert done.returncode == 2 and f"--benchmark {tmp_path / 'evil.py'}:Evil" in done.stderr
        asked = run_forked(*words, "--home", str(received), "--benchmark", f"{tmp_path / 'evil.py'}:Evil", cwd=tmp_path)
        assert asked.returncode == 0 and (tmp_path / "ran").exists(), asked.stderr


def test_the_viewer_does_not_run_it_either(received: Path, tmp_path: Path):
    from weft.report.view.library import Library

    library = Library(received)
    runs = library.runs()
    assert len(runs) == 2
    with pytest.raises(UserError, match="not loaded automatically, for security"):
        library.contents((runs[0].record.id,))
    assert not (tmp_path / "ran").exists()
    assert Library(received, [f"{tmp_path / 'evil.py'}:Evil"]).contents((runs[0].record.id,)).benchmark.name == "weave"


def test_a_benchmark_that_is_not_the_runs_own_is_refused(received: Path, tmp_path: Path):
    with pytest.raises(UserError, match="is a run of weave, not of imug"):
        api.load_run(Journal(received / "journal.sqlite", readonly=True), "last", "imug")


class Named:
    """A model whose name and words steer terminals."""

    version = "1"

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, messages: Any, want: str) -> Any:
        raise RuntimeError(f"it went wrong {ESC}") if want == "text" else ValueError(ESC)


@pytest.mark.parametrize(
    "name", ["bad\x00name", f"m{ESC}", "a\x01b\x08c\x1fd", "line\u2028sep", "bidi\u202egnp.exe", "\x7f\x9b31m"]
)
def test_a_control_character_in_a_name_ends_no_report_and_reaches_no_terminal(toy: Path, tmp_path: Path, name: str):
    run = weft.evaluate("weave", data=toy, model=Named(name), judge="constant/5", home=tmp_path / "home")
    other = weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "home")
    page = api.write_report([other, run], tmp_path / "report", home=tmp_path / "home")
    assert page.exists() and (page.parent / "plots").is_dir()
    for words in (
        ["report", run.id, "-f", "md"],
        ["report", run.id, "-f", "latex"],
        ["report", run.id, "-f", "csv"],
        ["runs"],
    ):
        done = run_forked(*words, "--home", str(tmp_path / "home"), cwd=tmp_path)
        assert done.returncode == 0 and escape_control_characters(done.stdout) == done.stdout, done.stderr
    done = run_forked("compare", run.id, other.id, "--home", str(tmp_path / "home"), cwd=tmp_path)
    assert (
        escape_control_characters(done.stdout + done.stderr) == done.stdout + done.stderr
        and "Traceback" not in done.stderr
    )
    from weft.report.view.library import Library

    library = Library(tmp_path / "home")
    assert all("<svg" in api.site.plots.render_svg(plot.chart) for plot in library.plots((other.id, run.id)).values())


def test_texts_of_datasets_and_servers_reach_the_terminal_with_nothing_that_steers_it(tmp_path: Path, serve: Any):
    from aiohttp import web

    records = toy_records()
    records[0]["domain"] = f"evil{ESC}"
    records[1]["idx"] = f"idx{ESC}"
    data = write_weave(tmp_path / "data", records)

    async def fault(seen: Any, times: int, request: web.Request) -> web.StreamResponse | None:
        return web.json_response({"error": {"message": f"no {ESC}\r\nweft: all is well"}}, status=400)

    provider = serve(fault=fault)
    done = run_forked(
        "run", "weave", "--data", str(data), "--model", f"openai-chat/m@{provider.url}", "--judge", "constant/5", cwd=tmp_path
    )  # fmt: skip
    assert done.returncode == 1 and "\\x1b[31mred" in done.stderr, done.stderr
    assert escape_control_characters(done.stdout + done.stderr) == done.stdout + done.stderr


def make_fifo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def make_endless_view(home: Path) -> None:
    db = sqlite3.connect(home / "journal.sqlite")
    db.execute("ALTER TABLE runs RENAME TO other")
    db.execute(
        "CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS id, '' AS manifest FROM n"
    )
    db.commit()
    db.close()


def make_path_of_id(home: Path) -> None:
    db = sqlite3.connect(home / "journal.sqlite")
    for table, column in (("runs", "id"), ("replies", "run"), ("verdicts", "run"), ("calls", "run")):
        db.execute(f"UPDATE {table} SET {column} = '../../../' || {column}")
    db.commit()
    db.close()


def make_sparse_blob(home: Path) -> None:
    name = "0" * 64
    path = home / "blobs" / name[:2] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(40 * 1024**3)


TRAPS: dict[str, Callable[[Path], None]] = {
    "a pipe as a lock": lambda home: make_fifo(home / "locks" / "run"),
    "a pipe as the home's lock": lambda home: (home / "home.lock").unlink() or make_fifo(home / "home.lock"),
    "a pipe as an image": lambda home: make_fifo(home / "blobs" / "11" / ("1" * 64)),
    "an endless view": make_endless_view,
    "a path as a run's id": make_path_of_id,
    "a sparse blob": make_sparse_blob,
}
COMMANDS = [
    ["runs"],
    ["report", "--single-file"],
    ["report", "-f", "parquet"],
    ["journal", "check"],
    ["journal", "prune", "--yes"],
    ["journal", "merge", "OTHER"],
]


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_in_a_received_home_hangs_nothing_and_writes_nowhere_else(trap: str, toy: Path, tmp_path: Path):
    home = tmp_path / "deep" / "er" / "home"
    weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=home)
    TRAPS[trap](home)
    for words in COMMANDS:
        folder = tmp_path / "deep" / "work"
        folder.mkdir(exist_ok=True)
        place = ["--home", str(home)]
        if "OTHER" in words:
            place = ["--home", str(tmp_path / "new")]
        done = run_forked(*(str(home) if word == "OTHER" else word for word in words), *place, cwd=folder)
        assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr, (words, done.stderr)
    outside = {path.name for path in (*tmp_path.iterdir(), *(tmp_path / "deep").iterdir())}
    assert outside <= {"toy", "deep", "er", "work", "new"}, "nothing is written but where it was asked for"


def test_a_journal_or_a_folder_that_is_a_link_or_a_pipe_is_refused_at_once(toy: Path, tmp_path: Path):
    home = tmp_path / "home"
    weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=home)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(home / "journal.sqlite", tmp_path / "elsewhere" / "other.sqlite")
    links = {"journal.sqlite": "other.sqlite", "blobs": "", "locks": "", "shown": "", "cards": ""}
    for name in ("journal.sqlite-wal", "journal.sqlite-journal", *links):
        broken = tmp_path / f"with {name}"
        shutil.copytree(home, broken)
        path = broken / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if name in links:
            path.symlink_to(tmp_path / "elsewhere" / links[name])
        else:
            os.mkfifo(path)
        for work in (
            lambda broken=broken: Journal(broken / "journal.sqlite", readonly=True),
            lambda broken=broken: Journal(broken / "journal.sqlite"),
            lambda broken=broken: Annotations(broken / "journal.sqlite"),
            lambda broken=broken: merge_journal(tmp_path / "new", broken),
            lambda broken=broken: check_journal(broken / "journal.sqlite"),
        ):
            with pytest.raises(UserError, match="not a regular file|symbolic link|no journal"):
                work()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["other.sqlite"]


def test_no_image_is_written_to_or_removed_from_a_folder_elsewhere(blobs: Blobs, tmp_path: Path):
    image = blobs.put(drawn("a"))
    elsewhere = tmp_path / "elsewhere"
    folder = blobs.path(image.digest).parent
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    assert list_images(blobs.root.parent) == [] and find_damaged_images(blobs.root.parent, quarantine=True) == []
    (elsewhere / image.digest).unlink()
    with pytest.raises(StoreError, match="is a symbolic link"):
        blobs.put(drawn("a"))
    assert list(elsewhere.iterdir()) == []


def test_a_journal_most_of_which_was_never_written_is_not_copied(toy: Path, tmp_path: Path):
    home = tmp_path / "home"
    weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=home)
    os.truncate(home / "journal.sqlite", 40 * 1024**3)
    for work in (lambda: merge_journal(tmp_path / "new", home), lambda: check_journal(home / "journal.sqlite")):
        with pytest.raises(UserError, match="were never written"):
            work()


@pytest.mark.parametrize("table", ["runs", "replies", "verdicts"])
def test_a_table_whose_tree_has_no_end_is_damage_and_can_be_recovered(table: str, toy: Path, tmp_path: Path):
    home = tmp_path / "home"
    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=home)
    edit = sqlite3.connect(home / "journal.sqlite")
    edit.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    calls = edit.execute("SELECT COUNT(*) FROM calls").fetchone()[0]
    edit.close()
    make_endless_tree(home / "journal.sqlite", table)
    journal = Journal(home / "journal.sqlite", readonly=True)
    with pytest.raises(DamagedJournal, match="more rows than its file can hold"):
        journal._rows(f"SELECT SUM(rowid) FROM {table} NOT INDEXED")
    journal.close()
    with contextlib.suppress(DamagedJournal):  # an index may lead past it
        merge_journal(tmp_path / "new", home)
    health = check_journal(home / "journal.sqlite")
    assert health.problems and health.recovered["calls"] >= calls - 1
    again = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=home)
    assert again.id == run.id and again.record.state == "finished"


def test_annotations_of_a_journal_that_computes_are_not_read(toy: Path, tmp_path: Path):
    weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "home")
    db = sqlite3.connect(tmp_path / "home" / "journal.sqlite")
    db.execute("ALTER TABLE verdicts RENAME TO moved")
    db.execute("CREATE TABLE verdicts (run TEXT, verdict TEXT AS (printf('%.*c', 900000000, 'x')))")
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET type = 'index' WHERE name = 'verdicts'")
    db.commit()
    db.close()
    for work in (Annotations, Journal):
        with pytest.raises(DamagedJournal, match="computes columns|malformed"):
            work(tmp_path / "home" / "journal.sqlite", readonly=True)


@pytest.mark.parametrize(
    "settings",
    [
        '{"orders": {"ann": ["q"]}, "known": {}}',
        '{"orders": {"ann": 5}, "annotators": ["ann"], "each": 1, "seed": 0, "questions": 1, "known": {}}',
        '{"known": {"q": {"values": [5]}}}',
        "[]",
    ],
)
def test_a_study_with_other_settings_is_damage_in_one_line(settings: str, toy: Path, tmp_path: Path):
    run = weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "journal.sqlite")) as db, db:
        db.execute("INSERT INTO studies VALUES ('study-1', ?, 1e9, ?)", (run.id, settings))
    with contextlib.closing(Annotations(tmp_path / "journal.sqlite", readonly=True)) as annotations:
        with pytest.raises(DamagedJournal, match="a study of"):
            annotations.studies(run.id)
    assert not validate_row("studies", ("study-1", run.id, 1e9, settings))
