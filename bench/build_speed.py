"""How many journalled calls a build makes in a second, and how busy it keeps a slow painter.

    python bench/build_speed.py engine OUT [--seeds 2000]              # in this process; goal: 1,000 a second
    python bench/build_speed.py engine OUT --ray 2                     # through Ray; goal: 500 a second
    python bench/build_speed.py painter OUT [--latency 10 --width 64]  # share of the time it works; goal: 95%

The models answer at once, or after the painter's latency, so what is left is the engine's. CPU seconds are printed
beside wall time: on a machine that others use as well, calls per CPU second say what an idle core would do.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that spin cost more than they bring

import argparse
import asyncio
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from weft.building.build import OpenBuild, run_build
from weft.building.context import Context
from weft.building.draft import Draft, DraftTurn, Row
from weft.building.orders import Order, add_attempts, make_image
from weft.building.recipe import Dropped, Recipe, Role, Step
from weft.building.request import BuildRequest, RayRequest
from weft.models.endpoint import Endpoint, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text

CALLS = 10  # of one row, one after the other
IMAGES = 3  # of one row of the painter, each made from the one before
LATENCY = "WEFT_BENCH_LATENCY"


class Quick(Endpoint):
    """Answers at once."""

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        return EndpointReply((Text("done"),), "answered", served_model=self.name)


class SlowPainter(Endpoint):
    """Draws after a while. It notes when it works."""

    def __init__(self, blobs: Blobs) -> None:
        super().__init__("slow-painter", version=1)
        self.blobs = blobs
        self.latency = float(os.environ.get(LATENCY, "10"))
        self.spans: list[tuple[float, float]] = []

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        from PIL import Image as Pil

        began = time.perf_counter()
        await asyncio.sleep(self.latency)
        text = "".join(part.text for part in messages[-1].parts if isinstance(part, Text))
        colour: Any = tuple(hashlib.sha256(text.encode()).digest()[:3])
        image = self.blobs.put_pil(Pil.new("RGB", (64, 64), colour))
        self.spans.append((began, time.perf_counter()))
        return EndpointReply((image,), "answered", served_model=self.name)


quick = Quick("quick", version=1)


class Talk(Recipe):
    """So many calls of a row, and no dialogue."""

    name = "talk"
    roles = (Role("writer", "text"),)

    def steps(self) -> Sequence[Step]:
        return (Step("talk", self.talk),)

    async def talk(self, row: Row, context: Context) -> Row:
        for call in range(CALLS):
            message = Message("user", (Text(f"Call {call} of row {row.number}."),))
            await context.ask("writer", (message,), Request("text"))
        raise Dropped("measured")


class Paint(Recipe):
    """A dialogue whose images follow from one another."""

    name = "paint"
    roles = (Role("painter", "image", sees=True),)

    def steps(self) -> Sequence[Step]:
        return (Step("draw", self.draw),)

    async def draw(self, row: Row, context: Context) -> Row:
        images: list[Any] = []
        for number in range(IMAGES):
            order = Order(f"image {number}", f"Row {row.number}, image {number}.", tuple(images[-1:]))
            image, attempts = await make_image(order, ["painter"], [], context)
            row = add_attempts(row, attempts)
            images.append(image)
        turns = tuple(
            DraftTurn(f"Change Image #{number}.", "change", number + 1, key_points={"GT #1": "as <image>"})
            for number in range(1, IMAGES)
        )
        return replace(row, draft=Draft("edit", tuple(images), turns))


def measure_engine(out: Path, seeds: int, workers: int | None) -> None:
    request = BuildRequest(
        f"{Path(__file__).absolute()}:Talk",
        out,
        {"writer": f"{Path(__file__).absolute()}:quick"},
        seeds,
        concurrency=64,
        ray=RayRequest(workers) if workers else None,
    )
    started: list[tuple[float, float]] = []

    def start(build: OpenBuild) -> None:
        started.append((time.perf_counter(), time.process_time()))

    outcome = asyncio.run(run_build(request, start))
    wall = time.perf_counter() - started[0][0]
    cpu = time.process_time() - started[0][1]
    calls = outcome.progress.made_calls
    print(f"{calls:,} calls in {wall:.1f} s: {calls / wall:,.0f} a second", end="")
    print("" if workers else f", {calls / cpu:,.0f} a CPU second")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def measure_painter(out: Path, seeds: int, width: int, latency: float) -> None:
    os.environ[LATENCY] = str(latency)
    painter = SlowPainter(Blobs(out / "blobs"))
    request = BuildRequest(f"{Path(__file__).absolute()}:Paint", out, {"painter": painter}, seeds, concurrency=width)
    outcome = asyncio.run(run_build(request))
    spans = painter.spans
    first = min(begin for begin, _ in spans)
    last_begin = max(begin for begin, _ in spans)  # until there is no call left to begin
    busy = sum(min(end, last_begin) - begin for begin, end in spans if begin < last_begin)
    whole = max(end for _, end in spans) - first
    print(outcome.progress.describe())
    print(f"busy until the last call began: {busy / (width * (last_begin - first)):.1%} of {width} places")
    print(f"busy to the end: {len(spans) * latency / (width * whole):.1%} in {whole:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("engine", "painter"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--ray", type=int)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--latency", type=float, default=10.0)
    options = parser.parse_args()
    if options.what == "engine":
        measure_engine(options.out, options.seeds or 2_000, options.ray)
    else:
        measure_painter(options.out, options.seeds or 640, options.width, options.latency)
