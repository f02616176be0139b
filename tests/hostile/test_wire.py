"""One request's trouble is one request's."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from server import Seen, answer, drawn
from weft.engine.call import EndpointDown, Patience

QUICK = Patience(tries=3, base=0.001, cap=0.002)


def evaluate(provider: Any, toy: Path, tmp_path: Path, **options: Any) -> weft.Run:
    model, judge = (f"openai-chat/{name}@{provider.url}" for name in ("model", "judge"))
    return weft.evaluate("weave", data=toy, model=model, judge=judge, home=tmp_path / "home", patience=QUICK, **options)


@pytest.mark.parametrize("status", [401, 403, 404])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_request_that_is_always_turned_away_is_its_own_trouble(toy: Path, tmp_path: Path, serve: Any, status: int, concurrency: int):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        denied = not seen.is_judge and any("door of" in text and "green" in text for text in seen.texts)
        return web.json_response({"error": {"message": "not this one"}}, status=status) if denied else None

    provider = serve(fault=fault)
    run = evaluate(provider, toy, tmp_path, concurrency=concurrency)
    failed = [turn for turn in run.turns if turn.reply.outcome == "failed"]
    assert run.record.state == "finished" and {turn.sample for turn in failed} == {"7"}
    assert (f"answered {status}" in failed[0].reply.reason and "wants a key" not in failed[0].reply.reason) or status == 401


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_where_every_request_is_turned_away_the_run_ends_soon(toy: Path, tmp_path: Path, serve: Any, status: int):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        headers = {"Location": "http://127.0.0.1:9/v1"}
        return None if seen.is_judge else web.json_response({"error": {"message": "no"}}, status=status, headers=headers)

    provider = serve(fault=fault)
    with pytest.raises(EndpointDown, match=f"answered {status}") as caught:
        evaluate(provider, toy, tmp_path)
    assert caught.value.user and provider.count <= 8


def test_a_single_request_that_is_turned_away_ends_the_run(toy: Path, tmp_path: Path, serve: Any):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        return web.json_response({"error": {"message": "no"}}, status=403)

    with pytest.raises(EndpointDown, match="answered 403: that is not allowed"):
        evaluate(serve(fault=fault), toy, tmp_path, limit=1, concurrency=1)


@pytest.mark.parametrize("link", ["/moved.png", "http://[::1", "http://127.0.0.1:99999/x.png", "http:///x", "https://user:pw@127.0.0.1/x"])
def test_a_link_that_leads_nowhere_costs_its_own_turn(toy: Path, tmp_path: Path, serve: Any, link: str):
    def linked(seen: Seen) -> dict[str, Any]:
        if seen.is_judge or "image" not in (seen.body.get("modalities") or ()) or not any("door of" in text for text in seen.texts):
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
        assert "the picture's link answered 302: it redirects" in reply.reason
