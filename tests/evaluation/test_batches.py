"""Judging in batches: the table of a live run for half the price; what a batch leaves out goes live; a kill costs
nothing."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from fakes import Fake, Gemini, OpenAI, reply
from server import drawn
from waiting import comes_to_an_end, until
from weft.calls.caller import EndpointDown, RetryPolicy
from weft.errors import UserError
from weft.models.endpoint import FATAL, CallError, Endpoint, EndpointReply
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Text

QUICK = RetryPolicy(tries=3, rate_limit_tries=3, base=0.001, cap=0.002)
Stand = Callable[[Fake], Any]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch):
    for name, value in (("QUIET_PERIOD_S", 5.0), ("FINAL_QUIET_PERIOD_S", 0.1), ("POLL_INTERVAL_S", 0.02)):
        monkeypatch.setattr(f"weft.models.batch_api.{name}", value)


def judged(fake: Fake, toy: Path, home: Path, **options: Any) -> weft.Run:
    return weft.evaluate("weave", data=toy, model="copy", judge=fake.name, home=home, retry_policy=QUICK, **options)


def scores(run: weft.Run) -> dict[Any, Any]:
    return {(one.sample, one.turn, one.metric): (one.value, one.reason) for one in run.verdicts if one.by == "judge"}


def costs(home: Path, run: weft.Run) -> float:
    return next(
        total.cost or 0.0
        for total in Journal(home / "journal.sqlite", readonly=True).totals(run.id)
        if total.role == "judge"
    )


def all_scored(run: weft.Run) -> bool:
    return bool(scores(run)) and all(value is not None for value, _ in scores(run).values())


def calls(home: Path, run: weft.Run) -> int:
    return next(
        total.calls for total in Journal(home / "journal.sqlite", readonly=True).totals(run.id) if total.role == "judge"
    )


PRICED = '[prices."m"]\nin = 1000.0\nout = 1000.0\n'
ONE = 16 / 1000  # what a call costs by that: 11 tokens and 5; at Gemini's 11 and 9


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "weft.toml").write_text(PRICED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", [OpenAI, Gemini])
def test_a_batch_gives_the_table_of_a_live_run_for_half_the_price(
    kind: type[Any], toy: Path, priced: Path, stand: Stand
):
    live, batched = stand(kind()), stand(kind())
    first = judged(live, toy, priced / "live")
    second = judged(batched, toy, priced / "batched", judge_batch=True)
    assert scores(first) == scores(second) and all_scored(second)
    assert len(batched.batches.by_file) == len(batched.seen) == 1, "the first goes live"
    assert (
        len(live.seen) == len(batched.batches.lines(*batched.batches.by_file)) + 1 == calls(priced / "batched", second)
    )
    one = costs(priced / "live", first) / len(live.seen)
    assert costs(priced / "batched", second) == pytest.approx(one + one / 2 * (len(live.seen) - 1))
    again = judged(batched, toy, priced / "batched")  # live, from the same memory
    assert scores(again) == scores(second) and len(batched.seen) == 1


@pytest.mark.parametrize("kind", [OpenAI, Gemini])
def test_what_a_batch_leaves_out_goes_live(kind: type[Any], toy: Path, tmp_path: Path, stand: Stand):
    """Whatever the line says, a quota that was used up then too: it stands in a file, and stays."""
    fake = stand(kind())
    fake.batches.spoil = {0: "missing", 2: "error", 3: "quota" if kind is OpenAI else "error"}
    run = judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert all_scored(run) and len(fake.seen) == 4 and len(fake.batches.by_file) == 1


def test_an_objection_goes_live(toy: Path, tmp_path: Path, stand: Stand):
    class Odd(OpenAI):
        def message(self, asked: Any) -> Any:
            objected = any("cannot be used" in word for word in asked.flow)
            return super().message(asked) if objected else ({"role": "assistant", "content": "well, hm"}, "stop")

    fake = stand(Odd())
    assert all_scored(judged(fake, toy, tmp_path / "home", judge_batch=True))
    assert len(fake.batches.by_file) == 1 and len(fake.seen) == len(fake.batches.lines(*fake.batches.by_file)) + 2


def test_an_empty_answer_of_a_batch_is_asked_for_live(toy: Path, tmp_path: Path, stand: Stand):
    class Silent(OpenAI):
        def message(self, asked: Any) -> Any:
            made = super().message(asked)
            return made if asked.path and asked.headers else ({"role": "assistant", "content": ""}, "stop")

    fake = stand(Silent())
    assert all_scored(judged(fake, toy, tmp_path / "home", judge_batch=True)) and len(fake.batches.by_file) == 1


@pytest.mark.parametrize("kind", [OpenAI, Gemini])
def test_a_batch_that_fails_as_a_whole_scores_nothing_and_is_begun_anew(
    kind: type[Any], toy: Path, tmp_path: Path, stand: Stand
):
    fake = stand(kind())
    fake.batches.ends = "failed"
    run = judged(fake, toy, tmp_path / "home", judge_batch=True)
    lost = [reason for value, reason in scores(run).values() if value is None]
    assert len(lost) == len(scores(run)) - 1 and "line 1 is no request" in lost[0]
    fake.batches.ends = "ok"
    assert all_scored(judged(fake, toy, tmp_path / "home", judge_batch=True)) and len(fake.batches.by_file) == 2


def test_what_became_of_a_batch_is_told_to_all_at_once(toy: Path, tmp_path: Path, stand: Stand):
    fake = stand(OpenAI())
    fake.batches.ends, fake.batches.patience = "failed", 1
    judged(fake, toy, tmp_path / "home", judge_batch=True)
    assert (
        sum(fake.batches.looks.values()) == 1
        and Journal(tmp_path / "home" / "journal.sqlite").count_tickets(f"{fake.url}/v1") == 0
    )


def test_answers_that_are_gone_are_asked_for_anew(toy: Path, tmp_path: Path, stand: Stand):
    class Forgetful(OpenAI):
        async def content(self, request: Any) -> Any:
            return web.Response(status=404) if len(self.batches.by_file) == 1 else await super().content(request)

    fake = stand(Forgetful())
    assert all_scored(judged(fake, toy, tmp_path / "home", judge_batch=True)) and len(fake.batches.by_file) == 2


def test_who_goes_on_live_is_told_what_is_out_and_leaves_nothing_behind(toy: Path, tmp_path: Path, stand: Stand):
    fake = stand(OpenAI())
    fake.batches.patience = 10**9
    home, words = (
        tmp_path / "home",
        [sys.executable, "-m", "weft", "run", "weave", "--data", str(toy), "--model", "copy", "--judge", fake.name],
    )
    child = subprocess.Popen([sys.executable, "-c", RUN, str(toy), fake.name, str(home)])
    until("a look at the batch", lambda: fake.batches.looks, child)
    child.kill()
    child.wait()
    done = subprocess.run([*words, "--home", str(home)], capture_output=True, text=True, cwd=tmp_path)
    assert "are in open batches: --judge-batch collects them, " in done.stderr and done.returncode == 0
    assert Journal(home / "journal.sqlite", readonly=True).count_tickets(f"{fake.url}/v1") == 0


@pytest.mark.parametrize("ends", ["expired", "cancelled"])
def test_a_day_that_was_too_short_is_followed_by_another_and_what_was_cancelled_by_none(
    ends: str, toy: Path, tmp_path: Path, stand: Stand
):
    class Short(OpenAI):
        async def begin(self, request: Any) -> Any:
            if self.batches.by_file:  # the second
                self.batches.ends, self.batches.spoil = "ok", {}
            return await super().begin(request)

    fake = stand(Short())
    fake.batches.ends, fake.batches.spoil = ends, {0: "missing", 1: "missing"}
    run = judged(fake, toy, tmp_path / "home", judge_batch=True)
    if ends == "expired":
        assert all_scored(run) and len(fake.batches.by_file) == 2 and len(fake.seen) == 1
    else:
        lost = [reason for value, reason in scores(run).values() if value is None]
        assert len(lost) >= 2 and "was cancelled" in lost[0] and len(fake.batches.by_file) == len(fake.seen) == 1


def test_an_outage_while_it_is_waited_for_costs_nothing(toy: Path, priced: Path, stand: Stand):
    fake = stand(OpenAI())
    fake.batches.outage = 25
    run = judged(fake, toy, priced / "home", judge_batch=True, budget=100.0)
    count = calls(priced / "home", run)
    assert all_scored(run) and costs(priced / "home", run) == pytest.approx(ONE + ONE / 2 * (count - 1))


def test_a_field_that_the_server_does_not_know_is_found_out_by_the_first(toy: Path, tmp_path: Path, stand: Stand):
    class Reasoning(OpenAI):
        async def handle(self, request: Any) -> Any:
            if "max_tokens" in await request.json():
                said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
                return reply({"error": {"message": said, "code": "unsupported_parameter"}}, 400)
            return await super().handle(request)

        def read(self, asked: Any) -> None:
            assert "max_tokens" not in asked.body and asked.body["max_completion_tokens"] == 300
            super().read(asked)

    fake = stand(Reasoning())
    assert all_scored(judged(fake, toy, tmp_path / "home", judge_batch=True, judge_options={"max_tokens": "300"}))
    assert len(fake.batches.by_file) == 1


def test_more_than_a_file_holds_are_several_batches(
    toy: Path, tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("weft.models.providers.openai_batches.OpenAIBatches.max_requests", 5)
    fake = stand(OpenAI())
    assert all_scored(judged(fake, toy, tmp_path / "home", judge_batch=True))
    sizes = [len(fake.batches.lines(file)) for file in fake.batches.by_file]
    assert len(sizes) > 2 and max(sizes) == 5


def test_a_run_that_ends_does_not_wait_for_a_batch(
    toy: Path, tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
):
    fake = stand(OpenAI())
    fake.batches.patience = 10**9

    class Out(Endpoint):
        cacheable = True

        async def send(self, messages: Any, want: Any) -> EndpointReply:
            while len(self.asked) > 3 and not fake.batches.looks:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            self.asked.append(1)
            if fake.batches.looks:
                raise CallError("no quota left", FATAL)
            return (
                EndpointReply((Text("yes"),), "answered")
                if want.modality == "text"
                else EndpointReply((self.picture,), "answered")
            )

    gone = Out("gone", version="1")
    gone.asked = []  # type: ignore[attr-defined]
    gone.picture = Blobs(tmp_path / "home" / "blobs").put(drawn("x"))  # type: ignore[attr-defined]
    monkeypatch.setattr("weft.models.batch_api.QUIET_PERIOD_S", 0.2)
    with (
        comes_to_an_end("a run that waits for a batch, which takes for ever"),
        pytest.raises(EndpointDown, match="no quota left"),
    ):
        weft.evaluate(
            "weave", data=toy, model=gone, judge=fake.name, home=tmp_path / "home", judge_batch=True, concurrency=1
        )


RUN = """
import sys, weft, weft.models.batch_api as b
b.QUIET_PERIOD_S, b.FINAL_QUIET_PERIOD_S, b.POLL_INTERVAL_S = 5.0, 0.1, 0.02
data, url, home = sys.argv[1:]
weft.evaluate("weave", data=data, model="copy", judge=url, home=home, judge_batch=True)
"""


@pytest.mark.parametrize("when", ["the file is there", "the batch is begun"])
def test_a_command_that_is_killed_is_followed_by_one_that_pays_nothing_twice(
    when: str, toy: Path, priced: Path, stand: Stand
):
    fake = stand(OpenAI())
    fake.batches.patience, fake.batches.open = 10**9, when == "the batch is begun"
    child = subprocess.Popen([sys.executable, "-c", RUN, str(toy), fake.name, str(priced / "home")])
    if fake.batches.open:
        until("a look at the batch, whose tickets are kept by then", lambda: fake.batches.looks, child)
    else:
        until("a request to begin the batch", lambda: fake.batches.waiting, child)
    child.send_signal(signal.SIGKILL)
    child.wait()
    begun = len(fake.batches.by_file)
    assert begun == (when == "the batch is begun")
    fake.batches.patience, fake.batches.open = 1, True
    until("the end of what the dead command had asked for", lambda: not fake.batches.waiting)
    run = judged(fake, toy, priced / "home", judge_batch=True, budget=100.0)
    count = calls(priced / "home", run)
    assert all_scored(run) and sum(len(fake.batches.lines(file)) for file in fake.batches.by_file) in (
        count - 1,
        count - 2,
    )
    assert len(fake.batches.by_file) == 1 or begun == 0
    assert len(fake.seen) <= 2 and costs(priced / "home", run) <= 2 * ONE + ONE / 2 * (count - 1) + 1e-9


def test_who_takes_no_batches_says_so(toy: Path, tmp_path: Path):
    with pytest.raises(UserError, match="anthropic/m has no batch API; openai/NAME"):
        weft.evaluate("weave", data=toy, model="copy", judge="anthropic/m", home=tmp_path / "home", judge_batch=True)
