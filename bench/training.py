"""Train everything that docs/benchmarks/training.md shows, several seeds side by side: one process a seed on the GPU, and
the micro world on the other cores.

    python bench/training.py --out DIR --part weaver [--scale 1] [--seeds 0,1,2] [--seconds 500]

Parts: weaver (planner, visualizer, joint), memory (the memory curve), micro (all that needs no GPU). `--scale .05` makes
everything as much shorter. After `--seconds` what is still running is stopped, and what there is is packed: logs in one
archive, weights in others."""

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

from weft_tabletop.weaver.train.recall import MemoryRecipe, make_rows, train_memory
from weft_tabletop.weaver.train.stages import Recipe, RowStore, train_stage
from weft_tabletop.weaver.world import find_world

MIXES = ("und", "1g1u", "3g1u", "5g1u", "5g1u-no-documents")
SHARES = (0.0, 0.02, 0.05, 0.1, 0.25, 1.0)
FAULTS = (0.0, 0.05, 0.1, 0.2)
ROWS = 200_000
START = time.perf_counter()
Job = tuple[str, Callable[..., None], tuple[object, ...]]


def say(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f}] {text}", flush=True)


def scaled(steps: int, scale: float) -> int:
    return max(4, round(steps * scale))


def weaver_seed(out: Path, rows: Path, seed: int, scale: float, device: str) -> None:
    """All stages of training apart."""
    store = RowStore(find_world("full"), device, 0, rows)
    folder = out / f"seed-{seed}"

    def train(name: str, stage: str, mix: str, steps: int, rate: float, **given: Path) -> Path:
        recipe = Recipe(
            stage, "full", mix, scaled(steps, scale), 1024, rate, seed, ROWS, every=scaled(steps, scale) // 4
        )
        begin = time.perf_counter()
        train_stage(recipe, folder / name, device=device, store=store, **given)
        seconds = time.perf_counter() - begin
        say(f"{folder.name} {name}: {seconds:.1f} s, {recipe.steps / seconds:.1f} steps/s, {last_line(folder / name)}")
        return folder / name

    first = train("planner-0", "planner", "und", 4000, 1.5e-3)
    drawn = train("visualizer-0", "visualizer", "", 5000, 1.5e-3, planner=first)
    tuned = {mix: train(f"planner-{mix}", "planner", mix, 400, 5e-4, start=first, watch=drawn) for mix in MIXES}
    train("visualizer-v", "visualizer", "", 1000, 5e-4, planner=first, start=drawn)
    train("visualizer-apv", "visualizer", "", 1000, 5e-4, planner=tuned["5g1u"], start=drawn)


def joint_seed(out: Path, rows: Path, seed: int, scale: float, device: str) -> None:
    """Both networks at once, from nothing."""
    store = RowStore(find_world("full"), device, 0, rows)
    steps = scaled(6000, scale)
    recipe = Recipe("joint", "full", "5g1u", steps, 1024, 1.5e-3, seed, ROWS, every=steps // 8)
    folder = out / f"seed-{seed}" / "joint"
    begin = time.perf_counter()
    train_stage(recipe, folder, device=device, store=store)
    seconds = time.perf_counter() - begin
    say(f"joint {seed}: {seconds:.1f} s, {steps / seconds:.1f} steps/s, {last_line(folder)}")


def memory_seed(out: Path, rows: Path, seed: int, scale: float, device: str, shares: tuple[float, ...]) -> None:
    """The memory curve."""
    for share in shares:
        steps = scaled(4000, scale)
        recipe = MemoryRecipe("full", share, "single-turn", steps, 65_536, 1.5e-3, seed, ROWS, every=steps // 4)
        folder = out / f"seed-{seed}" / f"share-{share}"
        begin = time.perf_counter()
        train_memory(recipe, folder, device=device, folder=rows)
        seconds = time.perf_counter() - begin
        say(f"memory {seed} share {share}: {seconds:.1f} s, {steps / seconds:.1f} steps/s, {last_line(folder)}")


def micro_memory(out: Path, rows: Path, seed: int, scale: float, name: str, share: float, view: str, faults: float, own: float) -> None:  # fmt: skip
    """One model of the micro world."""
    torch.set_num_threads(1)
    steps = scaled(2500, scale)
    recipe = MemoryRecipe("micro", share, view, steps, 4096, 2e-3, seed, 30_000, max(1, steps // 5), faults, own)
    folder = out / f"seed-{seed}" / name
    begin = time.perf_counter()
    train_memory(recipe, folder, device="cpu", folder=rows)
    say(f"micro {seed} {name}: {time.perf_counter() - begin:.1f} s, {last_line(folder)}")


def micro_weaver(out: Path, rows: Path, seed: int, scale: float) -> None:
    """The stages in the micro world, and what brings understanding back."""
    torch.set_num_threads(1)
    store = RowStore(find_world("micro"), "cpu", 0, rows)
    folder = out / f"seed-{seed}"

    def train(name: str, stage: str, mix: str, steps: int, rate: float, rank: int = 0, **given: Path) -> Path:
        recipe = Recipe(stage, "micro", mix, scaled(steps, scale), 128, rate, seed, 30_000, scaled(steps, scale), rank)
        begin = time.perf_counter()
        train_stage(recipe, folder / name, device="cpu", store=store, **given)
        say(f"micro {seed} {name}: {time.perf_counter() - begin:.1f} s, {last_line(folder / name)}")
        return folder / name

    first = train("planner-0", "planner", "und", 1500, 2e-3)
    drawn = train("visualizer-0", "visualizer", "", 2000, 2e-3, planner=first)
    tuned = {mix: train(f"planner-{mix}", "planner", mix, 250, 1e-3, start=first, watch=drawn) for mix in MIXES}
    train("planner-5g1u-low-rate", "planner", "5g1u", 250, 2e-4, start=first, watch=drawn)
    train("planner-5g1u-low-rank", "planner", "5g1u", 250, 1e-3, 8, start=first, watch=drawn)
    train("planner-5g1u-replay", "planner", "und", 250, 1e-3, start=tuned["5g1u"], watch=drawn)
    train("visualizer-v", "visualizer", "", 500, 1e-3, planner=first, start=drawn)
    train("visualizer-apv", "visualizer", "", 500, 1e-3, planner=tuned["5g1u"], start=drawn)
    joint = Recipe("joint", "micro", "5g1u", scaled(2500, scale), 128, 2e-3, seed, 30_000, scaled(2500, scale))
    train_stage(joint, folder / "joint", device="cpu", store=store)
    say(f"micro {seed} joint: {last_line(folder / 'joint')}")


def last_line(folder: Path) -> str:
    line = json.loads((folder / "losses.jsonl").read_text().splitlines()[-1])
    shown = ("loss", "understanding", "count", "images", "visual loss", "edit", "copy", "recall", "back")
    return " ".join(f"{key}={value:.3g}" for key, value in line.items() if key.split()[-1] in shown or key in shown)


def make_all_rows(part: str, rows: Path, scale: float) -> None:
    """Rows that several processes share are made once, by all cores."""
    cores = os.cpu_count() or 2
    rows.mkdir(parents=True, exist_ok=True)
    if part == "weaver":
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
        store = RowStore(find_world("micro"), "cpu", cores, rows)
        for kind in ("words", "image", "draw", "edit", "copy", "build"):
            store.make("planner", kind, 30_000, 0)
            store.make("planner", kind, 512, 1_000_003)
        for kind in ("draw", "edit", "copy"):
            store.make("visualizer", kind, 30_000, 0)
            store.make("visualizer", kind, 512, 1_000_003)
        for view in ("dialogue", "single-turn", "plain"):
            make_rows(find_world("micro"), view, 30_000, 0.0, cores, rows)
        for faults in FAULTS[1:]:
            make_rows(find_world("micro"), "single-turn", 30_000, faults, cores, rows)
    say(f"{part}: rows are made")


def list_jobs(part: str, out: Path, rows: Path, seeds: list[int], scale: float, shares: tuple[float, ...]) -> list[Job]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    jobs: list[Job] = []
    if part == "weaver":
        jobs += [("weaver", weaver_seed, (out / part, rows, seed, scale, device)) for seed in seeds]
        jobs += [("joint", joint_seed, (out / part, rows, seed, scale, device)) for seed in seeds]
    elif part == "memory":
        jobs += [("memory", memory_seed, (out / part, rows, seed, scale, device, shares)) for seed in seeds]
    else:
        for seed in seeds:
            jobs.append(("micro", micro_weaver, (out / part, rows, seed, scale)))
            settings = [("dialogues", 1.0, "single-turn", 0.0, 0.0), ("own-images", 1.0, "single-turn", 0.0, 0.5)]
            settings += [(f"single-turn-{faults}", 0.0, "single-turn", faults, 0.0) for faults in FAULTS]
            settings += [("plain", 0.0, "plain", 0.0, 0.0)]
            jobs += [("micro", micro_memory, (out / part, rows, seed, scale, *setting)) for setting in settings]
    return jobs


def run_job(target: Callable[..., None], given: tuple[object, ...]) -> None:
    try:
        target(*given)
    except Exception:
        say("".join(traceback.format_exc()))
        raise


def run_jobs(jobs: list[Job], micro_places: int, deadline: float) -> int:
    """Run all jobs, GPU jobs at once and micro jobs a few at a time; stop what still runs at the deadline."""
    context = multiprocessing.get_context("spawn")
    waiting = list(jobs)
    running: list[tuple[str, SpawnProcess]] = []
    failed = 0
    while waiting or running:
        for name, target, given in list(waiting):
            busy = sum(kind == "micro" for kind, _ in running)
            if name == "micro" and busy >= micro_places:
                continue
            waiting.remove((name, target, given))
            process = context.Process(target=run_job, args=(target, given))
            process.start()
            running.append((name, process))
        if time.perf_counter() - START > deadline:
            say(f"out of time: {len(running)} jobs are stopped, {len(waiting)} never began")
            for _, process in running:
                process.terminate()
            return failed + len(running)
        for entry in list(running):
            entry[1].join(0.2)
            if not entry[1].is_alive():
                running.remove(entry)
                failed += entry[1].exitcode != 0
    return failed


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
        ]
        archives["visualizer.tar.gz"] = [seed / "visualizer-v" / "visualizer.safetensors"]
        archives["joint.tar.gz"] = sorted((seed / "joint").glob("*.safetensors"))
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
    parser.add_argument("--part", action="append", choices=("weaver", "memory", "micro"), required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--micro-places", type=int, default=max(1, (os.cpu_count() or 2) - 7))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    shares = tuple(float(share) for share in arguments.shares.split(","))
    jobs: list[Job] = []
    for part in arguments.part:
        make_all_rows(part, arguments.work / "rows", arguments.scale)
        jobs += list_jobs(part, arguments.work, arguments.work / "rows", seeds, arguments.scale, shares)
    failed = run_jobs(jobs, arguments.micro_places, arguments.seconds)
    for part in arguments.part:
        pack(arguments.work / part, arguments.out, part)
    say(f"{failed} jobs failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
