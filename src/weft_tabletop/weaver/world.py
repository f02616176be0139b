"""The worlds in which planner and visualizer are trained: the whole tabletop, and a micro world of four cells in which
the same effects show within seconds on one core."""

import random
from collections.abc import Sequence

from msgspec import Struct

from weft.errors import UserError
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, OBJECTS, THINGS, Scene, Thing

_THING_NUMBERS = {thing: number for number, thing in enumerate(THINGS, start=1)}


class TableWorld(Struct, frozen=True):
    name: str
    cells: tuple[str, ...]
    things: tuple[Thing, ...]
    backgrounds: tuple[str, ...]
    most: int  # objects on a table to start from
    documents: tuple[str, ...]  # kinds of documents with several images

    def random_scene(self, rng: random.Random, least: int = 1, most: int | None = None) -> Scene:
        cells = rng.sample(self.cells, rng.randint(least, most or self.most))
        return Scene(rng.choice(self.backgrounds)).put({cell: rng.choice(self.things) for cell in cells})

    def number_scene(self, scene: Scene) -> list[int]:
        """A scene as numbers: its background, then for each cell 0 or the number of its thing."""
        things = scene.things()
        cells = [_THING_NUMBERS[things[cell]] if cell in things else 0 for cell in self.cells]
        return [tuple(BACKGROUNDS).index(scene.background), *cells]

    def scene_of(self, numbers: Sequence[int]) -> Scene:
        """The scene that `number_scene` numbered."""
        things = {cell: THINGS[number - 1] for cell, number in zip(self.cells, numbers[1:], strict=True) if number}
        return Scene(tuple(BACKGROUNDS)[numbers[0]]).put(things)

    def holds(self, scene: Scene) -> bool:
        """Whether a scene has nothing that this world does not have."""
        things = scene.things()
        has_cells = set(things) <= set(self.cells)
        return has_cells and set(things.values()) <= set(self.things) and scene.background in self.backgrounds

    def places(self) -> list[int]:
        """Where the cells are among the sixteen of an image."""
        return [CELLS.index(cell) for cell in self.cells]


_MICRO_THINGS = tuple(
    Thing(colour, shape) for colour in ("red", "green", "blue") for shape in ("star", "ring", "cross")
)
MICRO = TableWorld("micro", ("a1", "a2", "b1", "b2"), _MICRO_THINGS, ("white", "sky"), 3, ("build",))
FULL = TableWorld("full", CELLS, OBJECTS, tuple(BACKGROUNDS), 7, ("build", "film"))
WORLDS = {world.name: world for world in (MICRO, FULL)}


def find_world(name: str) -> TableWorld:
    if name not in WORLDS:
        raise UserError(f"--world {name}: there is {', '.join(WORLDS)}")
    return WORLDS[name]
