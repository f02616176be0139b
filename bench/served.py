"""What the way through a server costs: the same calls of a model that takes no time, in this process, behind `weft
serve` in one process, and behind two replicas on Ray.

    python bench/served.py [--calls 2000] [--no-ray]

Each call goes through weft's caller, with its memo and its journal. Once with words alone, once with a picture of a
megabyte in and out. Prints calls a second, milliseconds that a call costs more than in this process, and ratios."""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = """
from PIL import Image

class Model:
    name, version, batch_size = "quick", "1", 32

    def batch(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        if request.want == "text":
            return "yes"
        return [part for _, parts in request.messages for part in parts if not isinstance(part, str)][-1].data
"""


async def timed(model: str, home: Path, calls: int, picture: bytes | None) -> float:
    """Calls a second."""
    from weft.calls.budget import Budget
    from weft.calls.caller import Caller
    from weft.models.registry import resolve_endpoint
    from weft.store.blobs import Blobs
    from weft.store.journal import Journal
    from weft.types import Message, Request, Text

    blobs = Blobs(home / "blobs")
    endpoint = resolve_endpoint(model, blobs)
    await endpoint.load()
    journal = Journal(home / "journal.sqlite")
    caller = Caller(endpoint, role="model", journal=journal, budget=Budget(None), blobs=blobs)
    shown = (blobs.put(picture),) if picture else ()
    want = Request("image" if picture else "text")

    async def call(number: int) -> None:
        reply = await caller.reply((Message("user", (*shown, Text(f"question {number}"))),), want)
        assert reply.outcome == "answered", reply.reason

    await asyncio.gather(*(call(-number) for number in range(1, 9)))
    began = time.perf_counter()
    await asyncio.gather(*(call(number) for number in range(calls)))
    took = time.perf_counter() - began
    await endpoint.close()
    journal.close()
    return calls / took


def noise(side: int = 590) -> bytes:
    """A picture of about a megabyte."""
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.frombytes("RGB", (side, side), os.urandom(3 * side * side)).save(out, "PNG", compress_level=0)
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--no-ray", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        (place / "quick.py").write_text(MODEL.replace(".data", ""))
        ways = {"in this process": None, "served, one process": [], "served, two replicas on Ray": ["--replicas", "2"]}
        if given.no_ray:
            ways.popitem()
        picture = noise()
        rates: dict[str, tuple[float, float]] = {}
        for number, (way, more) in enumerate(ways.items()):
            server = None
            model = f"{place}/quick.py:Model"
            if more is not None:
                command = [
                    sys.executable,
                    "-m",
                    "weft",
                    "serve",
                    model,
                    "--port",
                    "0",
                    "--home",
                    str(place / "server"),
                    *more,
                ]
                server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                model = f"served/quick@{server.stdout.readline().strip()}"
            try:
                words = asyncio.run(timed(model, place / f"words-{number}", given.calls, None))
                pictures = asyncio.run(timed(model, place / f"pictures-{number}", max(20, given.calls // 20), picture))
            finally:
                if server is not None:
                    server.terminate()
                    server.wait(30)
            rates[way] = (words, pictures)
            base = rates["in this process"]
            told = [
                f"{name} {rate:.0f}/s (+{1000 * (1 / rate - 1 / one):.2f} ms, ratio {rate / one:.2f})"
                for name, rate, one in zip(("words", "pictures of 1 MB"), (words, pictures), base, strict=True)
            ]
            print(f"{way}: {', '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
