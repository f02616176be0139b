"""Train everything that docs/benchmarks/training.md shows, on one GPU, several seeds side by side: one process a seed.

    python bench/training.py --out DIR --part weaver --part joint [--scale 1] [--seeds 0,1,2] [--seconds 500]
    python bench/training.py --out DIR --part memory --part micro

Parts: weaver (planner and visualizer apart), joint (both at once), memory (the memory curve), micro (views, impure data
and own images, in the micro world). `--scale .05` makes everything as much shorter. After `--seconds` what is still
running is stopped, and what there is is packed: logs in one archive, weights in others."""

import argparse
import io
import json
import multiprocessing
import os
import sys
import tarfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import torch

from weft.training.checkpoint import read_checkpoint
from weft_tabletop.weaver.train.files import load_planner, load_visualizer
from weft_tabletop.weaver.train.loop import autocast
from weft_tabletop.weaver.train.measure import read_order
from weft_tabletop.weaver.train.recall import MemoryRecipe, make_rows, train_memory
from weft_tabletop.weaver.train.stages import Recipe, RowStore, train_stage
from weft_tabletop.weaver.train.visualizer_net import draw_numbers
from weft_tabletop.weaver.world import find_world

MIXES = ("und", "1g1u", "3g1u", "5g1u-no-documents")
SHARES = (1.0, 0.0, 0.1, 0.02, 0.25, 0.05)
FAULTS = (0.0, 0.05, 0.1, 0.2)
BATCH = int(os.environ.get("TRAINING_BATCH", "512"))
ROWS = int(os.environ.get("TRAINING_ROWS", "200000"))
MICRO_ROWS = min(ROWS, 40_000)
START = time.perf_counter()
Job = tuple[str, Callable[..., None], tuple[object, ...]]


def say(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f}] {text}", flush=True)


def scaled(steps: int, scale: float) -> int:
    return max(4, round(steps * scale))


class Stages:
    """Stages of training of one seed, in folders of their own."""

    def __init__(self, out: Path, rows: Path, seed: int, scale: float, device: str) -> None:
        self.folder = out / f"seed-{seed}"
        self._store = RowStore(find_world("full"), device, 0, rows)
        self._seed = seed
        self._scale = scale
        self._device = device

    def train(self, name: str, stage: str, mix: str, steps: int, rate: float, rank: int = 0, **given: Path) -> Path:
        total = scaled(steps, self._scale)
        every = max(1, total // 4)
        recipe = Recipe(stage, "full", mix, total, BATCH, rate, self._seed, ROWS, every, rank)
        begin = time.perf_counter()
        train_stage(recipe, self.folder / name, device=self._device, store=self._store, **given)
        say_done(self.folder / name, time.perf_counter() - begin, total)
        return self.folder / name

    def wait_for(self, name: str) -> Path:
        """Wait until another process has trained a stage; it is stopped from outside when time is up."""
        while True:
            checkpoint = read_checkpoint(self.folder / name)
            if checkpoint is not None and checkpoint.done:
                return self.folder / name
            time.sleep(0.5)


def weaver_seed(out: Path, rows: Path, seed: int, scale: float, device: str) -> None:
    """The stages of training apart whose weights ship or are compared."""
    stages = Stages(out, rows, seed, scale, device)
    first = stages.train("planner-0", "planner", "und", 4000, 1.5e-3)
    drawn = stages.train("visualizer-0", "visualizer", "", 4500, 1.5e-3, planner=first)
    tuned = stages.train("planner-5g1u", "planner", "5g1u", 250, 5e-4, start=first, watch=drawn)
    stages.train("visualizer-apv", "visualizer", "", 600, 5e-4, planner=tuned, start=drawn)
    stages.train("visualizer-v", "visualizer", "", 600, 5e-4, planner=first, start=drawn)


def mixes_seed(out: Path, rows: Path, seed: int, scale: float, device: str) -> None:
    """The planner tuned in other ways."""
    stages = Stages(out, rows, seed, scale, device)
    first = stages.wait_for("planner-0")
    drawn = stages.wait_for("visualizer-0")
    for mix in MIXES:
        stages.train(f"planner-{mix}", "planner", mix, 250, 5e-4, start=first, watch=drawn)
    stages.train("planner-5g1u-low-rate", "planner", "5g1u", 250, 1e-4, start=first, watch=drawn)
    stages.train("planner-5g1u-low-rank", "planner", "5g1u", 250, 5e-4, 8, start=first, watch=drawn)
    replay = "und=12,t2i=5,i2i=5,doc=5"
    stages.train("planner-5g1u-replay", "planner", replay, 250, 5e-4, start=first, watch=drawn)
    tuned = stages.wait_for("planner-5g1u")
    stages.train("planner-5g1u-then-und", "planner", "und", 250, 5e-4, start=tuned, watch=drawn)


def joint_seed(out: Path, rows: Path, seed: int, scale: float, device: str) -> None:
    """Both networks at once, from nothing."""
    steps = scaled(4000, scale)
    every = max(1, steps // 6)
    store = RowStore(find_world("full"), device, 0, rows)
    recipe = Recipe("joint", "full", "5g1u", steps, BATCH, 1.5e-3, seed, ROWS, every)
    folder = out / f"seed-{seed}" / "joint"
    begin = time.perf_counter()
    train_stage(recipe, folder, device=device, store=store)
    say_done(folder, time.perf_counter() - begin, steps)


def memory_seed(out: Path, rows: Path, seed: int, scale: float, device: str, shares: tuple[float, ...]) -> None:
    """The memory curve."""
    for share in shares:
        steps = scaled(2000, scale)
        recipe = MemoryRecipe("full", share, "single-turn", steps, 65_536, 1.5e-3, seed, ROWS, max(1, steps // 4))
        train_one_memory(recipe, out / f"seed-{seed}" / f"share-{share}", rows, device)


def micro_seed(out: Path, rows: Path, seed: int, scale: float, device: str) -> None:
    """Views, impure data and own images."""
    steps = scaled(3000, scale)
    settings = [("dialogues", 1.0, "single-turn", 0.0, 0.0), ("single-turn", 0.0, "single-turn", 0.0, 0.0)]
    settings += [("plain", 0.0, "plain", 0.0, 0.0), ("own-images", 1.0, "single-turn", 0.0, 0.5)]
    settings += [(f"faults-{faults}", 0.0, "single-turn", faults, 0.0) for faults in FAULTS[1:]]
    for name, share, view, faults, own in settings:
        every = max(1, steps // 4)
        recipe = MemoryRecipe("micro", share, view, steps, 32_768, 2e-3, seed, MICRO_ROWS, every, faults, own)
        train_one_memory(recipe, out / f"seed-{seed}" / name, rows, device)


def train_one_memory(recipe: MemoryRecipe, folder: Path, rows: Path, device: str) -> None:
    begin = time.perf_counter()
    train_memory(recipe, folder, device=device, folder=rows)
    say_done(folder, time.perf_counter() - begin, recipe.steps)


def say_done(folder: Path, seconds: float, steps: int) -> None:
    name = f"{folder.parent.name} {folder.name}"
    say(f"{name}: {seconds:.1f} s, {steps / seconds:.1f} steps/s, {last_line(folder)}")


def last_line(folder: Path) -> str:
    line = json.loads((folder / "losses.jsonl").read_text().splitlines()[-1])
    shown = ("loss", "understanding", "count", "images", "visual loss", "edit", "copy", "recall", "back")
    return " ".join(f"{key}={value:.3g}" for key, value in line.items() if key.split()[-1] in shown or key in shown)


def make_all_rows(part: str, rows: Path, scale: float) -> None:
    """Rows that several processes share are made once, by all cores."""
    cores = os.cpu_count() or 2
    rows.mkdir(parents=True, exist_ok=True)
    if part in ("weaver", "joint"):
        store = RowStore(find_world("full"), "cpu", cores, rows)
        for kind in ("words", "image", "draw", "edit", "copy", "build", "film"):
            store.make("planner", kind, ROWS, 0)
            store.make("planner", kind, 512, 1_000_003)
        for kind in ("draw", "edit", "copy"):
            store.make("visualizer", kind, ROWS, 0)
            store.make("visualizer", kind, 512, 1_000_003)
    elif part == "memory":
        for view in ("dialogue", "single-turn"):
            make_rows(find_world("full"), view, ROWS, 0.0, cores, rows)
    else:
        for view in ("dialogue", "single-turn", "plain"):
            make_rows(find_world("micro"), view, MICRO_ROWS, 0.0, cores, rows)
        for faults in FAULTS[1:]:
            make_rows(find_world("micro"), "single-turn", MICRO_ROWS, faults, cores, rows)
    say(f"{part}: rows are made")


def list_jobs(part: str, out: Path, rows: Path, seeds: list[int], scale: float, shares: tuple[float, ...]) -> list[Job]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if part == "memory":  # a process a share: the card has room for all
        return [
            (part, memory_seed, (out / part, rows, seed, scale, device, (share,))) for seed in seeds for share in shares
        ]
    targets = {"weaver": (weaver_seed, mixes_seed), "joint": (joint_seed,), "micro": (micro_seed,)}[part]
    return [(part, target, (out / part, rows, seed, scale, device)) for target in targets for seed in seeds]


def run_job(target: Callable[..., None], given: tuple[object, ...]) -> None:
    try:
        target(*given)
    except Exception:
        say("".join(traceback.format_exc()))
        raise


def run_jobs(jobs: list[Job], deadline: float) -> int:
    """Run all jobs at once; stop what still runs at the deadline."""
    context = multiprocessing.get_context("spawn")
    running: list[SpawnProcess] = []
    for _, target, given in jobs:
        process = context.Process(target=run_job, args=(target, given))
        process.start()
        running.append(process)
    for process in running:
        process.join(max(0.0, deadline - (time.perf_counter() - START)))
    late = [process for process in running if process.is_alive()]
    if late:
        say(f"out of time: {len(late)} jobs are stopped")
    for process in late:
        process.terminate()
        process.join()
    return sum(process.exitcode != 0 for process in running)


def measure_speed(folder: Path) -> None:
    """Images per second of the visualizer on the GPU, in batches."""
    world = find_world("full")
    planner = load_planner(folder / "reader.safetensors", world, "cuda")
    visualizer = load_visualizer(folder / "visualizer.safetensors", world, "cuda")
    rows = RowStore(world, "cuda").get("visualizer", "draw", 2048, 5)
    for size in (1, 16, 256, 2048):
        batch = rows.batch(slice(0, size))
        noise = torch.randn(size, len(world.cells), 4, device="cuda")
        times: list[float] = []
        for _ in range(4):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            with autocast("cuda"):
                draw_numbers(visualizer, noise, batch.images, read_order(planner, batch, world))
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        say(f"visualizer on the GPU, batches of {size}: {size / min(times):.0f} images/s (decoding not included)")


def pack(work: Path, out: Path, part: str) -> None:
    """Logs and manifests of all runs in one archive; the weights that ship or are compared in others."""
    files = [path for path in sorted(work.rglob("*")) if path.name in ("losses.jsonl", "training.json")]
    archives = {f"{part}-logs.tar.gz": files}
    if part == "weaver":
        seed = work / "seed-0"
        archives["decoupled.tar.gz"] = [
            seed / "planner-0" / "planner.safetensors",
            seed / "planner-5g1u" / "planner.safetensors",
            seed / "visualizer-apv" / "visualizer.safetensors",
            seed / "visualizer-apv" / "reader.safetensors",
        ]
        if not (seed / "visualizer-apv" / "visualizer.safetensors").exists():
            archives["decoupled.tar.gz"] += sorted((seed / "visualizer-0").glob("*.safetensors"))
        archives["visualizer-v.tar.gz"] = sorted((seed / "visualizer-v").glob("*.safetensors"))
    if part == "joint":
        archives["joint.tar.gz"] = sorted((work / "seed-0" / "joint").glob("*.safetensors"))
    for name, members in archives.items():
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as archive:
            for path in members:
                if path.exists():
                    archive.add(path, path.relative_to(work))
        (out / name).write_bytes(data.getvalue())
        say(f"{name}: {len(data.getvalue()) / 1e6:.2f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp/weft-training"))
    parser.add_argument("--part", action="append", choices=("weaver", "joint", "memory", "micro"), required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--seconds", type=float, default=500.0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    shares = tuple(float(share) for share in arguments.shares.split(","))
    jobs: list[Job] = []
    for part in arguments.part:
        make_all_rows(part, arguments.work / "rows", arguments.scale)
        jobs += list_jobs(part, arguments.work, arguments.work / "rows", seeds, arguments.scale, shares)
    failed = run_jobs(jobs, arguments.seconds)
    for part in arguments.part:
        pack(arguments.work / part, arguments.out, part)
    drawn = arguments.work / "weaver" / "seed-0" / "visualizer-apv"
    if torch.cuda.is_available() and (drawn / "visualizer.safetensors").exists():
        measure_speed(drawn)
    say(f"{failed} jobs failed or were stopped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
