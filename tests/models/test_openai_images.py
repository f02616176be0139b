"""OpenAI's image API, as OpenAI, vLLM-Omni and SGLang serve it: generations and edits, JSON and files, what is sent and
what comes of it; two turns with the model's own picture; requests against the official document."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import openapi
import weft
from server import drawn
from weft.errors import UserError
from weft.models.endpoint import CallError, EndpointReply
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Image, Message, Request, Text

ONE, TWO = drawn("one", 40), drawn("two", 60)
WANT = Request("image")


class Images:
    """A server of that API: every request as it came, pictures by their digests."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self.seen: list[dict[str, Any]] = []
        self.answer = answer or (lambda seen: {"created": 1, "data": [{"b64_json": base64.b64encode(ONE).decode()}]})
        self.url = ""

    @asynccontextmanager
    async def up(self) -> AsyncIterator["Images"]:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/images/{what}", self._handle)
        app.router.add_get("/pic.png", self._picture)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"  # type: ignore[union-attr]
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _picture(self, request: web.Request) -> web.Response:
        return web.Response(body=TWO)

    async def _handle(self, request: web.Request) -> web.Response:
        seen: dict[str, Any] = {
            "what": request.match_info["what"],
            "key": request.headers.get("Authorization", ""),
            "pictures": [],
        }
        if request.content_type == "application/json":
            seen["body"] = await request.json()
            for one in seen["body"].get("images", ()):
                seen["pictures"].append(_digest(base64.b64decode(one["image_url"].partition(",")[2])))
        else:
            form = await request.post()
            seen["fields"] = [
                (name, value if isinstance(value, str) else (value.filename, value.content_type))
                for name, value in form.items()
            ]
            seen["pictures"] = [_digest(value.file.read()) for value in form.values() if not isinstance(value, str)]
        self.seen.append(seen)
        made = self.answer(seen)
        return made if isinstance(made, web.Response) else web.json_response(made)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> Iterator[Blobs]:
    yield Blobs(tmp_path / "blobs")


def send(server: Images, blobs: Blobs, *messages: Message, want: Request = WANT, **options: Any) -> EndpointReply:
    async def sent() -> EndpointReply:
        async with server.up():
            endpoint = resolve_endpoint(f"openai-images/m@{server.url}", blobs, options)
            try:
                return await endpoint.send(tuple(messages), want)
            finally:
                await endpoint.close()

    return asyncio.run(sent())


def said(*parts: Any) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def test_words_alone_are_a_generation(blobs: Blobs):
    server = Images()
    sent = send(
        server,
        blobs,
        said("a cat"),
        quality="high",
        seed=3,
        extra='{"num_inference_steps": 9}',
        want=Request("image", draw=2, size=(640, 480)),
    )
    assert sent.outcome == "answered" and blobs.read(sent.parts[0]) == ONE  # type: ignore[arg-type]
    assert server.seen[0]["what"] == "generations"
    assert server.seen[0]["body"] == {
        "model": "m", "prompt": "a cat", "n": 1, "num_inference_steps": 9, "seed": 5, "quality": "high", "size": "640x480",
        "response_format": "b64_json",
    }  # fmt: skip
    assert "b64_json" not in sent.raw


@pytest.mark.parametrize("edits", ["json", "multipart"])
def test_pictures_go_before_one_text_in_their_order(blobs: Blobs, edits: str):
    server = Images()
    first, second = blobs.put(ONE), blobs.put(TWO)
    send(server, blobs, said(first, second, "put the hat of image 2 on image 1"), edits=edits)
    seen = server.seen[0]
    assert seen["what"] == "edits" and seen["pictures"] == [_digest(ONE), _digest(TWO)]
    if edits == "json":
        assert seen["body"]["prompt"].startswith("put the hat") and seen["body"]["images"][0]["image_url"].startswith(
            "data:image/png;base64,"
        )
    else:
        assert seen["fields"] == [
            ("model", "m"), ("prompt", "put the hat of image 2 on image "
                                       "1"), ("n", "1"), ("response_format", "b64_json"),
            ("image[]", ("1.png", "image/png")), ("image[]", ("2.png", "image/png")),
        ]  # fmt: skip
        send(server, blobs, said(first, "alone"), edits=edits)
        assert server.seen[1]["fields"][-1] == ("image", ("1.png", "image/png"))


def test_what_comes_of_replies(blobs: Blobs):
    cases: list[tuple[Any, str, str]] = [
        ({"data": []}, "empty", "it sent no image"),
        ({"data": [{}]}, "empty", ""),
        ({"data": [{"b64_json": "!!"}]}, "empty", "its image is not base64"),
        ({"data": [{"b64_json": base64.b64encode(b"no picture").decode()}]}, "empty", "its image"),
        (
            {"data": [{"error": {"code": "OutputImageSensitiveContentDetected", "message": "not shown"}}]},
            "refused",
            "not shown",
        ),
        ({"data": [{"b64_json": "data:image/png;base64," + base64.b64encode(TWO).decode()}]}, "answered", ""),
    ]
    for answer, outcome, why in cases:
        sent = send(Images(lambda seen, answer=answer: answer), blobs, said("x"))
        assert sent.outcome == outcome and why in sent.reason, (answer, sent)
    refusal = web.json_response({"error": {"message": "no", "code": "moderation_blocked"}}, status=400)
    assert send(Images(lambda seen: refusal), blobs, said("x")).outcome == "refused"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"error": {"message": "slow down"}}, "rate_limit"),
        (429, {"error": {"message": "pay", "code": "insufficient_quota"}}, "fatal"),
        (500, {"error": {"message": "oops"}}, "transient"),
        (401, {"error": {"message": "key"}}, "denied"),
        (400, {"error": {"message": "bad size"}}, "no"),
        (200, {"error": {"message": "overloaded"}}, "transient"),
        (200, {"nothing": 1}, "transient"),
    ],
)
def test_errors_are_decided_on(blobs: Blobs, status: int, body: Any, kind: str):
    with pytest.raises(CallError) as raised:
        send(Images(lambda seen: web.json_response(body, status=status)), blobs, said("x"))
    assert raised.value.retry.kind == kind


def test_links_of_the_same_host_are_followed_and_others_are_not(blobs: Blobs):
    server = Images()
    server.answer = lambda seen: {"data": [{"url": server.url.replace("/v1", "/pic.png")}]}
    sent = send(server, blobs, said("x"))
    assert blobs.read(sent.parts[0]) == TWO  # type: ignore[arg-type]
    server.answer = lambda seen: {"data": [{"url": "http://other.example/x.png"}]}
    with pytest.raises(CallError, match="another host"):
        send(server, blobs, said("x"))
    server.answer = lambda seen: {"data": [{"url": "file:///etc/passwd"}]}
    assert send(server, blobs, said("x")).outcome == "empty"


def test_it_has_no_words_and_takes_no_more_than_it_takes(blobs: Blobs):
    server = Images()
    assert send(server, blobs, said("what is it?"), want=Request("text")).outcome == "empty" and not server.seen
    with pytest.raises(CallError, match="takes at most 1 images, and there are 2"):
        send(server, blobs, said(blobs.put(ONE), blobs.put(TWO), "x"), most_images=1)
    for text, why in (
        ("openai-images/@http://h/v1", "name the model"),
        ("openai-images/m@http://h/v1?k=1", "keys do not belong"),
    ):
        with pytest.raises(UserError, match=why):
            resolve_endpoint(text, blobs)


def test_two_turns_with_its_own_picture_byte_for_byte(tmp_path: Path):
    """What it made in the first turn goes back to it in the second; weft's weave history shows it."""
    from toy import toy_records

    data = tmp_path / "data"
    (data / "imgs").mkdir(parents=True)
    records = [record for record in toy_records() if record["idx"] == 12]
    (data / "test.json").write_text(json.dumps(records))
    for name in records[0]["images"]:
        (data / name).write_bytes(drawn(name))

    async def held() -> tuple[Images, weft.Run]:
        server = Images()
        async with server.up():
            model = f"openai-images/m@{server.url}"
            run = await weft.evaluate_async(
                "weave", data=data, model=model, judge="constant/max", home=tmp_path / "home", history="dialogue"
            )
        return server, run

    server, run = asyncio.run(held())
    made = run.turns[0].reply.last_image
    assert isinstance(made, Image) and [seen["what"] for seen in server.seen] == ["generations", "edits"]
    assert made.digest in server.seen[1]["pictures"] and made.digest == _digest(ONE)


def test_requests_fit_the_official_openapi_document(blobs: Blobs):
    generations, edits = openapi.validator("CreateImageRequest"), openapi.validator("EditImageBodyJsonParam")
    server = Images()
    send(
        server,
        blobs,
        said("a cat"),
        want=Request("image", size=(1024, 1536)),
        quality="low",
        background="opaque",
        output_format="png",
    )
    send(
        server,
        blobs,
        said(blobs.put(ONE), "a hat"),
        want=Request("image", size=(1536, 1024)),
        input_fidelity="high",
        edits="json",
    )
    generations.validate(server.seen[0]["body"])
    edits.validate(server.seen[1]["body"])
