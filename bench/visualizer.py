"""Images per second on one core: the visualizer's (its planner's states of the order, twelve steps of flow matching,
decoding) beside the tiny model's, on the same requests in the same process.

    python bench/visualizer.py [--images 60]

The weights that ship are of the micro world; the speed at full size is that of weights that nobody trained (it does not
depend on their values), where torch is there to make them."""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import numpy as np

from weft.types import Message, Text
from weft_tabletop.tiny import prompt
from weft_tabletop.tiny.endpoint import SHIPPED, load
from weft_tabletop.weaver import words
from weft_tabletop.weaver.files import PLANNER_FILE, UNTUNED_FILE, VISUALIZER_FILE
from weft_tabletop.weaver.files import SHIPPED as WEAVER
from weft_tabletop.weaver.infer import NumpyPlanner, NumpyVisualizer
from weft_tabletop.weaver.latents import NUMBERS, decode_cells
from weft_tabletop.weaver.world import FULL, TableWorld
from weft_tabletop.world.language import describe_scene


def make_orders(world: TableWorld, count: int) -> list[str]:
    rng = random.Random(0)
    return [f"Draw {describe_scene(world.random_scene(rng))}." for _ in range(count)]


def time_each(name: str, work: Callable[[str], object], orders: list[str]) -> float:
    """Print and return the median seconds of processor time of an image; the first two are not counted."""
    seconds: list[float] = []
    for order in orders:
        begin = time.process_time()
        work(order)
        seconds.append(time.process_time() - begin)
    median = statistics.median(seconds[2:])
    print(f"{name}: {1 / median:.1f} images/s ({1000 * median:.1f} ms, median of {len(seconds) - 2})", flush=True)
    return median


def draw_with(planner: NumpyPlanner, visualizer: NumpyVisualizer) -> Callable[[str], object]:
    tiny = load(SHIPPED, "talker")
    cells = len(planner.world.cells)
    nothing = np.zeros((0, cells, NUMBERS), np.float32)
    rng = np.random.default_rng(0)

    def work(order: str) -> object:
        tokens = words.encode_order(order, 0, cells)
        states = planner.states(tokens, nothing)[words.find_order(0, cells) :]
        noise = rng.standard_normal((cells, NUMBERS), dtype=np.float32)
        return decode_cells(tiny, planner.world, visualizer.draw(noise, nothing, states))

    return work


def draw_with_tiny(order: str) -> object:
    tiny = load(SHIPPED, "talker")
    reply = tiny.reply(list(prompt.build_prompt((Message("user", (Text(order),)),))))
    return [tiny.decode_image(part) for part in reply.parts if not isinstance(part, str)]


def make_untrained(folder: Path) -> None:
    """Weights of full size with random values."""
    import torch

    from weft_tabletop.weaver.train.files import save_net
    from weft_tabletop.weaver.train.planner_net import NetSize, Planner
    from weft_tabletop.weaver.train.stages import SIZES
    from weft_tabletop.weaver.train.visualizer_net import Visualizer

    torch.manual_seed(0)
    planner, visualizer = (NetSize(*size, len(FULL.cells)) for size in SIZES["full"])
    save_net(folder / PLANNER_FILE, Planner(planner), FULL)
    save_net(folder / VISUALIZER_FILE, Visualizer(visualizer, planner.width), FULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=60)
    orders = parser.parse_args().images + 2
    tiny = time_each("the tiny model", draw_with_tiny, make_orders(FULL, orders))
    shipped = NumpyPlanner(WEAVER / UNTUNED_FILE), NumpyVisualizer(WEAVER / VISUALIZER_FILE)
    world = shipped[0].world
    found = time_each(f"the visualizer that ships ({world.name})", draw_with(*shipped), make_orders(world, orders))
    print(f"  {tiny / found:.1f} times the tiny model's")
    try:
        with tempfile.TemporaryDirectory() as folder:
            make_untrained(Path(folder))
            full = NumpyPlanner(Path(folder) / PLANNER_FILE), NumpyVisualizer(Path(folder) / VISUALIZER_FILE)
    except ImportError:
        print("the visualizer at full size: not measured, torch is not installed")
        return
    found = time_each("the visualizer at full size (untrained)", draw_with(*full), make_orders(FULL, orders))
    print(f"  {tiny / found:.1f} times the tiny model's")


if __name__ == "__main__":
    main()
