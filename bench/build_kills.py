"""Kills a build at random moments until it is done, and compares its files with those of a build that nobody killed.

    python bench/build_kills.py OUT [--kills 20] [--seeds 200]           # kill -9 of the command
    python bench/build_kills.py OUT [--kills 20] [--seeds 200] --ray 2   # half of the kills hit a worker

The models note each call in a file before they answer it, so that it is known which calls were paid twice: at most
those in flight at the kills.
"""

import argparse
import asyncio
import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from weft.building.context import Context
from weft.building.draft import Draft, DraftTurn, Row
from weft.building.orders import Order, add_attempts, make_image
from weft.building.recipe import Dropped, Recipe, Role, Step

LOG = "WEFT_BENCH_CALLS"
DIE_AT = "WEFT_BENCH_DIE_AT"  # the call at which a worker kills itself
LATENCY_S = 0.02
WIDTH = 4  # calls of one model in flight, in one process
MODELS = 2
NAMES = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def note(what: str) -> None:
    """Append a call to the log. One process dies when the log is as long as it was told, and only one."""
    path = Path(os.environ[LOG])
    with path.open("a") as file:
        file.write(f"{what}\n")
    die_at = int(os.environ.get(DIE_AT, "0"))
    if die_at and count_lines(path) >= die_at:
        with contextlib.suppress(FileExistsError):
            path.with_suffix(".died").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def read_text(messages: Any) -> str:
    return "".join(part for part in messages[-1][1] if isinstance(part, str))


class Writer:
    version = "1"
    concurrency = WIDTH

    async def __call__(self, messages: Any, want: str) -> str:
        text = read_text(messages).splitlines()[0]
        note(f"writer {text}")
        await asyncio.sleep(LATENCY_S)
        return f'{{"name": "{hashlib.sha256(text.encode()).hexdigest()[:6]}"}}'


class Painter:
    version = "1"
    concurrency = WIDTH

    async def __call__(self, messages: Any, want: str) -> Any:
        from PIL import Image as Pil

        text = read_text(messages)
        note(f"painter {text}")
        await asyncio.sleep(LATENCY_S)
        colour: Any = tuple(hashlib.sha256(text.encode()).digest()[:3])
        return Pil.new("RGB", (16, 16), colour)


class Cards(Recipe):
    """A name, an image of it, and the image changed twice."""

    name = "cards"
    roles = (Role("writer", "text"), Role("painter", "image", sees=True))

    def steps(self) -> Sequence[Step]:
        return (Step("write", self.write), Step("draw", self.draw))

    async def write(self, row: Row, context: Context) -> Row:
        written = await context.write("writer", f"Name thing {row.number}.", NAMES)
        if row.number % 7 == 6:
            raise Dropped("a seventh")
        return replace(row, facts=written)

    async def draw(self, row: Row, context: Context) -> Row:
        images: list[Any] = []
        for number in range(1, 4):
            order = Order(f"image {number}", f"{row.facts['name']}, {number}", tuple(images[-1:]))
            image, attempts = await make_image(order, ["painter"], [], context)
            row = add_attempts(row, attempts)
            images.append(image)
        turns = tuple(
            DraftTurn(f"Change Image #{number}.", "change", number + 1, key_points={"GT #1": "as <image>"})
            for number in (1, 2)
        )
        return replace(row, draft=Draft("edit", tuple(images), turns), facts={})


def build_command(out: Path, seeds: int, workers: int | None) -> list[str]:
    here = Path(__file__).absolute()
    words = [f"{here}:Cards", "--writer", f"{here}:Writer", "--painter", f"{here}:Painter"]
    words += ["--seeds", str(seeds), "--part-size", "10", "--out", str(out), "--no-preflight"]
    if workers:
        words += ["--ray", str(workers)]
    return [sys.executable, "-m", "weft", "build", *words]


def start(out: Path, log: Path, seeds: int, workers: int | None, die_at: int = 0) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, LOG: str(log), DIE_AT: str(die_at)}
    quiet = subprocess.DEVNULL
    return subprocess.Popen(build_command(out, seeds, workers), env=environment, stdout=quiet, stderr=quiet)


def read_files(out: Path) -> dict[str, bytes]:
    """All that a build made but its journal: names of images are digests."""
    found = [*out.glob("parts/*"), *out.glob("imgs/*/*"), out / "test.json", out / "build.json"]
    return {str(file.relative_to(out)): file.read_bytes() for file in found}


def kill_at(running: "subprocess.Popen[bytes]", log: Path, calls: int, rng: random.Random) -> bool:
    """Kill the command soon after the log has so many calls. Return whether it was still running."""
    while count_lines(log) < calls:
        if running.poll() is not None:
            return False
        time.sleep(0.002)
    time.sleep(rng.random() * 2 * LATENCY_S)
    running.kill()
    return running.wait() == -signal.SIGKILL


def measure(out: Path, kills: int, seeds: int, workers: int | None, seed: int) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    rng = random.Random(seed)
    if start(out / "whole", out / "whole.txt", seeds, None).wait() != 0:
        raise SystemExit("the build that nobody kills did not end well")
    total = count_lines(out / "whole.txt")
    log = out / "calls.txt"
    killed: Counter[str] = Counter()
    points = sorted(rng.sample(range(1, total), kills))
    while points:
        died = log.with_suffix(".died")
        died.unlink(missing_ok=True)
        die_at = points.pop(0) if workers and len(points) > 1 else 0
        running = start(out / "killed", log, seeds, workers, die_at)
        killed["command"] += kill_at(running, log, points.pop(0), rng)
        killed["worker"] += died.exists()
    if start(out / "killed", log, seeds, workers).wait() != 0:
        raise SystemExit("the build that was killed did not end well")
    report(out, killed, workers or 1)


def report(out: Path, killed: Counter[str], processes: int) -> None:
    counts = Counter((out / "calls.txt").read_text().splitlines())
    again = sum(counts.values()) - len(counts)
    in_flight = WIDTH * MODELS * (killed["command"] * processes + killed["worker"])
    print(f"kills: {killed['command']} of the command, {killed['worker']} of a worker")
    print(f"{len(counts):,} calls, {again:,} of them paid again; in flight at the kills: at most {in_flight:,}")
    same = read_files(out / "whole") == read_files(out / "killed")
    print("files: identical to those of a build that nobody killed" if same else "files: DIFFERENT")
    if not same or again > in_flight:
        raise SystemExit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--ray", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    measure(options.out, options.kills, options.seeds, options.ray, options.seed)
