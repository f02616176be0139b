"""The stages of training, from a recipe to a folder of weights.

planner       from nothing, or from the planner in `start`, on a mix of kinds of requests
visualizer    from nothing, or from the visualizer in `start`, on the states of `planner`
joint         both from nothing
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import torch
from msgspec import Struct

from weft.errors import UserError
from weft.training.checkpoint import Checkpoint
from weft.training.mix import Mix, Source, parse_mix
from weft_tabletop.tiny.endpoint import digest_files
from weft_tabletop.weaver.files import PLANNER_FILE, VISUALIZER_FILE
from weft_tabletop.weaver.rows import Rows, planner_rows, visualizer_rows
from weft_tabletop.weaver.tasks import IMAGES, UNDERSTANDING
from weft_tabletop.weaver.train.files import load_planner, load_visualizer
from weft_tabletop.weaver.train.joint import DRAWN, JointLearner
from weft_tabletop.weaver.train.loop import Learner, Schedule, run_stage
from weft_tabletop.weaver.train.planner import PlannerLearner, add_adapters
from weft_tabletop.weaver.train.planner_net import NetSize, Planner
from weft_tabletop.weaver.train.tables import DeviceRows
from weft_tabletop.weaver.train.visualizer import VisualizerLearner
from weft_tabletop.weaver.train.visualizer_net import Visualizer
from weft_tabletop.weaver.world import TableWorld, find_world

STAGES = ("planner", "visualizer", "joint")
VERSION = "1"  # counts changes of what the same recipe trains
HELD_OUT_SEED = 1_000_003
SIZES = {"micro": ((64, 2), (64, 3)), "full": ((192, 4), (192, 5))}  # width and layers of planner and visualizer
KINDS_OF = {  # the parts of a mix, as the paper names them, and the kinds of rows that they stand for
    "und": {"words": 0.5, "image": 0.5},
    "t2i": {"draw": 1.0},
    "i2i": {"edit": 0.7, "copy": 0.3},
    "doc": {"build": 0.5, "film": 0.5},
}


class Recipe(Struct, frozen=True):
    """Everything that decides the weights."""

    stage: str
    world: str = "full"
    mix: str = ""
    steps: int = 2000
    batch: int = 512
    rate: float = 1e-3
    seed: int = 0
    rows: int = 60_000  # of each kind
    every: int = 200
    rank: int = 0  # of the adapters; 0: all weights are trained
    planner: str = ""  # digest of the planner that a visualizer reads orders through
    start: str = ""  # digest of the weights to start from


def parse_weaver_mix(text: str) -> dict[str, float]:
    """A mix by its parts: `und`, `5g1u`, `5g1u-no-documents`, or `und=3,t2i=5`."""
    name, _, rest = text.partition("-")
    if name.endswith("g1u") and name[:-3].isdigit() and int(name[:-3]) > 0 and rest in ("", "no-documents"):
        share = float(name[:-3])
        if rest:
            return {"und": 2.0, "t2i": share, "i2i": share}
        return {"und": 3.0, "t2i": share, "i2i": share, "doc": share}
    return {source.data: source.weight for source in parse_mix(text, tuple(KINDS_OF)).sources}


def planner_mix(text: str, world: TableWorld, seed: int) -> Mix:
    """The mix by kinds of rows."""
    weights: dict[str, float] = {}
    for part, weight in parse_weaver_mix(text).items():
        kinds = {kind: share for kind, share in KINDS_OF[part].items() if part != "doc" or kind in world.documents}
        total = sum(kinds.values())
        weights |= {kind: weight * share / total for kind, share in kinds.items()}
    return Mix(tuple(Source(kind, weight) for kind, weight in weights.items()), seed)


def visualizer_mix(seed: int) -> Mix:
    return Mix(tuple(Source(kind, weight) for kind, weight in zip(IMAGES, (1.0, 1.0, 0.5), strict=True)), seed)


def joint_mix(text: str, world: TableWorld, seed: int) -> Mix:
    """Half of the rows are a planner's, half a visualizer's."""
    planner = planner_mix(text, world, seed)
    sources = [Source(one.data, share / 2) for one, share in zip(planner.sources, planner.shares(), strict=True)]
    visualizer = visualizer_mix(seed)
    for one, share in zip(visualizer.sources, visualizer.shares(), strict=True):
        sources.append(Source(DRAWN + one.data, share / 2))
    return Mix(tuple(sources), seed)


class RowStore:
    """Makes rows once and keeps them on the device."""

    def __init__(self, world: TableWorld, device: str, workers: int = 0, folder: Path | None = None) -> None:
        self._world = world
        self._device = device
        self._workers = workers
        self._folder = folder
        self._made: dict[tuple[str, str, int, int], DeviceRows] = {}

    def get(self, role: str, kind: str, count: int, seed: int) -> DeviceRows:
        key = (role, kind, count, seed)
        if key not in self._made:
            self._made[key] = DeviceRows(self.make(*key), self._world, self._device)
        return self._made[key]

    def make(self, role: str, kind: str, count: int, seed: int) -> Rows:
        make_rows = planner_rows if role == "planner" else visualizer_rows
        if self._folder is None:
            return make_rows(self._world, kind, count, seed, self._workers)
        file = self._folder / f"{self._world.name}-{role}-{kind}-{count}-{seed}.npz"
        if not file.exists():
            make_rows(self._world, kind, count, seed, self._workers).save(file)
        return Rows.load(file)


def train_stage(
    recipe: Recipe,
    out: Path,
    *,
    start: Path | None = None,
    planner: Path | None = None,
    watch: Path | None = None,
    device: str = "",
    store: RowStore | None = None,
) -> Checkpoint:
    """Train a stage. `watch`: a visualizer whose loss is measured while its planner is tuned."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    world = find_world(recipe.world)
    store = store or RowStore(world, device)
    torch.manual_seed(recipe.seed)
    torch.set_float32_matmul_precision("high")
    stage = _Stage(recipe, world, device, store)
    if recipe.stage == "planner":
        learner, mix = stage.build_planner(start, watch)
    elif recipe.stage == "visualizer":
        if planner is None:
            raise UserError("a visualizer needs the planner through which it reads orders: give --planner")
        learner, mix = stage.build_visualizer(start, planner)
    elif recipe.stage == "joint":
        learner, mix = stage.build_joint()
    else:
        raise UserError(f"--stage {recipe.stage}: there is {', '.join(STAGES)}")
    schedule = Schedule(recipe.steps, recipe.batch, recipe.rate, recipe.every)
    named = recipe
    if start is not None:
        name = PLANNER_FILE if recipe.stage == "planner" else VISUALIZER_FILE
        named = msgspec.structs.replace(named, start=digest_files([start / name]))
    if planner is not None:
        named = msgspec.structs.replace(named, planner=digest_files([planner / PLANNER_FILE]))
    manifest = {**msgspec.to_builtins(named), "version": VERSION, "device": device}
    return run_stage(learner, mix, out, schedule, manifest)


class _Stage:
    def __init__(self, recipe: Recipe, world: TableWorld, device: str, store: RowStore) -> None:
        self._recipe = recipe
        self._world = world
        self._device = device
        self._store = store
        planner, visualizer = SIZES[world.name]
        self._planner_size = NetSize(*planner, len(world.cells))
        self._visualizer_size = NetSize(*visualizer, len(world.cells))

    def build_planner(self, start: Path | None, watch: Path | None) -> tuple[Learner, Mix]:
        mix = planner_mix(self._recipe.mix or "und", self._world, self._recipe.seed)
        if start is None:
            net = Planner(self._planner_size).to(self._device)
        else:
            net = load_planner(start / PLANNER_FILE, self._world, self._device)
        if self._recipe.rank:
            add_adapters(net, self._recipe.rank)
        kinds = [source.data for source in mix.sources]
        held_out = self._held_out("planner", (*UNDERSTANDING, *IMAGES, *self._world.documents))
        visualizer = None
        watched: Mapping[str, DeviceRows] = {}
        if watch is not None:
            visualizer = load_visualizer(watch / VISUALIZER_FILE, self._world, self._device)
            watched = self._held_out("visualizer", IMAGES)
        rows = self._rows("planner", kinds)
        learner = PlannerLearner(
            net, kinds, rows, held_out, self._world, self._device, visualizer=visualizer, visualizer_rows=watched
        )
        return learner, mix

    def build_visualizer(self, start: Path | None, planner: Path) -> tuple[Learner, Mix]:
        mix = visualizer_mix(self._recipe.seed)
        reader = load_planner(planner / PLANNER_FILE, self._world, self._device)
        if start is None:
            net = Visualizer(self._visualizer_size, reader.size.width).to(self._device)
        else:
            net = load_visualizer(start / VISUALIZER_FILE, self._world, self._device)
        kinds = [source.data for source in mix.sources]
        learner = VisualizerLearner(
            reader,
            net,
            kinds,
            self._rows("visualizer", kinds),
            self._held_out("visualizer", IMAGES),
            self._world,
            self._device,
            planner_file=planner / PLANNER_FILE,
        )
        return learner, mix

    def build_joint(self) -> tuple[Learner, Mix]:
        mix = joint_mix(self._recipe.mix or "5g1u", self._world, self._recipe.seed)
        kinds = [source.data for source in mix.sources]
        drawn = [kind.removeprefix(DRAWN) for kind in kinds if kind.startswith(DRAWN)]
        rows = self._rows("planner", [kind for kind in kinds if not kind.startswith(DRAWN)])
        rows |= {DRAWN + kind: some for kind, some in self._rows("visualizer", drawn).items()}
        held_out = self._held_out("planner", (*UNDERSTANDING, *IMAGES, *self._world.documents))
        held_out |= {DRAWN + kind: some for kind, some in self._held_out("visualizer", IMAGES).items()}
        planner = Planner(self._planner_size).to(self._device)
        visualizer = Visualizer(self._visualizer_size, self._planner_size.width).to(self._device)
        return JointLearner(planner, visualizer, kinds, rows, held_out, self._world, self._device), mix

    def _rows(self, role: str, kinds: "list[str]") -> dict[str, DeviceRows]:
        return {kind: self._store.get(role, kind, self._recipe.rows, 0) for kind in kinds}

    def _held_out(self, role: str, kinds: "tuple[str, ...]") -> dict[str, DeviceRows]:
        return {kind: self._store.get(role, kind, 512, HELD_OUT_SEED) for kind in kinds}
