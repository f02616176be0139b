"""A provider on a real loopback socket, for tests: an OpenAI-compatible server whose model and judge are decided by
what they are sent, so that a run has one right result whatever the order of calls. Faults are injected by a seeded
generator over the request's digest and the number of times it was seen. Every request is kept, with pictures replaced
by their digests.

Run as a program it serves until it is killed: `python -m server --port 0 --latency 0.1`, printing its address."""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import io
import json
import re
import struct
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from PIL import Image

DATA_URL = re.compile(r"data:image/[a-z]+;base64,")


def drawn(seed: str, size: int = 24) -> bytes:
    """A small PNG that only its seed decides."""
    digest = hashlib.sha256(seed.encode()).digest()
    picture = Image.new("RGB", (size, size), tuple(digest[:3]))
    picture.paste(tuple(digest[3:6]), (2, 2, 2 + digest[6] % (size - 4), 2 + digest[7] % (size - 4)))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def drawn_as(form: str, seed: str, size: int = 24) -> bytes:
    """The picture of a seed as a BMP or TIFF, as an animation (GIF), or as a PNG without its end."""
    data = drawn(seed, size)
    if form == "cut":
        return data[:-12]
    picture = Image.open(io.BytesIO(data))
    out = io.BytesIO()
    more = {"save_all": True, "append_images": [Image.new("RGB", picture.size)]} if form == "GIF" else {}
    picture.save(out, form, **more)
    return out.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def data_url(data: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


@dataclass
class Seen:
    """One request as it came: its JSON, with each data URL replaced by `sha256:...`; `pictures` in order."""

    body: dict[str, Any]
    pictures: list[str]
    digest: str
    key: str

    @property
    def texts(self) -> list[str]:
        made: list[str] = []
        for message in self.body["messages"]:
            content = message["content"]
            made += (
                [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
            )
        return made

    @property
    def is_judge(self) -> bool:
        return self.body["model"] == "judge"

    @property
    def shape(self) -> list[tuple[str, list[str]]]:
        """Messages as (role, [text or sha256:...])."""
        made: list[tuple[str, list[str]]] = []
        for message in self.body["messages"]:
            content = message["content"]
            parts = (
                [content]
                if isinstance(content, str)
                else [p["text"] if p["type"] == "text" else p["image_url"]["url"] for p in content]
            )
            made.append((message["role"], parts))
        return made


Answer = Callable[[Seen], Any]


def model_answer(seen: Seen) -> dict[str, Any]:
    """A picture where `modalities` ask for one, a sentence otherwise; both follow from the request alone."""
    if "image" in (seen.body.get("modalities") or ()):
        url = data_url(drawn(seen.digest))
        return {"role": "assistant", "content": "", "images": [{"type": "image_url", "image_url": {"url": url}}]}
    return {"role": "assistant", "content": f"answer {seen.digest[:6]}"}


def judge_score(seen: Seen) -> int:
    scores = (
        (0, 5, 10)
        if "[[" not in "".join(seen.texts) and "Only three scores exist" in "".join(seen.texts)
        else tuple(range(11))
    )
    return scores[int(seen.digest[:4], 16) % len(scores)]


def judge_answer(seen: Seen) -> dict[str, Any]:
    return {"role": "assistant", "content": json.dumps({"reasoning": "as it must be", "score": judge_score(seen)})}


def answer(seen: Seen) -> dict[str, Any]:
    return judge_answer(seen) if seen.is_judge else model_answer(seen)


@dataclass
class Provider:
    """`answer` makes a message from a request; `fault` may take a request over (a response, or None to let it pass)."""

    answer: Answer = answer
    fault: Callable[[Seen, int, web.Request], Awaitable[web.StreamResponse | None]] | None = None
    latency: float = 0.0
    allowed: int | None = None  # so many more are answered, the others wait
    keep: bool = True
    light: bool = False
    files: dict[str, bytes | str] = field(default_factory=dict)  # a text is where it redirects to
    seen: list[Seen] = field(default_factory=list)
    times: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    most_in_flight: int = 0
    count: int = 0
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> Provider:
        app = web.Application(client_max_size=512 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._handle)
        app.router.add_get("/count", self._count)
        app.router.add_get("/allow/{calls}", self._allow)
        app.router.add_get("/{name}", self._file)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"  # type: ignore[union-attr]
        return self

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _file(self, request: web.Request) -> web.Response:
        if request.path not in self.files:
            raise web.HTTPNotFound
        found = self.files[request.path]
        return (
            web.Response(body=found)
            if isinstance(found, bytes)
            else web.Response(status=302, headers={"Location": found})
        )

    async def _count(self, request: web.Request) -> web.Response:
        assert self._runner is not None and self._runner.server is not None
        others = len(self._runner.server.connections) - 1
        return web.json_response(
            {"count": self.count, "times": self.times, "in_flight": self.in_flight, "connections": others}
        )

    async def _allow(self, request: web.Request) -> web.Response:
        self.allowed = int(request.match_info["calls"])
        return web.json_response(self.allowed)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        self.count += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            seen = read_light(data) if self.light else read(data)
            self.times[seen.key] += 1
            if self.keep:
                self.seen.append(seen)
            if self.latency:
                await asyncio.sleep(self.latency)
            while self.allowed == 0 and request.transport is not None:  # noqa: ASYNC110 (who is gone waits for nothing)
                await asyncio.sleep(0.005)
            if self.allowed and request.transport is not None:
                self.allowed -= 1
            if self.fault:
                response = await self.fault(seen, self.times[seen.key], request)
                if response is not None:
                    return response
            return self.completion(seen, self.answer(seen))
        finally:
            self.in_flight -= 1

    @staticmethod
    def completion(seen: Seen, message: dict[str, Any], finish: str = "stop") -> web.Response:
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        message = dict(message)
        likely = {"logprobs": message.pop("logprobs")} if "logprobs" in message else {}
        body = {
            "id": "x", "model": seen.body["model"], "created": int(time.time()), "usage": usage,
            "choices": [{"index": 0, "finish_reason": finish, "message": message, **likely}],
        }  # fmt: skip
        return web.json_response(body)


def read(data: bytes) -> Seen:
    body = json.loads(data)
    pictures: list[str] = []

    def replace(value: Any) -> Any:
        if isinstance(value, str) and (match := DATA_URL.match(value)):
            pictures.append("sha256:" + hashlib.sha256(base64.b64decode(value[match.end() :])).hexdigest())
            return pictures[-1]
        if isinstance(value, dict):
            return {key: replace(one) for key, one in value.items()}
        return [replace(one) for one in value] if isinstance(value, list) else value

    body = replace(body)
    text = json.dumps(body["messages"], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Seen(body, pictures, digest, body["model"] + ":" + digest)


def read_light(data: bytes) -> Seen:
    """The request without looking at its pictures: its messages, and how long the pictures are, decide the answer."""
    short = re.sub(rb"base64,[A-Za-z0-9+/=]+", b"base64,", data)
    body = json.loads(short)
    text = json.dumps(body["messages"], sort_keys=True) + str(
        sum(map(len, re.findall(rb"base64,[A-Za-z0-9+/=]+", data)))
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Seen(body, [], digest, body["model"] + ":" + digest)


async def _serve(port: int, latency: float, light: bool) -> None:
    provider = await Provider(latency=latency, keep=False, light=light).start(port)
    print(provider.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument(
        "--light", action="store_true", help="do not hash pictures, so that clients are measured and not the server"
    )
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.port, arguments.latency, arguments.light))
