"""Trouble of every kind between weft and a fake, whatever its wire: a share of all requests meets some, each at most
twice, so that patience gets over it. What it made is counted by kind; so is what went through, by request."""

import asyncio
import hashlib
import random
from collections import Counter
from typing import Any

from aiohttp import web

STATUSES = ("408", "409", "425", "429", "500", "502", "503", "504", "529")
KINDS = (*STATUSES, "reset", "cut", "half", "html", "empty", "error in 200", "hang", "slow")
HANG, SLOW = 3.0, 0.05


class Chaos:
    def __init__(self, share: float, seed: int = 0, hang: float = HANG) -> None:
        self._share, self._seed, self._hang = share, seed, hang
        self.faults: Counter[str] = Counter()
        self.times: Counter[str] = Counter()
        self.through: Counter[str] = Counter()  # requests that were answered as they should be, and came back whole
        self.requests = 0

    @property
    def middleware(self) -> Any:
        @web.middleware
        async def meet(request: web.Request, handler: Any) -> web.StreamResponse:
            self.requests += 1
            form = request.content_type.startswith("multipart/")  # it can be read once, and its boundary is its own
            of = request.headers["Content-Type"] if form else hashlib.sha256(await request.read()).hexdigest()
            key = f"{request.method} {request.path_qs} {of}"
            self.times[key] += 1
            chance = random.Random(f"{self._seed} {self.times[key]} {key}")
            if self.times[key] > 2 or chance.random() >= self._share:
                made = await handler(request)
                self.through[key] += 1
                return made
            kind = chance.choice(KINDS)
            self.faults[kind] += 1
            return await self._fault(kind, request, handler)

        return meet

    async def _fault(self, kind: str, request: web.Request, handler: Any) -> web.StreamResponse:
        if kind in STATUSES:
            headers = {"Retry-After": "0"} if kind in ("429", "503", "529") else {}
            return web.json_response(
                {"error": {"message": "trouble", "type": "server_error"}}, status=int(kind), headers=headers
            )
        if kind in ("html", "empty"):
            return web.Response(text="<html>busy</html>" if kind == "html" else "", content_type="text/html")
        if kind == "error in 200":
            return web.json_response({"error": {"message": "overloaded", "code": 503, "status": "UNAVAILABLE"}})
        if kind == "hang":
            await asyncio.sleep(self._hang)
        if kind == "slow":
            await asyncio.sleep(SLOW)
            made = await handler(request)
            return made
        good = await handler(request)
        body = good.body if isinstance(good, web.Response) and isinstance(good.body, bytes) else b"{}"
        response = web.StreamResponse(headers={"Content-Length": str(len(body)), "Content-Type": "application/json"})
        await response.prepare(request)
        await response.write({"cut": body[:10], "half": body[: len(body) // 2]}.get(kind, b""))
        if request.transport is not None:
            request.transport.abort() if kind == "reset" else request.transport.close()
        return response
