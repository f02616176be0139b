"""A key with a known value, sent to every provider through every kind of failure, each of which tells it back in every
way it can: then it is looked for in everything that is left of the run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes import FAKES, Fake
from forked import run_forked
from waiting import HANGS

CANARY = "sk-canary-5f0e1d2c3b4a59687706"
FAILURES = (
    "400",
    "401",
    "403",
    "404",
    "408",
    "413",
    "429",
    "500",
    "503",
    "blocked",
    "error in 200",
    "html",
    "cut",
    "redirect",
    "words",
)
SCRIPT = """
import logging, pathlib, sys, traceback
import weft
from weft.calls.caller import RetryPolicy
logging.basicConfig(level=logging.DEBUG)
data, home, model = sys.argv[1:]
print(pathlib.Path("/proc/self/cmdline").read_bytes())
try:
    judge = model if model.split("/")[0] in ("openai", "anthropic", "sglang", "openai-chat") else "constant/1"
    run = weft.evaluate("weave", data=data, model="copy" if judge == model else model, judge=judge, home=home,
                        retry_policy=RetryPolicy(tries=2, rate_limit_tries=2, base=0.001, cap=0.002))
    for kind in ("csv", "json", "md", "latex"):
        print(run.report(kind))
except BaseException:
    traceback.print_exc()
"""


def telling(fake: Fake) -> Fake:
    """The fake, of which every answer but the first of each kind tells the headers that it was sent."""
    count = 0

    @web.middleware
    async def tell(request: web.Request, handler: Any) -> web.StreamResponse:
        nonlocal count
        kind = FAILURES[count % len(FAILURES)]
        count += 1
        told = "; ".join(f"{name}: {value}" for name, value in request.headers.items())
        bodies = {"error": {"message": f"you sent {told}", "code": kind, "type": told, "param": told}, "detail": told}
        if kind.isdigit():
            return web.json_response(
                bodies, status=int(kind), headers={"X-Told": told.replace("\r", ""), "Retry-After": "0"}
            )
        if kind == "blocked":
            return web.json_response({"error": {**bodies["error"], "code": "moderation_blocked"}}, status=400)
        if kind == "error in 200":
            return web.json_response(bodies)
        if kind == "html":
            return web.Response(text=f"<html>{told}</html>", content_type="text/html", status=502)
        if kind == "redirect":
            return web.Response(status=302, headers={"Location": f"{fake.url}/?{told.replace(' ', '')[:500]}"})
        if kind == "words":
            said = {"role": "assistant", "content": told}
            return web.json_response(
                {"choices": [{"message": said}], "content": [{"type": "text", "text": told}], "data": [], "output": []}
            )
        response = web.StreamResponse(headers={"Content-Length": "100000"})
        await response.prepare(request)
        await response.write(told.encode())
        if request.transport is not None:
            request.transport.close()
        return response

    fake.middlewares = [tell]
    return fake


@pytest.mark.parametrize("provider", [name for name in FAKES if name != "infer"])  # which takes no key
def test_the_key_is_nowhere_after_a_run_with_every_failure(provider: str, toy: Path, tmp_path: Path, stand: Any):
    sent: list[str] = []
    fake = telling(FAKES[provider]())

    @web.middleware
    async def watch(request: web.Request, handler: Any) -> web.StreamResponse:
        sent.append(str(dict(request.headers)))
        return await handler(request)

    fake.middlewares.insert(0, watch)
    stand(fake)
    home = tmp_path / "home"
    words = [sys.executable, "-c", SCRIPT, str(toy), str(home), fake.name]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=HANGS, env={**os.environ, "WEFT_API_KEY": CANARY}, cwd=tmp_path
    )
    assert any(CANARY in one for one in sent) and len(sent) >= 3, (done.stdout[-500:], done.stderr[-1500:])
    assert CANARY not in done.stdout and CANARY not in done.stderr
    page = run_forked("report", "last", "--home", str(home), "--out", str(tmp_path / "site"), cwd=tmp_path)
    assert CANARY not in page.stdout + page.stderr
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "journal.sqlite" for path in left) and (
        page.returncode or any(path.suffix == ".html" for path in left)
    )
    assert not [path for path in left if CANARY.encode() in path.read_bytes()]
