"""The front door of `weft serve`: chat completions, what is served, health, and metrics.

It listens on this machine alone unless it is told otherwise, and then it wants a token. Only JSON is taken, and from a
host by its own name: a page in a browser can neither send the one nor fake the other. A queue that is full is said with
429, a replica that died with 500: a client asks again, later or at once."""

import asyncio
import hmac
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from aiohttp import web

from weft.serving.chat import ModelCard
from weft.serving.chat import format_error as error_body
from weft.serving.replica import ReplicaResponse

MAX_REQUEST_BYTES = 128 * 1024 * 1024  # bytes of a request
MOST_HELD = 1024 * 1024 * 1024  # bytes of all that are being worked on
SLOWEST = 120.0  # seconds for a request to come
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WAIT = "1"  # seconds after which to ask again, where the queue is full
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pool(Protocol):
    """The replicas behind a door."""

    card: ModelCard

    async def answer(self, body: bytes) -> ReplicaResponse: ...

    async def health(self) -> tuple[int, int]:
        """How many are ready, and how many there should be."""
        ...

    async def close(self) -> None: ...


@dataclass
class RequestCounts:
    """What has come and gone."""

    by_status: Counter[int] = field(default_factory=Counter[int])
    seconds: float = 0.0
    in_flight: int = 0
    bytes_in_flight: int = 0  # bytes of those
    bytes_in: int = 0
    bytes_out: int = 0
    # by replica, as it last said
    replica_counters: dict[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])


class ServingApp:
    def __init__(self, pool: Pool, called: str, token: str = "", host: str = "127.0.0.1") -> None:
        self.pool = pool
        self._called = called
        self._token = token
        self._host = host
        self.counts = RequestCounts()
        self._most = 4 * pool.card.at_once * pool.card.replicas + 64
        self._began = int(time.time())

    def build_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_REQUEST_BYTES)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics)
        return app

    async def start(self, port: int = 0, listening: socket.socket | None = None) -> tuple[web.AppRunner, str]:
        """Serve, at a socket that is there or at a port; gives the address. Who goes away is not worked for."""
        runner = web.AppRunner(self.build_app(), access_log=None, shutdown_timeout=2, handler_cancellation=True)
        await runner.setup()
        await (
            web.SockSite(runner, listening) if listening is not None else web.TCPSite(runner, self._host, port)
        ).start()
        if self._host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        else:
            host = self._host
        return runner, f"http://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            answer = self._turned_away(request) or await handler(request)
        except web.HTTPException as exception:
            answer = _problem(exception.status, exception.reason, "http")
        if request.method == "POST":
            self.counts.by_status[answer.status] += 1
        return answer

    def _turned_away(self, request: web.Request) -> web.Response | None:
        if self._host in LOOPBACK and request.url.host not in LOOPBACK:
            return _problem(403, "this server answers to 127.0.0.1 alone", "host")
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if self._token and not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            return _problem(401, "give the token of this server: Authorization: Bearer TOKEN", "token")
        if request.method == "POST" and (
            request.content_type != "application/json" or "Content-Encoding" in request.headers
        ):
            return _problem(415, "send application/json, not compressed", "content_type")
        return None

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        counts = self.counts
        try:  # who sends slowly takes nobody's place
            body = await asyncio.wait_for(request.read(), SLOWEST)
        except TimeoutError:
            return _problem(408, f"the request did not come within {SLOWEST:g} s", "slow")
        except (web.RequestPayloadError, ValueError) as error:
            return _problem(400, f"the body could not be read: {error}", "body")
        if counts.in_flight >= self._most or counts.bytes_in_flight + len(body) > MOST_HELD:
            full = error_body("the queue is full", "queue_full")
            return web.Response(status=429, body=full, content_type="application/json", headers={"Retry-After": WAIT})
        began = time.monotonic()
        counts.in_flight += 1
        counts.bytes_in_flight += len(body)
        try:
            made = await self.pool.answer(body)
        finally:
            counts.in_flight -= 1
            counts.bytes_in_flight -= len(body)
        counts.seconds += time.monotonic() - began
        counts.bytes_in += len(body)
        counts.bytes_out += len(made.body)
        if made.replica:
            counts.replica_counters.pop(made.replica, None)
            counts.replica_counters[made.replica] = made.counters
            while len(counts.replica_counters) > self.pool.card.replicas:  # of one that is no more
                del counts.replica_counters[next(iter(counts.replica_counters))]
        return web.Response(status=made.status, body=made.body, content_type="application/json")

    async def _models(self, request: web.Request) -> web.StreamResponse:
        card: Any = msgspec.to_builtins(self.pool.card)
        one = {"id": self._called, "object": "model", "created": self._began, "owned_by": "weft", "weft": card}
        return web.json_response({"object": "list", "data": [one]})

    async def _health(self, request: web.Request) -> web.StreamResponse:
        ready, due = await self.pool.health()
        return web.json_response(
            {"status": "ok" if ready else "down", "replicas": ready, "due": due}, status=200 if ready else 503
        )

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        ready, due = await self.pool.health()
        return web.Response(text=format_metrics(self.counts, ready, due), content_type="text/plain")


def format_metrics(counts: RequestCounts, ready: int, due: int) -> str:
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
    names = sorted({name for facts in counts.replica_counters.values() for name in facts})
    for name in names:
        if name in ("in_flight", "pictures_held", "largest_batch"):
            kind = "gauge"
        else:
            kind = "counter"
        called = f"weft_replica_{name}" + ("_total" if kind == "counter" else "")
        lines.append(f"# TYPE {called} {kind}")
        lines += [
            f'{called}{{replica="{one}"}} {facts[name]:g}'
            for one, facts in sorted(counts.replica_counters.items())
            if name in facts
        ]
    return "\n".join(lines) + "\n"


def _problem(status: int, message: str, code: str) -> web.Response:
    return web.Response(status=status, body=error_body(message, code), content_type="application/json")
