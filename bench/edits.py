"""A thousand edits of a megapixel with a judge of half a second, 32 in flight: how near a run comes to the bound that
the judge's latency sets.

    python bench/edits.py [--edits 1000] [--width 32] [--latency 0.5]

Items of ImgEdit whose sources and edits are JPEG files of 1024 x 1024 pixels, each with bytes of its own, judged from
a folder in one call each. The bound is edits x latency / width; beside it stands bare aiohttp, which reads the same
files, encodes them as base64 and posts them. The server and both clients are processes of their own. Goal: within
1.15 of the bound."""

import argparse
import asyncio
import base64
import io
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIDE, SOURCES = 1024, 32
TYPES = ("add", "adjust", "extract", "replace", "remove", "background", "style", "compose", "action")
SCORES = {name: {"reasoning": "so", "score": 4} for name in ("compliance", "seamlessness", "detail")}
MARKER = b"\xff\xfe"  # of a comment in a JPEG file


async def serve(latency: float) -> None:
    """A judge that answers after a while, and does nothing else."""
    from aiohttp import web

    message = {"role": "assistant", "content": json.dumps(SCORES)}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    body = json.dumps({"model": "m", "choices": [choice], "usage": {"prompt_tokens": 5}})

    async def answer(request: web.Request) -> web.Response:
        due = asyncio.get_running_loop().time() + latency
        await request.read()
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        return web.Response(text=body, content_type="application/json")

    app = web.Application(client_max_size=64 * 1024**2)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


def write_files(folder: Path, edits: int) -> None:
    """Write items, their sources and their edits. A comment makes the bytes of each file its own."""
    from PIL import Image

    bases: list[bytes] = []
    for _ in range(SOURCES):
        small = Image.frombytes("RGB", (128, 128), os.urandom(128 * 128 * 3))
        out = io.BytesIO()
        small.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(out, "JPEG", quality=90)
        bases.append(out.getvalue())
    for place in ("data/images", "outputs"):
        (folder / place).mkdir(parents=True)
    items: dict[str, Any] = {}
    for number in range(edits):
        items[str(number)] = {"id": f"{number}.jpg", "prompt": f"Edit {number}.", "edit_type": TYPES[number % 9]}
        (folder / "data" / "images" / f"{number}.jpg").write_bytes(mark(bases[number % SOURCES], f"source {number}"))
        (folder / "outputs" / f"{number}.jpg").write_bytes(mark(bases[(number + 1) % SOURCES], f"made {number}"))
    (folder / "data" / "basic_edit.json").write_text(json.dumps(items))


def mark(jpeg: bytes, comment: str) -> bytes:
    text = comment.encode()
    return jpeg[:2] + MARKER + (len(text) + 2).to_bytes(2, "big") + text + jpeg[2:]


async def bare(url: str, folder: Path, edits: int, width: int) -> float:
    """What a careful person would write without weft."""
    import aiohttp

    gate = asyncio.Semaphore(width)

    def build_body(number: int) -> bytes:
        content: list[Any] = [{"type": "text", "text": f"Edit {number}."}]
        for path in (folder / "data" / "images" / f"{number}.jpg", folder / "outputs" / f"{number}.jpg"):
            encoded = base64.b64encode(path.read_bytes()).decode()
            content.append({"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{encoded}"}})
        return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()

    async def call(session: aiohttp.ClientSession, number: int) -> None:
        async with gate:
            body = await asyncio.to_thread(build_body, number)
            async with session.post(f"{url}/chat/completions", data=body) as came:
                assert "compliance" in (await came.json(content_type=None))["choices"][0]["message"]["content"]

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        start = time.perf_counter()
        await asyncio.gather(*(call(session, number) for number in range(edits)))
        return time.perf_counter() - start


def ours(url: str, folder: Path, edits: int, width: int) -> float:
    import weft

    start = time.perf_counter()
    run = weft.evaluate(
        "imgedit", data=folder / "data", model=f"folder/{folder / 'outputs'}", judge=f"openai-chat/m@{url}",
        home=folder / "home", preflight=False, judge_concurrency=width, concurrency=width,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    judged = [verdict for verdict in run.verdicts if verdict.metric == "compliance"]
    assert len(judged) == edits and all(verdict.value == 0.8 for verdict in judged), judged[:3]
    return seconds


def measure(what: str, url: str, folder: Path, edits: int, width: int) -> tuple[float, float, float]:
    """Seconds, seconds of processor time, and peak megabytes, in a process of its own."""
    words = [sys.executable, __file__, "--as", what, "--url", url, "--folder", str(folder)]
    words += ["--edits", str(edits), "--width", str(width)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    seconds, busy, memory = map(float, done.stdout.split())
    return seconds, busy, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.5)
    for hidden in ("as", "url", "folder"):
        parser.add_argument(f"--{hidden}", dest=f"{hidden}_", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.as_ == "server":
        asyncio.run(serve(chosen.latency))
    if chosen.as_:
        place = (chosen.url_, Path(chosen.folder_), chosen.edits, chosen.width)
        seconds = asyncio.run(bare(*place)) if chosen.as_ == "bare" else ours(*place)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
        return
    bound = math.ceil(chosen.edits / chosen.width) * chosen.latency
    words = [sys.executable, __file__, "--as", "server", "--latency", str(chosen.latency)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as scratch:
            write_files(Path(scratch), chosen.edits)
            size = sum(path.stat().st_size for path in Path(scratch).rglob("*.jpg")) / 1e6
            print(
                f"{chosen.edits:,} edits, {size:.0f} MB of images, {chosen.width} calls of {chosen.latency} s in flight"
            )
            print(f"bound     {bound:7.2f} s")
            for what in ("bare", "weft"):
                seconds, busy, memory = measure(what, url, Path(scratch), chosen.edits, chosen.width)
                ratio = f"{seconds / bound:.3f} of the bound"
                print(f"{what:9} {seconds:7.2f} s  {ratio}, processor {busy:.2f} s, {memory:.0f} MB")
    finally:
        server.kill()


if __name__ == "__main__":
    main()
