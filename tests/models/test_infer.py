"""The authors' model-server protocol on a real socket."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
import weft.api
from server import data_url, drawn
from weft.calls.caller import EndpointDown, RetryPolicy
from weft.errors import UserError
from weft.models.endpoint import CallError, EndpointReply
from weft.models.load_balancer import LoadBalancer
from weft.models.registry import resolve_endpoint
from weft.results.run import load_run
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Message, Request, Text
from weft_tabletop.make import make

PICTURE = drawn("made")
B64 = base64.b64encode(PICTURE).decode()


@asynccontextmanager
async def served(answer: Callable[[dict[str, Any]], Any]) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.StreamResponse:
        said = answer(json.loads(await request.read()))
        if said is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return said if isinstance(said, web.StreamResponse) else web.json_response(said)

    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/infer", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/infer"  # type: ignore[union-attr]
    finally:
        await runner.cleanup()


def ask(blobs: Blobs, answer: Callable[[dict[str, Any]], Any], want: str = "image", *parts: Any) -> EndpointReply:
    async def go() -> EndpointReply:
        async with served(answer) as url:
            endpoint = resolve_endpoint(f"infer/{url}", blobs, {"temperature": "0.2"})
            try:
                return await endpoint.send(
                    (Message("system", (Text("duties"),)), Message("user", parts or (Text("draw"),))), Request(want)
                )  # type: ignore[arg-type]
            finally:
                await endpoint.close()

    return asyncio.run(go())


def test_the_request_is_what_the_authors_client_sends(blobs: Blobs):
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Any:
        asked.append(body)
        return {"response": {"image": B64}}

    given = blobs.put(drawn("given"))
    sent = ask(blobs, answer, "image", Text("make it red"), given)
    assert sent.outcome == "answered" and sent.parts == (blobs.put(PICTURE),) and B64 not in sent.raw
    assert asked[0] == {
        "history": [
            {"role": "system", "content": [{"type": "text", "text": "duties"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "make it red"},
                    {"type": "image", "image": base64.b64encode(drawn("given")).decode()},
                ],
            },
        ],
        "output_mode": "image_only",
        "temperature": 0.2,
    }


def test_text_and_data_urls_are_read(blobs: Blobs):
    assert ask(blobs, lambda body: {"response": {"text": "BD"}}, "text").parts == (Text("BD"),)
    assert ask(blobs, lambda body: {"response": {"image": data_url(PICTURE)}}).parts == (blobs.put(PICTURE),)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ({"response": {"error": "CUDA out of memory"}}, "transient", "the server says: CUDA out of memory"),
        (
            web.json_response({"detail": "history must not be empty"}, status=400),
            "no",
            "answered 400: history must not be empty",
        ),
        (web.json_response({"detail": "boom"}, status=500), "transient", "answered 500: boom"),
        (web.Response(text="{half"), "transient", "broken JSON"),
        (web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"}), "denied", "it redirects to"),
        ({"response": {"image": "AAAA"}}, "transient", "its image"),
        ({"error": "CUDA out of memory"}, "transient", "without a response: CUDA out of memory"),
        ({"response": None}, "transient", "without a response"),
        ([1], "transient", "without a response"),
        (None, "transient", "the connection broke"),
    ],
)
def test_what_the_server_does_wrong_is_never_a_reply(blobs: Blobs, answer: Any, kind: str, said: str):
    with pytest.raises(CallError, match=said) as caught:
        ask(blobs, lambda body: answer)
    assert caught.value.retry.kind == kind


def test_nothing_in_the_response_is_empty_and_worth_another_try(blobs: Blobs):
    sent = ask(blobs, lambda body: {"response": {}})
    assert sent.outcome == "empty" and sent.retry_advised


def test_several_servers_take_turns(blobs: Blobs):
    seen: list[str] = []

    async def go() -> None:
        async with served(lambda b: seen.append("a") or {"response": {"text": "x"}}) as a:
            async with served(lambda b: seen.append("b") or {"response": {"text": "x"}}) as b:
                endpoint = resolve_endpoint(f"infer/{a},{b}", blobs)
                assert isinstance(endpoint, LoadBalancer) and endpoint.identity["urls"] == [a, b]
                for n in range(4):
                    await endpoint.send((Message("user", (Text(str(n)),)),), Request("text"))
                await endpoint.close()

    asyncio.run(go())
    assert seen == ["a", "b", "a", "b"]


def test_an_address_that_is_none_is_told(blobs: Blobs):
    for text in ("infer/", "infer/nowhere", "infer/http://u:p@host/infer"):
        with pytest.raises(UserError):
            resolve_endpoint(text, blobs)


def test_a_server_that_dies_in_the_middle_of_a_run_costs_only_what_was_in_flight(tmp_path: Path):
    """Killed for good after some calls; the same command against a living one asks only what is missing, and nothing
    becomes a number."""
    data = make("tabletop-imug", tmp_path / "data", samples=12, seed=0)
    asked: list[str] = []
    alive = 15

    def answer(body: dict[str, Any]) -> Any:
        if len(asked) >= alive:
            return None
        asked.append(hashlib.sha256(json.dumps(body).encode()).hexdigest())
        return {"response": {"text": "A"} if body["output_mode"] == "text_only" else {"image": B64}}

    async def go() -> tuple[weft.Run, weft.Run]:
        nonlocal alive
        async with served(answer) as url:
            job = {"data": data, "model": f"infer/{url}", "judge": "tabletop/exact", "home": tmp_path / "home"}
            quick = RetryPolicy(tries=2, base=0.001, cap=0.002)
            with pytest.raises(EndpointDown):
                await weft.api.evaluate_async("imug", retry_policy=quick, **job)
            journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
            broken = load_run(journal, "last")
            alive = 10**6
            return broken, await weft.api.evaluate_async("imug", retry_policy=quick, **job)

    broken, whole = asyncio.run(go())
    assert broken.record.state == "stopped" and broken.replies.outcomes["answered"] == 15
    assert not any(v.value is not None and v.by == "failure" for v in broken.verdicts), (
        "the server's death is not the model's failure"
    )
    assert whole.record.state == "finished" and all(v.value is not None for v in whole.verdicts)
    assert len(asked) == len(set(asked)) == len(whole.turns), "no call was made twice"
