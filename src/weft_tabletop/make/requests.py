"""What can be asked for at a point of a dialogue: for each kind of request or question, arguments that are possible
there, or None.

Every kind of the language has a maker. What they choose from, and the dice, are the dialogue's (`Maker`)."""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weft_tabletop.world.language import UNQUOTED, WORDINGS, say, with_article
from weft_tabletop.world.operations import COVER, OFF, ON, Operation, shortest_paths, uncovered
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, OBJECTS, Scene

if TYPE_CHECKING:
    from weft_tabletop.make.dialogues import Maker, TableTurn

Made = tuple[dict[str, str], dict[str, int]]  # arguments, and picture numbers by slot


def random_scene(chance: random.Random, least: int = 2, most: int = 7) -> Scene:
    cells = chance.sample(CELLS, chance.randint(least, most))
    return Scene(chance.choice(tuple(BACKGROUNDS))).put({cell: chance.choice(OBJECTS) for cell in cells})


def _draw(m: "Maker", base: int) -> Made:
    scene = random_scene(m.chance)
    return {
        "background": scene.background,
        "things": ", ".join(f"{thing} at {cell}" for cell, thing in scene.things().items()),
    }, {}


def _add(m: "Maker", base: int) -> Made | None:
    empty = m.empty(base)
    if empty:
        return ({"thing": m.other_thing(), "cell": m.chance.choice(empty)}, {"image": base})
    return None


def _on_thing(*more: str) -> Callable[["Maker", int], Made | None]:
    """Something done to an object that is there."""

    def make(m: "Maker", base: int) -> Made | None:
        full = m.full(base)
        if not full:
            return None
        cell, thing = m.chance.choice(full)
        args = {"thing": str(thing), "cell": cell}
        if "what" in more:
            args |= {"what": str(thing), "thing": m.other_thing(thing)}
        if "colour" in more:
            args = {
                "shape": thing.shape,
                "cell": cell,
                "colour": m.chance.choice([one for one in COLOURS if one != thing.colour]),
            }
        if "to" in more:
            empty = m.empty(base)
            if not empty:
                return None
            args["to"] = m.chance.choice(empty)
        return args, {"image": base}

    return make


def _swap(m: "Maker", base: int) -> Made | None:
    full = m.full(base)
    if not full:
        return None
    cell = m.chance.choice(full)[0]
    others = [one for one in CELLS if m.scenes[base].at(one) != m.scenes[base].at(cell)]
    if others:
        return ({"cell": cell, "to": m.chance.choice(others)}, {"image": base})
    return None


def _background(m: "Maker", base: int) -> Made:
    return {"background": m.chance.choice([name for name in BACKGROUNDS if name != m.scenes[base].background])}, {
        "image": base
    }


def _restore(m: "Maker", base: int) -> Made | None:
    lost = [n for n in m.scenes if n != base and any(m.scenes[base].at(cell) is None for cell in m.scenes[n].things())]
    if lost:
        return ({}, {"image": base, "source": m.chance.choice(lost)})
    return None


def _put_back(m: "Maker", base: int) -> Made | None:
    latest = max(m.scenes)
    if m.removed is None or m.scenes[latest].at(m.removed[0]) is not None:
        return None
    cell, thing = m.removed
    return {"cell": cell, "thing": str(thing)}, {"image": latest}


def _copy(m: "Maker", base: int) -> Made | None:
    others = [n for n in m.scenes if n != base and m.scenes[n].things()]
    if not others:
        return None
    source = m.chance.choice(others)
    cell, thing = m.chance.choice(m.full(source))
    to = [one for one in CELLS if m.scenes[base].at(one) != thing]
    if to:
        return ({"cell": cell, "to": m.chance.choice(to)}, {"image": base, "source": source})
    return None


def _to_the_table(**choices: Sequence[str]) -> Callable[["Maker", int], Made | None]:
    """Something done to the whole table."""

    def make(m: "Maker", base: int) -> Made | None:
        return {name: m.chance.choice(values) for name, values in choices.items()}, {"image": base}

    return make


def _one_more(m: "Maker", base: int) -> Made | None:
    full = m.full(base)
    if full and m.empty(base):
        return ({"thing": str(m.chance.choice(full)[1])}, {"image": base})
    return None


def _one_less(m: "Maker", base: int) -> Made | None:
    full = m.full(base)
    if full:
        return ({"thing": str(m.chance.choice(full)[1])}, {"image": base})
    return None


def _pattern(m: "Maker", base: int) -> Made | None:
    scene = m.scenes[base]
    rows = [
        r for r in "abcd" if scene.at(r + "2") and scene.at(r + "1") == scene.at(r + "3") and scene.at(r + "4") is None
    ]
    if rows:
        return ({"row": m.chance.choice(rows)}, {"image": base})
    return None


def _route(m: "Maker", base: int) -> Made | None:
    return any_route(m, base, unique=True)


def any_route(m: "Maker", base: int, *, unique: bool = False) -> Made | None:
    """A way between two objects; `unique`: no other is as short."""
    cells = [cell for cell, thing in m.full(base) if thing.shape != "dot"]
    pairs = [(a, b) for a in cells for b in cells if a < b]
    m.chance.shuffle(pairs)
    for a, b in pairs:
        ways = shortest_paths(m.scenes[base], a, b)
        if ways and (len(ways) == 1 or not unique) and len(ways[0]) > 2:
            return {"cell": a, "to": b, "colour": m.chance.choice(tuple(COLOURS))}, {"image": base}
    return None


def _steps(m: "Maker", base: int) -> Made | None:
    rows = [row for row in "abcd" if all(m.scenes[base].at(row + column) is None for column in "1234")]
    if not rows:
        return None
    things = ", ".join(str(thing) for thing in m.chance.sample(OBJECTS, m.chance.randint(2, 4)))
    return {"row": m.chance.choice(rows), "things": things}, {"image": base}


def _correct(m: "Maker", base: int) -> Made:
    scene = m.scenes[base]
    if m.chance.random() < 0.15:
        due = m.chance.choice([name for name in BACKGROUNDS if name != scene.background])
        return {"objection": f"the background should be {due}"}, {"image": base}
    full = m.full(base)
    if full and m.chance.random() < 0.6:
        cell = m.chance.choice(full)[0]
    else:
        cell = m.chance.choice(CELLS)
    empty = scene.at(cell) is not None and m.chance.random() < 0.4
    if empty:
        due = "nothing"
    else:
        due = with_article(m.other_thing(scene.at(cell)))
    return {"objection": f"at {cell} there should be {due}"}, {"image": base}


def _add_any(m: "Maker", base: int) -> Made | None:
    empty = m.empty(base)
    if not empty:
        return None
    there = {thing.shape for _, thing in m.full(base)}
    thing = m.chance.choice([one for one in OBJECTS if one.shape not in there] or OBJECTS)
    return {"shape": thing.shape, "thing": str(thing), "cell": m.chance.choice(empty)}, {"image": base}


def _draw_any(m: "Maker", base: int) -> Made:
    shape = m.chance.choice(OBJECTS).shape
    number = m.chance.randint(2, 5)
    cells = sorted(m.chance.sample(CELLS, number))
    things = ", ".join(f"{m.chance.choice(tuple(COLOURS))} {shape} at {cell}" for cell in cells)
    return {
        "background": m.chance.choice(tuple(BACKGROUNDS)),
        "number": str(number),
        "shape": shape,
        "things": things,
    }, {}


def _hours(m: "Maker", base: int) -> Made:
    steps, hours = m.chance.choice((("1", "1"), ("1", "2"), ("1", "2"), ("1", "3"), ("1", "3"), ("2", "1"), ("3", "1")))
    return {"steps": steps, "hours": hours, "side": m.chance.choice(("left", "right"))}, {"image": base}


def _double(m: "Maker", base: int) -> Made | None:
    things = [thing for _, thing in m.full(base)]
    fitting = [thing for thing in things if things.count(thing) + len(things) <= 12]
    several = [thing for thing in fitting if things.count(thing) > 1]
    if fitting:
        return ({"thing": str(m.chance.choice(several or fitting))}, {"image": base})
    return None


def _trait(m: "Maker", base: int) -> Made | None:
    full = m.full(base)
    trait = m.chance.choice(("colour", "shape"))
    pairs = [(a, b) for a, own in full for b, other in full if getattr(own, trait) != getattr(other, trait)]
    if not pairs:
        return None
    cell, to = m.chance.choice(pairs)
    return {"cell": cell, "to": to, "trait": trait}, {"image": base}


def _sum(m: "Maker", base: int) -> Made | None:
    held = {row: sum(cell[0] == row for cell, _ in m.full(base)) for row in "abcd"}
    ways = [
        (row, first, second)
        for row in "abcd"
        for first in "abcd"
        for second in "abcd"
        if held[row] == 0 and row not in (first, second) and first < second and 1 <= held[first] + held[second] <= 4
    ]
    if not ways:
        return None
    row, first, second = m.chance.choice(ways)
    return {"thing": m.other_thing(), "row": row, "first": first, "second": second}, {"image": base}


def _draw_route(m: "Maker", base: int) -> Made | None:
    args, _ = _draw(m, base)
    scene = Operation("draw", args).apply(Scene("white"))
    pairs = [(a, b) for a in scene.things() for b in scene.things() if a < b]
    m.chance.shuffle(pairs)
    for a, b in pairs:
        ways = shortest_paths(scene, a, b)
        if ways and len(ways[0]) > 2:
            return {**args, "cell": a, "to": b, "colour": m.chance.choice(tuple(COLOURS))}, {}
    return None


def _draw_steps(m: "Maker", base: int) -> Made:
    things = ", ".join(str(thing) for thing in m.chance.sample(OBJECTS, m.chance.randint(2, 4)))
    return {"background": m.chance.choice(tuple(BACKGROUNDS)), "row": m.chance.choice("abcd"), "things": things}, {}


def _panel(m: "Maker", base: int) -> Made:
    switches = sorted(m.chance.sample(CELLS, m.chance.randint(2, 6)))
    on = sorted(m.chance.sample(switches, m.chance.randint(1, len(switches))))
    return {
        "background": m.chance.choice(tuple(BACKGROUNDS)),
        "switches": ", ".join(switches),
        "cells": ", ".join(on),
    }, {}


def _switch(m: "Maker", base: int) -> Made | None:
    state = m.chance.choice(("on", "off"))
    there = [cell for cell, thing in m.full(base) if thing == (OFF if state == "on" else ON)]
    if not there:
        return None
    chosen = sorted(m.chance.sample(there, m.chance.randint(1, min(3, len(there)))))
    return {"state": state, "cells": ", ".join(chosen)}, {"image": base}


def _build(m: "Maker", base: int) -> Made:
    scene = random_scene(m.chance, 2, 5)
    things = ", ".join(f"{thing} at {cell}" for cell, thing in scene.things().items())
    return {"background": scene.background, "number": str(len(scene.things())), "things": things}, {}


def _film(m: "Maker", base: int) -> Made:
    return {"number": m.chance.choice("23"), "side": m.chance.choice(("left", "right"))}, {"image": base}


# questions


def _count(m: "Maker", base: int) -> Made:
    full = m.full(base)
    if full and m.chance.random() < 0.8:
        thing = str(m.chance.choice(full)[1])
    else:
        thing = m.other_thing()
    return {"thing": thing}, {"image": base}


def _what(m: "Maker", base: int) -> Made:
    full = m.full(base)
    if full and m.chance.random() < 0.75:
        cell = m.chance.choice(full)[0]
    else:
        cell = m.chance.choice(CELLS)
    return {"cell": cell}, {"image": base}


def _colour(m: "Maker", base: int) -> Made | None:
    full = m.full(base)
    if not full:
        return None
    cell, thing = m.chance.choice(full)
    return {"shape": thing.shape, "cell": cell}, {"image": base}


def _which(m: "Maker", base: int) -> Made | None:
    there = sorted({str(thing) for _, thing in m.full(base)})
    right = m.chance.sample(there, min(len(there), m.chance.choice((0, 1, 1, 1, 2, 2, 3))))
    wrong = [str(thing) for thing in m.chance.sample(OBJECTS, 12) if str(thing) not in there]
    shown = right + wrong[: 4 - len(right)]
    m.chance.shuffle(shown)
    options = ", ".join(f"{letter}. {thing}" for letter, thing in zip("ABCD", shown, strict=True))
    return {"options": f"{options}, E. none of these"}, {"image": base}


def _two(m: "Maker", base: int) -> Made | None:
    others = [number for number in m.scenes if number != base]
    if others:
        return ({}, {"image": base, "source": m.chance.choice(others)})
    return None


def _changed(m: "Maker", base: int) -> Made | None:
    near = [
        (a, b)
        for a in m.scenes
        for b in m.scenes
        if a < b
        and len(m.scenes[a].differs_at(m.scenes[b])) + (m.scenes[a].background != m.scenes[b].background) in (1, 2)
    ]
    if not near:
        return None
    a, b = m.chance.choice(near)
    return {}, {"image": a, "source": b}


def _after(m: "Maker", base: int) -> Made | None:
    fallen = [
        (turn.images["image"], turn.makes) for turn in m.turns if turn.kind == "gravity" and turn.makes is not None
    ]
    if not fallen:
        return None
    pair = list(m.chance.choice(fallen))
    m.chance.shuffle(pair)
    return {}, {"image": pair[0], "source": pair[1]}


def _quoted(m: "Maker", number: int) -> "tuple[str, TableTurn] | None":
    """An earlier request in words that name no number, with its turn."""
    done = [
        turn
        for turn in m.turns
        if turn.makes is not None and set(turn.images) == {"image"} and turn.kind not in UNQUOTED
    ]
    if not done:
        return None
    turn = m.chance.choice(done)
    return say(turn.kind, turn.args, {"image": "the table"}, m.chance), turn


def _fulfils(m: "Maker", base: int) -> Made | None:
    found = _quoted(m, base)
    if found is None or found[1].makes is None:
        return None
    text, turn = found
    right = m.chance.random() < 0.5
    others = [number for number in m.scenes if number not in (turn.makes, turn.images["image"])]
    if right or not others:
        source = found[1].makes
    else:
        source = m.chance.choice(others)
    return {"done": text}, {"image": turn.images["image"], "source": source}


def _chosen(m: "Maker", base: int) -> Made | None:
    found = _quoted(m, base)
    if found is None or found[1].makes is None:
        return None
    text, turn = found
    wrong = [number for number, scene in m.scenes.items() if number != turn.images["image"] and scene != turn.scene]
    if not wrong or turn.makes is None:
        return None
    pair = [turn.makes, m.chance.choice(wrong)]
    m.chance.shuffle(pair)
    return {"done": text}, {"image": turn.images["image"], "source": pair[0], "other": pair[1]}


def _plan(m: "Maker", base: int) -> Made | None:
    kind = m.chance.choice(PLANNED)
    made = MAKERS[kind](m, base)
    if made is None or set(made[1]) != {"image"}:
        return None
    return {"done": say(kind, made[0], {"image": "the table"}, m.chance)}, {"image": base}


def _then(m: "Maker", base: int) -> Made | None:
    kind = m.chance.choice(MOVED)
    made = MAKERS[kind](m, base)
    if made is None:
        return None
    before = m.scenes[base]
    after = Operation(kind, made[0]).apply(before)
    cells = [cell for cell in before.differs_at(after) if after.at(cell) is not None] or [*after.things()]
    if cells and m.chance.random() < 0.8:
        cell = m.chance.choice(cells)
    else:
        cell = m.chance.choice(CELLS)
    return {"done": say(kind, made[0], {"image": "the table"}, m.chance), "cell": cell}, {"image": base}


def _hidden(m: "Maker", base: int) -> Made | None:
    """Where one cell of a table that is its own mirror image is covered."""
    covered = [cell for cell, thing in m.full(base) if thing == COVER]
    for way in m.chance.sample(("left to right", "top to bottom"), 2):
        whole = uncovered(m.scenes[base], way)
        if len(covered) == 1:
            right = whole.at(covered[0])
        else:
            right = None
        if right is not None and right != COVER and Operation("mirror", {"way": way}).apply(whole) == whole:
            shown = [
                str(right),
                *(str(thing) for thing in m.chance.sample([one for one in OBJECTS if one != right], 3)),
            ]
            m.chance.shuffle(shown)
            pieces = ", ".join(f"{letter}. {thing}" for letter, thing in zip("ABCD", shown, strict=True))
            return {"way": way, "pieces": pieces}, {"image": base}
    return None


MAKERS: dict[str, Callable[["Maker", int], Made | None]] = {
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
