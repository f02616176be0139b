"""Requests that no browser sends to weft's own servers: each is answered for what it is."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fuzz.requests import TOKEN, Silent, answers, check
from waiting import HANGS, until_in_loop
from weft.serving import app as serving
from weft.serving.app import ServingApp

FORM = "application/x-www-form-urlencoded"


def get(path: str, host: str = "127.0.0.1", cookie: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n".encode()


def post(path: str, body: bytes, kind: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def test_each_is_answered_for_what_it_is(tmp_path: Path):
    rate = f"/rate/{TOKEN}"
    expected: dict[str, list[tuple[bytes, str]]] = {
        "rate": [
            (get(f"{rate}?at={'9' * 5000}"), "200"),
            (get(f"{rate}?at=%C2%B2"), "200"),
            (get(rate, "127.0.0.1:99999"), "403"),
            (get(rate, "[::1"), "403"),
            (post(rate, b"item=x", f"{FORM}; charset=klingon"), "303"),
            (post(rate, b"item=%ff", FORM), "303"),
            (post(rate, b"item=\xff", FORM), "400"),
            (post(rate, b"&" * 100_000, FORM), "400"),
            (post(rate, b"--b\r\n\r\nx", "multipart/form-data; boundary=b"), "415"),
            (post(rate, b"x", "multipart/form-data"), "415"),
        ],
        "view": [
            (get(f"//evil.com/?token={TOKEN}"), "302"),
            (get(f"/%5Cevil.com/?token={TOKEN}"), "302"),
            (get(f"/r/a+b%20c/?token={TOKEN}"), "302"),
            (get("/", "127.0.0.1:99999", f"seen={TOKEN}"), "403"),
            (get("/", "127.0.0.1:80", f"seen={TOKEN}"), "200"),
        ],
        "serve": [(get("/v1/models", "127.0.0.1:99999"), "403"), (get("/v1/models", "LOCALHOST:80"), "200")],
    }
    came = answers(tmp_path, {name: [sent for sent, _ in some] for name, some in expected.items()})
    for name, some in expected.items():
        statuses = [check(name, sent, said) for (sent, _), said in zip(some, came[name], strict=True)]
        assert statuses == [status for _, status in some], name
    locations = [said.partition(b"Location: ")[2].partition(b"\r\n")[0] for said in came["view"][:3]]
    assert locations == [b"/evil.com/", b"/evil.com/", b"/r/a%2Bb%20c/"]


def test_bodies_that_are_still_arriving_count(monkeypatch: pytest.MonkeyPatch):
    """Twenty that never end hold no more than the limit; when they are gone, there is room again."""
    limit = 400_000
    monkeypatch.setattr(serving, "MAX_BYTES_IN_FLIGHT", limit)

    async def go() -> None:
        app = ServingApp(Silent(), "m")
        runner, address = await app.start()
        port = runner.addresses[0][1]
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        uploads = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        most = 0

        def look() -> Any:
            nonlocal most
            most = max(most, app.counts.bytes_in_flight)
            return app.counts.by_status[429]

        for _, writer in uploads:
            writer.write(f"{head}Content-Length: 100000000\r\n\r\n".encode() + b" " * 50_000)
        await until_in_loop("uploads that are refused", lambda: look() >= 20 - limit // 50_000)
        assert limit // 2 < most <= limit
        assert app.counts.in_flight == 0, "none of them is worked on"
        async with aiohttp.ClientSession() as session:
            body = json.dumps({"messages": "x" * (limit - app.counts.bytes_in_flight + 1)})
            asked = {"data": body, "headers": {"Content-Type": "application/json"}}
            async with session.post(f"{address}/v1/chat/completions", **asked) as response:
                assert response.status == 429 and response.headers["Retry-After"] == "1"
            for _, writer in uploads:
                writer.close()
            await until_in_loop("room again", lambda: app.counts.bytes_in_flight == 0)
            asked = {"json": {"messages": []}, "timeout": aiohttp.ClientTimeout(HANGS)}
            async with session.post(f"{address}/v1/chat/completions", **asked) as response:
                assert response.status == 422
        assert app.counts.bytes_in_flight == 0
        await runner.cleanup()

    asyncio.run(go())
