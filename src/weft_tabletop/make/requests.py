"""What can be requested at a point of a dialogue: for each kind, arguments that are possible there, or None.

A request is possible if it can be done (nothing is removed from an empty table) and has one right result. The scenes to
choose from, and the random generator, are the dialogue's (`DialogueMaker`). The order of calls to the generator decides
what a seed means: a change here changes every dataset."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from weft_tabletop.world.operations import SWITCH_OFF, SWITCH_ON, Operation, shortest_paths
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, COLUMNS, OBJECTS, ROWS, Scene, list_things
from weft_tabletop.world.wordings import with_article

if TYPE_CHECKING:
    from weft_tabletop.make.dialogues import DialogueMaker

RequestContent = tuple[dict[str, str], dict[str, int]]  # arguments, and image numbers by slot
Maker = Callable[["DialogueMaker", int], RequestContent | None]  # for a dialogue and the number of its base image

MAX_DOUBLED = 12  # objects on a table after one kind of them was doubled
HOURS = (("1", "1"), ("1", "2"), ("1", "2"), ("1", "3"), ("1", "3"), ("2", "1"), ("3", "1"))  # steps an hour, hours


def random_scene(rng: random.Random, least: int = 2, most: int = 7) -> Scene:
    """A scene with `least` to `most` objects."""
    cells = rng.sample(CELLS, rng.randint(least, most))
    background = rng.choice(tuple(BACKGROUNDS))
    return Scene(background).put({cell: rng.choice(OBJECTS) for cell in cells})


def about_image(base: int, **args: str) -> RequestContent:
    """The arguments of a request about one image."""
    return args, {"image": base}


def choose_freely(**values: Sequence[str]) -> Maker:
    """A maker for what is done to a whole table: each argument is one of its values, whatever the table holds."""

    def choose(maker: "DialogueMaker", base: int) -> RequestContent:
        return about_image(base, **{name: maker.rng.choice(options) for name, options in values.items()})

    return choose


def _choose_draw(maker: "DialogueMaker", base: int) -> RequestContent:
    scene = random_scene(maker.rng)
    return {"background": scene.background, "things": list_things(scene)}, {}


def _choose_add(maker: "DialogueMaker", base: int) -> RequestContent | None:
    empty = maker.empty_cells(base)
    if not empty:
        return None
    return about_image(base, thing=maker.other_object(), cell=maker.rng.choice(empty))


def _choose_remove(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    if not objects:
        return None
    cell, thing = maker.rng.choice(objects)
    return about_image(base, thing=str(thing), cell=cell)


def _choose_replace(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    if not objects:
        return None
    cell, thing = maker.rng.choice(objects)
    return about_image(base, thing=maker.other_object(thing), cell=cell, what=str(thing))


def _choose_recolour(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    if not objects:
        return None
    cell, thing = maker.rng.choice(objects)
    colours = [colour for colour in COLOURS if colour != thing.colour]
    return about_image(base, shape=thing.shape, cell=cell, colour=maker.rng.choice(colours))


def _choose_move(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    if not objects:
        return None
    cell, thing = maker.rng.choice(objects)
    empty = maker.empty_cells(base)
    if not empty:
        return None
    return about_image(base, thing=str(thing), cell=cell, to=maker.rng.choice(empty))


def _choose_swap(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    if not objects:
        return None
    cell, thing = maker.rng.choice(objects)
    scene = maker.scenes[base]
    others = [other for other in CELLS if scene.at(other) != thing]
    if not others:
        return None
    return about_image(base, cell=cell, to=maker.rng.choice(others))


def _choose_background(maker: "DialogueMaker", base: int) -> RequestContent:
    return about_image(base, background=_other_background(maker, base))


def _choose_restore(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """An image that has an object where the base is empty."""
    scene = maker.scenes[base]
    sources: list[int] = []
    for number, other in maker.scenes.items():
        if number != base and any(scene.at(cell) is None for cell in other.things()):
            sources.append(number)
    if not sources:
        return None
    return {}, {"image": base, "source": maker.rng.choice(sources)}


def _choose_put_back(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """Always about the latest image: only there is "what was removed last" unambiguous."""
    latest = max(maker.scenes)
    if maker.last_removed is None:
        return None
    cell, thing = maker.last_removed
    if maker.scenes[latest].at(cell) is not None:
        return None
    return about_image(latest, cell=cell, thing=str(thing))


def _choose_copy(maker: "DialogueMaker", base: int) -> RequestContent | None:
    sources = [number for number, scene in maker.scenes.items() if number != base and scene.things()]
    if not sources:
        return None
    source = maker.rng.choice(sources)
    cell, thing = maker.rng.choice(maker.objects_on(source))
    destinations = [other for other in CELLS if maker.scenes[base].at(other) != thing]
    if not destinations:
        return None
    return {"cell": cell, "to": maker.rng.choice(destinations)}, {"image": base, "source": source}


def _choose_one_more(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    if not objects or not maker.empty_cells(base):
        return None
    return about_image(base, thing=str(maker.rng.choice(objects)[1]))


def _choose_one_less(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    if not objects:
        return None
    return about_image(base, thing=str(maker.rng.choice(objects)[1]))


def _choose_pattern(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """A row whose first and third object are the same, and whose last cell is empty."""
    rows: list[str] = []
    for row in ROWS:
        first, second, third, fourth = (maker.scenes[base].at(row + column) for column in COLUMNS)
        if second is not None and first == third and fourth is None:
            rows.append(row)
    if not rows:
        return None
    return about_image(base, row=maker.rng.choice(rows))


def choose_unique_route(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """A way between two objects; no other is as short."""
    return choose_route(maker, base, is_unique=True)


def choose_route(maker: "DialogueMaker", base: int, *, is_unique: bool = False) -> RequestContent | None:
    """A way of at least one dot between two objects. With `is_unique` no other way is as short."""
    cells = [cell for cell, thing in maker.objects_on(base) if thing.shape != "dot"]
    for start, end in _shuffled_pairs(cells, maker.rng):
        paths = shortest_paths(maker.scenes[base], start, end)
        if not paths or len(paths[0]) <= 2:
            continue
        if is_unique and len(paths) > 1:
            continue
        return about_image(base, cell=start, to=end, colour=maker.rng.choice(tuple(COLOURS)))
    return None


def _shuffled_pairs(cells: Sequence[str], rng: random.Random) -> list[tuple[str, str]]:
    pairs = [(start, end) for start in cells for end in cells if start < end]
    rng.shuffle(pairs)
    return pairs


def _choose_steps(maker: "DialogueMaker", base: int) -> RequestContent | None:
    scene = maker.scenes[base]
    rows = [row for row in ROWS if all(scene.at(row + column) is None for column in COLUMNS)]
    if not rows:
        return None
    things = _sample_steps(maker.rng)
    return about_image(base, row=maker.rng.choice(rows), things=things)


def _sample_steps(rng: random.Random) -> str:
    return ", ".join(str(thing) for thing in rng.sample(OBJECTS, rng.randint(2, 4)))


def _choose_correct(maker: "DialogueMaker", base: int) -> RequestContent:
    scene = maker.scenes[base]
    if maker.rng.random() < 0.15:
        return about_image(base, objection=f"the background should be {_other_background(maker, base)}")
    objects = maker.objects_on(base)
    if objects and maker.rng.random() < 0.6:
        cell = maker.rng.choice(objects)[0]
    else:
        cell = maker.rng.choice(CELLS)
    thing = scene.at(cell)
    if thing is not None and maker.rng.random() < 0.4:
        expected = "nothing"
    else:
        expected = with_article(maker.other_object(thing))
    return about_image(base, objection=f"at {cell} there should be {expected}")


def _other_background(maker: "DialogueMaker", base: int) -> str:
    return maker.rng.choice([name for name in BACKGROUNDS if name != maker.scenes[base].background])


def _choose_add_any(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """A shape that the table does not have yet, so that the new object is easy to find."""
    empty = maker.empty_cells(base)
    if not empty:
        return None
    present = {thing.shape for _, thing in maker.objects_on(base)}
    new = [thing for thing in OBJECTS if thing.shape not in present]
    thing = maker.rng.choice(new or OBJECTS)
    return about_image(base, shape=thing.shape, thing=str(thing), cell=maker.rng.choice(empty))


def _choose_draw_any(maker: "DialogueMaker", base: int) -> RequestContent:
    shape = maker.rng.choice(OBJECTS).shape
    number = maker.rng.randint(2, 5)
    cells = sorted(maker.rng.sample(CELLS, number))
    things = ", ".join(f"{maker.rng.choice(tuple(COLOURS))} {shape} at {cell}" for cell in cells)
    background = maker.rng.choice(tuple(BACKGROUNDS))
    return {"background": background, "number": str(number), "shape": shape, "things": things}, {}


def _choose_hours(maker: "DialogueMaker", base: int) -> RequestContent:
    steps, hours = maker.rng.choice(HOURS)
    return about_image(base, steps=steps, hours=hours, side=maker.rng.choice(("left", "right")))


def _choose_double(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """Objects of which there are several, if there are such."""
    things = [thing for _, thing in maker.objects_on(base)]
    fitting = [thing for thing in things if things.count(thing) + len(things) <= MAX_DOUBLED]
    repeated = [thing for thing in fitting if things.count(thing) > 1]
    if not fitting:
        return None
    return about_image(base, thing=str(maker.rng.choice(repeated or fitting)))


def _choose_trait(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    trait = maker.rng.choice(("colour", "shape"))
    pairs: list[tuple[str, str]] = []
    for cell, own in objects:
        for to, other in objects:
            if trait == "colour":
                is_other = own.colour != other.colour
            else:
                is_other = own.shape != other.shape
            if is_other:
                pairs.append((cell, to))
    if not pairs:
        return None
    cell, to = maker.rng.choice(pairs)
    return about_image(base, cell=cell, to=to, trait=trait)


def _choose_sum(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """An empty row, and two others that hold one to four objects together."""
    counts = {row: sum(cell[0] == row for cell, _ in maker.objects_on(base)) for row in ROWS}
    candidates = [(row, first, second) for row in ROWS for first in ROWS for second in ROWS if first < second]
    fitting: list[tuple[str, str, str]] = []
    for row, first, second in candidates:
        total = counts[first] + counts[second]
        if counts[row] == 0 and row not in (first, second) and 1 <= total <= 4:
            fitting.append((row, first, second))
    if not fitting:
        return None
    row, first, second = maker.rng.choice(fitting)
    return about_image(base, thing=maker.other_object(), row=row, first=first, second=second)


def _choose_draw_route(maker: "DialogueMaker", base: int) -> RequestContent | None:
    args, _ = _choose_draw(maker, base)
    scene = Operation("draw", args).apply(Scene("white"))
    for start, end in _shuffled_pairs([*scene.things()], maker.rng):
        paths = shortest_paths(scene, start, end)
        if paths and len(paths[0]) > 2:
            return {**args, "cell": start, "to": end, "colour": maker.rng.choice(tuple(COLOURS))}, {}
    return None


def _choose_draw_steps(maker: "DialogueMaker", base: int) -> RequestContent:
    things = _sample_steps(maker.rng)
    background = maker.rng.choice(tuple(BACKGROUNDS))
    return {"background": background, "row": maker.rng.choice(ROWS), "things": things}, {}


def _choose_panel(maker: "DialogueMaker", base: int) -> RequestContent:
    switches = sorted(maker.rng.sample(CELLS, maker.rng.randint(2, 6)))
    on = sorted(maker.rng.sample(switches, maker.rng.randint(1, len(switches))))
    background = maker.rng.choice(tuple(BACKGROUNDS))
    return {"background": background, "switches": ", ".join(switches), "cells": ", ".join(on)}, {}


def _choose_switch(maker: "DialogueMaker", base: int) -> RequestContent | None:
    state = maker.rng.choice(("on", "off"))
    opposite = SWITCH_OFF if state == "on" else SWITCH_ON
    cells = [cell for cell, thing in maker.objects_on(base) if thing == opposite]
    if not cells:
        return None
    chosen = sorted(maker.rng.sample(cells, maker.rng.randint(1, min(3, len(cells)))))
    return about_image(base, state=state, cells=", ".join(chosen))


def _choose_build(maker: "DialogueMaker", base: int) -> RequestContent:
    scene = random_scene(maker.rng, 2, 5)
    number = str(len(scene.things()))
    return {"background": scene.background, "number": number, "things": list_things(scene)}, {}


REQUEST_MAKERS: Mapping[str, Maker] = {
    "draw": _choose_draw,
    "add": _choose_add,
    "remove": _choose_remove,
    "replace": _choose_replace,
    "recolour": _choose_recolour,
    "move": _choose_move,
    "swap": _choose_swap,
    "background": _choose_background,
    "restore": _choose_restore,
    "put back": _choose_put_back,
    "copy": _choose_copy,
    "mirror": choose_freely(way=("left to right", "top to bottom")),
    "rotate": choose_freely(side=("left", "right")),
    "gravity": choose_freely(),
    "drift": choose_freely(steps=("1", "2", "3"), side=("left", "right")),
    "one more": _choose_one_more,
    "one less": _choose_one_less,
    "pattern": _choose_pattern,
    "route": choose_unique_route,
    "steps": _choose_steps,
    "correct": _choose_correct,
    "add any": _choose_add_any,
    "draw any": _choose_draw_any,
    "hours": _choose_hours,
    "double": _choose_double,
    "trait": _choose_trait,
    "sum": _choose_sum,
    "draw route": _choose_draw_route,
    "draw steps": _choose_draw_steps,
    "panel": _choose_panel,
    "switch": _choose_switch,
    "build": _choose_build,
    "film": choose_freely(number="23", side=("left", "right")),
}
EVENTS = ("hours", "double", "trait", "sum")  # what follows from a table by a rule
