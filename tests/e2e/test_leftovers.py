"""What a model leaves running keeps no command from ending: its results are saved, and it says what it left."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from waiting import HANGS

MAIN = "import weft.cli.ending as ending; ending.EXIT_GRACE_S = 0.2; from weft.cli import main; main()"
MODEL = """
import asyncio, atexit, concurrent.futures, multiprocessing, os, threading, time
def forever(*_):
    while True:
        time.sleep(60)
class Model:
    name, version = "mine", "1"
    def __init__(self):
        self.left = False
    def leave(self):
        if not self.left:
            self.left = True
            self.start()
    {start}
    def __call__(self, messages, want):
        self.leave()
        return "words"
"""
ASYNC = MODEL.replace("def __call__", "async def __call__")
LEFT = {
    "thread pool": (MODEL, "concurrent.futures.ThreadPoolExecutor(2).submit(forever)", "thread ThreadPoolExecutor"),
    "thread": (MODEL, "threading.Thread(target=forever, name='mine', daemon=False).start()", "thread mine"),
    "process": (MODEL, "multiprocessing.get_context('fork').Process(target=forever).start()", "process "),
    "process pool": (MODEL, "concurrent.futures.ProcessPoolExecutor(1).submit(forever)", "process "),
    "exit hook": (MODEL, "atexit.register(forever)", "an exit hook"),
    "the loop's pool": (ASYNC, "asyncio.get_running_loop().run_in_executor(None, forever)", "thread "),
    "task": (ASYNC, "self.task = asyncio.create_task(stubborn())", ""),
}
STUBBORN = """
async def stubborn():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
"""


def run(tmp_path: Path, toy: Path, file: str, *more: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "mine.py").write_text(file)
    words = ["run", "weave", "--data", str(toy), "--model", "mine.py:Model", "--judge", "constant/5", *more]
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANGS,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.mark.parametrize("kind", LEFT)
def test_what_a_model_leaves_running_does_not_keep_a_command_from_ending(toy: Path, tmp_path: Path, kind: str):
    file, start, note = LEFT[kind]
    begin = f"def start(self):\n        {start}"
    done = run(tmp_path, toy, textwrap.dedent(file).format(start=begin) + STUBBORN)
    assert "mine" in done.stdout and "report: weft report" in done.stderr, done.stderr
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    if note:
        assert "all results are saved; not waiting for" in done.stderr and note in done.stderr


def test_a_command_that_leaves_nothing_says_nothing_of_it(toy: Path, tmp_path: Path):
    done = run(tmp_path, toy, MODEL.format(start="def start(self):\n        pass"))
    assert "report: weft report" in done.stderr and "not waiting" not in done.stderr


LEAVES = """
import ctypes, os, pathlib
def leave(status):
    {how}
class Model:
    name, version = "mine", "1"
    def __call__(self, messages, want):
        calls = pathlib.Path("calls")
        count = calls.stat().st_size if calls.exists() else 0
        with calls.open("a") as file:
            file.write(".")
        if count == 3:
            leave({status})
        return "words"
"""


@pytest.mark.parametrize("status", [0, 3])
def test_a_model_that_ends_the_process_is_no_success_and_costs_only_its_own_call(
    toy: Path, tmp_path: Path, status: int
):
    file = LEAVES.format(how="os._exit(status)", status=status)
    ended = run(tmp_path, toy, file, "--concurrency", "1")
    assert ended.returncode == (status or 1) and not ended.stdout, ended.stderr
    assert (
        f"a model called os._exit({status})" in ended.stderr and "run the same command again to resume" in ended.stderr
    )
    done = run(tmp_path, toy, file, "--concurrency", "1")
    assert done.returncode == 0 and "mine" in done.stdout, done.stderr
    assert 11 <= len((tmp_path / "calls").read_text()) < 14, "ten turns, of which three were answered before"


def test_a_model_may_end_processes_that_it_forked(toy: Path, tmp_path: Path):
    file = LEAVES.format(
        how="process = os.fork()\n    process or os._exit(status)\n    os.waitpid(process, 0)", status=0
    )
    done = run(tmp_path, toy, file, "--concurrency", "1")
    assert done.returncode == 0 and "os._exit" not in done.stderr, done.stderr
