"""Every request to a route of OpenAI's held against OpenAI's own document, and so is what our fakes of them answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

import openapi
from fakes import Fake, Images, OpenAI, Responses
from server import drawn
from weft.models.batch_api import build_batch_endpoint
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text

PROPERTIES = {"score": {"type": "integer", "minimum": 0, "maximum": 10}, "reasoning": {"type": "string"}}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["score", "reasoning"], "additionalProperties": False}


def user(*parts: Any) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


@asynccontextmanager
async def endpoint(fake: Fake, blobs: Blobs, **options: Any) -> AsyncIterator[Any]:
    async with fake.up():
        made = resolve_endpoint(fake.name, blobs, options)
        try:
            yield made
        finally:
            await made.close()


async def answer_of(fake: Fake, path: str) -> Any:
    """What the fake says to its last request, once more."""
    async with aiohttp.ClientSession() as session, session.post(f"{fake.url}{path}", json=fake.seen[-1].body) as came:
        return await came.json()


def run(work: Callable[[], Any]) -> None:
    asyncio.run(work())


def test_chat(blobs: Blobs):
    asked, said = "CreateChatCompletionRequest", "CreateChatCompletionResponse"

    async def work() -> None:
        fake = OpenAI()
        async with endpoint(fake, blobs, temperature=0, max_tokens=100, seed=1, reasoning_effort="low") as made:
            past = (
                Message("system", (Text("be strict"),)),
                user("score", blobs.put(drawn("x"))),
                Message("assistant", (Text("hm"),)),
            )
            await made.send((*past, user("again")), Request("text", SCHEMA, draw=2))
            openapi.check(asked, fake.seen[0].body)
            openapi.check(said, await answer_of(fake, "/v1/chat/completions"))

    run(work)


@pytest.mark.parametrize("edits", ["json", "multipart"])
def test_images(edits: str, blobs: Blobs):
    schemas = {"json": "EditImageBodyJsonParam", "multipart": "CreateImageEditRequest"}
    generated, edited, said = "CreateImageRequest", schemas[edits], "ImagesResponse"

    async def work() -> None:
        fake = Images()
        async with endpoint(fake, blobs, edits=edits, quality="low", background="opaque", output_format="png") as made:
            made._told_format = False  # which OpenAI's own models refuse
            await made.send((user("a cat"),), Request("image", size=(1024, 1536)))
            openapi.check(generated, fake.seen[0].body)
            openapi.check(said, await answer_of(fake, "/v1/images/generations"))
            await made.send(
                (user(blobs.put(drawn("a")), blobs.put(drawn("b")), "both"),), Request("image", size=(1536, 1024))
            )
            body = fake.seen[-1].body
            if edits == "multipart":  # a form has texts; its files stand for themselves
                body = {**body, "n": int(body["n"]), "image": ["a file", "a file"]}
            openapi.check(edited, body)

    run(work)


@pytest.mark.parametrize("history", ["previous", "stateless"])
def test_responses(history: str, blobs: Blobs):
    asked, said = "CreateResponse", "Response"

    async def work() -> None:
        fake = Responses("thoughts")
        options = {
            "image_model": "gpt-image-2",
            "quality": "low",
            "action": "auto",
            "max_tokens": 500,
            "reasoning_effort": "low",
        }
        async with endpoint(fake, blobs, history=history, **options) as made:
            shown = blobs.put(drawn("x"))
            first = await made.send(
                (Message("system", (Text("be brief"),)), user("draw", shown)), Request("image", size=(1024, 1024))
            )
            openapi.check(said, await answer_of(fake, "/v1/responses"))
            past = (Message("system", (Text("be brief"),)), user("draw", shown), Message("assistant", first.parts))
            await made.send((*past, user("again")), Request("interleaved"))
            await made.send((user("score", shown),), Request("text", SCHEMA))
            for one in fake.seen:
                openapi.check(asked, one.body)

    run(work)


def test_batches(blobs: Blobs):
    batch, file, line = "Batch", "OpenAIFile", "CreateChatCompletionRequest"

    async def work() -> None:
        fake = OpenAI()
        async with endpoint(fake, blobs) as made:
            service = build_batch_endpoint(made)._service
            name = await service.upload(
                [service.build_line("a", (user("score", blobs.put(drawn("x"))),), Request("text", SCHEMA))]
            )
            told = json.loads(fake.batches.files[name])
            assert set(told) == {"custom_id", "method", "url", "body"} and told["url"] == "/v1/chat/completions"
            openapi.check(line, told["body"])
            await service.start_batch(name)
            openapi.check(batch, fake.batch(name, "in_progress"))
            async with aiohttp.ClientSession() as session:
                form = aiohttp.FormData({"purpose": "batch"})
                form.add_field("file", b"{}", filename="x.jsonl")
                async with session.post(f"{fake.url}/v1/files", data=form) as came:
                    openapi.check(file, await came.json())

    run(work)


def test_the_document_is_no_empty_promise():
    """A request that is wrong is found to be wrong."""
    image = {"type": "input_image", "image_url": {"url": "x"}}
    for name, wrong in (
        ("CreateResponse", {"model": "m", "input": [{"type": "message", "role": "user", "content": [image]}]}),
        (
            "CreateChatCompletionRequest",
            {"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        ),
        ("CreateImageRequest", {"model": "m", "prompt": "x", "n": "one"}),
        ("EditImageBodyJsonParam", {"model": "m", "prompt": "x", "images": "x"}),
    ):
        assert not openapi.validator(name).is_valid(wrong), name
