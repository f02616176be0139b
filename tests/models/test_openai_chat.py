"""The chat-completions endpoint against a real socket: every shape in and out, and every kind of trouble."""

import asyncio
import base64
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from PIL import Image as Pil

import openapi
from server import Provider, Seen, data_url, drawn
from weft.errors import UserError
from weft.models.endpoint import CallError, EndpointReply
from weft.models.providers.openai_chat import OpenAIChat
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text, Thought

Serve = Callable[..., Provider]
ONE, TWO = drawn("one"), drawn("two", 40)


def send(
    provider: Provider,
    blobs: Blobs,
    messages: tuple[Message, ...] = (),
    want: Request = Request("image"),
    **options: Any,
) -> EndpointReply:
    async def go() -> EndpointReply:
        endpoint = resolve_endpoint(f"openai-chat/m@{provider.url}", blobs, options)
        try:
            return await endpoint.send(messages or (Message("user", (Text("hi"),)),), want)
        finally:
            await endpoint.close()

    return asyncio.run(go())


def says(
    message: dict[str, Any], finish: str = "stop"
) -> Callable[[Seen, int, web.Request], Awaitable[web.StreamResponse | None]]:
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse:
        return Provider.completion(seen, {"role": "assistant", **message}, finish)

    return fault


def status(code: int, body: Any, headers: dict[str, str] | None = None) -> Callable[..., Awaitable[web.StreamResponse]]:
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=code, text=text, content_type="application/json", headers=headers)

    return fault


def part(data: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(data)}}


B64 = base64.b64encode(ONE).decode()


@pytest.mark.parametrize(
    "message",
    [
        {"content": "", "images": [part(ONE)]},
        {"content": None, "images": [{"type": "image_url", "image_url": data_url(ONE)}]},
        {"content": [part(ONE)]},
        {"content": [{"type": "image", "image": B64}]},
        {"content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": B64}}]},
        {"content": [{"type": "output_image", "b64_json": B64}]},
        {"content": [{"inlineData": {"mimeType": "image/jpeg", "data": B64}}]},
        {"content": f"![image]({data_url(ONE)})"},
        {"content": data_url(ONE)},
        {"content": "", "images": [B64]},
    ],
)
def test_a_picture_is_found_in_every_shape_that_servers_use(serve: Serve, blobs: Blobs, message: dict[str, Any]):
    sent = send(serve(fault=says(message)), blobs)
    assert sent.outcome == "answered" and sent.parts == (blobs.put(ONE),)
    assert B64 not in sent.raw and f"blob:{blobs.put(ONE).digest}" in sent.raw, (
        "the raw reply is kept without the bytes"
    )


def test_parts_keep_their_order(serve: Serve, blobs: Blobs):
    content = [
        {"type": "text", "text": "first"},
        part(ONE),
        {"type": "text", "text": "then"},
        part(TWO),
        {"type": "text", "text": "end"},
    ]
    sent = send(serve(fault=says({"content": content})), blobs, want=Request("interleaved"))
    assert sent.parts == (Text("first"), blobs.put(ONE), Text("then"), blobs.put(TWO), Text("end"))
    inline = f"first ![a]({data_url(ONE)}) then {data_url(TWO)} end"
    sent = send(serve(fault=says({"content": inline})), blobs, want=Request("interleaved"))
    assert sent.parts == (Text("first "), blobs.put(ONE), Text(" then "), blobs.put(TWO), Text(" end"))


def test_drafts_of_thinking_models_are_not_output(serve: Serve, blobs: Blobs):
    content = [{"type": "text", "text": "plan", "thought": True}, {**part(TWO), "thought": True}, part(ONE)]
    sent = send(serve(fault=says({"content": content})), blobs)
    assert sent.parts == (Thought("plan"), blobs.put(ONE)) and sent.outcome == "answered"
    apart = send(
        serve(fault=says({"content": "four", "reasoning_content": "two and two"})), blobs, want=Request("text")
    )
    assert apart.parts == (Thought("two and two"), Text("four"))
    silent = send(serve(fault=says({"content": "", "reasoning": "hm"})), blobs, want=Request("text"))
    assert silent.outcome == "empty" and silent.retry_advised, "thinking alone is no answer: it is tried again"


def test_the_request_carries_messages_in_order_with_the_pictures_own_bytes(serve: Serve, blobs: Blobs):
    provider = serve()
    one, two = blobs.put(ONE), blobs.put(TWO)
    messages = (
        Message("system", (Text("be good"),)),
        Message("user", (Text('a "quoted" é '), one, Text("b"), two)),
        Message("assistant", (Text("ok"),)),
        Message("user", (Text("go"),)),
    )
    send(provider, blobs, messages, temperature="0.5", max_tokens="9", seed="3")
    seen = provider.seen[0]
    assert seen.shape == [
        ("system", ["be good"]),
        ("user", ['a "quoted" é ', f"sha256:{one.digest}", "b", f"sha256:{two.digest}"]),
        ("assistant", ["ok"]),
        ("user", ["go"]),
    ]
    assert {name: seen.body[name] for name in ("model", "temperature", "max_tokens", "seed", "modalities")} == {
        "model": "m", "temperature": 0.5, "max_tokens": 9, "seed": 3, "modalities": ["image", "text"],
    }  # fmt: skip


def test_a_large_picture_arrives_whole(serve: Serve, blobs: Blobs):
    big = blobs.put_pil(Pil.frombytes("RGB", (700, 700), random.Random(0).randbytes(700 * 700 * 3)))
    provider = serve()
    send(provider, blobs, (Message("user", (big, Text("x"))),))
    assert big.size > 1_000_000 and provider.seen[0].pictures == [f"sha256:{big.digest}"]


def test_own_pictures_can_go_back_the_way_openrouter_wants_them(serve: Serve, blobs: Blobs):
    provider = serve()
    one = blobs.put(ONE)
    send(
        provider,
        blobs,
        (Message("assistant", (Text("mine"), one)), Message("user", (Text("go"),))),
        own_images="images",
    )
    sent = provider.seen[0].body["messages"][0]
    assert sent == {
        "role": "assistant",
        "content": "mine",
        "images": [{"type": "image_url", "image_url": {"url": f"sha256:{one.digest}"}}],
    }


def test_a_schema_is_asked_for_and_dropped_for_servers_that_do_not_take_it(serve: Serve, blobs: Blobs):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        if "response_format" in seen.body:
            return web.json_response(
                {"error": {"message": "response_format json_schema is not supported", "code": 400}}, status=400
            )
        if "max_tokens" in seen.body:
            return web.json_response({"detail": "Unsupported parameter: use max_completion_tokens"}, status=422)
        return None

    provider = serve(fault=fault)
    sent = send(provider, blobs, want=Request("text", {"type": "object"}), max_tokens=5)
    assert sent.outcome == "answered" and len(provider.seen) == 3
    assert provider.seen[0].body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert "response_format" not in provider.seen[-1].body and provider.seen[-1].body["max_completion_tokens"] == 5


@pytest.mark.parametrize(
    ("message", "finish", "want", "outcome", "why"),
    [
        ({"content": "I drew it, look!"}, "stop", "image", "empty", "text where an image was expected: I drew it"),
        ({"content": None}, "stop", "image", "empty", "an empty reply"),
        ({"content": ""}, "stop", "text", "empty", "an empty reply"),
        ({"content": [part(ONE)]}, "stop", "text", "empty", "an image where text was expected"),
        ({"content": None, "refusal": "I will not"}, "stop", "text", "refused", "I will not"),
        ({"content": ""}, "content_filter", "image", "refused", "content filter"),
        ({"content": "and so on and"}, "length", "text", "answered", "truncated at the token limit"),
        (
            {"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            "stop",
            "image",
            "empty",
            "its image is not",
        ),
        ({"content": "two words", "images": []}, "stop", "text", "answered", ""),
    ],
)
def test_http_200_is_not_success(
    serve: Serve, blobs: Blobs, message: Any, finish: str, want: Any, outcome: str, why: str
):
    sent = send(serve(fault=says(message, finish)), blobs, want=Request(want))
    assert sent.outcome == outcome and why in sent.reason


QUOTA = {
    "error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
}


@pytest.mark.parametrize(
    ("code", "body", "headers", "kind", "delay"),
    [
        (500, "oops", {}, "transient", None),
        (502, "<html>bad gateway</html>", {}, "transient", None),
        (408, {}, {}, "transient", None),
        (
            429,
            {"error": {"message": "slow down", "code": "rate_limit_exceeded"}},
            {"Retry-After": "7"},
            "rate_limit",
            7.0,
        ),
        (429, {"error": {"message": "slow down"}}, {"retry-after-ms": "250"}, "rate_limit", 0.25),
        (429, {"error": {"message": "slow down"}}, {}, "rate_limit", None),
        (503, {}, {}, "rate_limit", None),
        (429, QUOTA, {}, "fatal", None),
        (402, {"error": {"message": "no credits"}}, {}, "fatal", None),
        (401, {"error": {"message": "bad key"}}, {}, "denied", None),
        (403, {"error": {"message": "not for you"}}, {}, "denied", None),
        (404, {"error": {"message": "no such model"}}, {}, "denied", None),
        (400, {"error": {"message": "At most 4 image(s) may be provided in one prompt."}}, {}, "no", None),
        (200, {"error": {"message": "overloaded", "code": 503}}, {}, "rate_limit", None),
        (200, {"error": {"message": "who knows"}}, {}, "transient", None),
        (200, "{broken", {}, "transient", None),
        (200, {"choices": []}, {}, "transient", None),
        (301, {"message": "moved"}, {"Location": "http://127.0.0.1:9/"}, "denied", None),
    ],
)
def test_each_kind_of_trouble_has_its_retry_decision(
    serve: Serve, blobs: Blobs, code: int, body: Any, headers: dict[str, str], kind: str, delay: float | None
):
    with pytest.raises(CallError) as caught:
        send(serve(fault=status(code, body, headers)), blobs)
    assert (caught.value.retry.kind, caught.value.retry.delay) == (kind, delay)


def test_a_blocked_request_is_a_refusal_and_not_trouble(serve: Serve, blobs: Blobs):
    body = {
        "error": {
            "type": "image_generation_user_error",
            "code": "moderation_blocked",
            "message": "rejected by the safety system",
        }
    }
    sent = send(serve(fault=status(400, body)), blobs)
    assert sent.outcome == "refused" and "safety system" in sent.reason


def test_a_connection_cut_in_the_middle_is_transient(serve: Serve, blobs: Blobs):
    async def cut(seen: Seen, times: int, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        assert request.transport is not None
        request.transport.close()
        return response

    with pytest.raises(CallError, match="the connection broke") as caught:
        send(serve(fault=cut), blobs)
    assert caught.value.retry.kind == "transient" and not caught.value.unreachable


def test_nobody_there_is_said_with_the_address(blobs: Blobs):
    endpoint = OpenAIChat("m", "http://127.0.0.1:9/v1", blobs)

    async def go() -> None:
        try:
            await endpoint.send((Message("user", (Text("hi"),)),), Request("text"))
        finally:
            await endpoint.close()

    with pytest.raises(CallError, match="cannot reach http://127.0.0.1:9/v1") as caught:
        asyncio.run(go())
    assert caught.value.unreachable


def test_a_picture_sent_as_a_link_is_fetched_from_the_same_host_alone(serve: Serve, blobs: Blobs):
    link = {"content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.2:9/x.png"}}]}
    with pytest.raises(CallError, match="link to another host"):
        send(serve(fault=says(link)), blobs)


def test_a_key_goes_into_the_header_and_nowhere_else(serve: Serve, blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret-0123")
    headers: list[str] = []

    async def echo(seen: Seen, times: int, request: web.Request) -> web.StreamResponse:
        headers.append(request.headers["Authorization"])
        return web.json_response({"error": {"message": f"Incorrect API key {headers[0]} provided"}}, status=401)

    with pytest.raises(CallError) as caught:
        send(serve(fault=echo), blobs, key_env="MY_KEY")
    assert headers == ["Bearer sk-very-secret-0123"]
    assert "sk-very" not in str(caught.value) and "[key]" in str(caught.value)
    endpoint = resolve_endpoint("openai-chat/m@http://127.0.0.1:9/v1", blobs, {"key_env": "MY_KEY"})
    assert "sk-very" not in json.dumps(dict(endpoint.identity)) + endpoint.name + endpoint.address


def test_a_known_providers_key_is_not_sent_elsewhere(serve: Serve, blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-only")
    monkeypatch.delenv("WEFT_API_KEY", raising=False)
    headers: list[Any] = []

    async def look(seen: Seen, times: int, request: web.Request) -> None:
        headers.append(request.headers.get("Authorization"))

    send(serve(fault=look), blobs)
    assert headers == [None]


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("openai-chat/m@http://user:pw@host/v1", {}, "keys do not belong in addresses"),
        ("openai-chat/m@http://host/v1?api_key=1", {}, "keys do not belong in addresses"),
        ("openai-chat/@http://host/v1", {}, "name the model"),
        ("openai-chat/m@http://host", {"temprature": "0"}, "unknown option 'temprature'"),
        ("openai-chat/m@http://host", {"seed": "x"}, "option seed='x'"),
        ("openai-chat/m@http://host", {"images": "many"}, "one of interleaved, list, strip, none"),
    ],
)
def test_mistakes_in_a_models_name_are_told(blobs: Blobs, text: str, options: dict[str, Any], why: str):
    with pytest.raises(UserError, match=why):
        resolve_endpoint(text, blobs, options)


def test_requests_fit_the_official_openapi_document(serve: Serve, blobs: Blobs):
    jsonschema = pytest.importorskip("jsonschema")
    validator = openapi.validator("CreateChatCompletionRequest")
    provider = serve()
    messages = (
        Message("user", (Text("a"), blobs.put(ONE))),
        Message("assistant", (Text("b"),)),
        Message("user", (Text("c"),)),
    )
    send(
        provider,
        blobs,
        messages,
        Request("text", {"type": "object", "properties": {}}),
        temperature=0,
        seed=1,
        max_tokens=5,
    )
    body = provider.seen[0].body
    validator.validate(body)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**body, "messages": "none"})


def test_a_large_picture_behind_a_link_of_the_same_host_is_fetched_whole(serve: Serve, blobs: Blobs):
    big = blobs.put_pil(Pil.frombytes("RGB", (600, 600), random.Random(1).randbytes(600 * 600 * 3)))
    provider = serve(files={"/big.png": blobs.read(big), "/gone.png": b""})
    host = provider.url.removesuffix("/v1")

    async def link(seen: Seen, times: int, request: web.Request) -> web.StreamResponse:
        name = "big.png" if "big" in " ".join(seen.texts) else "missing.png"
        return Provider.completion(
            seen, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": f"{host}/{name}"}}]}
        )

    provider.fault = link
    assert send(provider, blobs, (Message("user", (Text("big"),)),)).parts == (big,)
    with pytest.raises(CallError, match="link answered 404") as caught:
        send(provider, blobs, (Message("user", (Text("other"),)),))
    assert caught.value.retry.kind == "transient"


def test_many_requests_at_once_all_survive_a_field_the_server_does_not_know(serve: Serve, blobs: Blobs):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        await asyncio.sleep(0.02)
        if "response_format" in seen.body:
            return web.json_response({"error": {"message": "response_format is not supported"}}, status=400)
        return None

    provider = serve(fault=fault)

    async def go() -> list[EndpointReply]:
        endpoint = resolve_endpoint(f"openai-chat/m@{provider.url}", blobs)
        asks = [(Message("user", (Text(f"q{n}"),)),) for n in range(32)]
        try:
            return await asyncio.gather(*(endpoint.send(ask, Request("text", {"type": "object"})) for ask in asks))
        finally:
            await endpoint.close()

    assert {sent.outcome for sent in asyncio.run(go())} == {"answered"}


def test_a_word_for_a_key_does_not_change_what_a_server_says(
    serve: Serve, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WEFT_API_KEY", "none")
    assert send(serve(fault=says({"content": "none of it is done"})), blobs, want=Request("text")).parts == (
        Text("none of it is done"),
    )


@pytest.mark.parametrize("code", [200, 400, 422])
def test_a_refusal_is_known_by_its_code_whatever_the_status(serve: Serve, blobs: Blobs, code: int):
    body = {"error": {"message": "no", "code": "content_policy_violation"}}
    assert send(serve(fault=status(code, body)), blobs).outcome == "refused"


def test_googles_retry_delay_is_read(serve: Serve, blobs: Blobs):
    body = {
        "error": {
            "code": 429,
            "message": "slow",
            "details": [{"@type": "x"}, {"@type": "RetryInfo", "retryDelay": "17s"}],
        }
    }
    with pytest.raises(CallError) as caught:
        send(serve(fault=status(429, body)), blobs)
    assert caught.value.retry.delay == 17.0


def test_a_senseless_count_of_tokens_is_not_believed(serve: Serve, blobs: Blobs):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse:
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 10**20, "completion_tokens": "many"}})

    usage = send(serve(fault=fault), blobs, want=Request("text")).usage
    assert (usage.tokens_in, usage.tokens_out) == (0, 0)
