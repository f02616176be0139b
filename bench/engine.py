"""How much the engine costs, on loopback, as ratios from one run.

    python bench/engine.py

1. Judge calls with three 1 MB PNGs each (latency 0.5 s, 32 in flight, 256 calls): calls a second of weft's caller, with
journal and
   blob store, over those of bare aiohttp that builds its bodies with base64 and json; peak memory of each; bytes stored
   over the
   bytes of distinct pictures.
2. A whole run with model and judge at 0.4 s each: wall time over that of the longer of the two pipelines alone.

Server and clients are processes of their own. Goals: at least 0.95, under 400 MB, at most 1.05, within 1.1."""

import argparse
import asyncio
import base64
import io
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

CALLS, WIDTH, LATENCY, PICTURES = 256, 32, 0.5, 24


def pictures(folder: Path) -> list[Path]:
    """Distinct PNGs of about 1 MB: noise does not compress."""
    from PIL import Image

    made = []
    for number in range(PICTURES):
        path = folder / f"{number}.png"
        if not path.exists():
            out = io.BytesIO()
            Image.frombytes("RGB", (592, 592), random.Random(number).randbytes(592 * 592 * 3)).save(out, "PNG")
            path.write_bytes(out.getvalue())
        made.append(path)
    return made


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def bare(url: str, folder: Path) -> dict:
    """What a careful person would write without weft."""
    import aiohttp

    files = pictures(folder)
    gate = asyncio.Semaphore(WIDTH)

    async def call(session: aiohttp.ClientSession, number: int) -> None:
        async with gate:
            parts = [{"type": "text", "text": f"judge {number}"}]
            for k in range(3):
                data = base64.b64encode(files[(number + k) % PICTURES].read_bytes()).decode()
                parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}})
            body = {"model": "judge", "messages": [{"role": "user", "content": parts}]}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                json.loads((await response.json())["choices"][0]["message"]["content"])

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.perf_counter()
        await asyncio.gather(*(call(session, number) for number in range(CALLS)))
        return {"seconds": time.perf_counter() - began, "peak_mb": peak_mb()}


async def ours(url: str, folder: Path) -> dict:
    from weft.calls.budget import Budget
    from weft.calls.caller import Caller
    from weft.models.providers.openai_chat import OpenAIChat
    from weft.store.blobs import Blobs
    from weft.store.journal import Journal
    from weft.types import Message, Request, Text

    home = Path(tempfile.mkdtemp(dir=folder))
    blobs = Blobs(home / "blobs")
    images = [blobs.put(path.read_bytes(), durable=False) for path in pictures(folder)]
    journal = Journal(home / "journal.sqlite")
    endpoint = OpenAIChat("judge", url, blobs)
    caller = Caller(endpoint, role="judge", journal=journal, budget=Budget(), concurrency=WIDTH)

    async def call(number: int) -> None:
        parts = (Text(f"judge {number}"), *(images[(number + k) % PICTURES] for k in range(3)))
        reply = await caller.reply((Message("user", parts),), Request("text"))
        assert reply.outcome == "answered", reply.reason

    began = time.perf_counter()
    await asyncio.gather(*(call(number) for number in range(CALLS)))
    seconds = time.perf_counter() - began
    await endpoint.close()
    journal.close()
    return {"seconds": seconds, "peak_mb": peak_mb(), "stored": bytes_in(home) / sum(image.size for image in images)}


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def overlap(url: str, folder: Path) -> dict:
    """96 dialogues of the tests' toy data, 16 in flight at model and judge each. Then each pipeline alone: with the
    other's answers in the journal, every call of its own is made anew."""
    import weft
    from toy import more_records, write_weave

    data = write_weave(folder / "toy", more_records(24))

    async def timed(**options: object) -> tuple[float, weft.Run]:
        ends = {"model": f"openai-chat/model@{url}", "judge": f"openai-chat/judge@{url}", "concurrency": 16}
        began = time.perf_counter()
        run = await weft.evaluate_async("weave", data=data, home=folder / "overlap", **ends, **options)
        return time.perf_counter() - began, run

    both, run = await timed()
    calls = {total.role: total.calls for total in run.totals}
    judge, _ = await timed(judge_options={"seed": 1})
    model, _ = await timed(model_options={"seed": 1})
    return {"seconds": both, "judge": judge, "model": model, "calls": calls, "least": max(calls.values()) * 0.4 / 16}


def in_process(name: str, url: str, folder: Path) -> dict:
    done = subprocess.run(
        [sys.executable, __file__, "--part", name, "--url", url, "--folder", str(folder)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def served(latency: float) -> tuple[subprocess.Popen, str]:
    words = [sys.executable, str(HERE.parent / "tests" / "server.py"), "--latency", str(latency), "--light"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        size = sum(path.stat().st_size for path in pictures(folder)) / PICTURES
        process, url = served(LATENCY)
        in_process("bare", url, folder)  # warms the server and the file cache
        rounds = [(in_process("bare", url, folder), in_process("ours", url, folder)) for _ in range(3)]
        process.kill()
        ratios = sorted(a["seconds"] / b["seconds"] for a, b in rounds)
        best = min(rounds, key=lambda pair: pair[1]["seconds"])
        print(
            f"{CALLS} judge calls, 3 PNGs of {size / 1e6:.2f} MB each, latency {LATENCY} s, {WIDTH} in flight, "
            f"{os.cpu_count()} cores"
        )
        print(f"  bare aiohttp  {CALLS / best[0]['seconds']:6.1f} calls/s  peak {best[0]['peak_mb']:5.0f} MB")
        print(f"  weft          {CALLS / best[1]['seconds']:6.1f} calls/s  peak {best[1]['peak_mb']:5.0f} MB")
        print(f"  ratio {ratios[1]:.2f} (three rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)}; goal 0.95)")
        print(f"  bytes stored over distinct picture bytes {best[1]['stored']:.3f} (goal 1.05)")
        process, url = served(0.4)
        made = in_process("overlap", url, folder)
        process.kill()
        longer, calls = max(made["judge"], made["model"]), made["calls"]
        print(
            f"a run with model and judge at 0.4 s, {calls['model']} and {calls['judge']} calls, 16 in flight: "
            f"{made['seconds']:.1f} s"
        )
        print(f"  the judge's pipeline alone {made['judge']:.1f} s, the model's {made['model']:.1f} s")
        print(f"  ratio to the longer {made['seconds'] / longer:.2f} (goal 1.1)")
        print(
            f"  ratio to the least that its calls can take ({made['least']:.1f} s) "
            f"{made['seconds'] / made['least']:.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--part")
    parser.add_argument("--url")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    if chosen.part:
        print(
            json.dumps(
                asyncio.run({"bare": bare, "ours": ours, "overlap": overlap}[chosen.part](chosen.url, chosen.folder))
            )
        )
    else:
        main()
