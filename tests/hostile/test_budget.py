"""A budget is never passed: servers that bill beyond what they were asked for, say late what a call costs, or lose what
they billed. `python -m fuzz money` is the large form."""

import asyncio
import json
import os
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

import weft
from fakes import Fake, OpenAI
from server import Provider, Seen, data_url, drawn
from toy import more_records, write_weave
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.weave.protocol import Weave
from weft.calls.budget import Budget
from weft.calls.caller import RetryPolicy
from weft.cli.execute import run_in_suite
from weft.cli.screen import Screen
from weft.cli.several import Job, run_jobs
from weft.errors import BudgetReached, UserError
from weft.evaluation.config import RunConfig
from weft.models.batch_api import BatchEndpoint, build_batch_endpoint
from weft.models.endpoint import TEXT_LISTENER, Endpoint
from weft.types import Message, Reply, Request, Text
from weft.workspace import Limits, Workspace

IN, OUT, IMAGE = 2000.0, 8000.0, 1.0  # USD per million tokens, and per image
MAX_TOKENS = 400
MOST = (16 + 16 + 16) * IN / 1e6 + MAX_TOKENS * OUT / 1e6  # of one call with a short text
QUICK = RetryPolicy(tries=4, rate_limit_tries=4, base=0.001, cap=0.002)
Serve = Callable[..., Provider]


class Till:
    """A server that bills `over` times what it was asked for, and sends `images` with every reply. What becomes of its
    first replies is in `first`; of streams it sends a kind that nobody knows."""

    def __init__(self, *first: str, over: float = 1.0, images: int = 0) -> None:
        self.first, self.over, self.images = list(first), over, images
        self.bill, self.calls = 0.0, 0
        self.seconds = 0.005  # as long as others would take to follow

    async def __call__(self, seen: Seen, times: int, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        how = self.first.pop(0) if self.first else ""
        if how == "429":
            return web.json_response({"error": {"message": "slow down"}}, status=429)
        used = {"prompt_tokens": 20, "completion_tokens": round(MAX_TOKENS * self.over)}
        self.bill += (used["prompt_tokens"] * IN + used["completion_tokens"] * OUT) / 1e6 + self.images * IMAGE
        await asyncio.sleep(self.seconds)
        if how == "500":
            return web.json_response({"error": {"message": "oh no"}}, status=500)
        if seen.body.get("stream"):
            odd = b'data: {"choices": [{"delta": {"content": {"words": "x"}}, "finish_reason": "stop"}]}\n\n'
            return web.Response(body=odd, content_type="text/event-stream")
        image = {"type": "image_url", "image_url": {"url": data_url(drawn("x"))}}
        message = {"role": "assistant", "content": "here", "images": [image] * self.images}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"model": "m", "choices": [choice], **({} if how == "silent" else {"usage": used})})


def ask_many(endpoint: Endpoint, home: Path, budget: float, request: Request, count: int = 150) -> list[Any]:
    """Return what became of calls that were made at once."""

    async def work() -> list[Any]:
        prices = {str(endpoint.identity["model"]): {"in": IN, "out": OUT, "image": IMAGE}}
        limits = Limits(budget=budget, retry_policy=QUICK)
        async with Workspace(home).open({"model": endpoint}, limits, prices=prices) as models:
            caller = models.callers["model"]
            messages = (Message("user", (Text("say or draw it"),)),)
            requests = [Request(request.modality, draw=number) for number in range(count)]
            return await asyncio.gather(*(caller.reply(messages, one) for one in requests), return_exceptions=True)

    return asyncio.run(work())


def stopped(results: list[Any]) -> bool:
    assert all(isinstance(result, Reply | BudgetReached) for result in results), results
    return any(isinstance(result, BudgetReached) for result in results)


def test_nobody_uses_up_the_room_that_a_first_reply_turns_out_to_need(tmp_path: Path, serve: Serve):
    tills = {"quick": Till(), "slow": Till(over=7)}
    tills["slow"].seconds = 1.0
    budget = 100.0

    async def work() -> list[Any]:
        endpoints = {role: chat(serve(fault=till), tmp_path) for role, till in tills.items()}
        limits = Limits(budget=budget, retry_policy=QUICK)
        async with Workspace(tmp_path).open(
            endpoints, limits, prices={"m": {"in": IN, "out": OUT}}, composed=True
        ) as models:
            messages = (Message("user", (Text("say it"),)),)
            calls = [models.callers["slow"].reply(messages, Request("text"))]
            calls += [models.callers["quick"].reply(messages, Request("text", draw=number)) for number in range(150)]
            return await asyncio.gather(*calls, return_exceptions=True)

    assert stopped(asyncio.run(work()))
    bill = sum(till.bill for till in tills.values())
    assert tills["slow"].calls == 1 and budget - 2 * MOST < bill <= budget, f"${bill:.2f}"


def chat(provider: Provider, home: Path, **options: Any) -> Endpoint:
    return Workspace(home).endpoint(f"openai-chat/m@{provider.url}", {"max_tokens": str(MAX_TOKENS), **options})


@pytest.mark.parametrize("modality", ["text", "image", "interleaved"])
def test_images_that_nobody_expected_are_counted_from_the_first_reply_on(modality: Any, tmp_path: Path, serve: Serve):
    till = Till(images=12)
    endpoint = chat(serve(fault=till), tmp_path)
    assert stopped(ask_many(endpoint, tmp_path, 100.0, Request(modality)))
    assert 50 < till.bill <= 100, f"${till.bill:.2f}"


@pytest.mark.parametrize("first", [("silent",), ("429",), ("500",), ("silent", "429", "500", "silent")])
def test_no_other_call_goes_out_before_a_reply_has_said_what_it_costs(
    first: tuple[str, ...], tmp_path: Path, serve: Serve
):
    till = Till(*first, over=7)
    assert stopped(ask_many(chat(serve(fault=till), tmp_path), tmp_path, 200.0, Request("text")))
    assert 100 < till.bill <= 200, f"${till.bill:.2f}"


def test_where_usage_never_comes_every_call_counts_at_its_most(tmp_path: Path, serve: Serve):
    till = Till(*["silent"] * 200)
    provider = serve(fault=till)
    assert stopped(ask_many(chat(provider, tmp_path), tmp_path, 100.0, Request("text")))
    assert 90 < till.calls * MOST <= 100 and till.bill <= 100
    assert provider.most_in_flight == 1


def test_every_try_of_an_odd_stream_has_a_reservation_of_its_own(tmp_path: Path, serve: Serve):
    till = Till()
    endpoint = chat(serve(fault=till), tmp_path)

    def ask() -> list[Any]:
        TEXT_LISTENER.set(lambda piece: None)
        return ask_many(endpoint, tmp_path, 1.5 * MOST, Request("text"), 1)

    assert stopped(copy_context().run(ask))
    assert till.calls == 1 and till.bill <= 1.5 * MOST


class Losing(OpenAI):
    """Its batches bill every line, at half the price; what they answer cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.bill = 0.0

    @property
    def cost(self) -> float:
        return (20 * IN + MAX_TOKENS * OUT) / 1e6

    async def handle(self, request: web.Request) -> web.Response:
        self.bill += self.cost
        body = json.loads((await super().handle(request)).text or "")
        return web.json_response({**body, "usage": {"prompt_tokens": 20, "completion_tokens": MAX_TOKENS}})

    async def begin(self, request: web.Request) -> web.Response:
        begun = await super().begin(request)
        self.bill += sum(self.cost / 2 for _ in self.batches.lines((await request.json())["input_file_id"]))
        return begun

    async def content(self, request: web.Request) -> web.Response:
        lines = [json.loads(line) for line in ((await super().content(request)).body or b"").splitlines()]  # type: ignore[union-attr]
        for line in lines:
            line["response"]["body"] = {"half": "an answer"}
        return web.Response(body="\n".join(map(json.dumps, lines)).encode())


def batched(fake: Fake, home: Path) -> BatchEndpoint:
    endpoint = build_batch_endpoint(Workspace(home).endpoint(fake.name, {"max_tokens": str(MAX_TOKENS)}))
    endpoint._quiet_period, endpoint.poll_interval = 0.05, 0.01
    return endpoint


def test_an_answer_of_a_batch_that_cannot_be_read_is_spent(tmp_path: Path, stand: Callable[[Fake], Any]):
    fake = stand(Losing())
    assert stopped(ask_many(batched(fake, tmp_path), tmp_path, 100.0, Request("text"), 55))
    assert fake.batches.by_file and 90 < fake.bill <= 100, f"${fake.bill:.2f}"


def test_what_a_job_of_a_suite_spent_counts_although_nothing_came_of_it(
    toy: Path, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "weft.toml").write_text(f'[prices."m"]\nin = {IN}\nout = {OUT}\n')
    monkeypatch.chdir(tmp_path)
    till = Till()  # it answers by no schema, which the small question before a run finds out
    judge = f"openai-chat/m@{serve(fault=till).url}"
    job = RunConfig(
        benchmark="weave",
        data=toy,
        model="copy",
        judge=judge,
        home=tmp_path,
        budget=100.0,
        preflight=True,
        retry_policy=QUICK,
    )
    budget = Budget(100.0)
    outcome = run_in_suite(job, Screen(stderr=True), lambda session: None, budget)
    assert not outcome.is_complete and budget.spent == pytest.approx(till.bill) and till.calls == 2


@pytest.mark.parametrize("budget", [60.0, 100.0])
def test_what_a_server_billed_in_one_run_is_known_in_the_next_of_one_budget(
    budget: float, toy: Path, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "weft.toml").write_text(f'[prices."m"]\nin = {IN}\nout = {OUT}\n')
    monkeypatch.chdir(tmp_path)
    till = Till(over=7)
    sweep = weft.sweep(
        "weave",
        data=write_weave(tmp_path / "many", more_records(6)),
        model="copy",
        judge=f"openai-chat/m@{serve(fault=till).url}",
        judge_options={"max_tokens": str(MAX_TOKENS)},
        vary={"judge_repeats": [1, 2, 3]},
        home=tmp_path,
        budget=budget,
        retry_policy=QUICK,
    )
    assert len(sweep.failures) == 3 and budget / 2 < till.bill <= budget, f"${till.bill:.2f}"


class Asking(Preparation, frozen=True):
    """Asks a model one question, and gives up."""

    def auxiliary_models(self, options: Any) -> dict[str, str]:
        return {"auxiliary": os.environ["AUXILIARY"]}

    async def prepare(self, dataset: Any, options: Any, models: Any) -> Any:
        await models["auxiliary"].reply((Message("user", (Text("say it"),)),), Request("text"))
        raise UserError("the data cannot be completed")


class Unprepared(Weave):
    name = "unprepared"
    preparation = Asking()


def test_what_was_spent_before_a_run_began_counts(
    toy: Path, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "weft.toml").write_text(f'[prices."m"]\nin = {IN}\nout = {OUT}\n')
    monkeypatch.chdir(tmp_path)
    till = Till("silent", "silent", "silent")
    monkeypatch.setenv("AUXILIARY", f"openai-chat/m@{serve(fault=till).url}")
    job = RunConfig(benchmark=Unprepared, data=toy, model="copy", judge="constant/5", home=tmp_path, fresh=True)
    jobs = [Job(str(number), replace(job, home=tmp_path / str(number)), lambda session: None) for number in range(3)]
    most = 8192 * OUT / 1e6 + 1  # of one call without a limit of its own
    complete, ids = run_jobs(jobs, 1.5 * most, dry_run=False)
    assert not complete and not ids and till.calls == 1
