"""Loopback servers that behave as the papers' models do: slow now and then, refusing some requests, drawing the input
back, breaking down for a moment. What they do depends on what they are sent, so every order of calls has one result."""

import asyncio
import base64
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from PIL import Image as Pil

SLOW_S = 0.02
REASONING = (
    "The change that was asked for is there, in the place and in the colour that the request names. All else, the light, "
    "the table and the background, is as it was before; there are no defects, no collage and no stray text in the result."
)


class PapersModels:
    """One address for all roles; the model's name says which one is meant. `asked` counts requests by model."""

    def __init__(self, *, writes_badly: float = 0.0, returns_input: float = 0.0, refuses: float = 0.0) -> None:
        self.url = ""
        self.asked: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()  # by content
        self._rates = {"badly": writes_badly, "input": returns_input, "refuse": refuses}

    @asynccontextmanager
    async def up(self) -> AsyncGenerator["PapersModels"]:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"  # type: ignore[union-attr]
        try:
            yield self
        finally:
            await runner.cleanup()

    def forget(self) -> None:
        """Behave as if nothing had been asked yet."""
        self.asked.clear()
        self.seen.clear()

    def name(self, model: str) -> str:
        return f"openai-chat/{model}@{self.url}"

    def _happens(self, what: str, content: str) -> bool:
        digest = hashlib.sha256(f"{what} {content}".encode()).digest()
        return digest[0] / 256 < self._rates[what]

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        model = str(body["model"])
        text, images = read_message(body["messages"][0])
        content = json.dumps([model, text, [hashlib.sha256(image).hexdigest() for image in images]])
        self.asked[model] += 1
        self.seen[content] += 1
        if self.seen[content] == 1 and hashlib.sha256(content.encode()).digest()[1] < 12:
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        if model in ("painter", "editor"):
            await asyncio.sleep(SLOW_S)
        if model != "checker" and self._happens("refuse", content):
            return reply({"role": "assistant", "content": None, "refusal": "I cannot help with that."})
        if model == "writer":
            return reply({"role": "assistant", "content": self._write(text, content)})
        if model == "checker":
            return reply({"role": "assistant", "content": check(images)})
        returns = images and model == "editor" and self._happens("input", content)
        image = images[0] if returns else draw(content, images[0] if images else None)
        url = "data:image/png;base64," + base64.b64encode(image).decode()
        return reply({"role": "assistant", "content": "Here it is.", "images": [{"image_url": {"url": url}}]})

    def _write(self, text: str, content: str) -> str:
        if self._happens("badly", content):
            return "Sure! I would rather describe it in prose."
        if "reviewer checks in the round's result" in text:
            return f"```json\n{json.dumps(recall_script(text))}\n```"
        if "reviewer checks in the step's result" in text:
            return json.dumps(sequence_script(text))
        if "edit of it that" in text:
            words = "In Image #1, make the tall object on the left"
            requirement = "Compared with <image>, the object has its colour back."
            return json.dumps(
                {"instruction": f"{words} dark green.", "reverse": f"{words} red again.", "requirement": requirement}
            )
        if "Write one question" in text:
            return json.dumps({"question": "What stands in the middle of Image #1?", "answer": "a tall vase"})
        number = re.search(r"dialogue (\d+)", text)
        count = 3 if '"minItems":3' in text else 2
        captions = [f"A vase, number {number and number[1]}, {side}, on a table." for side in ("blue", "red", "old")]
        points = [{"image": index, "requirement": "The vase is that of <image>."} for index in (1, 2)]
        names = " and ".join(f"Image #{index}" for index in range(1, count + 1))
        fusion = f"Put the vases of {names} side by side."
        return json.dumps({"captions": captions[:count], "fusion": fusion, "points": points})


def recall_script(text: str) -> dict[str, Any]:
    number = re.search(r"dialogue (\d+)", text)
    point = {"image": 1, "requirement": "All else is as in <image>."}
    rounds = [
        {"kind": "remove", "instruction": "Take the cup away from Image #1.", "points": [point]},
        {"kind": "colour", "instruction": "Paint the table of Image #2 blue.", "points": [{**point, "image": 2}]},
        {"kind": "add", "instruction": "Put a plant on the floor of Image #3.", "points": [{**point, "image": 3}]},
        {
            "kind": "restore",
            "instruction": "In Image #4, bring back the cup that Image #1 has.",
            "points": [{**point, "image": 4}, {"image": 1, "requirement": "The cup is that of <image>."}],
        },
    ]
    return {
        "caption": f"A room with a cup, number {number and number[1]}.",
        "rounds": rounds,
        "removed_in": 1,
        "restored_in": 4,
    }


def sequence_script(text: str) -> dict[str, Any]:
    number = re.search(r"(?:dialogue|story) (\d+)", text)
    texts = (
        "The red fox of Image #1 crosses the bridge.",
        "The red fox leaves the place of Image #2.",
        "Snow falls on the empty place of Image #3.",
        "The red fox of Image #1 comes back to the place of Image #4.",
    )
    rounds = [
        {
            "kind": "action",
            "instruction": one,
            "points": [{"image": index, "requirement": "The place is that of <image>."}],
        }
        for index, one in enumerate(texts, start=1)
    ]
    caption = f"The red fox, number {number and number[1]}, at a bridge."
    return {"character": "The red fox", "caption": caption, "rounds": rounds}


def check(images: list[bytes]) -> str:
    """Full marks, unless the last image is one of those before."""
    scores = 0 if len(images) > 1 and images[-1] in images[:-1] else 9
    names = ("asked_score", "kept_score", "clean_score") if len(images) > 1 else ("asked_score", "clean_score")
    return json.dumps({"reasoning": REASONING, **dict.fromkeys(names, scores)})


def draw(content: str, base: bytes | None) -> bytes:
    """A new image, or the first one with something new on it."""
    digest = hashlib.sha256(content.encode()).digest()
    image = (
        Pil.open(io.BytesIO(base)).convert("RGB")
        if base
        else Pil.new("RGB", (96, 96), tuple(value // 3 for value in digest[:3]))
    )
    corner = (digest[3] % 48, digest[4] % 48)
    pixel: Any = image.getpixel(corner)
    bright = tuple((int(value) + 96) % 256 for value in pixel)
    image.paste(bright, (*corner, corner[0] + 40, corner[1] + 40))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def read_message(message: Any) -> tuple[str, list[bytes]]:
    if isinstance(message["content"], str):
        return message["content"], []
    texts = [part["text"] for part in message["content"] if part["type"] == "text"]
    urls = [part["image_url"]["url"] for part in message["content"] if part["type"] == "image_url"]
    return "\n".join(texts), [base64.b64decode(url.partition(",")[2]) for url in urls]


def reply(message: dict[str, Any]) -> web.Response:
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    return web.json_response(
        {"model": "fake", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    )
