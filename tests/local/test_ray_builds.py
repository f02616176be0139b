"""Builds on Ray: workers may die, and so may the command; the files are those of a build in one process."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from building.papers_models import PapersModels
from waiting import HANGS, until
from weft.store.journal import Journal

pytest.importorskip("ray")
HERE = Path(__file__).parents[1] / "building"
WORDS = [f"{HERE / 'recipes.py'}:Pairs", "--part-size", "10", "--no-preflight"]
WORDS += ["--writer", f"{HERE / 'players.py'}:Writer", "--painter", f"{HERE / 'players.py'}:Painter"]
SEEDS = 60
IN_FLIGHT = 32  # rows of two workers, each with one call at most


def command(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "weft", "build", *WORDS, "--seeds", str(SEEDS), "--out", str(out), *more]


def environment(log: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "WEFT_TEST_CALLS": str(log), **more}


def finished(words: list[str], log: Path, **more: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=environment(log, **more), timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return done.stderr


def files(out: Path) -> dict[str, bytes]:
    found = [*out.glob("parts/*"), *out.glob("imgs/*/*"), out / "test.json", out / "build.json"]
    return {str(file.relative_to(out)): file.read_bytes() for file in found}


def paid_twice(log: Path) -> list[str]:
    return [call for call, count in Counter(log.read_text().splitlines()).items() if count > 1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    place = tmp_path_factory.mktemp("whole")
    finished(command(place / "out"), place / "calls.txt")
    return files(place / "out")


def test_a_worker_is_killed_and_the_files_are_those_of_one_process(tmp_path: Path, whole: dict[str, bytes]):
    log = tmp_path / "calls.txt"
    said = finished(command(tmp_path / "out", "--ray", "2"), log, WEFT_TEST_DIE_AT="70")
    assert (tmp_path / "calls.died").exists() and re.search(r"worker [12] died; others make its rows again", said)
    assert files(tmp_path / "out") == whole
    assert len(paid_twice(log)) <= IN_FLIGHT
    journal = Journal(tmp_path / "out" / "journal.sqlite", readonly=True)
    try:
        (counted,) = journal._rows("SELECT count(*), count(DISTINCT key) FROM calls WHERE outcome = 'answered'")
    finally:
        journal.close()
    assert counted == (216, 216)  # 60 names, three images for those that are no seventh


def test_the_command_is_killed_and_goes_on_without_ray(tmp_path: Path, whole: dict[str, bytes]):
    log = tmp_path / "calls.txt"
    running = subprocess.Popen(
        command(tmp_path / "out", "--ray", "2"), env=environment(log), stderr=subprocess.DEVNULL, text=True
    )
    until("forty calls", lambda: len(log.read_text().splitlines()) >= 40, running)
    running.send_signal(signal.SIGKILL)
    running.wait(HANGS)
    finished(command(tmp_path / "out"), log)
    assert files(tmp_path / "out") == whole
    assert len(paid_twice(log)) <= IN_FLIGHT


def test_servers_are_asked_by_the_keeper_and_the_files_are_those_of_one_process(tmp_path: Path):
    models = PapersModels(writes_badly=0.1, returns_input=0.3, refuses=0.03)

    async def build(out: Path, *more: str) -> dict[str, int]:
        models.forget()
        roles = [
            word for role in ("writer", "painter", "editor", "checker") for word in (f"--{role}", models.name(role))
        ]
        words = ["-m", "weft", "build", "weave-fusion", "--seeds", "16", *roles, "--out", str(out), *more]
        running = await asyncio.create_subprocess_exec(sys.executable, *words, "--no-preflight")
        assert await asyncio.wait_for(running.wait(), HANGS) == 0
        return dict(models.asked)

    async def work() -> tuple[dict[str, int], dict[str, int]]:
        async with models.up():
            return await build(tmp_path / "alone"), await build(tmp_path / "shared", "--ray", "2")

    alone, shared = asyncio.run(work())
    assert alone == shared and min(alone.values()) > 10
    assert files(tmp_path / "alone") == files(tmp_path / "shared")
