"""One request's trouble is one request's."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from server import Seen, answer, drawn
from waiting import HANGS
from weft.calls.caller import EndpointDown, RetryPolicy

QUICK = RetryPolicy(tries=3, base=0.001, cap=0.002)


def evaluate(provider: Any, toy: Path, tmp_path: Path, **options: Any) -> weft.Run:
    model, judge = (f"openai-chat/{name}@{provider.url}" for name in ("model", "judge"))
    return weft.evaluate(
        "weave", data=toy, model=model, judge=judge, home=tmp_path / "home", retry_policy=QUICK, **options
    )


@pytest.mark.parametrize("status", [401, 403, 404])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_request_that_is_always_turned_away_is_its_own_trouble(
    toy: Path, tmp_path: Path, serve: Any, status: int, concurrency: int
):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        denied = not seen.is_judge and any("door of" in text and "green" in text for text in seen.texts)
        return web.json_response({"error": {"message": "not this one"}}, status=status) if denied else None

    provider = serve(fault=fault)
    run = evaluate(provider, toy, tmp_path, concurrency=concurrency)
    failed = [turn for turn in run.turns if turn.reply.outcome == "failed"]
    assert run.record.state == "finished" and {turn.sample for turn in failed} == {"7"}
    assert (
        f"answered {status}" in failed[0].reply.reason and "wants a key" not in failed[0].reply.reason
    ) or status == 401


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_where_every_request_is_turned_away_the_run_ends_soon(toy: Path, tmp_path: Path, serve: Any, status: int):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        headers = {"Location": "http://127.0.0.1:9/v1"}
        return (
            None if seen.is_judge else web.json_response({"error": {"message": "no"}}, status=status, headers=headers)
        )

    provider = serve(fault=fault)
    with pytest.raises(EndpointDown, match=f"answered {status}") as caught:
        evaluate(provider, toy, tmp_path)
    assert caught.value.user_fault and provider.count <= 8


def test_a_run_of_which_some_is_always_turned_away_stays_finished(toy: Path, tmp_path: Path, serve: Any):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        denied = seen.is_judge or not any("Which of" in text for text in seen.texts)
        return web.json_response({"error": {"message": "no"}}, status=403) if denied and not seen.is_judge else None

    provider = serve(fault=fault)
    for _ in range(2):
        run = evaluate(provider, toy, tmp_path, limit=3, concurrency=1, turns="text", history="none", past="reference")
        assert run.record.state == "finished" and [turn.reply.outcome for turn in run.turns] == ["failed", "answered"]


def test_the_first_question_that_is_turned_away_is_one_question(toy: Path, tmp_path: Path, serve: Any):
    first: list[str] = []

    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        if seen.is_judge and (not first or seen.key in first):
            first.append(seen.key)
            return web.json_response({"error": {"message": "no"}}, status=403)
        return None

    run = evaluate(serve(fault=fault), toy, tmp_path, concurrency=1)
    assert run.record.state == "finished" and sum(verdict.value is None for verdict in run.verdicts) == 1


def test_a_budgets_own_limit_gives_way_to_the_models(
    toy: Path, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "weft.toml").write_text(
        "".join(f'[prices."{name}"]\nin = 1.0\nout = 1.0\n' for name in ("model", "judge"))
    )
    monkeypatch.chdir(tmp_path)

    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        asked = seen.body.get("max_tokens", 0)
        said = f"max_tokens is too large: {asked}. This model supports at most 4096 completion tokens"
        return web.json_response({"error": {"message": said}}, status=400) if asked > 4096 else None

    provider = serve(fault=fault)
    run = evaluate(provider, toy, tmp_path, budget=5.0)
    assert all(verdict.value is not None for verdict in run.verdicts)
    assert {seen.body["max_tokens"] for seen in provider.seen} == {8192, 4096}


def test_a_large_reply_with_a_link_to_a_large_picture_comes_back(tmp_path: Path, serve: Any):
    import asyncio

    from PIL import Image

    from weft.models.providers.openai_chat import OpenAIChat
    from weft.store.blobs import Blobs
    from weft.store.images import encode_png
    from weft.types import Message, Request, Text

    def linked(seen: Seen) -> dict[str, Any]:
        url = provider.url.removesuffix("/v1") + "/large.png"
        return {
            "role": "assistant",
            "content": "x" * 5_000_000,
            "images": [{"type": "image_url", "image_url": {"url": url}}],
        }

    provider = serve(answer=linked, keep=False)
    provider.files["/large.png"] = encode_png(Image.effect_noise((1500, 1500), 90).convert("RGB"))
    assert len(provider.files["/large.png"]) > 4 * 1024 * 1024

    async def ask() -> int:
        endpoint = OpenAIChat("m", provider.url, Blobs(tmp_path / "blobs"), timeout=HANGS)
        ask = endpoint.send((Message("user", (Text("draw"),)),), Request("image"))
        sent = await asyncio.wait_for(ask, HANGS)
        await endpoint.close()
        return len(sent.parts)

    assert asyncio.run(ask()) == 2


@pytest.mark.parametrize(
    "link", ["/moved.png", "http://[::1", "http://127.0.0.1:99999/x.png", "http:///x", "https://user:pw@127.0.0.1/x"]
)
def test_a_link_that_leads_nowhere_costs_its_own_turn(toy: Path, tmp_path: Path, serve: Any, link: str):
    def linked(seen: Seen) -> dict[str, Any]:
        if (
            seen.is_judge
            or "image" not in (seen.body.get("modalities") or ())
            or not any("door of" in text for text in seen.texts)
        ):
            return answer(seen)
        url = link if link.startswith("http") else provider.url.removesuffix("/v1") + link
        return {"role": "assistant", "content": "", "images": [{"type": "image_url", "image_url": {"url": url}}]}

    provider = serve(answer=linked)
    provider.files |= {"/there.png": drawn("there"), "/moved.png": "/there.png"}
    run = evaluate(provider, toy, tmp_path)
    lost = {turn.sample for turn in run.turns if turn.reply.outcome != "answered"}
    assert run.record.state == "finished" and lost == {"7"}
    if link.startswith("/"):
        reply = next(turn.reply for turn in run.turns if turn.reply.outcome == "failed")
        assert "the image's link answered 302: it redirects" in reply.reason
