"""A provider that bills. What it billed must never be more than the budget, whatever becomes of its replies."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from server import Provider, Seen, answer
from toy import more_records, write_weave
from waiting import until_in_loop
from weft.calls.caller import RetryPolicy
from weft.errors import BudgetReached, UserError
from weft.models.config import read_config

IN, OUT = 2000.0, 8000.0  # USD per million tokens: a reply of 400 tokens costs 3.20
QUICK = RetryPolicy(tries=4, rate_limit_tries=4, base=0.001, cap=0.002)


class Billing:
    """`how`: what becomes of a reply that was billed."""

    def __init__(self, how: str, seed: int = 0) -> None:
        self.how, self.random, self.billed, self.calls, self.broken = how, random.Random(seed), 0.0, 0, 0

    async def __call__(self, seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        self.calls += 1
        if self.how == "refused" and self.random.random() < 0.3:
            return web.json_response({"error": {"message": "slow"}}, status=429)  # not billed
        limit = seen.body.get("max_tokens") or seen.body.get("max_completion_tokens") or 30_000
        out = self.random.choice([limit, limit // 2, 50]) if self.how != "over" else 3 * limit
        tokens_in = sum(map(len, seen.texts)) // 3 + 1000 * len(seen.pictures) + 20
        self.billed += (tokens_in * IN + out * OUT) / 1e6
        usage = {"prompt_tokens": tokens_in, "completion_tokens": out}
        if self.how in ("cut", "mixed") and self.random.random() < 0.5:
            self.broken += 1
            response = web.StreamResponse(headers={"Content-Length": "1000"})
            await response.prepare(request)
            await response.write(b'{"choices": [')
            if request.transport is not None:
                request.transport.close()
            return response
        if self.how in ("broken", "mixed") and self.random.random() < 0.5:
            self.broken += 1
            return web.Response(text="{half")
        if self.how in ("server", "mixed") and self.random.random() < 0.3:
            self.broken += 1
            return web.json_response({"error": {"message": "oops"}}, status=500)
        if self.how == "slow" and self.random.random() < 0.3 and self.broken < 3:
            self.broken += 1
            await until_in_loop("nobody waits for it any more", lambda: request.transport is None)
        message = (
            {"role": "assistant", "content": ""} if self.how == "empty" and self.random.random() < 0.5 else answer(seen)
        )
        body: dict[str, Any] = {
            "model": seen.body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        }
        body |= {} if self.how == "silent" and self.random.random() < 0.5 else {"usage": usage}
        return web.Response(text=json.dumps(body), content_type="application/json")


def run_with(
    provider: Provider, tmp_path: Path, budget: float, *, limit: str | None = "400", data: Path, slow: bool = False
) -> Any:
    options: dict[str, Any] = {"timeout": "3"} if slow else {}
    options |= {"max_tokens": limit} if limit else {}
    return weft.evaluate(
        "weave",
        data=data,
        model=f"openai-chat/model@{provider.url}",
        judge=f"openai-chat/judge@{provider.url}",
        home=tmp_path / "home",
        budget=budget,
        model_options=options,
        judge_options=options,
        retry_policy=QUICK,
    )


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "weft.toml").write_text(
        "".join(f'[prices."{name}"]\nin = {IN}\nout = {OUT}\n' for name in ("model", "judge"))
    )
    monkeypatch.chdir(tmp_path)
    return write_weave(tmp_path / "many", more_records(8))


@pytest.mark.parametrize("how", ["whole", "cut", "broken", "server", "slow", "empty", "silent", "refused", "mixed"])
def test_a_budget_is_never_passed_whatever_becomes_of_the_replies(priced: Path, tmp_path: Path, serve: Any, how: str):
    billing = Billing(how)
    provider = serve(fault=billing, keep=False)
    budget = 120.0
    with pytest.raises(BudgetReached):
        run_with(provider, tmp_path, budget, data=priced, slow=how == "slow")
    assert billing.calls >= 5, "it did begin"
    assert how not in ("cut", "broken", "server", "mixed", "slow") or billing.broken
    assert billing.billed <= budget, f"{billing.billed:.2f} of {budget} for {billing.calls} calls"


def test_without_max_tokens_a_budget_sends_a_limit_of_its_own(priced: Path, tmp_path: Path, serve: Any):
    billing = Billing("whole")
    provider = serve(fault=billing)
    with pytest.raises(BudgetReached):
        run_with(provider, tmp_path, 500.0, limit=None, data=priced)
    assert billing.billed <= 500.0 and billing.calls > 2
    assert {seen.body["max_tokens"] for seen in provider.seen} == {8192}


def test_a_server_that_bills_more_than_it_was_asked_for_is_found_out_by_its_first_reply(
    priced: Path, tmp_path: Path, serve: Any
):
    billing = Billing("over")
    provider = serve(fault=billing, keep=False, latency=0.02)
    with pytest.raises(BudgetReached):
        run_with(provider, tmp_path, 200.0, data=priced)
    assert billing.billed <= 200.0 and billing.calls > 3, f"{billing.billed:.2f}"


def test_a_reply_cut_at_the_budgets_own_limit_is_nobodys_answer(priced: Path, tmp_path: Path, serve: Any):
    async def cut(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        return (
            Provider.completion(seen, {"role": "assistant", "content": "half an"}, "length")
            if "max_tokens" in seen.body
            else None
        )

    provider = serve(fault=cut)
    run = run_with(provider, tmp_path, 1e6, limit=None, data=write_weave(tmp_path / "few", more_records(1)))
    assert {turn.reply.outcome for turn in run.turns} == {"failed"}
    assert "truncated at 8192 tokens, --budget's limit" in run.turns[0].reply.reason
    whole = weft.evaluate(
        "weave",
        data=tmp_path / "few",
        model=f"openai-chat/model@{provider.url}",
        judge="constant/5",
        home=tmp_path / "home",
    )
    assert {turn.reply.outcome for turn in whole.turns} == {"answered"}, (
        "without a budget it is asked again, without the limit"
    )


def test_tries_that_may_have_been_billed_are_told_at_what_was_expected(priced: Path, tmp_path: Path, serve: Any):
    provider = serve(fault=Billing("broken", seed=1), keep=False)
    run = run_with(provider, tmp_path, 1e6, data=priced)
    spent = {total.role: total for total in run.totals}
    assert spent["model"].retries > 10 and spent["model"].cost is not None
    told = sum((total.tokens_in * IN + total.tokens_out * OUT) / 1e6 for total in run.totals)
    assert sum(total.cost or 0 for total in run.totals) > told + 3.2 * 10, (
        "what was read, and what was expected of the rest"
    )


@pytest.mark.parametrize("price", ["nan", "-1.0", "inf", "true", '"1"', "-0.0001"])
def test_a_price_that_is_none_is_refused(tmp_path: Path, price: str):
    (tmp_path / "weft.toml").write_text(f'[prices."m"]\nin = {price}\nout = 1.0\n')
    with pytest.raises(UserError, match="numbers from 0 up"):
        read_config(tmp_path)


@pytest.mark.parametrize("budget", [float("nan"), float("inf"), -1.0])
def test_a_budget_that_is_none_is_refused(toy: Path, tmp_path: Path, budget: float):
    with pytest.raises(UserError, match="budget must be a number of USD from 0 up"):
        weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "home", budget=budget)
