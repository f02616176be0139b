"""kill -9 at each step of a batch: before the server has heard of a request, before its answer is back, or soon after.
The command that follows scores everything, and nothing that was paid for is paid for again."""

import asyncio
import contextlib
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from fakes import OpenAI
from fuzz import Broken
from toy import toy_records, write_weave
from waiting import HANGS
from weft import api

RUN = """
import sys, weft, weft.models.batch_api as batch_api
batch_api.QUIET_PERIOD_S, batch_api.FINAL_QUIET_PERIOD_S, batch_api.POLL_INTERVAL_S = 2.0, 0.1, 0.02
data, judge, home = sys.argv[1:]
weft.evaluate("weave", data=data, model="copy", judge=judge, home=home, judge_batch=True)
"""
WHEN = ("before", "answered", "after")
LIVE_AGAIN = 1  # the one request that goes out live, if it is the one that was cut off
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server(OpenAI):
    """Kills its client at one request, counted from 0."""

    def __init__(self, step: int | None, when: str, pause: float) -> None:
        super().__init__()
        self.client: subprocess.Popen[bytes] | None = None
        self.step, self.when, self.pause = step, when, pause
        self.requests: list[str] = []

        @web.middleware
        async def killing(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._handle(request, handler)

        self.middlewares = [killing]

    async def _handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        step = len(self.requests)
        self.requests.append(f"{request.method} {request.path}")
        if step == self.step and self.when == "before":
            self._kill()
        answer = await handler(request)
        if step == self.step and self.when == "answered":
            self._kill()
        if step == self.step and self.when == "after":
            asyncio.get_running_loop().call_later(self.pause, self._kill)
        return answer

    def _kill(self) -> None:
        if self.client is not None:
            self.client.kill()

    @property
    def paid(self) -> int:
        return len(self.seen) + sum(len(self.batches.lines(file)) for file in self.batches.by_file)


@contextlib.contextmanager
def standing(server: Server) -> Iterator[Server]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    closing = contextlib.AsyncExitStack()
    asyncio.run_coroutine_threadsafe(closing.enter_async_context(server.up()), loop).result(HANGS)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(closing.aclose(), loop).result(HANGS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(HANGS)
        loop.close()


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    data = write_weave(folder / "batch-data", toy_records())
    with standing(Server(None, "", 0.0)) as server:
        whole = _finished(server, data, folder / "batch-whole")
        steps, paid = server.requests, server.paid
    done: Counter[str] = Counter()
    first = chance.randrange(len(steps))
    for number in range(count):
        step = (first + number) % len(steps)  # each step in turn
        when = chance.choice(WHEN)
        with standing(Server(step, when, chance.uniform(0.0, 0.05))) as server:
            home = folder / f"batch-{number}"
            server.client = _started(server, data, home)
            code = server.client.wait(HANGS)
            server.client = None
            where = f"{when} {steps[step]} (step {step})"
            if _finished(server, data, home) != whole:
                raise Broken(f"another table after a kill {where}")
            if server.paid > paid + LIVE_AGAIN:
                raise Broken(f"{server.paid} requests were paid for instead of {paid} after a kill {where}")
            done["requests paid for again"] += max(0, server.paid - paid)
        done[f"killed {when}" if code else "too late to be killed"] += 1
    return done


def _started(server: Server, data: Path, home: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", RUN, str(data), server.name, str(home)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _finished(server: Server, data: Path, home: Path) -> dict[Any, Any]:
    if code := _started(server, data, home).wait(HANGS):
        raise Broken(f"the command that followed ended with {code}")
    run = api.load("last", home=home)
    scores = {(verdict.sample, verdict.turn, verdict.metric): verdict.value for verdict in run.verdicts}
    if None in scores.values():
        raise Broken("something is unscored")
    return scores
