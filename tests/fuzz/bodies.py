"""HTTP as no server should speak it, to every provider of the registry: a reply, or a failed call with a reason; never
anything else."""

import asyncio
import base64
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from fuzz import Broken
from fuzz.spoil import spoil_bytes, spoil_json
from server import drawn
from weft.calls.budget import Budget
from weft.calls.caller import Caller, EndpointDown, Halt, RetryPolicy
from weft.models.providers.served_card import ModelCard
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Gives, Message, Reply, Request, Takes, Text
from wires import http_models

ONCE = RetryPolicy(
    tries=1, rate_limit_tries=1, empty_tries=1, unreachable_tries=10**9, base=0.0001, cap=0.0001, max_wait=10**12
)


STATUSES = [
    204,
    206,
    301,
    302,
    400,
    401,
    403,
    404,
    408,
    409,
    413,
    418,
    422,
    429,
    500,
    501,
    502,
    503,
    504,
    529,
    599,
    999,
]


def _shapes() -> list[Any]:
    picture = base64.b64encode(drawn("x")).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "cost": 0.1}

    def chat(**message: Any) -> dict[str, Any]:
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        return {"id": "1", "model": "m", "choices": [choice], "usage": usage}

    drawn_part = {"inlineData": {"mimeType": "image/png", "data": picture}, "thoughtSignature": "x"}
    spoken = {
        "content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "a"}, drawn_part]},
        "finishReason": "STOP",
    }
    said = {"type": "message", "content": [{"type": "output_text", "text": "a"}]}
    called = {"type": "image_generation_call", "id": "i", "status": "completed", "result": picture}
    others: list[Any] = [
        {"candidates": [spoken], "usageMetadata": {"promptTokenCount": 5}}, {"promptFeedback": {"blockReason": "OTHER"}},
        {"id": "r", "status": "completed", "output": [{"type": "reasoning", "summary": [{"text": "hm"}]}, called, said], "usage": usage},
        {"id": "r", "status": "failed", "output": [], "error": {"code": "server_error", "message": "no"}},
        {"created": 1, "data": [{"b64_json": picture}]}, {"data": [{"error": {"code": "x", "message": "no"}}]},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": usage},
        {"output": {"choices": [{"message": {"content": [{"image": f"data:image/png;base64,{picture}"}]}}]}},
        {"output": {"task_id": "t-1", "task_status": "PENDING"}}, {"id": "1", "status": "Ready", "result": {"sample": "http://x/"}},
    ]  # fmt: skip
    error = {
        "message": "no",
        "code": 500,
        "type": "x",
        "details": [{"retryDelay": "3s"}],
        "metadata": {"reasons": ["a"]},
    }
    return [
        *others, chat(content="hello"), chat(content="", images=[image]), chat(content=[{"type": "text", "text": "a"}, image]),
        chat(content=None, refusal="no"), chat(content=f"see ![x](data:image/png;base64,{picture})", reasoning_content="hm"),
        {"error": error}, {"error": "no"}, {"detail": "no"}, {"message": "m", "code": 3}, [], 5, None,
        {"response": {"text": "hello"}}, {"response": {"image": picture}}, {"response": {"error": "no"}},
    ]  # fmt: skip


def _answer(chance: random.Random) -> bytes:
    body = json.dumps(
        spoil_json(chance.choice(_shapes()), chance) if chance.random() < 0.4 else chance.choice(_shapes())
    ).encode()
    body = spoil_bytes(body, chance) if chance.random() < 0.25 else body
    status = chance.choice([200] * 60 + STATUSES)
    headers = {
        "Content-Type": chance.choice(
            ["application/json", "text/html", "", "application/json; charset=utf-16", "x" * 200]
        ),
        "Content-Length": str(len(body) + chance.choice([0] * 50 + [1, -1, 500])),
    }
    odd = {
        "Retry-After": chance.choice(["0", "-5", "nan", "soon", "²", "1e9", ""]),
        "Location": chance.choice(["", "/", "http://[::1", "\xff"]),
    }
    if chance.random() < 0.15:
        headers |= dict([chance.choice([*odd.items()])])
    if chance.random() < 0.03:
        headers["Content-Encoding"] = chance.choice(["gzip", "br", "identity", "?"])
    if chance.random() < 0.05:
        del headers["Content-Length"]
        headers["Transfer-Encoding"] = "chunked"
        body = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n" if chance.random() < 0.5 else body
    head = f"HTTP/1.1 {status} {chance.choice(['OK', '', 'x' * 50])}\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in headers.items()
    )
    whole = head.encode("latin-1") + b"Connection: close\r\n\r\n" + body
    return spoil_bytes(whole, chance) if chance.random() < 0.1 else whole


def _card() -> bytes:
    """What a `weft serve` server says of its model: without it, served/ has no endpoint that could be attacked."""
    card = msgspec.to_builtins(ModelCard("m", {"provider": "served", "model": "m"}, Takes(), Gives(), 4))
    body = json.dumps({"data": [{"id": "m", "weft": card}]}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    return asyncio.run(_attack(chance, count, folder))


async def _attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                ),
                0,
            )
            await reader.readexactly(length)
            asks_for_card = head.split(b" ")[1].endswith(b"/models")
            writer.write(_card() if asks_for_card else _answer(chance))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    models = http_models(url)
    blobs, journal = Blobs(folder / "bodies" / "blobs"), Journal(folder / "bodies" / "journal.sqlite")
    for name, model in models.items():
        endpoint = await asyncio.to_thread(
            resolve_endpoint, model, blobs, {"timeout": "5"}
        )  # served/ asks for its card

        async def ask(number: int, name: str = name, endpoint: Any = endpoint) -> None:
            caller = Caller(
                endpoint, role="model", journal=journal, budget=Budget(), retry_policy=ONCE, halt=Halt(), run=name
            )
            want = Request(("text", "image", "interleaved")[number % 3], draw=number)
            try:
                reply = await caller.reply((Message("user", (Text("say or draw something"),)),), want)
            except EndpointDown:
                done[f"{name}: given up"] += 1
                return
            except Exception as error:
                raise Broken(f"{name}: {type(error).__name__}: {error}") from error
            if not isinstance(reply, Reply) or (reply.outcome != "answered" and not reply.reason):
                raise Broken(f"{name}: {reply}")
            for image in reply.images:
                blobs.read(image)
            done[f"{name}: {reply.outcome}"] += 1

        for start in range(0, count, 20):
            await asyncio.gather(*(ask(number) for number in range(start, start + 20)))
        await endpoint.close()
    server.close()
    journal.close()
    return done
