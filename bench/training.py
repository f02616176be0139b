"""Train everything that docs/benchmarks/training.md shows: planner and visualizer apart and jointly, the memory curve,
views, impure data and own images; three seeds side by side, a process a chain of runs.

    python bench/training.py --world full --out DIR --ship     on one GPU; logs and weights go where `weft demo` looks
    python bench/training.py --world micro --out DIR           a table of four cells, in minutes
    python bench/training.py --world micro --small --out DIR   the same with 64 rows a step: for one core

Joint training computes as much as all stages of training apart. `--scale .05` makes every run as much shorter, `--part` chooses parts, `--seconds` stops what still runs then. Killed at
any point, the same command goes on. DIR gets `runs.jsonl` (logs and manifests of all runs) and `weights.tar.gz` (the
first seed's), both written anew every few seconds."""

import argparse
import functools
import io
import json
import multiprocessing
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # so that looking for a GPU leaves a process that can fork
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import torch
from memory_build import count_faults
from msgspec.structs import replace
from torch.utils.flop_counter import FlopCounterMode

from weft.training.checkpoint import read_checkpoint, replace_file
from weft.training.curves import pack_runs, read_run
from weft_tabletop.weaver.files import LOGS_FILE, PLANNER_FILE, READER_FILE, SHIPPED, UNTUNED_FILE, VISUALIZER_FILE
from weft_tabletop.weaver.memory_recipes import plan_memory
from weft_tabletop.weaver.recipes import find_mix, plan_recipe
from weft_tabletop.weaver.train import loop
from weft_tabletop.weaver.train.files import load_planner, load_visualizer
from weft_tabletop.weaver.train.loop import autocast
from weft_tabletop.weaver.train.measure import read_order
from weft_tabletop.weaver.train.recall import make_rows, train_memory
from weft_tabletop.weaver.train.stages import HELD_OUT_SEED, RowStore, StageBuilder, train_stage
from weft_tabletop.weaver.train.visualizer_net import draw_numbers
from weft_tabletop.weaver.world import find_world

PARTS = ("weaver", "joint", "mixes", "memory", "views", "built")
MIXES = ("und", "1g1u", "3g1u", "5g1u-no-documents")
SHARES = (1.0, 0.0, 0.1, 0.02, 0.25, 0.05)
FAULTS = {0.0: 0.0, 0.05: 0.085, 0.1: 0.17, 0.2: 0.34}  # share of wrong images -> rate of faults: some do not show
DIALOGUES = {"full": 10_000, "micro": 4000, "small": 400}  # of a dataset that `weft build` writes
REPLAY = "und=12,t2i=5,i2i=5,doc=5"
POINTS = {"planner": 5, "visualizer": 10, "joint": 10, "memory": 5}  # measurements of a run, after the first
STEPS = {  # more than a user waits for by default
    "full": {"planner": 4000, "visualizer": 4500, "tuned planner": 250, "tuned visualizer": 600},
    "micro": {"planner": 1500, "visualizer": 4000, "tuned planner": 200, "tuned visualizer": 500},
    "small": {"planner": 1000, "visualizer": 2500, "tuned planner": 200, "tuned visualizer": 500},
}
APART = (  # the stages of training apart, and what each is trained on
    *(("planner", "und", "planner"), ("visualizer", "", "visualizer")),
    *(("tuned planner", "5g1u", "planner"), ("tuned visualizer", "", "visualizer")),
)
ROWS = {"full": 200_000, "micro": 40_000, "small": 20_000}  # of each kind
BATCH = {"full": 512, "micro": 256, "small": 64}
RATE = {"full": 1.5e-3, "micro": 2e-3, "small": 3e-3}  # of nets that start from nothing
MEMORY = {
    "full": {"steps": 2000, "tokens": 65_536, "rate": 1.5e-3},
    "micro": {"steps": 600, "tokens": 8192, "rate": 4e-3},
    "small": {"steps": 250, "tokens": 4096, "rate": 4e-3},
}
PACK_SECONDS = 4.0
COUNTED_STEPS = 4
COUNTED_ROWS = 64
START = time.perf_counter()


def say(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f}] {text}", flush=True)


class Study:
    """The runs of one seed, in folders of their own."""

    def __init__(self, arguments: argparse.Namespace, seed: int) -> None:
        self.folder = arguments.work / f"seed-{seed}" / ("small" if arguments.small else "")
        self.seed = seed
        self.world = arguments.world
        self.size = arguments.size
        self.scale = arguments.scale
        self.rows = arguments.work / "rows"
        self.device = arguments.device
        self.memory_device = arguments.memory_device or arguments.device

    def train(
        self, name: str, stage: str, mix: str = "", rank: int = 0, rate: float | None = None, **files: Path
    ) -> Path:
        tuned = "start" in files
        usual = plan_recipe(stage, self.world, mix, tuned=tuned, seed=self.seed, rank=rank)
        if stage == "joint":
            steps = count_joint_steps(self.size, self.world)
        else:
            steps = STEPS[self.size][f"tuned {stage}" if tuned else stage]
        steps = self.count_steps(steps, stage)
        recipe = replace(
            usual,
            steps=steps,
            every=steps // POINTS[stage],
            batch=BATCH[self.size],
            rows=find_rows(self.size, self.scale),
            rate=rate or (usual.rate if tuned else RATE[self.size]),
        )
        begin = time.perf_counter()
        store = RowStore(find_world(self.world), self.device, 0, self.rows)
        train_stage(recipe, self.folder / name, device=self.device, store=store, **files)
        self.say_done(name, time.perf_counter() - begin, steps)
        return self.folder / name

    def remember(self, name: str, mix: str = "", view: str = "", data: Path | None = None, **settings: float) -> None:
        amount = {**MEMORY[self.size], "rows": find_rows(self.size, self.scale)}
        recipe = plan_memory(self.world, mix, view, seed=self.seed, **settings, **amount)
        steps = self.count_steps(recipe.steps, "memory")
        points = 2 if self.size == "small" else POINTS["memory"]
        recipe = replace(recipe, steps=steps, every=max(1, steps // points))
        begin = time.perf_counter()
        train_memory(recipe, self.folder / name, device=self.memory_device, folder=self.rows, data=data)
        self.say_done(name, time.perf_counter() - begin, steps)

    def count_steps(self, steps: int, kind: str) -> int:
        return max(1, round(steps * self.scale / POINTS[kind])) * POINTS[kind]

    def wait_for(self, name: str) -> Path:
        """Wait until another process has trained a run."""
        while True:
            checkpoint = read_checkpoint(self.folder / name)
            if checkpoint is not None and checkpoint.done:
                return self.folder / name
            time.sleep(0.5)

    def say_done(self, name: str, seconds: float, steps: int) -> None:
        line = json.loads((self.folder / name / "losses.jsonl").read_text().splitlines()[-1])
        shown = ("loss", "understanding", "count", "images", "edit", "copy", "recall", "back")
        words = " ".join(f"{key}={value:.3g}" for key, value in line.items() if key.split()[-1] in shown)
        say(f"seed {self.seed} {name}: {seconds:.1f} s, {steps / max(seconds, 1e-9):.1f} steps/s, {words}")


def find_rows(size: str, scale: float) -> int:
    return max(200, round(ROWS[size] * min(1.0, scale)))


@functools.cache
def count_joint_steps(size: str, world: str) -> int:
    """The steps in which joint training computes as much as all stages of training apart, with equally many rows."""
    apart = sum(STEPS[size][name] * count_operations(world, stage, mix) for name, mix, stage in APART)
    return round(apart / count_operations(world, "joint", "5g1u"))


@functools.cache
def count_operations(world: str, stage: str, mix: str) -> int:
    """The floating point operations of a few steps of a stage, forwards and backwards."""
    recipe = replace(plan_recipe(stage, world, mix, tuned=False), rows=256)
    table = find_world(world)
    sources = find_mix(recipe, table)
    builder = StageBuilder(recipe, table, sources, "cpu", RowStore(table, "cpu"))
    with tempfile.TemporaryDirectory() as folder:
        learner = builder.build_planner(None, None) if stage != "joint" else builder.build_joint()
        if stage == "visualizer":
            learner.save(Path(folder))
            learner = builder.build_visualizer(None, Path(folder) / PLANNER_FILE)
    with FlopCounterMode(display=False) as counter:
        for step in range(COUNTED_STEPS):
            drawn = sources.draw(step, COUNTED_ROWS, learner.sizes())
            learner.take_step(drawn, loop.step_generator(0, step, "cpu"))
    return counter.get_total_flops()


def train_apart(study: Study) -> None:
    """The stages whose weights ship or are compared."""
    first = study.train("planner-0", "planner", "und")
    drawn = study.train("visualizer-0", "visualizer", planner=first)
    tuned = study.train("planner-5g1u", "planner", "5g1u", start=first, watch=drawn)
    study.train("visualizer-apv", "visualizer", planner=tuned, start=drawn)
    study.train("visualizer-v", "visualizer", planner=first, start=drawn)


def tune_mixes(study: Study) -> None:
    """The planner tuned on the other mixes."""
    first = study.wait_for("planner-0")
    drawn = study.wait_for("visualizer-0")
    for mix in MIXES:
        study.train(f"planner-{mix}", "planner", mix, start=first, watch=drawn)


def tune_gently(study: Study) -> None:
    """What might keep understanding and the visualizer: a low rate, adapters, replay, understanding again."""
    first = study.wait_for("planner-0")
    drawn = study.wait_for("visualizer-0")
    usual = plan_recipe("planner", study.world, "5g1u", tuned=True).rate
    study.train("planner-5g1u-low-rate", "planner", "5g1u", rate=usual / 5, start=first, watch=drawn)
    study.train("planner-5g1u-low-rank", "planner", "5g1u", rank=8, start=first, watch=drawn)
    study.train("planner-5g1u-replay", "planner", REPLAY, start=first, watch=drawn)
    tuned = study.wait_for("planner-5g1u")
    study.train("planner-5g1u-then-und", "planner", "und", start=tuned, watch=drawn)


def train_jointly(study: Study) -> None:
    study.train("joint", "joint", "5g1u")


def build_dialogues(arguments: argparse.Namespace, faults: float) -> Path:
    """Have a painter that errs so often draw dialogues: a dataset in WEAVE's files."""
    out = arguments.work / "built" / f"{arguments.size}-{faults:g}"
    painter = ["--painter", "tabletop/faulty", "--model-opt", f"painter.rate={FAULTS[faults]}"]
    seeds = max(20, round(DIALOGUES[arguments.size] * min(1.0, arguments.scale)))
    recipe = f"{Path(__file__).parent / 'memory_build.py'}:Memory"
    command = [sys.executable, "-m", "weft", "build", recipe, *painter, "--seeds", str(seeds), "--out", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


def train_built(study: Study, name: str, view: str, data: Path) -> None:
    study.remember(name, view=view, data=data)


def train_share(study: Study, share: float) -> None:
    study.remember(f"share-{share:g}", f"dialogues={share}")


def train_view(study: Study, name: str, settings: dict[str, float]) -> None:
    study.remember(name, view="plain" if name == "plain" else "dialogues" if name == "own-images" else "", **settings)


def list_jobs(arguments: argparse.Namespace) -> list[Callable[[], None]]:
    """Every job; those that others wait for come first."""
    studies = [Study(arguments, seed) for seed in arguments.seeds]
    jobs: list[Callable[[], None]] = []
    chains = {"weaver": (train_apart,), "joint": (train_jointly,), "mixes": (tune_mixes, tune_gently)}
    for part, targets in chains.items():
        if part in arguments.part:
            jobs += [bind(target, study) for target in targets for study in studies]
    if "memory" in arguments.part:
        jobs += [bind(train_share, study, share) for share in SHARES for study in studies]
    if "views" in arguments.part:
        settings = {"plain": {}, "own-images": {"own": 0.5}}
        jobs += [bind(train_view, study, *item) for item in settings.items() for study in studies]
    if "built" in arguments.part:
        built = arguments.work / "built"
        pure = built / f"{arguments.size}-0"
        runs = {f"built-{view}": (view, pure) for view in ("single-turn", "plain", "dialogues")}
        runs |= {f"built-{one:g}": ("single-turn", built / f"{arguments.size}-{one:g}") for one in FAULTS if one}
        jobs += [bind(train_built, study, name, *run) for name, run in runs.items() for study in studies]
    return jobs


def bind(target: Callable[..., None], *given: object) -> Callable[[], None]:
    return lambda: target(*given)


def make_all_rows(arguments: argparse.Namespace) -> None:
    """Rows that several processes share are made once, by all cores."""
    cores = os.cpu_count() or 2
    rows = arguments.work / "rows"
    rows.mkdir(parents=True, exist_ok=True)
    world = find_world(arguments.world)
    count = find_rows(arguments.size, arguments.scale)
    if {"weaver", "joint", "mixes"} & set(arguments.part):
        store = RowStore(world, "cpu", cores, rows)
        for kind in ("words", "image", "draw", "edit", "copy", *world.documents):
            store.make("planner", kind, count, 0)
            store.make("planner", kind, 512, HELD_OUT_SEED)
        for kind in ("draw", "edit", "copy"):
            store.make("visualizer", kind, count, 0)
            store.make("visualizer", kind, 512, HELD_OUT_SEED)
    if {"memory", "views"} & set(arguments.part):
        for view in ("dialogue", "single-turn", "plain"):
            make_rows(world, view, count, 0.0, cores, rows)
    for faults in FAULTS if "built" in arguments.part else ():
        wrong, asked = count_faults(build_dialogues(arguments, faults))
        say(f"built with faults {faults:g}: {wrong} of {asked} images are wrong ({wrong / asked:.3f})")
    say("rows are made")


def run_job(job: Callable[[], None]) -> None:
    torch.set_num_threads(1)
    try:
        job()
    except Exception:
        say("".join(traceback.format_exc()))
        raise


def run_jobs(arguments: argparse.Namespace) -> int:
    """Run all jobs, so many at a time; stop what still runs when time is up. Return how many failed."""
    context = multiprocessing.get_context("fork")
    waiting = list_jobs(arguments)
    running: list[multiprocessing.process.BaseProcess] = []
    failed = 0
    packed = time.perf_counter()
    while waiting or running:
        ended = [process for process in running if not process.is_alive()]
        running = [process for process in running if process not in ended]
        failed += sum(process.exitcode != 0 for process in ended)
        while waiting and len(running) < arguments.jobs:
            running.append(context.Process(target=run_job, args=(waiting.pop(0),)))
            running[-1].start()
        if time.perf_counter() - START > arguments.seconds:
            say(f"out of time: {len(running)} jobs are stopped, {len(waiting)} never began")
            for process in running:
                process.terminate()
            return failed + len(running) + len(waiting)
        if time.perf_counter() - packed > PACK_SECONDS:
            pack(arguments)
            packed = time.perf_counter()
        time.sleep(0.2)
    return failed


def find_runs(work: Path) -> list[Path]:
    return sorted(file.parent for file in work.rglob("training.json"))


def pack(arguments: argparse.Namespace) -> None:
    """Write logs and weights of what there is."""
    work = arguments.work
    runs = [read_run(folder, str(folder.relative_to(work))) for folder in find_runs(work)]
    replace_file(arguments.out / LOGS_FILE, pack_runs(runs).encode())
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as archive:
        for folder in find_runs(work / f"seed-{arguments.seeds[0]}"):
            checkpoint = read_checkpoint(folder)
            if checkpoint is not None and checkpoint.done:
                for name in (PLANNER_FILE, VISUALIZER_FILE, READER_FILE, "talker.safetensors"):
                    if (folder / name).exists():
                        archive.add(folder / name, (folder / name).relative_to(work))
    replace_file(arguments.out / "weights.tar.gz", data.getvalue())


def ship(arguments: argparse.Namespace) -> None:
    """Put logs, and the first seed's weights, where `weft demo` and `tabletop/planner` find them."""
    seed = arguments.work / f"seed-{arguments.seeds[0]}"
    shipped = {
        PLANNER_FILE: seed / "planner-5g1u" / PLANNER_FILE,
        UNTUNED_FILE: seed / "planner-0" / PLANNER_FILE,
        VISUALIZER_FILE: seed / "visualizer-apv" / VISUALIZER_FILE,
        LOGS_FILE: arguments.out / LOGS_FILE,
    }
    for name, file in shipped.items():
        replace_file(SHIPPED / name, file.read_bytes())
    (SHIPPED / READER_FILE).unlink(missing_ok=True)  # the planner that ships is the one that the visualizer names
    say(f"shipped: {sum(file.stat().st_size for file in shipped.values()) / 1e6:.2f} MB")


def measure_speed(folder: Path, world_name: str) -> None:
    """Images per second of the visualizer on the GPU, in batches."""
    world = find_world(world_name)
    planner = load_planner(folder / READER_FILE, world, "cuda")
    visualizer = load_visualizer(folder / VISUALIZER_FILE, world, "cuda")
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


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    there_is_gpu = torch.cuda.is_available()
    parser.add_argument("--world", choices=("micro", "full"), required=True)
    parser.add_argument("--small", action="store_true", help="64 rows a step, for one core; micro world")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp/weft-training"))
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes at a time")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if there_is_gpu else "cpu")
    parser.add_argument("--memory-device", choices=("cpu", "cuda"), help="of models that are to remember")
    parser.add_argument("--ship", action="store_true")
    arguments = parser.parse_args()
    if arguments.small and arguments.world != "micro":
        parser.error("--small is for the micro world")
    arguments.size = "small" if arguments.small else arguments.world
    arguments.part = arguments.part or list(PARTS)
    arguments.seeds = [int(seed) for seed in arguments.seeds.split(",")]
    arguments.work = arguments.work / arguments.world
    loop.HALF_PRECISION = arguments.world == "full"  # small nets only wait for the casts
    return arguments


def main() -> int:
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    make_all_rows(arguments)
    failed = run_jobs(arguments)
    pack(arguments)
    if arguments.ship and not failed:
        ship(arguments)
    drawn = arguments.work / f"seed-{arguments.seeds[0]}" / "visualizer-apv"
    if arguments.device == "cuda" and (drawn / VISUALIZER_FILE).exists():
        measure_speed(drawn, arguments.world)
    say(f"{failed} jobs failed or were stopped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
