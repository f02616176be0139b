"""One server for both sides: /SIDE/LABEL/v1/chat/completions, and /SIDE/LABEL/infer as IMUG-Bench's servers have it.
Every request is kept in a form in which the two sides can be compared: pictures are digests of their pixels."""

import asyncio
import base64
import binascii
import hashlib
import io
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from PIL import Image, ImageOps

from server import data_url, drawn

BROKEN = "pixels:none"  # begins what stands for a picture that nothing can open
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@dataclass(frozen=True)
class Asked:
    """A request: its messages as (role, (text or `pixels:...`, ...)) with neighbouring texts as one, and what else its
    body says."""

    side: str
    label: str
    messages: tuple[tuple[str, tuple[str, ...]], ...]
    rest: str
    kind: str

    @property
    def seed(self) -> str:
        return hashlib.sha256(json.dumps([self.messages, self.kind]).encode()).hexdigest()

    @property
    def texts(self) -> str:
        return "".join(part for _, parts in self.messages for part in parts if not part.startswith("pixels:"))

    @property
    def pictures(self) -> list[str]:
        return [part for _, parts in self.messages for part in parts if part.startswith("pixels:")]


def as_jpeg(picture: Image.Image) -> Image.Image:
    """What the released client makes of a picture before it is sent."""
    out = io.BytesIO()
    ImageOps.exif_transpose(picture).convert("RGB").save(out, "JPEG")
    return Image.open(io.BytesIO(out.getvalue()))


def pixels_of(picture: Image.Image) -> str:
    rgb = picture.convert("RGB")
    return f"pixels:{rgb.width}x{rgb.height}:{hashlib.sha256(rgb.tobytes()).hexdigest()[:16]}"


Answer = Callable[[Asked], str]  # a text; for a picture, its seed


@dataclass
class Server:
    """`answers` by label. A label that ends in `jpeg` has weft's pictures put through the step that the released client
    takes. `draw` makes the pictures of its model, and `digest` names those that it is sent."""

    answers: dict[str, Answer] = field(default_factory=dict)
    draw: Callable[[str], bytes] = drawn
    digest: Callable[[Image.Image], str] = pixels_of
    latency: float = 0.0
    refuses_broken: bool = False  # a picture that nothing can open is a bad request, as it is to real judges
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> "Server":
        self._loop, self._known = asyncio.new_event_loop(), {}
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)

    def of(self, side: str, label: str) -> list[Asked]:
        return [one for one in self.asked if (one.side, one.label) == (side, label)]

    async def _start(self) -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/light/v1/chat/completions", self._light)
        app.router.add_post("/{side}/{label}/v1/chat/completions", self._chat)
        app.router.add_post("/{side}/{label}/infer", self._infer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"

    async def _chat(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        kind = "image" if "image" in (body.get("modalities") or ()) else "text"
        asked = await self._kept(request, body.pop("messages"), body, kind)
        if self.refuses_broken and any(one.startswith(BROKEN) for one in asked.pictures):
            self.asked.remove(asked)
            return web.json_response({"error": {"message": "not an image", "code": "invalid_image"}}, status=400)
        said = self.answers[asked.label](asked)
        message: dict[str, Any] = {"role": "assistant", "content": said}
        if kind == "image":
            url = data_url(self.draw(said))
            message = {"role": "assistant", "content": "", "images": [{"type": "image_url", "image_url": {"url": url}}]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response(
            {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
        )

    async def _infer(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        kind = "image" if body["output_mode"] == "image_only" else "text"
        asked = await self._kept(request, body.pop("history"), body, kind)
        said = self.answers[asked.label](asked)
        return web.json_response(
            {"response": {"image": base64.b64encode(self.draw(said)).decode()} if kind == "image" else {"text": said}}
        )

    async def _light(self, request: web.Request) -> web.Response:
        """For clocks: nothing is looked at, and what is answered is always the same."""
        await request.read()
        await asyncio.sleep(self.latency)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": '{"score": 5, "reasoning": "as it is"}'},
            "finish_reason": "stop",
        }
        return web.json_response(
            {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
        )

    async def _kept(self, request: web.Request, messages: list[Any], body: dict[str, Any], kind: str) -> Asked:
        side, label = request.match_info["side"], request.match_info["label"]
        arrived = time.monotonic()
        jpeg = side == "weft" and label.endswith("jpeg")
        read = await asyncio.to_thread(lambda: tuple(self._message(message, jpeg) for message in messages))
        if self.latency:
            await asyncio.sleep(max(0.0, self.latency - (time.monotonic() - arrived)))
        asked = Asked(side, label, read, json.dumps(body, sort_keys=True), kind)
        self.asked.append(asked)
        return asked

    def _message(self, message: dict[str, Any], jpeg: bool) -> tuple[str, tuple[str, ...]]:
        content = message["content"]
        parts: list[str] = []
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part["type"] == "text" and parts and not parts[-1].startswith("pixels:"):
                parts[-1] += part["text"]
            elif part["type"] == "text":
                parts.append(part["text"])
            else:
                url = part["image_url"]["url"] if part["type"] == "image_url" else part["image"]
                parts.append(self._pixels(url.partition(",")[2] if url.startswith("data:") else url, jpeg))
        return message["role"], tuple(parts)

    def _pixels(self, data: str, jpeg: bool) -> str:
        key = (hashlib.sha256(data.encode()).digest(), jpeg)
        if key not in self._known:
            try:
                picture = Image.open(io.BytesIO(base64.b64decode(data)))
                self._known[key] = self.digest(as_jpeg(picture) if jpeg else picture)
            except (binascii.Error, OSError) as error:
                self._known[key] = f"{BROKEN} ({error})"
        return self._known[key]
