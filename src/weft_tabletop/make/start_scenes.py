"""Tables to start from, on which certain kinds of requests and questions are possible."""

import random
from collections.abc import Sequence

from weft_tabletop.make.requests import random_scene
from weft_tabletop.world.operations import COVER, SWITCH_OFF, SWITCH_ON, Operation
from weft_tabletop.world.scenes import CELLS, COLUMNS, OBJECTS, ROWS, Scene, Thing

# How many objects two rows hold, for `sum`.
ROW_COUNTS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (0, 3), (4, 0), (0, 2))


def start_scene(kinds: Sequence[str], rng: random.Random) -> Scene:
    """A random table that is not empty, on which these kinds are possible."""
    scene = random_scene(rng)
    if "pattern" in kinds:
        scene = _with_pattern(scene, rng)
    if "steps" in kinds:
        scene = _with_empty_row(scene, rng)
    if "double" in kinds:
        scene = _with_repeated_object(scene, rng)
    if "sum" in kinds:
        scene = _with_empty_and_full_rows(scene, rng)
    if "switch" in kinds:
        scene = _with_switches(scene, rng)
    if "hidden" in kinds:
        scene = _with_cover(rng)
    if scene.things():
        return scene
    return scene.put({"b2": rng.choice(OBJECTS)})


def _with_pattern(scene: Scene, rng: random.Random) -> Scene:
    first, second = rng.sample(OBJECTS, 2)
    row = rng.choice(ROWS)
    return scene.put({row + "1": first, row + "2": second, row + "3": first, row + "4": None})


def _with_empty_row(scene: Scene, rng: random.Random) -> Scene:
    scene = _clear_cells(scene, rng)
    row = rng.choice(ROWS)
    return scene.put({row + column: None for column in COLUMNS})


def _clear_cells(scene: Scene, rng: random.Random) -> Scene:
    """Empty one cell of each column."""
    return scene.put({rng.choice(ROWS) + column: None for column in COLUMNS})


def _with_repeated_object(scene: Scene, rng: random.Random) -> Scene:
    cells = rng.sample(CELLS, rng.randint(4, 7))
    repeated = rng.choice(OBJECTS)
    things = [repeated] * rng.randint(1, 3) + rng.choices(OBJECTS, k=7)
    return Scene(scene.background).put(dict(zip(cells, things, strict=False)))


def _with_empty_and_full_rows(scene: Scene, rng: random.Random) -> Scene:
    """Two rows that hold at most four objects together, a third with a few, and an empty one."""
    _clear_cells(scene, rng)  # only its draws from the generator count: seeds keep their meaning
    rows = rng.sample(ROWS, 4)
    counts = rng.choice(ROW_COUNTS)
    cells: list[str] = []
    for row, count in zip(rows, counts, strict=False):
        cells += [row + column for column in rng.sample(COLUMNS, count)]
    cells += [rows[2] + column for column in rng.sample(COLUMNS, rng.randint(0, 3))]
    return Scene(scene.background).put({cell: rng.choice(OBJECTS) for cell in cells})


def _with_switches(scene: Scene, rng: random.Random) -> Scene:
    cells = rng.sample(CELLS, rng.randint(2, 6))
    return Scene(scene.background).put({cell: rng.choice((SWITCH_ON, SWITCH_OFF)) for cell in cells})


def _with_cover(rng: random.Random) -> Scene:
    """A table that is its own mirror image, but for one covered cell."""
    scene = random_scene(rng, 3, 8)
    way = rng.choice(("left to right", "top to bottom"))
    half: dict[str, Thing | None] = {}
    for cell, thing in scene.things().items():
        is_kept = cell[1] in "12" if way == "left to right" else cell[0] in "ab"
        if is_kept:
            half[cell] = thing
    if not half:
        half = {"b2": rng.choice(OBJECTS)}
    whole = Scene(scene.background).put(half)
    reflection = Operation("mirror", {"way": way}).apply(whole)
    whole = whole.put(dict(reflection.things()))
    return whole.put({rng.choice([*whole.things()]): COVER})
