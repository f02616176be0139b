"""Judging in batches: the table of a live run for half the price; what a batch leaves out goes live; a kill costs nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from fakes import Fake, Gemini, OpenAI
from weft.engine.call import Patience
from weft.errors import UserError
from weft.store.journal import Journal

QUICK = Patience(tries=3, rate_limit_tries=3, base=0.001, cap=0.002)
Stand = Callable[[Fake], Any]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch):
    for name, value in (("QUIET", 5.0), ("SOON", 0.1), ("POLL", 0.02)):
        monkeypatch.setattr(f"weft.models.batched.{name}", value)


def judged(fake: Fake, toy: Path, home: Path, **options: Any) -> weft.Run:
    return weft.evaluate("weave", data=toy, model="copy", judge=fake.name, home=home, patience=QUICK, **options)


def scores(run: weft.Run) -> dict[Any, Any]:
    return {(one.sample, one.turn, one.metric): (one.value, one.reason) for one in run.verdicts if one.by == "judge"}


def costs(home: Path, run: weft.Run) -> float:
    return next(total.cost or 0.0 for total in Journal(home / "journal.sqlite", readonly=True).totals(run.id) if total.role == "judge")


@pytest.mark.parametrize("kind", [OpenAI, Gemini])
def test_a_batch_gives_the_table_of_a_live_run_for_half_the_price(
    kind: type[Any], toy: Path, tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "weft.toml").write_text('[prices."m"]\nin = 1000.0\nout = 1000.0\n')
    monkeypatch.chdir(tmp_path)
    live, batched = stand(kind()), stand(kind())
    first = judged(live, toy, tmp_path / "live")
    second = judged(batched, toy, tmp_path / "batched", judge_batch=True)
    assert scores(first) == scores(second) and all(value is not None for value, _ in scores(second).values())
    assert len(batched.batches.by_file) == 1 and not batched.seen and len(live.seen) == len(batched.batches.lines(*batched.batches.by_file))
    assert 0 < costs(tmp_path / "batched", second) == pytest.approx(costs(tmp_path / "live", first) / 2)
    tokens = [
        Journal(tmp_path / home / "journal.sqlite", readonly=True).totals(run.id) for home, run in (("live", first), ("batched", second))
    ]
    assert len({(total.tokens_in, total.tokens_out) for totals in tokens for total in totals if total.role == "judge"}) == 1
    again = judged(batched, toy, tmp_path / "batched")  # live, from the same memory
    assert scores(again) == scores(second) and not batched.seen


@pytest.mark.parametrize("kind", [OpenAI, Gemini])
def test_what_a_batch_leaves_out_goes_live(kind: type[Any], toy: Path, tmp_path: Path, stand: Stand):
    fake = stand(kind())
    fake.batches.spoil = {0: "missing", 2: "error", 3: "expired" if kind is OpenAI else "error"}
    run = judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert all(value is not None for value, _ in scores(run).values()) and len(fake.seen) == 3 and len(fake.batches.by_file) == 1


def test_an_objection_goes_live(toy: Path, tmp_path: Path, stand: Stand):
    class Odd(OpenAI):
        def message(self, asked: Any) -> Any:
            objected = any("cannot be used" in word for word in asked.flow)
            return super().message(asked) if objected else ({"role": "assistant", "content": "well, hm"}, "stop")

    fake = stand(Odd())
    run = judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert all(value is not None for value, _ in scores(run).values())
    assert len(fake.batches.by_file) == 1 and len(fake.seen) == len(fake.batches.lines(*fake.batches.by_file))


def test_a_batch_that_fails_as_a_whole_scores_nothing_and_is_begun_anew(toy: Path, tmp_path: Path, stand: Stand):
    fake = stand(OpenAI())
    fake.batches.ends = "failed"
    run = judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert {value for value, _ in scores(run).values()} == {None} and "line 1 is no request" in next(iter(scores(run).values()))[1]
    fake.batches.ends = "ok"
    again = judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert all(value is not None for value, _ in scores(again).values()) and len(fake.batches.by_file) == 2


RUN = """
import sys, weft, weft.models.batched as b
b.QUIET, b.SOON, b.POLL = 5.0, 0.1, 0.02
data, url, home = sys.argv[1:]
weft.evaluate("weave", data=data, model="copy", judge=url, home=home, judge_batch=True)
"""


def test_a_command_that_is_killed_is_followed_by_one_that_collects(toy: Path, tmp_path: Path, stand: Stand):
    fake = stand(OpenAI())
    fake.batches.patience = 10**9
    words = [sys.executable, "-c", RUN, str(toy), fake.name, str(tmp_path / "home")]
    child = subprocess.Popen(words, env={**os.environ, "PYTHONPATH": ""})
    while not fake.batches.looks:
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    fake.batches.patience = 1
    run = judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert all(value is not None for value, _ in scores(run).values())
    assert len(fake.batches.files) == len(fake.batches.by_file) == 1 and not fake.seen


def test_what_was_handed_in_and_never_begun_is_handed_in_anew(toy: Path, tmp_path: Path, stand: Stand):
    class Late(OpenAI):
        closed = True

        async def begin(self, request: Any) -> Any:
            from fakes import reply

            return reply({"error": {"message": "closed"}}, 400) if self.closed else await super().begin(request)

    fake = stand(Late())
    run = judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert {value for value, _ in scores(run).values()} == {None} and not fake.batches.by_file
    fake.closed = False
    again = judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert all(value is not None for value, _ in scores(again).values())
    assert len(fake.batches.files) == 2 and len(fake.batches.by_file) == 1 and not fake.seen


def test_who_takes_no_batches_says_so(toy: Path, tmp_path: Path):
    with pytest.raises(UserError, match="anthropic/m takes no batches; openai/NAME"):
        weft.evaluate("weave", data=toy, model="copy", judge="anthropic/m", home=tmp_path / "home", judge_batch=True)
