"""A till in front of any fake of a service: it bills every request that is worked on, has each reply state what was
billed, and then loses, spoils or silences some of the replies. How usage is written in JSON is told by its keys, so that
a fake that is added later is billed as well."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fakes import Asked, Fake
from weft.calls.prices import OUTPUT_LIMITS, Price
from weft.models.http import parse_error
from weft.types import Usage

TOKENS_IN = ("prompt_tokens", "input_tokens", "promptTokenCount")
TOKENS_OUT = ("completion_tokens", "output_tokens", "candidatesTokenCount")
NO_TOKENS = ("thoughtsTokenCount", "total_tokens", "totalTokenCount")
USAGE = ("usage", "usageMetadata")
SAYS = ("ok", "ok", "both", "wordy", "nothing", "refused", "blocked", "cut", "broken", "rate", "trouble", "no json")
FATES = ("429", "500", "cut", "half", "silent", "one side", "odd stream", "cut stream")
LINE_FATES = ("500", "odd", "silent", "missing")
BATCH_PRICE_SHARE = 0.5
ASKED: ContextVar[Asked | None] = ContextVar("ASKED", default=None)  # what the request that is handled now asks for
NO_LIMIT = 1500  # output tokens of a request that sets no limit


@dataclass
class Habits:
    """How a service bills and answers: `over` times the tokens that it was asked for if it says so at all, and each
    image `images` times."""

    price: Price
    share: float = 0.0  # of the replies that something becomes of
    over: float = 1.0
    images: int = 1
    late: int = 0  # so many of its first replies of each kind do not say what they cost

    @property
    def is_honest(self) -> bool:
        return self.over == 1.0 and self.images == 1


@dataclass
class Till:
    fake: Fake
    habits: Habits
    chance: random.Random
    bill: float = 0.0
    made: Counter[str] = field(default_factory=Counter[str])
    replies: Counter[str] = field(default_factory=Counter[str])  # by kind
    lines: dict[str, Usage] = field(default_factory=dict[str, Usage])  # of batches, by name
    begun: set[str] = field(default_factory=set[str])  # files of batches
    stated: set[str] = field(default_factory=set[str])  # kinds of reply that have said what they cost

    def __post_init__(self) -> None:
        original = self.fake.asked

        async def asked(request: web.Request) -> Asked:
            asked = await original(request)
            ASKED.set(asked)
            return asked

        @web.middleware
        async def handle(request: web.Request, handler: Any) -> web.StreamResponse:
            return await self.handle(request, handler)

        self.fake.asked = asked
        self.fake.middlewares.append(handle)

    async def handle(self, request: web.Request, handler: Any) -> web.StreamResponse:
        await asyncio.sleep(self.chance.random() * 0.004)
        fate = self.chance.choice(FATES) if self.chance.random() < self.habits.share else ""
        if fate == "429" and request.method == "POST":
            return self.error(429)
        if self.habits.is_honest and fate:
            self.fake.says = self.chance.choice(SAYS)
        ASKED.set(None)
        response = await handler(request)
        self.fake.says = "ok"
        self.begin_batches()
        if request.method == "GET":
            return self.spoil_lines(response) if response.status == 200 and self.begun else response
        asked = ASKED.get()
        if asked is None:
            return response
        return await self.answer(asked, response, fate, request)

    def error(self, status: int) -> web.Response:
        self.made[str(status)] += 1
        return web.json_response({"error": {"message": "no", "type": "trouble"}}, status=status)

    async def answer(self, asked: Asked, response: web.Response, fate: str, request: web.Request) -> web.StreamResponse:
        if 400 <= response.status < 500 or response.status in (503, 529):
            return response
        try:
            body = json.loads(response.text or "")
        except ValueError:
            body = None
        if body is not None and response.status == 200 and parse_error(body)[0]:
            return response
        self.made["billed"] += 1
        if body is not None:
            multiply_images(body, self.habits.images, self.fake.url)
        images = sum(1 for _ in images_in(body, self.fake.url))
        if asked.kind == "text" and self.habits.images == 1:
            images = 0  # a fake that is to break an image sends a broken one with any words
        if asked.kind != "text" and not images and is_task(body):
            images = 1
        states_output = any(key in (*TOKENS_OUT, "cost") for key, _ in walk(body))
        used = self.used(asked, images, self.habits.over if states_output else 1.0)
        self.bill += (cost := self.habits.price.cost_of(used))
        if response.status != 200 or body is None:
            return response
        if not self.habits.is_honest and asked.kind not in self.stated:
            fate = ""  # what nobody could know yet, nobody could count
        self.replies[asked.kind] += 1
        if self.replies[asked.kind] <= self.habits.late:
            fate = "silent"
        state(body, used, cost)
        if fate:
            self.made[fate] += 1
        else:
            self.stated.add(asked.kind)
        if fate == "500":
            return web.json_response({"error": {"message": "oh no"}}, status=500)
        if fate == "half":
            return web.Response(text=json.dumps(body)[:-30], content_type="application/json")
        if fate == "cut":
            cut = web.StreamResponse(headers={"Content-Length": "100000"})
            await cut.prepare(request)
            await cut.write(b"{")
            if request.transport is not None:
                request.transport.close()
            return cut
        if fate in ("silent", "one side"):
            drop(body, USAGE if fate == "silent" else TOKENS_OUT)
        if asked.body.get("stream"):
            return as_stream(body, fate)
        return web.json_response(body)

    def used(self, asked: Asked, images: int, over: float) -> Usage:
        tokens_in = 20 + sum(len(text) for text in asked.flow if text not in asked.pictures) // 3
        tokens_in += 1000 * len(asked.pictures)
        return Usage(tokens_in, self.tokens_out(asked.body, over), images=images)

    def tokens_out(self, body: Any, over: float) -> int:
        limit = next(limits_in(body), NO_LIMIT)
        if over > 1:  # each reply shows it, so that the first one can teach it
            return round(over * limit)
        return self.chance.choice([limit, limit // 2, min(limit, 50)])

    # batches

    def begin_batches(self) -> None:
        """Bill every line of the batches that were begun meanwhile."""
        batches = getattr(self.fake, "batches", None)
        if batches is None:
            return
        for file in set(batches.by_file) - self.begun:
            self.begun.add(file)
            for line in batches.lines(file):
                request = line.get("body") or line["request"]
                used = Usage(20 + len(json.dumps(request)) // 8, self.tokens_out(request, self.habits.over))
                self.lines[line.get("custom_id") or line["key"]] = used
                self.bill += BATCH_PRICE_SHARE * self.habits.price.cost_of(used)
                self.made["lines of batches"] += 1

    def spoil_lines(self, response: web.Response) -> web.Response:
        """The results of a batch with what each line was billed; some of them lost. Other answers stay as they are."""
        if not isinstance(response.body, bytes):
            return response
        try:
            lines = [json.loads(line) for line in response.body.splitlines()]
        except ValueError:
            return response
        made: list[Any] = []
        for line in lines:
            used = self.lines.get(line.get("custom_id") or line.get("key") or "") if isinstance(line, dict) else None
            if used is None:
                return response
            fate = self.chance.choice(LINE_FATES) if self.chance.random() < self.habits.share else ""
            self.made[f"line: {fate}"] += bool(fate)
            state(line, used, 0.0)
            if fate == "silent":
                drop(line, USAGE)
            elif fate:
                body = {"half": "an answer"} if fate == "odd" else {"error": {"message": "oh no", "code": 500}}
                is_openai = isinstance((line.get("response") or {}).get("body"), dict)
                status = 200 if fate == "odd" else 500
                line = (
                    {**line, "response": {"status_code": status, "body": body}}
                    if is_openai
                    else {"key": line.get("key"), **({"response": body} if fate == "odd" else body)}
                )
            if fate != "missing":
                made.append(line)
        return web.Response(body="\n".join(map(json.dumps, made)).encode(), content_type="application/octet-stream")


def parts_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """The entries of an object or a list, by key or place; drafts of thoughts are none of a reply."""
    if isinstance(value, dict) and value.get("thought") is not True:
        yield from list(value.items())
    elif isinstance(value, list):
        yield from list(enumerate(value))


def is_image(value: Any, url: str) -> bool:
    return isinstance(value, str) and (value == "AAAA" or value.startswith(("iVBOR", "data:image/", f"{url}/files/")))


def images_in(value: Any, url: str) -> Iterator[str]:
    if is_image(value, url):
        yield value
    for _, part in parts_of(value):
        yield from images_in(part, url)


def multiply_images(value: Any, count: int, url: str) -> None:
    """Repeat each entry with an image in the innermost list of such."""
    for _, part in parts_of(value):
        multiply_images(part, count, url)
    if isinstance(value, list) and count > 1:
        inner = [any(isinstance(x, list) and any(images_in(x, url)) for _, x in walk(part)) for part in value]
        value[:] = [
            part
            for part, has_list in zip(list(value), inner, strict=True)
            for _ in range(count if not has_list and any(images_in(part, url)) else 1)
        ]


def walk(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, part in parts_of(value):
        yield key, part
        yield from walk(part)


def limits_in(body: Any) -> Iterator[int]:
    for key, value in walk(body):
        if key in OUTPUT_LIMITS and isinstance(value, int):
            yield value


def is_task(body: Any) -> bool:
    return any(key in ("task_id", "polling_url") for key, _ in walk(body))


def state(body: Any, used: Usage, cost: float) -> None:
    """Write what was used wherever the reply states its usage."""
    values = {
        **dict.fromkeys(TOKENS_IN, used.tokens_in), **dict.fromkeys(TOKENS_OUT, used.tokens_out),
        **dict.fromkeys(NO_TOKENS, 0), "cost": cost, "image_count": used.images,
    }  # fmt: skip
    for part in [body, *(part for _, part in walk(body))]:
        for key in set(part) & set(values) if isinstance(part, dict) else ():
            part[key] = values[key]


def drop(body: Any, keys: tuple[str, ...]) -> None:
    for part in [body, *(part for _, part in walk(body))]:
        for key in set(part) & set(keys) if isinstance(part, dict) else ():
            del part[key]


def as_stream(body: dict[str, Any], fate: str) -> web.Response:
    """A chat's reply as a stream of events: whole, cut before its end, or with words in a shape that nobody knows."""
    message = body["choices"][0]["message"]
    content: Any = {"words": "x"} if fate == "odd stream" else message.get("content") or ""
    usage = {"usage": body["usage"]} if "usage" in body else {}
    events: list[Any] = [
        {"choices": [{"index": 0, "delta": {"content": content}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **usage},
    ]
    lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    return web.Response(body=b"".join(lines[: 1 if fate == "cut stream" else 2]), content_type="text/event-stream")
