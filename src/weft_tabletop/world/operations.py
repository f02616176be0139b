"""What can be asked of a table, with its exact effect. An `Operation` is a kind and its arguments; `apply` gives the
scene after it.

    base      the scene it is done to
    source    a second scene, for `copy` and `restore`
Every effect touches only what it says: everything else of the base stays as it is."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from weft_tabletop.world.scenes import CELLS, COLUMNS, ROWS, Scene, Thing, scene_from_text


class Operation(Struct, frozen=True):
    kind: str
    args: Mapping[str, str] = {}

    def apply(self, base: Scene, source: Scene | None = None) -> Scene:
        return EFFECTS[self.kind](base, self.args, source or base)


# a switch
ON = Thing("green", "square")
OFF = Thing("black", "square")
COVER = Thing("black", "dot")  # hides what is in a cell
Effect = Callable[[Scene, Mapping[str, str], Scene], Scene]


def thing(text: str) -> Thing:
    colour, _, shape = text.partition(" ")
    return Thing(colour, shape)


def _draw(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return scene_from_text(f"{a['background']}: {a['things']}")


def _add(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return base.put({a["cell"]: thing(a["thing"])})


def _remove(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return base.put({a["cell"]: None})


def _recolour(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    found = base.at(a["cell"])
    return base.put({a["cell"]: Thing(a["colour"], found.shape if found else a["shape"])})


def _move(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return base.put({a["cell"]: None, a["to"]: base.at(a["cell"]) or thing(a["thing"])})


def _swap(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return base.put({a["cell"]: base.at(a["to"]), a["to"]: base.at(a["cell"])})


def _background(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return base.put({}, a["background"])


def _restore(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return base.put({cell: found for cell, found in source.things().items() if base.at(cell) is None})


def _copy(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return base.put({a["to"]: source.at(a["cell"])})


def _rearrange(base: Scene, where: Callable[[int, int], tuple[int, int]]) -> Scene:
    """Each thing goes from (row, column) to `where` of it."""
    cells: list[Thing | None] = [None] * 16
    for at, found in enumerate(base.cells):
        row, column = where(at // 4, at % 4)
        if 0 <= row < 4 and 0 <= column < 4 and found is not None:
            cells[4 * row + column] = found
    return Scene(base.background, tuple(cells))


def _mirror(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    if a["way"] == "left to right":
        return _rearrange(base, lambda row, column: (row, 3 - column))
    return _rearrange(base, lambda row, column: (3 - row, column))


def _rotate(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    if a["side"] == "right":
        return _rearrange(base, lambda row, column: (column, 3 - row))
    return _rearrange(base, lambda row, column: (3 - column, row))


def _gravity(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    cells: list[Thing | None] = [None] * 16
    for column in range(4):
        fallen = [base.cells[4 * row + column] for row in range(4) if base.cells[4 * row + column] is not None]
        for row, found in enumerate(fallen, start=4 - len(fallen)):
            cells[4 * row + column] = found
    return Scene(base.background, tuple(cells))


def _drift(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    steps = int(a["steps"]) * (1 if a["side"] == "right" else -1)
    return _rearrange(base, lambda row, column: (row, column + steps))


def _one_more(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    empty = next((cell for cell in CELLS if base.at(cell) is None), None)
    if empty:
        return base.put({empty: thing(a["thing"])})
    return base


def _one_less(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    first = next((cell for cell, found in base.things().items() if found == thing(a["thing"])), None)
    if first:
        return base.put({first: None})
    return base


def _pattern(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    row = a["row"]
    return base.put({row + "4": base.at(row + "2")})


def _route(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    paths = shortest_paths(base, a["cell"], a["to"])
    if paths:
        return base.put({cell: Thing(a["colour"], "dot") for cell in paths[0][1:-1]})
    return base


def _steps(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    things = a["things"].split(", ")
    return base.put({a["row"] + column: thing(found) for column, found in zip(COLUMNS, things, strict=False)})


def _hours(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return _drift(base, {"steps": str(int(a["steps"]) * int(a["hours"])), "side": a["side"]}, source)


def _double(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    """For each of them another, in the first empty cells, as far as there are any."""
    count = sum(found == thing(a["thing"]) for found in base.things().values())
    empty = [cell for cell in CELLS if base.at(cell) is None]
    return base.put(dict.fromkeys(empty[:count], thing(a["thing"])))


def _trait(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    own = base.at(a["cell"])
    other = base.at(a["to"])
    if own is None or other is None:
        return base
    return base.put(
        {a["cell"]: Thing(other.colour, own.shape) if a["trait"] == "colour" else Thing(own.colour, other.shape)}
    )


def _sum(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    """From the left; a row holds four."""
    count = sum(cell[0] in (a["first"], a["second"]) for cell in base.things())
    return base.put({a["row"] + column: thing(a["thing"]) for column in COLUMNS[:count]})


def _draw_route(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return _route(_draw(base, a, source), a, source)


def _draw_steps(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return _steps(Scene(a["background"]), a, source)


def _panel(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    on = a["cells"].split(", ")
    return Scene(a["background"]).put({cell: ON if cell in on else OFF for cell in a["switches"].split(", ")})


def _switch(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return base.put(dict.fromkeys(a["cells"].split(", "), ON if a["state"] == "on" else OFF))


def _film(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    return _drift(base, {"steps": a["number"], "side": a["side"]}, source)


def frames(kind: str, args: Mapping[str, str], base: Scene | None = None) -> list[tuple[str, Scene]]:
    """A document in so many steps: what each says, and the scene that it shows. The last is what `apply` gives."""
    made: list[tuple[str, Scene]] = []
    if kind == "film":
        for number in range(1, int(args["number"]) + 1):
            if number == 1:
                said = "After 1 step:"
            else:
                said = f"After {number} steps:"
            made.append((said, _film(base or Scene("white"), {**args, "number": str(number)}, Scene("white"))))
        return made
    scene = Scene(args["background"])
    for number, item in enumerate(args["things"].split(", "), start=1):
        what, _, cell = item.partition(" at ")
        scene = scene.put({cell: thing(what)})
        made.append((f"Step {number}: add {'an' if what[0] in 'aeiou' else 'a'} {what} at {cell}.", scene))
    return made


def uncover(scene: Scene, way: str) -> Scene:
    """A table that is its own mirror image, with what the cover hides in its place again."""
    hidden = next((cell for cell, found in scene.things().items() if found == COVER), None)
    if hidden is None:
        return scene
    return scene.put({hidden: _mirror(scene, {"way": way}, scene).at(hidden)})


def _correct(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    """What an objection says there should be."""
    what, _, due = a["objection"].partition(" should be ")
    if what == "the background":
        return base.put({}, due)
    return base.put({what.split(" ")[1]: None if due == "nothing" else thing(due.partition(" ")[2])})


def _add_any(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    """The choice that was made, or else the first there is."""
    empty = a.get("cell") or next((cell for cell in CELLS if base.at(cell) is None), None)
    if empty:
        return base.put({empty: thing(a.get("thing") or f"red {a['shape']}")})
    return base


def _draw_any(base: Scene, a: Mapping[str, str], source: Scene) -> Scene:
    chosen = a.get("things") or ", ".join(f"red {a['shape']} at {cell}" for cell in CELLS[: int(a["number"])])
    return scene_from_text(f"{a['background']}: {chosen}")


def shortest_paths(scene: Scene, start: str, end: str) -> list[list[str]]:
    """All shortest ways from cell to neighbouring cell over empty cells."""
    ways = [[start]]
    seen = {start}
    while ways:
        done = [way for way in ways if way[-1] == end]
        if done:
            return done
        free = {cell for cell in CELLS if scene.at(cell) is None or cell == end} - seen
        grown = [[*way, cell] for way in ways for cell in neighbours(way[-1]) if cell in free]
        seen |= {way[-1] for way in grown}
        ways = grown
    return []


def neighbours(cell: str) -> list[str]:
    row = ROWS.index(cell[0])
    column = COLUMNS.index(cell[1])
    around = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
    return [ROWS[r] + COLUMNS[c] for r, c in around if 0 <= r < 4 and 0 <= c < 4]


EFFECTS: dict[str, Effect] = {
    "draw": _draw,
    "add": _add,
    "remove": _remove,
    "replace": _add,
    "recolour": _recolour,
    "move": _move,
    "swap": _swap,
    "background": _background,
    "restore": _restore,
    "put back": _add,
    "copy": _copy,
    "mirror": _mirror,
    "rotate": _rotate,
    "gravity": _gravity,
    "drift": _drift,
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
    "build": _draw,
    "film": _film,
}
EDITS = ("add", "remove", "recolour", "move", "background")  # the prototype's five
