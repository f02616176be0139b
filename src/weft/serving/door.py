"""The front door of `weft serve`: chat completions, what is served, health, and metrics.

It listens on this machine alone unless it is told otherwise, and then it wants a token. Only JSON is taken, and from a host by its own
name: a page in a browser can neither send the one nor fake the other. A queue that is full is said with 429, a replica that died with 500:
a client asks again, later or at once.
"""

import hmac
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from aiohttp import web

from weft.serving.replica import Answer
from weft.serving.wire import Card, error

MOST = 256 * 1024 * 1024  # bytes of a request
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WAIT = "1"  # seconds after which to ask again, where the queue is full
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pool(Protocol):
    """The replicas behind a door."""

    card: Card

    async def answer(self, body: bytes) -> Answer: ...

    async def health(self) -> tuple[int, int]:
        """How many are ready, and how many there should be."""
        ...

    async def close(self) -> None: ...


@dataclass
class Counts:
    """What has come and gone."""

    by_status: Counter[int] = field(default_factory=Counter[int])
    seconds: float = 0.0
    in_flight: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    facts: dict[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])  # by replica, as it last said


class Door:
    def __init__(self, pool: Pool, called: str, token: str = "", host: str = "127.0.0.1") -> None:
        self.pool, self._called, self._token, self._host = pool, called, token, host
        self.counts = Counts()
        self._most = 4 * pool.card.at_once * pool.card.replicas + 64
        self._began = int(time.time())

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=MOST)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics)
        return app

    async def start(self, port: int) -> tuple[web.AppRunner, str]:
        """Serve; gives the address."""
        runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=2)
        await runner.setup()
        await web.TCPSite(runner, self._host, port).start()
        bound = runner.addresses[0][1]
        return runner, f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{bound}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._host in LOOPBACK and request.url.host not in LOOPBACK:
            return _problem(403, "this server answers to 127.0.0.1 alone", "host")
        if self._token and not hmac.compare_digest(request.headers.get("Authorization", "").encode(), f"Bearer {self._token}".encode()):
            return _problem(401, "give the token of this server: Authorization: Bearer TOKEN", "token")
        if request.method == "POST" and request.content_type != "application/json":
            return _problem(415, "send application/json", "content_type")
        try:
            return await handler(request)
        except web.HTTPException as exception:
            return _problem(exception.status, exception.reason, "http")

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        counts = self.counts
        if counts.in_flight >= self._most:
            counts.by_status[429] += 1
            full = error("the queue is full", "queue_full")
            return web.Response(status=429, body=full, content_type="application/json", headers={"Retry-After": WAIT})
        began = time.monotonic()
        counts.in_flight += 1
        try:
            body = await request.read()
            made = await self.pool.answer(body)
        finally:
            counts.in_flight -= 1
        counts.by_status[made.status] += 1
        counts.seconds += time.monotonic() - began
        counts.bytes_in += len(body)
        counts.bytes_out += len(made.body)
        if made.replica:
            counts.facts[made.replica] = made.facts
        return web.Response(status=made.status, body=made.body, content_type="application/json")

    async def _models(self, request: web.Request) -> web.StreamResponse:
        card: Any = msgspec.to_builtins(self.pool.card)
        one = {"id": self._called, "object": "model", "created": self._began, "owned_by": "weft", "weft": card}
        return web.json_response({"object": "list", "data": [one]})

    async def _health(self, request: web.Request) -> web.StreamResponse:
        ready, due = await self.pool.health()
        return web.json_response({"status": "ok" if ready else "down", "replicas": ready, "due": due}, status=200 if ready else 503)

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        ready, due = await self.pool.health()
        return web.Response(text=metrics(self.counts, ready, due), content_type="text/plain")


def metrics(counts: Counts, ready: int, due: int) -> str:
    """As Prometheus reads them."""
    lines = ["# TYPE weft_requests_total counter"]
    lines += [f'weft_requests_total{{status="{status}"}} {count}' for status, count in sorted(counts.by_status.items())]
    for name, kind, value in (
        ("weft_request_seconds_total", "counter", counts.seconds),
        ("weft_requests_in_flight", "gauge", counts.in_flight),
        ("weft_received_bytes_total", "counter", counts.bytes_in),
        ("weft_sent_bytes_total", "counter", counts.bytes_out),
        ("weft_replicas_ready", "gauge", ready),
        ("weft_replicas_due", "gauge", due),
    ):
        lines += [f"# TYPE {name} {kind}", f"{name} {value:g}"]
    names = sorted({name for facts in counts.facts.values() for name in facts})
    for name in names:
        kind = "gauge" if name in ("in_flight", "pictures_held", "largest_batch") else "counter"
        called = f"weft_replica_{name}" + ("_total" if kind == "counter" else "")
        lines.append(f"# TYPE {called} {kind}")
        lines += [f'{called}{{replica="{one}"}} {facts[name]:g}' for one, facts in sorted(counts.facts.items()) if name in facts]
    return "\n".join(lines) + "\n"


def _problem(status: int, message: str, code: str) -> web.Response:
    return web.Response(status=status, body=error(message, code), content_type="application/json")
