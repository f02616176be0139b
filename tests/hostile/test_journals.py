"""Journals that were damaged: one line that says what to do, and a command that saves what can be saved."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from forked import run_forked
from server import Provider
from weft.errors import UserError, WeftError
from weft.store.journal import Journal
from weft.store.recover import check_journal
from weft.store.sqlite_pages import scan_pages


@pytest.fixture
def made(toy: Path, tmp_path: Path, serve: Any) -> tuple[dict[str, Any], Provider, str]:
    provider = serve()
    options: dict[str, Any] = {
        "data": toy,
        "model": f"openai-chat/model@{provider.url}",
        "judge": f"openai-chat/judge@{provider.url}",
        "home": tmp_path / "home",
    }
    table = weft.evaluate("weave", **options).report("csv")
    sqlite3.connect(tmp_path / "home" / "journal.sqlite").execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return options, provider, table


def sql(*statements: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        db = sqlite3.connect(path)
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()

    return damage


def patch(offset: int, data: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[offset : offset + len(data)] = data
        path.write_bytes(content)

    return damage


def cut(share: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    return damage


WAYS: dict[str, Callable[[Path], None]] = {
    "no magic": patch(0, b"x" * 16),
    "header": patch(0, b"\0" * 100),
    "page size": patch(16, b"\xff\xff"),
    "first page": patch(100, b"\xff" * 2000),
    "second page": patch(4096, b"\xff" * 4096),
    "third page": patch(8192, b"\0" * 4096),
    "a few bytes": patch(30_000, b"garbage!" * 20),
    "cut": cut(0.6),
    "cut short": cut(0.1),
    "text": lambda path: path.write_text("this is a note, no journal\n" * 50) and None,  # type: ignore[func-returns-value]
    "no calls": sql("DROP TABLE calls"),
    "no replies": sql("DROP TABLE replies"),
    "no verdicts": sql("DROP TABLE verdicts"),
    "no column": sql("ALTER TABLE replies DROP COLUMN seen"),
    "manifest": sql("UPDATE runs SET manifest = '{half'"),
    "odd manifest": sql("UPDATE runs SET manifest = '{\"model\": 5}'"),
    "list for manifest": sql("UPDATE runs SET manifest = '[]'"),
    "left out": sql("UPDATE runs SET left_out = '5'"),
    "started": sql("UPDATE runs SET started = 'yesterday'"),
    "reply": sql('UPDATE replies SET reply = \'{"outcome": "odd"}\' WHERE turn = 0'),
    "bytes": sql("UPDATE replies SET seen = x'ff00ff' WHERE turn = 0"),
    "groups": sql("UPDATE replies SET groups = '[]'"),
    "verdict": sql("UPDATE verdicts SET verdict = 'no'"),
    "verdict bytes": sql("UPDATE verdicts SET verdict = x'ff'"),
    "call": sql("UPDATE calls SET reply = 'no' WHERE id = 3"),
    "call bytes": sql("UPDATE calls SET raw = x'fffe' WHERE id = 3"),
    "schema": lambda path: (
        path.write_bytes(path.read_bytes().replace(b"attempts INTEGER", b"attempts INTE\xcdER")) and None
    ),  # type: ignore[func-returns-value]
    "view": sql("ALTER TABLE runs RENAME TO r", "CREATE VIEW runs AS SELECT * FROM r"),
    "future": sql("PRAGMA user_version = 99"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_journal_is_one_line_and_can_be_mended(way: str, made: Any, tmp_path: Path):
    options, provider, table = made
    path = tmp_path / "home" / "journal.sqlite"
    WAYS[way](path)
    told = 0
    for words in (["runs"], ["report", "-f", "md"], ["report", "-f", "csv"]):
        done = run_forked(*words, "--home", str(tmp_path / "home"), cwd=tmp_path)
        assert "Traceback" not in done.stderr and done.returncode in (0, 2) and done.stderr.count("\n") <= 1, (
            done.stderr[-600:]
        )
        told += "weft journal check" in done.stderr
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "home", copy)
    try:
        weft.evaluate("weave", **{**options, "home": copy})
    except WeftError as error:
        assert "\n" not in str(error)
    if way in ("future", "view"):
        return
    done = run_forked("journal", "check", "--home", str(tmp_path / "home"), cwd=tmp_path)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr[-600:]
    if told:
        assert done.returncode == 1 and list((tmp_path / "home").glob("journal.sqlite.damaged-*")), done.stdout
    asked = provider.count
    assert weft.evaluate("weave", **options).report("csv").splitlines()[1:] == table.splitlines()[1:] or way == "text"
    lost = provider.count - asked
    most = {"text": 32, "cut short": 32, "cut": 32, "no calls": 32}
    assert lost <= most.get(way, 4), f"{lost} calls were made again"
    assert run_forked("journal", "check", "--home", str(tmp_path / "home"), cwd=tmp_path).returncode == 0


def test_rows_are_found_on_their_pages_without_sqlite(made: Any, tmp_path: Path):
    path = tmp_path / "home" / "journal.sqlite"
    db = sqlite3.connect(path)
    db.text_factory = bytes
    there = {row[0]: row for row in db.execute("SELECT * FROM calls")}
    found = {row[0]: row for row in scan_pages(path.read_bytes(), 18)}
    assert len(there) == 32 and {number: found[number] for number in there} == there


def test_random_damage_never_ends_in_a_traceback_or_an_invented_call(made: Any, tmp_path: Path):
    path, whole = tmp_path / "home" / "journal.sqlite", tmp_path / "whole.sqlite"
    shutil.copy(path, whole)
    true = set(sqlite3.connect(whole).execute("SELECT key, reply FROM calls"))
    random.seed(7)
    for _ in range(40):
        content = bytearray(whole.read_bytes())
        for _ in range(random.choice([1, 5, 50])):
            at = random.randrange(len(content))
            content[at : at + random.choice([1, 8, 600])] = random.randbytes(random.choice([1, 8, 600]))
        path.write_bytes(content)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        try:
            journal = Journal(path, readonly=True)
            for record in journal.runs():
                journal.turns(record.id), journal.verdicts(record.id), journal.totals(record.id)  # type: ignore[unused-expression]
        except UserError as error:
            assert "\n" not in str(error)
        check_journal(path)
        kept = list(sqlite3.connect(path).execute("SELECT key, reply FROM calls"))
        assert sum(row not in true for row in kept) <= 1, "a byte inside a text may have changed; no call is made up"


def test_a_journal_in_use_is_left_alone(made: Any, tmp_path: Path):
    from weft.store.locks import lock_run

    with lock_run(tmp_path / "home", "some-run"):
        done = run_forked("journal", "check", "--home", str(tmp_path / "home"), cwd=tmp_path)
    assert done.returncode == 2 and "run some-run is in progress" in done.stderr
    assert run_forked("journal", "check", "--home", str(tmp_path / "home"), cwd=tmp_path).stdout.startswith(
        "nothing is wrong: 32 calls"
    )


def test_a_journal_of_a_later_weft_is_left_alone(made: Any, tmp_path: Path):
    WAYS["future"](tmp_path / "home" / "journal.sqlite")
    done = run_forked("journal", "check", "--home", str(tmp_path / "home"), cwd=tmp_path)
    assert done.returncode == 2 and "was written by another weft (version 99" in done.stderr
    assert not list((tmp_path / "home").glob("*.damaged-*"))


def test_a_writer_that_cannot_be_had_is_told_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real, times = Journal._connect, [0]

    def second(self: Journal, readonly: bool) -> Any:
        times[0] += 1
        if times[0] == 2:
            raise UserError("locked")
        return real(self, readonly)

    monkeypatch.setattr(Journal, "_connect", second)
    with pytest.raises(UserError, match="locked"):
        Journal(tmp_path / "journal.sqlite")


def test_a_looked_at_journal_needs_no_folder_that_can_be_written(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import tempfile

    places: list[Any] = []
    real = tempfile.TemporaryDirectory

    def noting(*rest: Any, **named: Any) -> Any:
        places.append(named.get("dir"))
        return real(*rest, **named)

    monkeypatch.setattr(tempfile, "TemporaryDirectory", noting)
    assert check_journal(tmp_path / "home" / "journal.sqlite", save=False).problems == [] and places == [None]
