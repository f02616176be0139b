"""The HTTP server of `weft serve`: chat completions, the list of models, health, and metrics.

It listens on this machine alone unless told otherwise, and then it requires a token. It accepts only JSON, and on
loopback only requests addressed to loopback, so that a web page in a browser cannot call it. A full queue answers 429,
a dead replica 500; clients retry both.
"""

import asyncio
import hmac
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
from aiohttp import web

from weft.models.providers.served_card import ModelCard
from weft.serving.chat import format_error
from weft.serving.replica import ReplicaResponse
from weft.untrusted import read_host

MAX_REQUEST_BYTES = 128 * 1024 * 1024
MAX_BYTES_IN_FLIGHT = 1024 * 1024 * 1024  # of all requests that are being worked on
UPLOAD_TIMEOUT_S = 120.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")
RETRY_AFTER_S = "1"  # for clients that meet a full queue
GAUGES = ("in_flight", "images_held", "largest_batch")  # among a replica's counters
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pool(Protocol):
    """The replicas of one model."""

    card: ModelCard

    async def answer(self, body: bytes) -> ReplicaResponse:
        """Answer a chat completion request. Never raises for the request's or the model's faults."""
        ...

    async def health(self) -> tuple[int, int]:
        """Return how many replicas are ready, and how many are expected."""
        ...

    async def close(self) -> None: ...


@dataclass
class RequestCounts:
    """What the server has done so far."""

    by_status: Counter[int] = field(default_factory=Counter[int])  # POST requests by HTTP status
    seconds: float = 0.0  # spent in replicas, over all requests
    in_flight: int = 0
    bytes_in_flight: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    # by replica, as it last reported them
    replica_counters: dict[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])


class QueueFull(Exception):
    """There is no room for what is arriving."""


@dataclass
class HeldBytes:
    """The bytes of one request: they count from their arrival until the request is answered."""

    counts: RequestCounts
    size: int = 0

    def add(self, size: int) -> None:
        """Count more bytes. Raises QueueFull if that is too much for all requests together."""
        if self.counts.bytes_in_flight + size > MAX_BYTES_IN_FLIGHT:
            raise QueueFull
        self.size += size
        self.counts.bytes_in_flight += size

    def release(self) -> None:
        self.counts.bytes_in_flight -= self.size
        self.size = 0


class ServingApp:
    def __init__(self, pool: Pool, served_name: str, token: str = "", host: str = "127.0.0.1") -> None:
        self.pool = pool
        self._served_name = served_name
        self._token = token
        self._host = host
        self.counts = RequestCounts()
        self._max_in_flight = 4 * pool.card.concurrency * pool.card.replicas + 64
        self._created = int(time.time())

    def build_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_REQUEST_BYTES)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics)
        return app

    async def start(self, port: int = 0, listening: socket.socket | None = None) -> tuple[web.AppRunner, str]:
        """Serve at an open socket, or at a port; return the runner and the address.

        A client that disconnects cancels its request.
        """
        runner = web.AppRunner(self.build_app(), access_log=None, shutdown_timeout=2, handler_cancellation=True)
        await runner.setup()
        if listening is not None:
            await web.SockSite(runner, listening).start()
        else:
            await web.TCPSite(runner, self._host, port).start()
        host = self._host
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        if ":" in host:
            host = f"[{host}]"
        return runner, f"http://{host}:{runner.addresses[0][1]}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = self._reject(request) or await handler(request)
        except web.HTTPException as exception:
            response = _error_response(exception.status, exception.reason, "http")
        if request.method == "POST":
            self.counts.by_status[response.status] += 1
        return response

    def _reject(self, request: web.Request) -> web.Response | None:
        """Return an error for a request that must not be handled; None for all others."""
        if self._host in LOOPBACK and read_host(request.host) not in LOOPBACK:
            return _error_response(403, "this server answers only requests to 127.0.0.1", "host")
        authorization = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if self._token and not hmac.compare_digest(authorization, f"Bearer {self._token}".encode()):
            return _error_response(401, "give the token of this server: Authorization: Bearer TOKEN", "token")
        if request.method != "POST":
            return None
        if request.content_type != "application/json" or "Content-Encoding" in request.headers:
            return _error_response(415, "send application/json, not compressed", "content_type")
        return None

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        held = HeldBytes(self.counts)
        try:
            body = await _receive(request, held)
            if isinstance(body, web.Response):
                return body
            return await self._answer(body)
        except QueueFull:
            response = _error_response(429, "the queue is full", "queue_full")
            response.headers["Retry-After"] = RETRY_AFTER_S
            response.force_close()  # the rest of its body need not be sent
            return response
        finally:
            held.release()

    async def _answer(self, body: bytes) -> web.Response:
        counts = self.counts
        if counts.in_flight >= self._max_in_flight:  # not before it has come: a slow upload must not block others
            raise QueueFull
        start = time.monotonic()
        counts.in_flight += 1
        try:
            answer = await self.pool.answer(body)
        finally:
            counts.in_flight -= 1
        counts.seconds += time.monotonic() - start
        counts.bytes_in += len(body)
        counts.bytes_out += len(answer.body)
        self._update_replica_counters(answer)
        return web.Response(status=answer.status, body=answer.body, content_type="application/json")

    def _update_replica_counters(self, answer: ReplicaResponse) -> None:
        """Keep the latest counters of as many replicas as there are; those of dead ones go first."""
        if not answer.replica:
            return
        by_replica = self.counts.replica_counters
        by_replica.pop(answer.replica, None)
        by_replica[answer.replica] = answer.counters
        while len(by_replica) > self.pool.card.replicas:
            del by_replica[next(iter(by_replica))]

    async def _models(self, request: web.Request) -> web.StreamResponse:
        model = {
            "id": self._served_name,
            "object": "model",
            "created": self._created,
            "owned_by": "weft",
            "weft": msgspec.to_builtins(self.pool.card),
        }
        return web.json_response({"object": "list", "data": [model]})

    async def _health(self, request: web.Request) -> web.StreamResponse:
        ready, expected = await self.pool.health()
        if ready:
            return web.json_response({"status": "ok", "replicas": ready, "expected": expected})
        return web.json_response({"status": "down", "replicas": ready, "expected": expected}, status=503)

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        ready, expected = await self.pool.health()
        return web.Response(text=format_metrics(self.counts, ready, expected), content_type="text/plain")


def format_metrics(counts: RequestCounts, ready: int, expected: int) -> str:
    """Format counts in Prometheus' text format; `ready` of `expected` replicas answer."""
    lines = ["# TYPE weft_requests_total counter"]
    lines += [f'weft_requests_total{{status="{status}"}} {count}' for status, count in sorted(counts.by_status.items())]
    for name, kind, value in (
        ("weft_request_seconds_total", "counter", counts.seconds),
        ("weft_requests_in_flight", "gauge", counts.in_flight),
        ("weft_received_bytes_total", "counter", counts.bytes_in),
        ("weft_sent_bytes_total", "counter", counts.bytes_out),
        ("weft_replicas_ready", "gauge", ready),
        ("weft_replicas_expected", "gauge", expected),
    ):
        lines += [f"# TYPE {name} {kind}", f"{name} {value:g}"]
    for name in sorted(set[str]().union(*counts.replica_counters.values())):
        metric = f"weft_replica_{name}_total"
        kind = "counter"
        if name in GAUGES:
            metric = f"weft_replica_{name}"
            kind = "gauge"
        lines.append(f"# TYPE {metric} {kind}")
        for replica, counters in sorted(counts.replica_counters.items()):
            if name in counters:
                lines.append(f'{metric}{{replica="{replica}"}} {counters[name]:g}')
    return "\n".join(lines) + "\n"


async def _receive(request: web.Request, held: HeldBytes) -> bytes | web.Response:
    """Return a request's body, or the error that answers it. Raises QueueFull."""
    try:
        return await asyncio.wait_for(_read_body(request, held), UPLOAD_TIMEOUT_S)
    except TimeoutError:
        return _error_response(408, f"the request was not sent within {UPLOAD_TIMEOUT_S:g} s", "slow")
    except (web.RequestPayloadError, ValueError) as error:
        return _error_response(400, f"the body could not be read: {error}", "body")


async def _read_body(request: web.Request, held: HeldBytes) -> bytes:
    """Read a body, counting what has arrived: what only is announced takes nobody's place."""
    chunks: list[bytes] = []
    async for chunk in request.content.iter_any():
        if held.size + len(chunk) > MAX_REQUEST_BYTES:
            raise web.HTTPRequestEntityTooLarge(MAX_REQUEST_BYTES, held.size + len(chunk))
        held.add(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


def _error_response(status: int, message: str, code: str) -> web.Response:
    return web.Response(status=status, body=format_error(message, code), content_type="application/json")
