"""Whether as much gets done where nobody gives a concurrency as with the best that could have been given, on loopback.

    python bench/limiter.py [SERVER ...]

Servers that push back in seven ways, each a process of its own; each is asked the same by weft's caller, with journal
and the usual patience: once with the limit found by trying, then with 1, 2, 4 ... 64 in flight, whatever is turned
away. Calls answered a second, from the first call to the last answer, over those of the best fixed number. A fixed
number that takes longer than the limiter did is cut short: it is not the best. Goal: at least 0.80 everywhere; the exit
code is 1 where it is missed."""

import argparse
import asyncio
import json
import math
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

WIDTHS = (1, 2, 4, 8, 12, 16, 24, 32, 64)
GOAL = 0.80
BESIDE = 6  # servers that are measured side by side, where each is mostly waited for


@dataclass(frozen=True)
class Shape:
    calls: int
    seconds: float  # of work on one request
    timeout: float = 60.0  # of the client
    rate: float = 0.0  # requests a second that are let in, and at most so many at once after a pause
    burst: int = 0
    hint: bool = False  # whether who is turned away is told when to come again
    places: int = 0  # requests that are worked on at once; 0: all
    full: str = "wait"  # what becomes of others: they wait, are turned away, or hang


SHAPES = {
    "lock": Shape(calls=500, seconds=0.05, places=1),
    "token bucket, with a hint": Shape(calls=800, seconds=0.1, rate=40, burst=20, hint=True),
    "token bucket, without": Shape(calls=800, seconds=0.1, rate=40, burst=20),
    "12 workers": Shape(calls=1000, seconds=0.1, places=12),
    "overload over 24": Shape(calls=1500, seconds=0.2, places=24, full="503"),
    "time-outs over 16": Shape(calls=1200, seconds=0.2, places=16, full="hang", timeout=2.0),
    "plenty": Shape(calls=1500, seconds=0.1),
}
ALONE = ("plenty",)  # keeps a core busy


# the servers


class Server:
    def __init__(self, shape: Shape) -> None:
        self._shape, self._tokens, self._filled = shape, float(shape.burst), time.monotonic()
        self._places = asyncio.Semaphore(shape.places or 1_000_000)

    async def answer(self, request):
        from aiohttp import web

        await request.read()
        shape = self._shape
        if shape.rate:
            now = time.monotonic()
            self._tokens, self._filled = min(shape.burst, self._tokens + shape.rate * (now - self._filled)), now
            if self._tokens < 1:
                hint = {"Retry-After": str(math.ceil((1 - self._tokens) / shape.rate))} if shape.hint else {}
                return web.json_response({"error": {"message": "too many requests"}}, status=429, headers=hint)
            self._tokens -= 1
        if self._places.locked() and shape.full == "503":
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        if self._places.locked() and shape.full == "hang":
            await asyncio.sleep(10 * shape.timeout)
        async with self._places:
            await asyncio.sleep(shape.seconds)
        message = {"role": "assistant", "content": "yes"}
        usage = {"prompt_tokens": 10, "completion_tokens": 1}
        return web.json_response(
            {"model": "m", "usage": usage, "choices": [{"finish_reason": "stop", "message": message}]}
        )


async def serve(name: str) -> None:
    from aiohttp import web

    app = web.Application()
    app.router.add_post("/v1/chat/completions", Server(SHAPES[name]).answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.Event().wait()


# the client


async def asked(name: str, url: str, width: int | None, most: float | None) -> dict:
    """All calls, as many of them under way as a run has; cut short after `most` seconds."""
    from weft.calls.budget import Budget
    from weft.calls.caller import Caller
    from weft.calls.roles import MIN_SAMPLES_IN_FLIGHT
    from weft.errors import WeftError
    from weft.models.registry import resolve_endpoint
    from weft.store.blobs import Blobs
    from weft.store.journal import Journal
    from weft.types import Message, Request, Text

    shape = SHAPES[name]
    with tempfile.TemporaryDirectory() as home:
        blobs, journal = Blobs(Path(home) / "blobs"), Journal(Path(home) / "journal.sqlite")
        endpoint = resolve_endpoint(f"openai-chat/m@{url}", blobs, {"timeout": shape.timeout})
        caller = Caller(endpoint, role="model", journal=journal, budget=Budget(), concurrency=width)
        if width is not None:
            caller.limiter.minimum = width  # a fixed number stays what it is
        numbers, answered, last = iter(range(shape.calls)), 0, 0.0

        async def work() -> None:
            nonlocal answered, last
            for number in numbers:
                reply = await caller.reply((Message("user", (Text(f"{number}"),)),), Request("text"))
                if reply.outcome == "answered":
                    answered, last = answered + 1, time.perf_counter()

        began = time.perf_counter()
        workers = [asyncio.create_task(work()) for _ in range(max(MIN_SAMPLES_IN_FLIGHT, 2 * caller.limiter.maximum))]
        _, cut = await asyncio.wait(workers, timeout=most)
        if cut:
            last = time.perf_counter()
        for worker in cut:
            worker.cancel()
        ended = await asyncio.gather(*workers, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception) and not isinstance(error, WeftError):
                raise error
        await endpoint.close()
        journal.close()
    seconds, failed = last - began, 0 if cut else shape.calls - answered
    return {"rate": answered / seconds, "seconds": seconds, "away": caller.tally.retries.total(), "failed": failed}


def measured(name: str, width: int | None, most: float | None) -> dict:
    words = [sys.executable, __file__, "--width", str(width or 0), "--most", str(most or 0)]
    server = subprocess.Popen([*words, "--part", "serve", name], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        done = subprocess.run([*words, "--part", "ask", "--url", url, name], capture_output=True, text=True)
    finally:
        server.kill()
        server.wait()
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def compared(name: str) -> tuple[bool, str]:
    """A line of the table, and whether the goal is met."""
    found = measured(name, None, None)
    fixed = {width: measured(name, width, 1.1 * found["seconds"]) for width in WIDTHS}
    width = max(fixed, key=lambda one: fixed[one]["rate"])
    best = fixed[width]
    ratio = found["rate"] / best["rate"]
    line = f"{name:28}{best['rate']:9.1f} ({width:2}){found['rate']:12.1f}{ratio:8.2f}"
    line += f"{found['away']:14}{best['away']:10}{found['failed']:9}"
    print(f"  {name}: " + ", ".join(f"{one}: {fixed[one]['rate']:.1f}" for one in WIDTHS), file=sys.stderr)
    return ratio >= GOAL, line


def main(names: list[str]) -> int:
    began = time.perf_counter()
    light = [name for name in names if name not in ALONE]
    with ThreadPoolExecutor(BESIDE) as pool:
        lines = dict(zip(light, pool.map(compared, light), strict=True))
    lines |= {name: compared(name) for name in names if name in ALONE}
    print("calls answered a second     best fixed (n)   by trying   ratio   turned away   (fixed)   failed")
    for name in names:
        print(lines[name][1])
    print(f"goal: {GOAL:.2f}; {time.perf_counter() - began:.0f} s in all")
    return 0 if all(met for met, _ in lines.values()) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="SERVER", help=", ".join(SHAPES))
    parser.add_argument("--part", choices=("serve", "ask"), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--width", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--most", type=float, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part == "serve":
        asyncio.run(serve(chosen.names[0]))
    elif chosen.part == "ask":
        print(json.dumps(asyncio.run(asked(chosen.names[0], chosen.url, chosen.width or None, chosen.most or None))))
    else:
        sys.exit(main(chosen.names or list(SHAPES)))
