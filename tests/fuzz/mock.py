"""A provider for any benchmark: what it answers follows from the request alone, so that a run has one right table
whatever happens to it on the way. Run as a program it serves until it is killed, and tells how often each request
came."""

import argparse
import asyncio
import base64
import hashlib
import json
import math
import random
from typing import Any

from aiohttp import web

import fuzz
from server import Provider, Seen, drawn

assert fuzz


def answer(seen: Seen) -> dict[str, Any]:
    """By the first message of the user: a judge that is asked again means the same."""
    first = next(message["content"] for message in seen.body["messages"] if message["role"] == "user")
    digest = hashlib.sha256(json.dumps(first).encode()).hexdigest()
    asked = seen.body.get("response_format")
    likely = say_likely("Yes", int(digest[:4], 16) / 0xFFFF) if seen.body.get("logprobs") else {}
    if asked is not None and 1 not in (seen.body.get("max_tokens"), seen.body.get("max_completion_tokens")):
        schema = asked["json_schema"]["schema"]
        return {**likely, "role": "assistant", "content": json.dumps(filled(schema, random.Random(digest)))}
    if likely:
        return likely
    if "image" in (seen.body.get("modalities") or ()):
        picture = base64.b64encode(drawn(digest, 64)).decode()
        return {
            "role": "assistant",
            "content": "",
            "images": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}],
        }
    return {"role": "assistant", "content": "ABCD"[int(digest[:4], 16) % 4]}


def say_likely(word: str, share: float) -> dict[str, Any]:
    """A word, how likely it was, and the other."""
    tokens = [
        {"token": one, "logprob": math.log(max(chance, 1e-6))} for one, chance in ((word, share), ("No", 1 - share))
    ]
    first = {**tokens[0], "top_logprobs": tokens}
    return {"role": "assistant", "content": word, "logprobs": {"content": [first]}}


def filled(schema: dict[str, Any], chance: random.Random) -> Any:
    """Something that fits."""
    kind = schema["type"]
    if kind == "object":
        return {name: filled(one, chance) for name, one in schema.get("properties", {}).items()}
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if kind == "array":
        entry = schema.get("items", {"type": "string"})
        for name, one in entry.get("properties", {}).items():
            numbers = one.get("enum", ["none"])
            if isinstance(numbers[0], int) and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
                return [{**filled(entry, chance), name: number} for number in one["enum"]]
        made = [filled(entry, chance) for _ in range(schema.get("minItems", 1))]
        return sorted(made) if entry.get("type") == "number" else made  # a box begins before it ends
    if kind in ("number", "integer"):
        return chance.randint(int(schema.get("minimum", 0)), int(schema.get("maximum", 10)))
    return chance.random() < 0.5 if kind == "boolean" else "A"


class Faults:
    """Every kind of trouble that a further try gets over, in a share of first and second answers."""

    def __init__(self, share: float, seed: int) -> None:
        self.share, self.seed = share, seed
        self.made: dict[str, int] = {}

    async def __call__(self, seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        chance = random.Random(f"{self.seed} {seen.key} {times}")
        if times > 2 or chance.random() >= self.share:
            return None
        kind = chance.choice(KINDS)
        self.made[kind] = self.made.get(kind, 0) + 1
        return await self._fault(kind, chance, seen, request)

    async def _fault(self, kind: str, chance: random.Random, seen: Seen, request: web.Request) -> web.StreamResponse:
        if kind.isdigit():
            body = chance.choice(
                ["", "<html>", '{"error": {"message": "no"}}', '{"error": "no"}', "null", '{"detail": [1]}']
            )
            headers = {"Retry-After": chance.choice(["0", "0.01"])} if kind in ("429", "503", "529") else {}
            return web.Response(status=int(kind), text=body, headers=headers)
        good = Provider.completion(seen, answer(seen)).body
        assert isinstance(good, bytes)
        if kind in ("cut", "cut late", "reset"):
            response = web.StreamResponse(headers={"Content-Length": str(len(good))})
            await response.prepare(request)
            await response.write(good[: {"cut": 10, "cut late": len(good) - 3}.get(kind, 0)])
            if request.transport is not None:
                request.transport.abort() if kind == "reset" else request.transport.close()
            return response
        if kind == "slow":
            await asyncio.sleep(0.3)
            return web.Response(body=good, content_type="application/json")
        texts: dict[str, bytes] = {
            "half": good[: len(good) // 2], "nothing": b"", "html": b"<h1>login</h1>", "no utf-8": b'{"choices": "\xff"}',
            "deep": b"[" * 5000,
            "null": b"null", "number": b"5", "list": b"[]", "no choices": b'{"choices": []}', "odd choices": b'{"choices": [null]}',
            "choices object": b'{"choices": {"0": 1}}', "error in 200": b'{"error": {"message": "overloaded", "code": 503}}',
            "error text in 200": b'{"error": "try later"}', "two objects": good + good, "bom": b"\xff\xfe" + good,
            "cut escape": good[:-20] + b"\\",
        }  # fmt: skip
        if kind in texts:
            return web.Response(body=texts[kind], content_type="application/json")
        empty: dict[str, Any] = {"role": "assistant", "content": chance.choice(["", None, [], "  "])}
        picture = {
            "role": "assistant",
            "content": "",
            "images": [{"type": "image_url", "image_url": {"url": _bad_picture(chance)}}],
        }
        return Provider.completion(seen, picture if kind == "bad picture" and "modalities" in seen.body else empty)


def _bad_picture(chance: random.Random) -> str:
    whole = drawn("bad", 64)
    data = chance.choice(
        [whole[: len(whole) // 2], b"", b"GIF89a", b"<svg/>", whole[:-1], b"\x89PNG\r\n\x1a\n" + b"\0" * 50]
    )
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


KINDS = [
    "408", "409", "425", "429", "500", "502", "503", "504", "520", "529", "599", "cut", "cut late", "reset", "slow", "half", "nothing",
    "html", "no utf-8", "deep", "null", "number", "list", "no choices", "odd choices", "choices object", "error in 200",
    "error text in 200", "two objects", "bom", "cut escape", "empty", "bad picture",
]  # fmt: skip


async def _serve(latency: float) -> None:
    provider = await Provider(answer=answer, latency=latency, keep=False).start()
    print(provider.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.0)
    asyncio.run(_serve(parser.parse_args().latency))
