"""A server's word about its model: what it claims is kept apart from all that weft knows, and holds no keys."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from weft import api
from weft.errors import UserError
from weft.models.endpoint import Endpoint, EndpointReply
from weft.models.registry import resolve_endpoint
from weft.report.export import export_run
from weft.secrets import hide
from weft.serving.chat import format_completion
from weft.store.blobs import Blobs
from weft.types import Gives, Takes, Text

KEY = "sk-canary-5b1d0c7e9f2a4836"


def card(**changes: Any) -> dict[str, Any]:
    base = {
        "name": "mine",
        "identity": {"provider": "python", "model": "mine", "version": "1"},
        "takes": msgspec.to_builtins(Takes()),
        "gives": msgspec.to_builtins(Gives()),
        "concurrency": 4,
        "seed": 0,
        "replicas": 1,
    }
    return {**base, **changes}


class Liar:
    """A server of one model that says of it whatever `card` says, and answers every question alike."""

    def __init__(self, card: Any, text: str = '{"score": 10}') -> None:
        self.card = card
        self.text = text
        self.asked = 0
        self.address = ""

    async def models(self, request: web.Request) -> web.Response:
        body = self.card if isinstance(self.card, bytes) else json.dumps(self._list()).encode()
        return web.Response(body=body, content_type="application/json")

    def _list(self) -> Any:
        return {"data": [{"id": "m", "weft": self.card}]}

    async def chat(self, request: web.Request) -> web.Response:
        await request.read()
        self.asked += 1
        reply = EndpointReply((Text(self.text),), "answered")
        return web.Response(body=format_completion(reply, "m", Blobs(Path("nowhere"))), content_type="application/json")

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.chat)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        started.set()
        await stop.wait()
        await runner.cleanup()


@contextmanager
def lying(card: Any, **more: Any) -> Iterator[Liar]:
    server, started, stop = Liar(card, **more), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve(started, stop)))
    thread.start()
    started.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def endpoint_of(server: Liar, home: Path, **options: Any) -> Endpoint:
    return resolve_endpoint(f"served/m@{server.address}", Blobs(home), options)


def test_a_claimed_identity_opens_nobodys_answers(tmp_path: Path, toy: Path):
    """A judge of ours has given its verdicts. A server says that it gave them."""
    judge = tmp_path / "ours.py"
    judge.write_text(
        'import json\n\ndef ours(messages, want):\n    return json.dumps({"score": 10})\n\nours.version = "1"\n'
    )
    home = tmp_path / "home"
    api.evaluate("weave", data=toy, model="copy", judge=f"{judge}:ours", home=home)
    ours = resolve_endpoint(f"{judge}:ours", Blobs(home))
    with lying(card(name=ours.name, identity=ours.identity)) as server:
        theirs = endpoint_of(server, home)
        assert theirs.identity != ours.identity and theirs.name == "served/m"
        run = api.evaluate("weave", data=toy, model="copy", judge=f"served/m@{server.address}", home=home)
        assert server.asked > 0
        assert run.record.manifest.judge.name == "served/m"


@pytest.mark.parametrize("provider", ["python", "openai", "served", "hf", "composition"])
def test_no_claim_is_an_identity_of_weft_s_own(tmp_path: Path, provider: str):
    claim = {"provider": provider, "model": "m", "url": "https://api.openai.com/v1", "parameters": {"max_tokens": 1}}
    with lying(card(identity=claim)) as server:
        identity = endpoint_of(server, tmp_path).identity
        assert identity["provider"] == "served" and identity["url"] == server.address and identity["model"] == "m"
        assert "parameters" not in identity and identity["claim"] == claim
        named = endpoint_of(server, tmp_path, version="2").identity
        assert "url" not in named and named["version"] == "2" and named["provider"] == "served"
        inside = card(identity={**claim, "claim": claim, "version": "2"})
        server.card = inside
        assert endpoint_of(server, tmp_path).identity["claim"] == inside["identity"]


def test_two_servers_with_one_claim_are_two_models_unless_the_user_vouches(tmp_path: Path):
    with lying(card()) as one, lying(card()) as other:
        assert endpoint_of(one, tmp_path).identity != endpoint_of(other, tmp_path).identity
        assert endpoint_of(one, tmp_path, version="2").identity == endpoint_of(other, tmp_path, version="2").identity
        blobs = Blobs(tmp_path)
        both = resolve_endpoint(f"served/m@{one.address},{other.address}", blobs)
        assert both.identity == endpoint_of(one, tmp_path).identity
        down = resolve_endpoint(f"served/m@http://127.0.0.1:9,{other.address}", blobs)
        assert down.identity["url"] == "http://127.0.0.1:9/v1"  # the first counts, whether it answers or not


def test_a_seed_that_requests_carry_is_known(tmp_path: Path):
    seeded = card(identity={"provider": "hf", "model": "m", "parameters": {"seed": 7, "steps": 3}}, seed=7)
    with lying(seeded) as server:
        identity = endpoint_of(server, tmp_path).identity
        assert identity["seed"] == 7 and identity["claim"]["parameters"] == {"steps": 3}


def test_what_a_card_says_is_kept_without_keys(tmp_path: Path, toy: Path):
    hide(KEY)
    spoken = {"provider": "python", "model": KEY, KEY: [{"x": f"see {KEY}"}], "options": {"note": f"a {KEY} b"}}
    home = tmp_path / "home"
    with lying(card(name=f"m {KEY}", identity=spoken), text=f"said {KEY}") as server:
        run = api.evaluate("weave", data=toy, model=f"served/m@{server.address}", judge="constant/7", home=home)
        export_run(run, home, tmp_path / "out")
        assert KEY not in run.name
        server.card = card(name=KEY, gives={"text": KEY})
        with pytest.raises(UserError) as caught:
            endpoint_of(server, home)
        assert KEY not in str(caught.value)
        with pytest.raises(UserError, match="not other") as caught:
            server.card = json.dumps({"data": [{"id": f"{KEY}\x1b[31m" + "x" * 10_000}]}).encode()
            resolve_endpoint(f"served/other@{server.address}", Blobs(home))
        assert KEY not in str(caught.value) and "\x1b" not in str(caught.value) and len(str(caught.value)) < 500
    for path in [*home.rglob("*"), *(tmp_path / "out").rglob("*")]:
        assert KEY not in path.name
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    "odd",
    [
        {"concurrency": 0},
        {"concurrency": 10**30},
        {"concurrency": "4"},
        {"seed": 10**30},
        {"replicas": -1},
        {"identity": []},
        {"identity": {"a": "x" * 100_000}},
        {"takes": {"max_side": 0}},
        {"takes": {"max_side": -5}},
        {"gives": {"sizes": "huge"}},
        {"name": None},
    ],
)
def test_a_card_with_impossible_values_is_refused_in_one_line(tmp_path: Path, odd: dict[str, Any]):
    with lying(card(**odd)) as server, pytest.raises(UserError, match="a model card that weft cannot use") as caught:
        endpoint_of(server, tmp_path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize("body", [b"[" * 100_000, b"{", b"5", b'{"data": 5}', b"\xff\xfe", b'{"data": [{"id": "m"}]}'])
def test_a_list_of_models_that_is_none_is_refused_in_one_line(tmp_path: Path, body: bytes):
    with lying(body) as server, pytest.raises(UserError) as caught:
        endpoint_of(server, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_card_that_comes_drop_by_drop_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weft.models.providers.served_card.FETCH_TIMEOUT_S", 0.2)
    dropping = threading.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        with pytest.raises(OSError):
            while not dropping.is_set():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
            raise OSError

    async def go() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = f"served/m@http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            with pytest.raises(UserError, match="no whole answer"):
                await asyncio.get_running_loop().run_in_executor(None, resolve_endpoint, address, Blobs(tmp_path))
        finally:
            dropping.set()
            server.close()

    asyncio.run(go())
