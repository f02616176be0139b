"""What can be asked for at a point of a dialogue: for each kind of request or question, arguments that are possible
there, or None.

Every kind of the language has a maker. What they choose from, and the dice, are the dialogue's (`DialogueMaker`)."""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weft_tabletop.world.language import UNQUOTED, WORDINGS, phrase_request, with_article
from weft_tabletop.world.operations import COVER, OFF, ON, Operation, shortest_paths, uncover
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, OBJECTS, Scene

if TYPE_CHECKING:
    from weft_tabletop.make.dialogues import DialogueMaker, TableTurn

Made = tuple[dict[str, str], dict[str, int]]  # arguments, and picture numbers by slot


def random_scene(rng: random.Random, least: int = 2, most: int = 7) -> Scene:
    cells = rng.sample(CELLS, rng.randint(least, most))
    return Scene(rng.choice(tuple(BACKGROUNDS))).put({cell: rng.choice(OBJECTS) for cell in cells})


def _draw(m: "DialogueMaker", base: int) -> Made:
    scene = random_scene(m.rng)
    return {
        "background": scene.background,
        "things": ", ".join(f"{thing} at {cell}" for cell, thing in scene.things().items()),
    }, {}


def _add(m: "DialogueMaker", base: int) -> Made | None:
    empty = m.empty_cells(base)
    if empty:
        return ({"thing": m.other_object(), "cell": m.rng.choice(empty)}, {"image": base})
    return None


def _on_thing(*more: str) -> Callable[["DialogueMaker", int], Made | None]:
    """Something done to an object that is there."""

    def make(m: "DialogueMaker", base: int) -> Made | None:
        full = m.objects_on(base)
        if not full:
            return None
        cell, thing = m.rng.choice(full)
        args = {"thing": str(thing), "cell": cell}
        if "what" in more:
            args |= {"what": str(thing), "thing": m.other_object(thing)}
        if "colour" in more:
            args = {
                "shape": thing.shape,
                "cell": cell,
                "colour": m.rng.choice([one for one in COLOURS if one != thing.colour]),
            }
        if "to" in more:
            empty = m.empty_cells(base)
            if not empty:
                return None
            args["to"] = m.rng.choice(empty)
        return args, {"image": base}

    return make


def _swap(m: "DialogueMaker", base: int) -> Made | None:
    full = m.objects_on(base)
    if not full:
        return None
    cell = m.rng.choice(full)[0]
    others = [one for one in CELLS if m.scenes[base].at(one) != m.scenes[base].at(cell)]
    if others:
        return ({"cell": cell, "to": m.rng.choice(others)}, {"image": base})
    return None


def _background(m: "DialogueMaker", base: int) -> Made:
    return {"background": m.rng.choice([name for name in BACKGROUNDS if name != m.scenes[base].background])}, {
        "image": base
    }


def _restore(m: "DialogueMaker", base: int) -> Made | None:
    lost = [n for n in m.scenes if n != base and any(m.scenes[base].at(cell) is None for cell in m.scenes[n].things())]
    if lost:
        return ({}, {"image": base, "source": m.rng.choice(lost)})
    return None


def _put_back(m: "DialogueMaker", base: int) -> Made | None:
    latest = max(m.scenes)
    if m.removed is None or m.scenes[latest].at(m.removed[0]) is not None:
        return None
    cell, thing = m.removed
    return {"cell": cell, "thing": str(thing)}, {"image": latest}


def _copy(m: "DialogueMaker", base: int) -> Made | None:
    others = [n for n in m.scenes if n != base and m.scenes[n].things()]
    if not others:
        return None
    source = m.rng.choice(others)
    cell, thing = m.rng.choice(m.objects_on(source))
    to = [one for one in CELLS if m.scenes[base].at(one) != thing]
    if to:
        return ({"cell": cell, "to": m.rng.choice(to)}, {"image": base, "source": source})
    return None


def _to_the_table(**choices: Sequence[str]) -> Callable[["DialogueMaker", int], Made | None]:
    """Something done to the whole table."""

    def make(m: "DialogueMaker", base: int) -> Made | None:
        return {name: m.rng.choice(values) for name, values in choices.items()}, {"image": base}

    return make


def _one_more(m: "DialogueMaker", base: int) -> Made | None:
    full = m.objects_on(base)
    if full and m.empty_cells(base):
        return ({"thing": str(m.rng.choice(full)[1])}, {"image": base})
    return None


def _one_less(m: "DialogueMaker", base: int) -> Made | None:
    full = m.objects_on(base)
    if full:
        return ({"thing": str(m.rng.choice(full)[1])}, {"image": base})
    return None


def _pattern(m: "DialogueMaker", base: int) -> Made | None:
    scene = m.scenes[base]
    rows = [
        r for r in "abcd" if scene.at(r + "2") and scene.at(r + "1") == scene.at(r + "3") and scene.at(r + "4") is None
    ]
    if rows:
        return ({"row": m.rng.choice(rows)}, {"image": base})
    return None


def _route(m: "DialogueMaker", base: int) -> Made | None:
    return any_route(m, base, unique=True)


def any_route(m: "DialogueMaker", base: int, *, unique: bool = False) -> Made | None:
    """A way between two objects; `unique`: no other is as short."""
    cells = [cell for cell, thing in m.objects_on(base) if thing.shape != "dot"]
    pairs = [(a, b) for a in cells for b in cells if a < b]
    m.rng.shuffle(pairs)
    for a, b in pairs:
        ways = shortest_paths(m.scenes[base], a, b)
        if ways and (len(ways) == 1 or not unique) and len(ways[0]) > 2:
            return {"cell": a, "to": b, "colour": m.rng.choice(tuple(COLOURS))}, {"image": base}
    return None


def _steps(m: "DialogueMaker", base: int) -> Made | None:
    rows = [row for row in "abcd" if all(m.scenes[base].at(row + column) is None for column in "1234")]
    if not rows:
        return None
    things = ", ".join(str(thing) for thing in m.rng.sample(OBJECTS, m.rng.randint(2, 4)))
    return {"row": m.rng.choice(rows), "things": things}, {"image": base}


def _correct(m: "DialogueMaker", base: int) -> Made:
    scene = m.scenes[base]
    if m.rng.random() < 0.15:
        due = m.rng.choice([name for name in BACKGROUNDS if name != scene.background])
        return {"objection": f"the background should be {due}"}, {"image": base}
    full = m.objects_on(base)
    if full and m.rng.random() < 0.6:
        cell = m.rng.choice(full)[0]
    else:
        cell = m.rng.choice(CELLS)
    empty = scene.at(cell) is not None and m.rng.random() < 0.4
    if empty:
        due = "nothing"
    else:
        due = with_article(m.other_object(scene.at(cell)))
    return {"objection": f"at {cell} there should be {due}"}, {"image": base}


def _add_any(m: "DialogueMaker", base: int) -> Made | None:
    empty = m.empty_cells(base)
    if not empty:
        return None
    there = {thing.shape for _, thing in m.objects_on(base)}
    thing = m.rng.choice([one for one in OBJECTS if one.shape not in there] or OBJECTS)
    return {"shape": thing.shape, "thing": str(thing), "cell": m.rng.choice(empty)}, {"image": base}


def _draw_any(m: "DialogueMaker", base: int) -> Made:
    shape = m.rng.choice(OBJECTS).shape
    number = m.rng.randint(2, 5)
    cells = sorted(m.rng.sample(CELLS, number))
    things = ", ".join(f"{m.rng.choice(tuple(COLOURS))} {shape} at {cell}" for cell in cells)
    return {
        "background": m.rng.choice(tuple(BACKGROUNDS)),
        "number": str(number),
        "shape": shape,
        "things": things,
    }, {}


def _hours(m: "DialogueMaker", base: int) -> Made:
    steps, hours = m.rng.choice((("1", "1"), ("1", "2"), ("1", "2"), ("1", "3"), ("1", "3"), ("2", "1"), ("3", "1")))
    return {"steps": steps, "hours": hours, "side": m.rng.choice(("left", "right"))}, {"image": base}


def _double(m: "DialogueMaker", base: int) -> Made | None:
    things = [thing for _, thing in m.objects_on(base)]
    fitting = [thing for thing in things if things.count(thing) + len(things) <= 12]
    several = [thing for thing in fitting if things.count(thing) > 1]
    if fitting:
        return ({"thing": str(m.rng.choice(several or fitting))}, {"image": base})
    return None


def _trait(m: "DialogueMaker", base: int) -> Made | None:
    full = m.objects_on(base)
    trait = m.rng.choice(("colour", "shape"))
    pairs = [(a, b) for a, own in full for b, other in full if getattr(own, trait) != getattr(other, trait)]
    if not pairs:
        return None
    cell, to = m.rng.choice(pairs)
    return {"cell": cell, "to": to, "trait": trait}, {"image": base}


def _sum(m: "DialogueMaker", base: int) -> Made | None:
    held = {row: sum(cell[0] == row for cell, _ in m.objects_on(base)) for row in "abcd"}
    ways = [
        (row, first, second)
        for row in "abcd"
        for first in "abcd"
        for second in "abcd"
        if held[row] == 0 and row not in (first, second) and first < second and 1 <= held[first] + held[second] <= 4
    ]
    if not ways:
        return None
    row, first, second = m.rng.choice(ways)
    return {"thing": m.other_object(), "row": row, "first": first, "second": second}, {"image": base}


def _draw_route(m: "DialogueMaker", base: int) -> Made | None:
    args, _ = _draw(m, base)
    scene = Operation("draw", args).apply(Scene("white"))
    pairs = [(a, b) for a in scene.things() for b in scene.things() if a < b]
    m.rng.shuffle(pairs)
    for a, b in pairs:
        ways = shortest_paths(scene, a, b)
        if ways and len(ways[0]) > 2:
            return {**args, "cell": a, "to": b, "colour": m.rng.choice(tuple(COLOURS))}, {}
    return None


def _draw_steps(m: "DialogueMaker", base: int) -> Made:
    things = ", ".join(str(thing) for thing in m.rng.sample(OBJECTS, m.rng.randint(2, 4)))
    return {"background": m.rng.choice(tuple(BACKGROUNDS)), "row": m.rng.choice("abcd"), "things": things}, {}


def _panel(m: "DialogueMaker", base: int) -> Made:
    switches = sorted(m.rng.sample(CELLS, m.rng.randint(2, 6)))
    on = sorted(m.rng.sample(switches, m.rng.randint(1, len(switches))))
    return {
        "background": m.rng.choice(tuple(BACKGROUNDS)),
        "switches": ", ".join(switches),
        "cells": ", ".join(on),
    }, {}


def _switch(m: "DialogueMaker", base: int) -> Made | None:
    state = m.rng.choice(("on", "off"))
    there = [cell for cell, thing in m.objects_on(base) if thing == (OFF if state == "on" else ON)]
    if not there:
        return None
    chosen = sorted(m.rng.sample(there, m.rng.randint(1, min(3, len(there)))))
    return {"state": state, "cells": ", ".join(chosen)}, {"image": base}


def _build(m: "DialogueMaker", base: int) -> Made:
    scene = random_scene(m.rng, 2, 5)
    things = ", ".join(f"{thing} at {cell}" for cell, thing in scene.things().items())
    return {"background": scene.background, "number": str(len(scene.things())), "things": things}, {}


def _film(m: "DialogueMaker", base: int) -> Made:
    return {"number": m.rng.choice("23"), "side": m.rng.choice(("left", "right"))}, {"image": base}


# questions


def _count(m: "DialogueMaker", base: int) -> Made:
    full = m.objects_on(base)
    if full and m.rng.random() < 0.8:
        thing = str(m.rng.choice(full)[1])
    else:
        thing = m.other_object()
    return {"thing": thing}, {"image": base}


def _what(m: "DialogueMaker", base: int) -> Made:
    full = m.objects_on(base)
    if full and m.rng.random() < 0.75:
        cell = m.rng.choice(full)[0]
    else:
        cell = m.rng.choice(CELLS)
    return {"cell": cell}, {"image": base}


def _colour(m: "DialogueMaker", base: int) -> Made | None:
    full = m.objects_on(base)
    if not full:
        return None
    cell, thing = m.rng.choice(full)
    return {"shape": thing.shape, "cell": cell}, {"image": base}


def _which(m: "DialogueMaker", base: int) -> Made | None:
    there = sorted({str(thing) for _, thing in m.objects_on(base)})
    right = m.rng.sample(there, min(len(there), m.rng.choice((0, 1, 1, 1, 2, 2, 3))))
    wrong = [str(thing) for thing in m.rng.sample(OBJECTS, 12) if str(thing) not in there]
    shown = right + wrong[: 4 - len(right)]
    m.rng.shuffle(shown)
    options = ", ".join(f"{letter}. {thing}" for letter, thing in zip("ABCD", shown, strict=True))
    return {"options": f"{options}, E. none of these"}, {"image": base}


def _two(m: "DialogueMaker", base: int) -> Made | None:
    others = [number for number in m.scenes if number != base]
    if others:
        return ({}, {"image": base, "source": m.rng.choice(others)})
    return None


def _changed(m: "DialogueMaker", base: int) -> Made | None:
    near = [
        (a, b)
        for a in m.scenes
        for b in m.scenes
        if a < b
        and len(m.scenes[a].changed_cells(m.scenes[b])) + (m.scenes[a].background != m.scenes[b].background) in (1, 2)
    ]
    if not near:
        return None
    a, b = m.rng.choice(near)
    return {}, {"image": a, "source": b}


def _after(m: "DialogueMaker", base: int) -> Made | None:
    fallen = [
        (turn.images["image"], turn.image_number)
        for turn in m.turns
        if turn.kind == "gravity" and turn.image_number is not None
    ]
    if not fallen:
        return None
    pair = list(m.rng.choice(fallen))
    m.rng.shuffle(pair)
    return {}, {"image": pair[0], "source": pair[1]}


def _quoted(m: "DialogueMaker", number: int) -> "tuple[str, TableTurn] | None":
    """An earlier request in words that name no number, with its turn."""
    done = [
        turn
        for turn in m.turns
        if turn.image_number is not None and set(turn.images) == {"image"} and turn.kind not in UNQUOTED
    ]
    if not done:
        return None
    turn = m.rng.choice(done)
    return phrase_request(turn.kind, turn.args, {"image": "the table"}, m.rng), turn


def _fulfils(m: "DialogueMaker", base: int) -> Made | None:
    found = _quoted(m, base)
    if found is None or found[1].image_number is None:
        return None
    text, turn = found
    right = m.rng.random() < 0.5
    others = [number for number in m.scenes if number not in (turn.image_number, turn.images["image"])]
    if right or not others:
        source = found[1].image_number
    else:
        source = m.rng.choice(others)
    return {"done": text}, {"image": turn.images["image"], "source": source}


def _chosen(m: "DialogueMaker", base: int) -> Made | None:
    found = _quoted(m, base)
    if found is None or found[1].image_number is None:
        return None
    text, turn = found
    wrong = [number for number, scene in m.scenes.items() if number != turn.images["image"] and scene != turn.scene]
    if not wrong or turn.image_number is None:
        return None
    pair = [turn.image_number, m.rng.choice(wrong)]
    m.rng.shuffle(pair)
    return {"done": text}, {"image": turn.images["image"], "source": pair[0], "other": pair[1]}


def _plan(m: "DialogueMaker", base: int) -> Made | None:
    kind = m.rng.choice(PLANNED)
    made = MAKERS[kind](m, base)
    if made is None or set(made[1]) != {"image"}:
        return None
    return {"done": phrase_request(kind, made[0], {"image": "the table"}, m.rng)}, {"image": base}


def _then(m: "DialogueMaker", base: int) -> Made | None:
    kind = m.rng.choice(MOVED)
    made = MAKERS[kind](m, base)
    if made is None:
        return None
    before = m.scenes[base]
    after = Operation(kind, made[0]).apply(before)
    cells = [cell for cell in before.changed_cells(after) if after.at(cell) is not None] or [*after.things()]
    if cells and m.rng.random() < 0.8:
        cell = m.rng.choice(cells)
    else:
        cell = m.rng.choice(CELLS)
    return {"done": phrase_request(kind, made[0], {"image": "the table"}, m.rng), "cell": cell}, {"image": base}


def _hidden(m: "DialogueMaker", base: int) -> Made | None:
    """Where one cell of a table that is its own mirror image is covered."""
    covered = [cell for cell, thing in m.objects_on(base) if thing == COVER]
    for way in m.rng.sample(("left to right", "top to bottom"), 2):
        whole = uncover(m.scenes[base], way)
        if len(covered) == 1:
            right = whole.at(covered[0])
        else:
            right = None
        if right is not None and right != COVER and Operation("mirror", {"way": way}).apply(whole) == whole:
            shown = [
                str(right),
                *(str(thing) for thing in m.rng.sample([one for one in OBJECTS if one != right], 3)),
            ]
            m.rng.shuffle(shown)
            pieces = ", ".join(f"{letter}. {thing}" for letter, thing in zip("ABCD", shown, strict=True))
            return {"way": way, "pieces": pieces}, {"image": base}
    return None


MAKERS: dict[str, Callable[["DialogueMaker", int], Made | None]] = {
    "draw": _draw,
    "add": _add,
    "remove": _on_thing(),
    "replace": _on_thing("what"),
    "recolour": _on_thing("colour"),
    "move": _on_thing("to"),
    "swap": _swap,
    "background": _background,
    "restore": _restore,
    "put back": _put_back,
    "copy": _copy,
    "mirror": _to_the_table(way=("left to right", "top to bottom")),
    "rotate": _to_the_table(side=("left", "right")),
    "gravity": _to_the_table(),
    "drift": _to_the_table(steps=("1", "2", "3"), side=("left", "right")),
    "one more": _one_more,
    "one less": _one_less,
    "pattern": _pattern,
    "route": _route,
    "steps": _steps,
    "correct": _correct,
    "add any": _add_any,
    "draw any": _draw_any,
    "hours": _hours,
    "double": _double,
    "trait": _trait,
    "sum": _sum,
    "draw route": _draw_route,
    "draw steps": _draw_steps,
    "panel": _panel,
    "switch": _switch,
    "build": _build,
    "film": _film,
    "count": _count,
    "what": _what,
    "colour": _colour,
    "which": _which,
    "same": _two,
    "changed": _changed,
    "after": _after,
    "fulfils": _fulfils,
    "chosen": _chosen,
    "describe": _to_the_table(),
    "plan": _plan,
    "then": _then,
    "way": _route,
    "hidden": _hidden,
}
EVENTS = ("hours", "double", "trait", "sum")  # what follows from a table by a rule
PLANNED = (
    "add",
    "remove",
    "replace",
    "recolour",
    "move",
    "swap",
    "background",
    "mirror",
    "rotate",
    "gravity",
    "drift",
    "pattern",
    *EVENTS,
)
MOVED = ("gravity", "gravity", "drift", "hours", "rotate", "mirror")
assert MAKERS.keys() == WORDINGS.keys()
