"""Tasks as arrays, so that a step of training is one index into memory: tokens, which of them are learnt, and the
scenes of the images as numbers. Rows are made once, by all cores; a kind's rows follow from world, seed and count."""

import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from weft.benchmarks.weave.views import show_single_turn
from weft.training.views import planner_view, visualizer_view
from weft.types import Image, Text
from weft_tabletop.tiny import vocab
from weft_tabletop.weaver import words
from weft_tabletop.weaver.tasks import IMAGES, Task, make_task
from weft_tabletop.weaver.world import TableWorld, find_world

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
    MakePiece = Callable[[str, str, int, str], "Rows"]

PIECE = 2000  # rows that a process makes at a time


class Rows(Struct, frozen=True):
    """`tokens` and `learn` are (rows, length); `scenes` (rows, images, 1 + cells), of the images that are shown;
    `targets` (rows, 1 + cells), of the image to draw, for a visualizer."""

    tokens: "Array"
    learn: "Array"
    scenes: "Array"
    targets: "Array | None" = None

    def __len__(self) -> int:
        return len(self.tokens)

    def save(self, path: Path) -> None:
        import numpy as np

        arrays = {name: array for name, array in asdict(self).items() if array is not None}
        part = path.with_name(f".{path.name}")
        np.savez(part, **arrays)
        part.replace(path)

    @staticmethod
    def load(path: Path) -> "Rows":
        import numpy as np

        with np.load(path, allow_pickle=False) as arrays:
            return Rows(**dict(arrays.items()))


def planner_rows(world: TableWorld, kind: str, count: int, seed: int, workers: int = 0) -> Rows:
    return gather(_planner_piece, world, kind, count, seed, workers)


def visualizer_rows(world: TableWorld, kind: str, count: int, seed: int, workers: int = 0) -> Rows:
    assert kind in IMAGES
    return gather(_visualizer_piece, world, kind, count, seed, workers)


def planner_row(task: Task, world: TableWorld) -> tuple[list[int], list[bool], list[list[int]]]:
    """The tokens of a request and its reply, which of them are learnt, and the scenes of the images shown."""
    (example,) = planner_view(task.sample, show_single_turn, lambda turn: task.orders)
    tokens, images = words.encode_request(example.messages[:-1], len(world.cells))
    learn = [False] * len(tokens)
    for part in example.learnt_parts():
        assert isinstance(part, Text)
        tokens += words.encode_text(part.text)
    tokens.append(vocab.END)
    learn += [True] * (len(tokens) - len(learn))
    return tokens, learn, [world.number_scene(task.scenes[image.digest]) for image in images]


def visualizer_row(task: Task, world: TableWorld) -> tuple[list[int], list[list[int]], list[int]]:
    """The tokens of an order, the scenes of the images that it sees, and the scene to draw."""
    (example,) = visualizer_view(task.sample, show_single_turn, lambda turn: task.orders)
    request, reply = example.messages
    shown = [world.number_scene(task.scenes[part.digest]) for part in request.parts if isinstance(part, Image)]
    order = "".join(part.text for part in request.parts if isinstance(part, Text))
    (image,) = reply.parts
    assert isinstance(image, Image)
    tokens = words.encode_order(order, len(shown), len(world.cells))
    return tokens, shown, world.number_scene(task.scenes[image.digest])


def _planner_piece(world: str, kind: str, count: int, seed: str) -> Rows:
    table = find_world(world)
    rng = random.Random(seed)
    made = [planner_row(make_task(kind, table, rng), table) for _ in range(count)]
    return Rows(
        pad([tokens for tokens, _, _ in made]), pad([learn for _, learn, _ in made], bool), _stack(table, made, 2)
    )


def _visualizer_piece(world: str, kind: str, count: int, seed: str) -> Rows:
    import numpy as np

    table = find_world(world)
    rng = random.Random(seed)
    made = [visualizer_row(make_task(kind, table, rng), table) for _ in range(count)]
    tokens = pad([tokens for tokens, _, _ in made])
    targets = np.array([target for _, _, target in made], np.uint8)
    return Rows(tokens, np.zeros(tokens.shape, bool), _stack(table, made, 1), targets)


def _stack(world: TableWorld, made: Sequence[tuple[object, ...]], column: int) -> "Array":
    import numpy as np

    return np.array([row[column] for row in made], np.uint8).reshape(len(made), -1, 1 + len(world.cells))


def pad(lists: Sequence[Sequence[int]], kind: Any = None) -> "Array":
    import numpy as np

    padded = np.zeros((len(lists), max(map(len, lists))), kind or np.int16)
    for row, values in zip(padded, lists, strict=True):
        row[: len(values)] = values
    return padded


def gather(make_piece: "MakePiece", world: TableWorld, kind: str, count: int, seed: int, workers: int) -> Rows:
    """Make the rows in pieces, each with a seed of its own, so that the number of processes changes nothing."""
    import numpy as np

    starts = range(0, count, PIECE)
    given = [(world.name, kind, min(PIECE, count - start), f"{kind} {seed} {start}") for start in starts]
    if workers:
        # Forking spares every process the imports; no thread is running yet.
        with ProcessPoolExecutor(workers, get_context("fork" if sys.platform == "linux" else "spawn")) as pool:
            made: list[Rows] = list(pool.map(make_piece, *zip(*given, strict=True)))
    else:
        made = [make_piece(*arguments) for arguments in given]
    length = max(piece.tokens.shape[1] for piece in made)
    tokens = np.concatenate([_widen(piece.tokens, length) for piece in made])
    learn = np.concatenate([_widen(piece.learn, length) for piece in made])
    scenes = np.concatenate([piece.scenes for piece in made])
    targets = [piece.targets for piece in made if piece.targets is not None]
    return Rows(tokens, learn, scenes, np.concatenate(targets) if targets else None)


def _widen(array: "Array", length: int) -> "Array":
    import numpy as np

    return np.pad(array, ((0, 0), (0, length - array.shape[1])))
