"""Homes on file systems that cannot be written or are nearly full, and commands that may use little memory."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from waiting import HANGS

MOUNT = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]


def in_a_mount(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script that may mount file systems, in which `weft` is a command."""
    environment = {**os.environ, "PYTHON": sys.executable}
    script = f'weft() {{ "$PYTHON" -m weft "$@"; }}\n{script}'
    return subprocess.run([*MOUNT, script], cwd=folder, env=environment, capture_output=True, text=True, timeout=HANGS)


@pytest.fixture
def mounts(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or in_a_mount("mount -t tmpfs none .", tmp_path).returncode:
        pytest.skip("file systems cannot be mounted here")


@pytest.fixture
def home(toy: Path, tmp_path: Path) -> Path:
    weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.usefixtures("mounts")
def test_a_read_only_home_is_read_with_the_rows_beside_its_journal(home: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    copy.mkdir()
    db = sqlite3.connect(home / "journal.sqlite")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("UPDATE runs SET names = json_set(names, '$.tag', 'not-in-the-file-yet')")
    db.commit()
    for name in ("journal.sqlite", "journal.sqlite-wal"):
        shutil.copy(home / name, copy / name)
    db.close()
    done = in_a_mount("mount --bind copy copy; mount -o remount,ro,bind copy; weft runs --home copy", tmp_path)
    assert done.returncode == 0 and "not-in-the-file-yet" in done.stdout, done.stderr
    done = in_a_mount(
        "mount --bind copy copy; mount -o remount,ro,bind copy; weft journal prune --yes --home copy", tmp_path
    )
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr
    assert sorted(path.name for path in copy.iterdir()) == ["journal.sqlite", "journal.sqlite-wal"]


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("room", [0, 40, 200])
@pytest.mark.parametrize("command", ["prune --yes", "merge other", "check", "export last --out full/out"])
def test_a_disk_that_is_nearly_full_is_one_line(room: int, command: str, home: Path, tmp_path: Path):
    shutil.copytree(home, tmp_path / "other")
    db = sqlite3.connect(home / "journal.sqlite")
    db.execute("DELETE FROM runs") if "prune" in command else db.execute("UPDATE calls SET at = at + 1")
    if command == "check":
        db.execute("UPDATE replies SET reply = '{' WHERE turn = 0")
    db.commit()
    db.close()
    script = f"""
        mkdir full; mount -t tmpfs -o size=3m none full; cp -r home full/home
        free=$(df -k --output=avail full | tail -1)
        head -c $(( (free - {room}) * 1024 )) /dev/zero > full/filler
        mkdir full/tmp || true; TMPDIR=$PWD/full/tmp weft journal {command} --home full/home || echo "code $?"
        rm full/filler; weft journal check --home full/home; weft runs --home full/home; weft journal {command} --home full/home
    """
    done = in_a_mount(script, tmp_path)
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert (
        room or command == "check" or "No space left" in done.stderr or "full" in done.stderr or "room" in done.stderr
    ), done.stdout + done.stderr


@pytest.mark.parametrize(
    "command", [["runs"], ["report", "last", "-f", "md"], ["journal", "merge", "home", "--home", "new"]]
)
def test_too_little_memory_is_one_line(command: list[str], home: Path, tmp_path: Path):
    db = sqlite3.connect(home / "journal.sqlite")
    db.execute("UPDATE runs SET names = json_object('tag', ?)", ("x" * 30_000_000,))
    db.execute("UPDATE replies SET about = ?", ("[" + " " * 30_000_000 + "]",))
    db.commit()
    db.close()
    script = (
        "import resource, runpy, sys; import weft.cli.app, weft.workspace, weft.store.merge, weft.results.index;"
        "used = int(open('/proc/self/statm').read().split()[5]) * 4096;"
        "resource.setrlimit(resource.RLIMIT_DATA, (used + 60_000_000, used + 60_000_000));"
        f"sys.argv = {['weft', *command]!r}; from weft.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=HANGS,
        env={**os.environ, "WEFT_HOME": str(home)},
    )  # fmt: skip
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert "memory" in done.stderr.lower(), done.stderr


NO_THREADS = """
import _thread, sys, threading
def refuse(*_): raise RuntimeError("can't start new thread")
import weft.cli.app
_thread.start_new_thread = refuse
if {in_command}:
    threading._start_new_thread = refuse
sys.argv = {words!r}
from weft.cli import main
main()
"""


@pytest.mark.parametrize(
    ("in_command", "code", "line"), [(False, 0, ""), (True, 1, "weft: there is not enough memory for this")]
)
def test_no_memory_for_a_thread_is_no_traceback(in_command: bool, code: int, line: str, toy: Path, tmp_path: Path):
    words = ["weft", "run", "weave", "--data", str(toy), "--model", "copy", "--judge", "constant/max", "--home", "h"]
    words = words if in_command else ["weft", "models"]
    script = NO_THREADS.format(in_command=in_command, words=words)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=HANGS)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert done.stderr.startswith(line)


@pytest.mark.parametrize("clock", [1e15, -1e15])
def test_a_clock_that_is_ages_off_leaves_a_home_that_can_be_read(
    clock: float, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr("time.time", lambda: clock)
        weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path)
    run = weft.load("last", home=tmp_path)
    assert run.record.state == "finished" and run.turns
