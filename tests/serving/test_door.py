"""`weft serve` in one process, asked over a socket by whoever speaks chat completions, and by weft."""

import asyncio
import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image as Pil

from waiting import HANGS, until_in_loop
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.session import open_run
from weft.models.call_settings import CallSettings
from weft.models.endpoint import CallError, Endpoint, EndpointReply
from weft.models.providers.served_card import ModelCard, own_server
from weft.models.registry import resolve_endpoint
from weft.secrets import hide
from weft.serving.app import ServingApp
from weft.serving.chat import InvalidRequest, format_completion, read_request
from weft.serving.local_pool import LocalPool
from weft.serving.replica import ReplicaSpec
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Request, Takes, Text, Usage

MINE = '''
from PIL import Image
import weft

class Model:
    """Says what it was shown; draws a picture of the colour that its draw and its words give."""
    name, version = "mine", "1"
    own_images = "user"

    def __call__(self, messages, want, draw):
        said = [("P" if not isinstance(part, str) else part) for _, parts in messages for part in parts]
        if "raise" in said[-1]:
            raise ValueError("it was told to, with sk-canary-0123456789abcdef0123456789")
        if want == "text":
            return [weft.Thought("hm"), f"{len(messages)} messages: " + " | ".join(said)]
        picture = Image.new("RGB", (8, 8), (draw % 256, len("".join(said)) % 256, 7))
        return ["before", picture, "after"] if want == "interleaved" else picture

class Batched(Model):
    name = "batched"
    batch_size = 4
    sizes = []

    def batch(self, requests):
        self.sizes.append(len(requests))
        return [self(one.messages, one.want, one.draw) for one in requests]
'''

HELD = """

def held(began, may):
    import pathlib, time
    pathlib.Path(began).touch()
    while not pathlib.Path(may).exists():
        time.sleep(0.01)
"""

MINE_NOW = MINE


def picture(colour: str = "red", side: int = 4) -> bytes:
    out = io.BytesIO()
    Pil.new("RGB", (side, side), colour).save(out, "PNG")
    return out.getvalue()


def data_url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def serve(
    place: Path,
    act: Callable[[str, ServingApp], Any],
    model: str = "Model",
    token: str = "",
    options: dict[str, Any] | None = None,
    ignored_settings: tuple[str, ...] = (),
) -> Any:
    """`act` with the address of a server that has a model of the user's behind it."""
    (place / "mine.py").write_text(MINE_NOW)

    async def go() -> Any:
        spec = ReplicaSpec(
            f"{place}/mine.py:{model}", options or {}, "mine", str(place / "home"), ignored_settings=ignored_settings
        )
        pool = LocalPool(spec)
        await pool.load()
        door = ServingApp(pool, "mine", token)
        runner, address = await door.start(0)
        try:
            return await act(address, door)
        finally:
            await runner.cleanup()
            await pool.close()

    return asyncio.run(go())


async def post(address: str, body: Any, **more: str) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", **more}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address}/v1/chat/completions", data=json.dumps(body), headers=headers) as came,
    ):
        return came.status, json.loads(await came.read())


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": [_part(part) for part in parts]}


def _part(part: Any) -> dict[str, Any]:
    return (
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": data_url(part)}}
    )


def test_parts_come_and_go_in_their_order(tmp_path: Path):
    async def act(address: str, door: ServingApp) -> None:
        status, body = await post(address, {"messages": [user("one", picture(), "two")], "modalities": ["text"]})
        assert status == 200 and body["model"] == "mine"
        assert body["choices"][0]["message"]["content"] == "1 messages: one | P | two"
        assert body["choices"][0]["message"]["reasoning_content"] == "hm"
        status, body = await post(address, {"messages": [user("draw")], "modalities": ["image", "text"]})
        content = body["choices"][0]["message"]["content"]
        assert [part["type"] for part in content] == ["text", "image_url", "text"]
        status, first = await post(address, {"messages": [user("draw")], "modalities": ["image"], "seed": 5})
        sent = first["choices"][0]["message"]["content"][0]["image_url"]["url"]
        opened = Pil.open(io.BytesIO(base64.b64decode(sent.partition(",")[2])))
        assert opened.getpixel((0, 0)) == (5, 4, 7)

    serve(tmp_path, act)


def shown(url: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ([], "not a chat completion request"),
        ({}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "role"),
        ({"messages": [user("x")], "stream": True}, "stream"),
        ({"messages": [user("x")], "n": 2}, "another seed"),
        ({"messages": [user("x")], "modalities": ["audio"]}, "modalities"),
        ({"messages": [user("x")], "size": "huge"}, "size"),
        ({"messages": [user("x")], "seed": "one"}, "seed"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}]}
                ]
            },
            "not followed",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,%%"}}],
                    }
                ]
            },
            "base64",
        ),
        ({"messages": [user(b"no picture at all")]}, "an image"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input_audio"),
    ],
)
def test_what_cannot_be_read_is_refused_and_says_why(tmp_path: Path, body: Any, why: str):
    async def act(address: str, door: ServingApp) -> None:
        status, came = await post(address, body)
        assert status == 400 and why in came["error"]["message"], came

    serve(tmp_path, act)


def test_a_client_that_names_no_modalities_gets_one_text_and_images_beside_it(tmp_path: Path):
    blobs = Blobs(tmp_path)
    reply = EndpointReply((Text("one"), blobs.put(picture()), Text("two")), "answered")
    plain = json.loads(format_completion(reply, "m", blobs, text_content=True))["choices"][0]["message"]
    assert plain["content"] == "one\ntwo" and plain["images"][0]["image_url"]["url"].startswith("data:image/png")
    ordered = json.loads(format_completion(reply, "m", blobs))["choices"][0]["message"]
    assert [part["type"] for part in ordered["content"]] == ["text", "image_url", "text"] and "images" not in ordered
    for modalities, expected in ((None, True), (["text"], False)):
        body = json.dumps({"messages": [user("x")], "modalities": modalities}).encode()
        assert read_request(body, blobs, ModelCard("m", {}, Takes(), Gives(), 1)).text_content is expected


SETTING_CASES: list[tuple[dict[str, Any], str]] = [
    ({"temperature": 0}, "temperature is set when the server is started"),
    ({"temperature": 0}, "`weft serve --ignore temperature`"),
    ({"presence_penalty": 0.5}, "presence_penalty is set"),
    ({"logprobs": True}, "logprobs is set"),
    ({"presence_penalty": False}, "presence_penalty is set"),
    ({"presence_penalty": 0, "frequency_penalty": 0.0, "logprobs": False, "stop": [], "max_tokens": None}, ""),
]


@pytest.mark.parametrize(("settings", "why"), SETTING_CASES)
def test_a_setting_that_the_model_cannot_take_is_refused_unless_it_changes_nothing(
    tmp_path: Path, settings: dict[str, Any], why: str
):
    async def act(address: str, door: ServingApp) -> None:
        status, came = await post(address, {"messages": [user("hi")], **settings})
        if why:
            assert status == 400 and why in came["error"]["message"], came
        else:
            assert status == 200

    serve(tmp_path, act)


def test_ignored_settings_are_accepted_and_listed(tmp_path: Path):
    async def act(address: str, door: ServingApp) -> None:
        body = {"messages": [user("hi")], "temperature": 0.7, "max_tokens": 5}
        assert (await post(address, body))[0] == 200
        assert (await post(address, {**body, "top_p": 0.5}))[0] == 400
        async with aiohttp.ClientSession() as session, session.get(f"{address}/v1/models") as came:
            card = (await came.json())["data"][0]["weft"]
        assert card["ignored_settings"] == ["temperature", "max_tokens"]
        assert card["request_settings"] == []

    serve(tmp_path, act, ignored_settings=("temperature", "max_tokens"))


class Adjustable(Endpoint):
    """Says which settings its call had."""

    request_settings = ("temperature", "top_p", "max_tokens")

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        return EndpointReply((Text("own"),), "answered", usage=Usage(3, 2))

    async def send_with(self, messages: tuple[Message, ...], request: Request, settings: CallSettings) -> EndpointReply:
        said = f"{settings.temperature} {settings.top_p} {settings.max_tokens}"
        return EndpointReply((Text(said),), "answered", usage=Usage(3, 2))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "own"),
        ({"temperature": 0}, "0.0 None None"),
        ({"temperature": 1, "top_p": 0.9, "max_tokens": 7}, "1.0 0.9 7"),
        ({"max_tokens": 7, "max_completion_tokens": 7}, "None None 7"),
    ],
)
def test_settings_reach_a_model_that_can_take_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], said: str
):
    monkeypatch.setattr("weft.serving.replica.resolve_endpoint", lambda *_: Adjustable("mine"))

    async def act(address: str, door: ServingApp) -> None:
        status, came = await post(address, {"messages": [user("hi")], **settings})
        assert status == 200 and came["choices"][0]["message"]["content"] == said
        assert came["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}

    serve(tmp_path, act)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"temperature": True}, "temperature must be a number"),
        ({"temperature": -1}, "from 0 up"),
        ({"top_p": 0}, "top_p must be above 0"),
        ({"max_tokens": 0}, "from 1 up"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "differ"),
        ({"top_k": 5}, "top_k is set when the server is started"),
    ],
)
def test_settings_that_no_model_could_obey_are_refused(tmp_path: Path, settings: dict[str, Any], why: str):
    card = ModelCard("m", {}, Takes(), Gives(), 1, request_settings=Adjustable.request_settings)
    body = json.dumps({"messages": [user("hi")], **settings}).encode()
    with pytest.raises(InvalidRequest, match=why):
        read_request(body, Blobs(tmp_path), card)


def test_a_models_own_trouble_is_told_without_keys_and_is_not_tried_again(tmp_path: Path):
    hide("sk-canary-0123456789abcdef0123456789")

    async def act(address: str, door: ServingApp) -> None:
        status, came = await post(address, {"messages": [user("raise")]})
        assert status == 422 and "ValueError: it was told to" in came["error"]["message"]
        assert "sk-canary-0123456789abcdef0123456789" not in came["error"]["message"]
        assert door.counts.by_status == {422: 1}

    serve(tmp_path, act)


def test_who_may_come_in(tmp_path: Path):
    async def act(address: str, door: ServingApp) -> None:
        asked = {"messages": [user("hi")]}
        assert (await post(address, asked))[0] == 401
        assert (await post(address, asked, Authorization="Bearer wrong"))[0] == 401
        assert (await post(address, asked, Authorization="Bearer secret-token"))[0] == 200
        assert (await post(address, asked, Authorization="Bearer secret-token", Host="evil.example"))[0] == 403
        assert (await post(address, asked, Authorization="Bearer secret-token", **{"Content-Type": "text/plain"}))[
            0
        ] == 415

    serve(tmp_path, act, token="secret-token")


def test_a_queue_that_is_full_says_so_and_when_to_come_again(tmp_path: Path):
    async def act(address: str, door: ServingApp) -> None:
        door.counts.in_flight = 10_000
        async with aiohttp.ClientSession() as session:
            asked = session.post(f"{address}/v1/chat/completions", json={"messages": [user("x")]})
            async with asked as came:
                assert came.status == 429 and came.headers["Retry-After"] == "1"

    serve(tmp_path, act)


def test_health_metrics_and_what_is_served(tmp_path: Path):
    async def act(address: str, door: ServingApp) -> None:
        await asyncio.gather(*(post(address, {"messages": [user(f"number {one}", picture())]}) for one in range(9)))
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{address}/health") as came:
                assert await came.json() == {"status": "ok", "replicas": 1, "expected": 1}
            async with session.get(f"{address}/metrics") as came:
                text = await came.text()
            async with session.get(f"{address}/v1/models") as came:
                card = (await came.json())["data"][0]
            async with session.get(f"{address}/nothing") as came:
                assert came.status == 404 and "error" in await came.json()
        assert 'weft_requests_total{status="200"} 9' in text and "weft_requests_in_flight 0" in text
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("weft_replica_"))
        told = {name.partition("{")[0]: float(value) for name, value in lines.items()}
        assert told["weft_replica_batch_calls_total"] == 9 and 2 <= told["weft_replica_largest_batch"] <= 4
        assert told["weft_replica_images_held"] == 0
        assert card["id"] == "mine" and card["weft"]["identity"]["version"] == "1" and card["weft"]["concurrency"] == 8

    serve(tmp_path, act, "Batched")


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def test_the_model_behind_a_server_that_this_command_started_is_the_model_itself(tmp_path: Path, toy: Path):
    """The same run under the same name: in this process and behind a server."""

    def job(model: Any, home: str) -> RunConfig:
        return RunConfig(benchmark="weave", data=toy, model=model, judge="constant/7", home=tmp_path / home)

    async def run(model: Any, home: str) -> tuple[str, list[Any], int]:
        async with open_run(job(model, home)) as session:
            await session.run()
            turns = session.journal.turns(session.run_id)
            return session.run_id, [turn.reply.parts for turn in turns], session.callers["model"].tally.calls

    async def act(address: str, door: ServingApp) -> None:
        url = f"{address}/v1"
        with own_server(url):
            from_server = await in_thread(lambda: asyncio.run(run(f"served/mine@{url}", "served")))
        here = await in_thread(lambda: asyncio.run(run(f"{tmp_path}/mine.py:Model", "here")))
        assert from_server == here and from_server[2] > 3
        assert door.counts.by_status == {200: from_server[2]}
        # its answers are these
        again = await in_thread(lambda: asyncio.run(run(f"{tmp_path}/mine.py:Model", "served")))
        assert again == (*here[:2], 0) and door.counts.by_status == {200: from_server[2]}

    serve(tmp_path, act)


def test_a_draw_a_size_and_every_kind_go_through(tmp_path: Path):
    async def act(address: str, door: ServingApp) -> None:
        blobs = Blobs(tmp_path / "client")
        endpoint = await in_thread(resolve_endpoint, f"served/mine@{address}", blobs)
        asked = (Message("user", (Text("hello"),)),)
        told = [
            await endpoint.send(asked, Request(kind, draw=draw))
            for kind in ("text", "image", "interleaved")
            for draw in (0, 3)
        ]
        assert [one.outcome for one in told] == ["answered"] * 6
        assert told[2].parts != told[3].parts and [type(part).__name__ for part in told[4].parts] == [
            "Text",
            "Image",
            "Text",
        ]
        assert endpoint.takes == Takes(own_images="user") and endpoint.concurrency == 1
        with pytest.raises(Exception, match="it was told to"):
            await endpoint.send((Message("user", (Text("raise"),)),), Request("text"))
        await endpoint.close()

    serve(tmp_path, act)


def test_an_address_that_is_no_server_of_ours_is_said_at_once(tmp_path: Path):
    async def act(address: str, door: ServingApp) -> None:
        blobs = Blobs(tmp_path / "client")
        with pytest.raises(UserError, match="serves mine, not other"):
            await in_thread(resolve_endpoint, f"served/other@{address}", blobs)
        with pytest.raises(UserError, match="unknown option 'temperature'"):
            await in_thread(resolve_endpoint, f"served/mine@{address}", blobs, {"temperature": "1"})

    serve(tmp_path, act)
    with pytest.raises(UserError, match=r"no server answers at http://127.0.0.1:9/v1 .*start it with `weft serve`"):
        resolve_endpoint("served/mine@http://127.0.0.1:9", Blobs(tmp_path / "client"))


def test_a_token_is_wanted_and_found_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def act(address: str, door: ServingApp) -> None:
        blobs = Blobs(tmp_path / "client")
        with pytest.raises(UserError, match="needs a token"):
            await in_thread(resolve_endpoint, f"served/mine@{address}", blobs)
        monkeypatch.setenv("WEFT_API_KEY", "secret-token-of-the-server")
        endpoint = await in_thread(resolve_endpoint, f"served/mine@{address}", blobs)
        assert (await endpoint.send((Message("user", (Text("hello"),)),), Request("text"))).outcome == "answered"
        await endpoint.close()

    serve(tmp_path, act, token="secret-token-of-the-server")


def test_several_addresses_are_used_evenly_and_a_dead_one_is_left_out(tmp_path: Path):
    (tmp_path / "mine.py").write_text(MINE)

    async def go() -> None:
        doors, runners, addresses = [], [], []
        for _ in range(2):
            pool = LocalPool(ReplicaSpec(f"{tmp_path}/mine.py:Batched", {}, "mine", str(tmp_path / "home")))
            await pool.load()
            doors.append(ServingApp(pool, "mine"))
            runner, address = await doors[-1].start(0)
            runners.append(runner)
            addresses.append(address)
        blobs = Blobs(tmp_path / "client")
        endpoint = await in_thread(
            resolve_endpoint, f"served/mine@{addresses[0]},{addresses[1]},http://127.0.0.1:9", blobs
        )
        assert endpoint.concurrency == 16 and endpoint.missing_setup == "nobody answers at http://127.0.0.1:9"
        asked = [(Message("user", (Text(f"number {number}"),)),) for number in range(40)]
        await asyncio.gather(*(endpoint.send(one, Request("text")) for one in asked))
        assert [door.counts.by_status[200] for door in doors] == [20, 20] and endpoint.status_line == ""
        await runners[0].cleanup()
        told = await asyncio.gather(*(endpoint.send(one, Request("text")) for one in asked), return_exceptions=True)
        failed = [one for one in told if isinstance(one, CallError)]
        assert failed and all(one.retry.kind == "transient" and not one.unreachable for one in failed)
        assert endpoint.status_line == "1 of 2 addresses answer"
        again = await asyncio.gather(*(endpoint.send(one, Request("text")) for one in asked))
        assert all(one.outcome == "answered" for one in again)
        await runners[1].cleanup()
        for _ in range(3):  # a connection that was open breaks first
            with pytest.raises(CallError) as caught:
                await endpoint.send(asked[0], Request("text"))
        assert caught.value.unreachable
        await endpoint.close()

    asyncio.run(go())


def test_addresses_of_different_models_are_not_one(tmp_path: Path):
    (tmp_path / "mine.py").write_text(MINE)

    async def go() -> None:
        found = []
        for model in ("Model", "Batched"):
            pool = LocalPool(ReplicaSpec(f"{tmp_path}/mine.py:{model}", {}, "mine", str(tmp_path / "home")))
            await pool.load()
            found.append(await ServingApp(pool, "mine").start(0))
        with pytest.raises(UserError, match="do not serve the same model"):
            await in_thread(resolve_endpoint, f"served/mine@{found[0][1]},{found[1][1]}", Blobs(tmp_path / "client"))
        for runner, _ in found:
            await runner.cleanup()

    asyncio.run(go())


def test_a_key_follows_no_redirect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from aiohttp import web

    seen: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        return web.json_response({"data": []})

    async def moved(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": request.app["there"]})

    async def go() -> None:
        app, runners = web.Application(), []
        app.router.add_get("/stolen", elsewhere)
        runners.append(web.AppRunner(app))
        await runners[0].setup()
        await web.TCPSite(runners[0], "127.0.0.1", 0).start()
        there = f"http://localhost:{runners[0].addresses[0][1]}/stolen"
        front = web.Application()
        front["there"] = there
        front.router.add_get("/v1/models", moved)
        runners.append(web.AppRunner(front))
        await runners[1].setup()
        await web.TCPSite(runners[1], "127.0.0.1", 0).start()
        monkeypatch.setenv("WEFT_API_KEY", "secret-token-of-the-server")
        with pytest.raises(UserError, match="answered 302"):
            await in_thread(
                resolve_endpoint,
                f"served/mine@http://127.0.0.1:{runners[1].addresses[0][1]}",
                Blobs(tmp_path / "client"),
            )
        for runner in runners:
            await runner.cleanup()

    asyncio.run(go())
    assert seen == []


@pytest.mark.parametrize("word", ["modalities", "json_schema", "stream", "max_completion_tokens"])
def test_a_word_in_a_models_error_changes_nothing(tmp_path: Path, word: str):
    async def act(address: str, door: ServingApp) -> None:
        endpoint = await in_thread(resolve_endpoint, f"served/mine@{address}", Blobs(tmp_path / "client"))
        with pytest.raises(CallError, match="it was told to"):
            await asyncio.wait_for(endpoint.send((Message("user", (Text(f"raise {word}"),)),), Request("text")), HANGS)
        assert door.counts.by_status == {422: 1}
        await endpoint.close()

    serve(tmp_path, act)


def test_every_part_goes_through_as_it_is(tmp_path: Path):
    """Neither joined nor parted: a model behind a server is shown what it is shown without one."""
    (tmp_path / "mine.py").write_text(MINE)

    async def act(address: str, door: ServingApp) -> None:
        near = resolve_endpoint(f"{tmp_path}/mine.py:Model", Blobs(tmp_path / "near"))
        with own_server(f"{address}/v1"):
            far = await in_thread(resolve_endpoint, f"served/mine@{address}", Blobs(tmp_path / "far"))
        assert near.identity == far.identity
        dialogue = (
            Message("user", (Text("now"), Text("say"))),
            Message("assistant", (Text("ok"), Text("data:image/png;base64,AAAA"))),
            Message("user", (Text(" "), Text("what?"))),
        )
        for kind in ("text", "image", "interleaved"):
            one, other = await near.send(dialogue, Request(kind)), await far.send(dialogue, Request(kind))
            assert (one.parts, one.outcome, one.reason) == (other.parts, other.outcome, other.reason)
        await far.close()

    serve(tmp_path, act)


def test_who_sends_slowly_or_too_much_takes_nobodys_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    heads: list[Any] = []
    real = ServingApp._reject

    def noted(self: ServingApp, request: Any) -> Any:
        heads.append(request)
        return real(self, request)

    async def act(address: str, door: ServingApp) -> None:
        host, port = address.removeprefix("http://").split(":")
        lines = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        slow = [await asyncio.open_connection(host, int(port)) for _ in range(80)]
        for _, writer in slow:
            writer.write(lines.encode())
            await writer.drain()
        await until_in_loop("the heads of all at the server", lambda: len(heads) == len(slow))
        monkeypatch.setattr("weft.serving.app.UPLOAD_TIMEOUT_S", HANGS)  # for those who come now
        assert (await post(address, {"messages": [user("hi")]}))[0] == 200
        for reader, writer in slow:
            assert b"408" in await asyncio.wait_for(reader.readline(), HANGS)
            writer.close()
        assert (await post(address, {"messages": [user("hi")]}, **{"Content-Encoding": "gzip"}))[0] == 415
        many = {"messages": [{}] * 20_000}
        assert (await post(address, many))[0] == 400

    monkeypatch.setattr(ServingApp, "_reject", noted)
    monkeypatch.setattr("weft.serving.app.UPLOAD_TIMEOUT_S", 1.0)
    serve(tmp_path, act)


def test_who_goes_away_is_not_worked_for(tmp_path: Path):
    began, may = tmp_path / "began", tmp_path / "may"
    slow = MINE.replace("self.sizes.append(len(requests))", f"held({str(began)!r}, {str(may)!r})") + HELD

    async def act(address: str, door: ServingApp) -> None:
        asked = [asyncio.ensure_future(post(address, {"messages": [user(f"number {one}")]})) for one in range(24)]
        await until_in_loop(
            "a batch at work, and all others waiting", lambda: began.exists() and door.counts.in_flight == 24
        )
        for one in asked[1:]:
            one.cancel()
        await until_in_loop("a server that knows who is gone", lambda: door.counts.in_flight == 1)
        may.touch()
        await asyncio.gather(*asked, return_exceptions=True)
        assert (await post(address, {"messages": [user("hi")]}))[0] == 200
        (facts,) = door.counts.replica_counters.values()
        # the batch that was under way, who stayed, who came
        assert facts["batch_calls"] <= 4 + 2, "it worked for those who were gone"

    global MINE_NOW
    MINE_NOW = slow
    try:
        serve(tmp_path, act, "Batched")
    finally:
        MINE_NOW = MINE
