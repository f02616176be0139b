"""The stages of training, from a recipe to a folder of weights.

planner       from nothing, or from the planner in `start`, on a mix of kinds of requests
visualizer    from nothing, or from the visualizer in `start`, on the states of `planner`
joint         both from nothing
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import torch

from weft.errors import UserError
from weft.training.checkpoint import Checkpoint, open_checkpoint
from weft.training.mix import Mix
from weft_tabletop.tiny.endpoint import digest_files
from weft_tabletop.weaver.files import PLANNER_FILE, VISUALIZER_FILE, find_file
from weft_tabletop.weaver.recipes import DRAWN, StageRecipe, find_mix
from weft_tabletop.weaver.rows import Rows, planner_rows, visualizer_rows
from weft_tabletop.weaver.tasks import IMAGES, UNDERSTANDING
from weft_tabletop.weaver.train.files import load_planner, load_visualizer
from weft_tabletop.weaver.train.joint import JointLearner
from weft_tabletop.weaver.train.loop import Learner, Report, Schedule, run_stage
from weft_tabletop.weaver.train.planner import PlannerLearner, add_adapters
from weft_tabletop.weaver.train.planner_net import NetSize, Planner
from weft_tabletop.weaver.train.tables import DeviceRows
from weft_tabletop.weaver.train.visualizer import VisualizerLearner
from weft_tabletop.weaver.train.visualizer_net import Visualizer
from weft_tabletop.weaver.world import TableWorld, find_world

HELD_OUT_SEED = 1_000_003
VERSION = "2"  # counts changes of what the same recipe trains
SIZES = {"micro": ((64, 2), (64, 3)), "full": ((192, 4), (192, 5))}  # width and layers of planner and visualizer


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
    recipe: StageRecipe,
    out: Path,
    *,
    start: Path | None = None,
    planner: Path | None = None,
    watch: Path | None = None,
    device: str = "",
    store: RowStore | None = None,
    report: Report | None = None,
) -> Checkpoint:
    """Train a stage. `start`, `planner` and `watch` are weights, or folders of them; `watch`: a visualizer whose loss
    is measured while its planner is tuned."""
    device = find_device(device)
    world = find_world(recipe.world)
    mix = find_mix(recipe, world)
    files: dict[str, Path] = {}
    if start is not None:
        files["start"] = find_file(start, VISUALIZER_FILE if recipe.stage == "visualizer" else PLANNER_FILE)
    if recipe.stage == "visualizer":
        if planner is None:
            raise UserError("a visualizer needs the planner through which it reads orders: give --planner")
        files["planner"] = find_file(planner, PLANNER_FILE)
    named = {name: digest_files([file]) for name, file in files.items()}
    manifest = {**msgspec.to_builtins(recipe), **named, "version": VERSION, "device": device}
    finished = open_checkpoint(out, manifest)
    if finished.done:
        return finished
    torch.manual_seed(recipe.seed)
    torch.set_float32_matmul_precision("high")
    stage = StageBuilder(recipe, world, mix, device, store or RowStore(world, device))
    if recipe.stage == "planner":
        learner = stage.build_planner(files.get("start"), watch)
    elif recipe.stage == "visualizer":
        learner = stage.build_visualizer(files.get("start"), files["planner"])
    else:
        learner = stage.build_joint()
    schedule = Schedule(recipe.steps, recipe.batch, recipe.rate, recipe.every)
    return run_stage(learner, mix, out, schedule, manifest, report=report)


def find_device(name: str) -> str:
    """The device of this name, or the one that there is. Raises UserError for one that there is not."""
    if not name:
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise UserError(f"--device {name}: there is cpu and cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch finds no GPU here")
    return name


class StageBuilder:
    def __init__(self, recipe: StageRecipe, world: TableWorld, mix: Mix, device: str, store: RowStore) -> None:
        self._recipe = recipe
        self._world = world
        self._kinds = [source.data for source in mix.sources]
        self._device = device
        self._store = store
        planner, visualizer = SIZES[world.name]
        self._planner_size = NetSize(*planner, len(world.cells))
        self._visualizer_size = NetSize(*visualizer, len(world.cells))

    def build_planner(self, start: Path | None, watch: Path | None) -> Learner:
        if start is None:
            net = Planner(self._planner_size).to(self._device)
        else:
            net = load_planner(start, self._world, self._device)
        if self._recipe.rank:
            add_adapters(net, self._recipe.rank)
        visualizer = None
        watched: Mapping[str, DeviceRows] = {}
        if watch is not None:
            visualizer = load_visualizer(find_file(watch, VISUALIZER_FILE), self._world, self._device)
            watched = self._held_out("visualizer", IMAGES)
        return PlannerLearner(
            net,
            self._kinds,
            self._rows("planner", self._kinds),
            self._held_out("planner", (*UNDERSTANDING, *IMAGES, *self._world.documents)),
            self._world,
            self._device,
            visualizer=visualizer,
            visualizer_rows=watched,
        )

    def build_visualizer(self, start: Path | None, planner: Path) -> Learner:
        reader = load_planner(planner, self._world, self._device)
        if start is None:
            net = Visualizer(self._visualizer_size, reader.size.width).to(self._device)
        else:
            net = load_visualizer(start, self._world, self._device)
        return VisualizerLearner(
            reader,
            net,
            self._kinds,
            self._rows("visualizer", self._kinds),
            self._held_out("visualizer", IMAGES),
            self._world,
            self._device,
            planner_file=planner,
        )

    def build_joint(self) -> Learner:
        drawn = [kind.removeprefix(DRAWN) for kind in self._kinds if kind.startswith(DRAWN)]
        rows = self._rows("planner", [kind for kind in self._kinds if not kind.startswith(DRAWN)])
        rows |= {DRAWN + kind: some for kind, some in self._rows("visualizer", drawn).items()}
        held_out = self._held_out("planner", (*UNDERSTANDING, *IMAGES, *self._world.documents))
        held_out |= {DRAWN + kind: some for kind, some in self._held_out("visualizer", IMAGES).items()}
        planner = Planner(self._planner_size).to(self._device)
        visualizer = Visualizer(self._visualizer_size, self._planner_size.width).to(self._device)
        return JointLearner(planner, visualizer, self._kinds, rows, held_out, self._world, self._device)

    def _rows(self, role: str, kinds: "list[str]") -> dict[str, DeviceRows]:
        return {kind: self._store.get(role, kind, self._recipe.rows, 0) for kind in kinds}

    def _held_out(self, role: str, kinds: "tuple[str, ...]") -> dict[str, DeviceRows]:
        return {kind: self._store.get(role, kind, 512, HELD_OUT_SEED) for kind in kinds}
