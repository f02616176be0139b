"""A thousand calls in flight to one endpoint: weft's caller, with memo, limiter, budget and journal, beside bare
aiohttp.

    python bench/flight.py [--calls 5000] [--width 1000] [--latency 1.0]

Small requests, since it is the number that is measured. Server and clients are processes of their own. Prints calls a
second and peak memory of each, and the ratio."""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))


async def serve(latency: float) -> None:
    """It answers after a while, and does nothing else."""
    from aiohttp import web

    message = {"role": "assistant", "content": "yes"}
    body = json.dumps(
        {
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 5},
        }
    )

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(latency)
        return web.Response(text=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
    await site.start()
    print(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.Event().wait()


def text(number: int) -> str:
    return f"question {number}: is this the {number}th?"


async def bare(url: str, calls: int, width: int) -> float:
    import aiohttp

    gate = asyncio.Semaphore(width)

    async def call(session: aiohttp.ClientSession, number: int) -> None:
        payload = {"model": "m", "messages": [{"role": "user", "content": text(number)}], "stream": False}
        async with gate, session.post(f"{url}/chat/completions", json=payload) as came:
            assert (await came.json())["choices"][0]["message"]["content"] == "yes"

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.perf_counter()
        await asyncio.gather(*(call(session, number) for number in range(calls)))
        return time.perf_counter() - began


async def ours(url: str, calls: int, width: int) -> float:
    from weft.calls.budget import Budget
    from weft.calls.caller import Caller
    from weft.calls.prices import Price
    from weft.models.registry import resolve_endpoint
    from weft.store.blobs import Blobs
    from weft.store.journal import Journal
    from weft.types import Message, Request, Text

    with tempfile.TemporaryDirectory() as scratch:
        blobs, journal = Blobs(Path(scratch) / "blobs"), Journal(Path(scratch) / "journal.sqlite")
        endpoint = resolve_endpoint(f"openai-chat/m@{url}", blobs)
        told = {"journal": journal, "budget": Budget(), "price": Price(1.0, 1.0), "blobs": blobs, "run": "r"}
        caller = Caller(endpoint, role="model", concurrency=width, **told)
        began = time.perf_counter()
        await asyncio.gather(
            *(caller.reply((Message("user", (Text(text(number)),)),), Request("text")) for number in range(calls))
        )
        seconds = time.perf_counter() - began
        await endpoint.close()
        kept = journal.totals("r")[0]
        journal.close()
        assert kept.calls == kept.answered == calls, kept
        return seconds


def measured(what: str, url: str, calls: int, width: int) -> tuple[float, float]:
    """Calls a second and megabytes, in a process of its own."""
    words = [sys.executable, __file__, "--as", what, "--url", url, "--calls", str(calls), "--width", str(width)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    )
    rate, memory = map(float, done.stdout.split())
    return rate, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--as", dest="what", default="", help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    if chosen.what == "server":
        asyncio.run(serve(chosen.latency))
    if chosen.what:
        seconds = asyncio.run((bare if chosen.what == "bare" else ours)(chosen.url, chosen.calls, chosen.width))
        print(chosen.calls / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    words = [sys.executable, __file__, "--as", "server", "--latency", str(chosen.latency)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        rounds = [
            {what: measured(what, url, chosen.calls, chosen.width) for what in ("bare", "ours")} for _ in range(3)
        ]
    finally:
        server.kill()
    best = {what: max(one[what][0] for one in rounds) for what in ("bare", "ours")}
    memory = {what: max(one[what][1] for one in rounds) for what in ("bare", "ours")}
    print(
        f"{chosen.calls} calls, {chosen.width} in flight, {chosen.latency:g} s each (at most "
        f"{chosen.width / chosen.latency:.0f} a second)"
    )
    for what, name in (("bare", "bare aiohttp"), ("ours", "weft")):
        print(f"  {name:<14}{best[what]:>8.0f} calls/s{memory[what]:>8.0f} MB")
    print(f"  ratio {best['ours'] / best['bare']:.2f} of calls, {memory['ours'] / memory['bare']:.2f} of memory")


if __name__ == "__main__":
    main()
