"""What can be asked of a table, with its exact effect. An `Operation` is a kind and its arguments; `apply` returns the
scene after it.

    base      the scene that the operation changes
    source    a second scene, for `copy` and `restore`

Guarantee: an effect changes only what its request names. Everything else of the base stays as it is."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from weft_tabletop.world.scenes import CELLS, COLUMNS, ROWS, Scene, Thing, parse_thing, scene_from_text


class Operation(Struct, frozen=True):
    kind: str
    args: Mapping[str, str] = {}

    def apply(self, base: Scene, source: Scene | None = None) -> Scene:
        return EFFECTS[self.kind](base, self.args, source or base)


SWITCH_ON = Thing("green", "square")
SWITCH_OFF = Thing("black", "square")
COVER = Thing("black", "dot")  # hides what is in a cell
Args = Mapping[str, str]
Effect = Callable[[Scene, Args, Scene], Scene]


def _draw(base: Scene, args: Args, source: Scene) -> Scene:
    return scene_from_text(f"{args['background']}: {args['things']}")


def _add(base: Scene, args: Args, source: Scene) -> Scene:
    return base.put({args["cell"]: parse_thing(args["thing"])})


def _remove(base: Scene, args: Args, source: Scene) -> Scene:
    return base.put({args["cell"]: None})


def _recolour(base: Scene, args: Args, source: Scene) -> Scene:
    """Without an object in the cell, the shape that the request names appears there."""
    thing = base.at(args["cell"])
    shape = args["shape"] if thing is None else thing.shape
    return base.put({args["cell"]: Thing(args["colour"], shape)})


def _move(base: Scene, args: Args, source: Scene) -> Scene:
    """Without an object in the cell, the one that the request names arrives."""
    thing = base.at(args["cell"]) or parse_thing(args["thing"])
    return base.put({args["cell"]: None, args["to"]: thing})


def _swap(base: Scene, args: Args, source: Scene) -> Scene:
    return base.put({args["cell"]: base.at(args["to"]), args["to"]: base.at(args["cell"])})


def _set_background(base: Scene, args: Args, source: Scene) -> Scene:
    return base.put({}, args["background"])


def _restore(base: Scene, args: Args, source: Scene) -> Scene:
    missing = {cell: thing for cell, thing in source.things().items() if base.at(cell) is None}
    return base.put(missing)


def _copy(base: Scene, args: Args, source: Scene) -> Scene:
    return base.put({args["to"]: source.at(args["cell"])})


def _rearrange(base: Scene, destination: Callable[[int, int], tuple[int, int]]) -> Scene:
    """Move each object from its row and column to their `destination`; what leaves the table is gone."""
    cells: list[Thing | None] = [None] * 16
    for index, thing in enumerate(base.cells):
        row, column = destination(index // 4, index % 4)
        if 0 <= row < 4 and 0 <= column < 4 and thing is not None:
            cells[4 * row + column] = thing
    return Scene(base.background, tuple(cells))


def _mirror(base: Scene, args: Args, source: Scene) -> Scene:
    if args["way"] == "left to right":
        return _rearrange(base, lambda row, column: (row, 3 - column))
    return _rearrange(base, lambda row, column: (3 - row, column))


def _rotate(base: Scene, args: Args, source: Scene) -> Scene:
    if args["side"] == "right":
        return _rearrange(base, lambda row, column: (column, 3 - row))
    return _rearrange(base, lambda row, column: (3 - column, row))


def _drop(base: Scene, args: Args, source: Scene) -> Scene:
    """Let every object fall down its column."""
    cells: list[Thing | None] = [None] * 16
    for column in range(4):
        things = [thing for thing in base.cells[column::4] if thing is not None]
        for row, thing in enumerate(things, start=4 - len(things)):
            cells[4 * row + column] = thing
    return Scene(base.background, tuple(cells))


def _drift(base: Scene, args: Args, source: Scene) -> Scene:
    return _shift(base, int(args["steps"]), args["side"])


def _shift(base: Scene, steps: int, side: str) -> Scene:
    offset = steps if side == "right" else -steps
    return _rearrange(base, lambda row, column: (row, column + offset))


def _add_one_more(base: Scene, args: Args, source: Scene) -> Scene:
    empty = _empty_cells(base)
    if not empty:
        return base
    return base.put({empty[0]: parse_thing(args["thing"])})


def _remove_one(base: Scene, args: Args, source: Scene) -> Scene:
    wanted = parse_thing(args["thing"])
    for cell, thing in base.things().items():
        if thing == wanted:
            return base.put({cell: None})
    return base


def _complete_pattern(base: Scene, args: Args, source: Scene) -> Scene:
    row = args["row"]
    return base.put({row + "4": base.at(row + "2")})


def _mark_route(base: Scene, args: Args, source: Scene) -> Scene:
    """Mark the first of the shortest paths with dots; without a path nothing changes."""
    paths = shortest_paths(base, args["cell"], args["to"])
    if not paths:
        return base
    return base.put(dict.fromkeys(paths[0][1:-1], Thing(args["colour"], "dot")))


def _lay_out_steps(base: Scene, args: Args, source: Scene) -> Scene:
    changes: dict[str, Thing | None] = {}
    for column, text in zip(COLUMNS, args["things"].split(", "), strict=False):
        changes[args["row"] + column] = parse_thing(text)
    return base.put(changes)


def _drift_hours(base: Scene, args: Args, source: Scene) -> Scene:
    return _shift(base, int(args["steps"]) * int(args["hours"]), args["side"])


def _double(base: Scene, args: Args, source: Scene) -> Scene:
    """Put as many again into the first empty cells, as far as there are any."""
    thing = parse_thing(args["thing"])
    count = sum(other == thing for other in base.things().values())
    return base.put(dict.fromkeys(_empty_cells(base)[:count], thing))


def _take_trait(base: Scene, args: Args, source: Scene) -> Scene:
    own = base.at(args["cell"])
    other = base.at(args["to"])
    if own is None or other is None:
        return base
    if args["trait"] == "colour":
        return base.put({args["cell"]: Thing(other.colour, own.shape)})
    return base.put({args["cell"]: Thing(own.colour, other.shape)})


def _place_sum(base: Scene, args: Args, source: Scene) -> Scene:
    """Fill the row from the left; it holds four at most."""
    count = sum(cell[0] in (args["first"], args["second"]) for cell in base.things())
    cells = [args["row"] + column for column in COLUMNS[:count]]
    return base.put(dict.fromkeys(cells, parse_thing(args["thing"])))


def _draw_route(base: Scene, args: Args, source: Scene) -> Scene:
    return _mark_route(_draw(base, args, source), args, source)


def _draw_steps(base: Scene, args: Args, source: Scene) -> Scene:
    return _lay_out_steps(Scene(args["background"]), args, source)


def _draw_panel(base: Scene, args: Args, source: Scene) -> Scene:
    switches: dict[str, Thing | None] = dict.fromkeys(args["switches"].split(", "), SWITCH_OFF)
    for cell in args["cells"].split(", "):
        if cell in switches:
            switches[cell] = SWITCH_ON
    return Scene(args["background"]).put(switches)


def _turn_switches(base: Scene, args: Args, source: Scene) -> Scene:
    switch = SWITCH_ON if args["state"] == "on" else SWITCH_OFF
    return base.put(dict.fromkeys(args["cells"].split(", "), switch))


def _end_film(base: Scene, args: Args, source: Scene) -> Scene:
    return _shift(base, int(args["number"]), args["side"])


def build_frames(kind: str, args: Args, base: Scene | None = None) -> list[tuple[str, Scene]]:
    """The steps of a document, each with its text and the scene that it shows. The last scene is what `apply`
    returns."""
    if kind == "film":
        return _build_film(args, base or Scene("white"))
    frames: list[tuple[str, Scene]] = []
    scene = Scene(args["background"])
    for number, item in enumerate(args["things"].split(", "), start=1):
        thing, _, cell = item.partition(" at ")
        scene = scene.put({cell: parse_thing(thing)})
        article = "an" if thing[0] in "aeiou" else "a"
        frames.append((f"Step {number}: add {article} {thing} at {cell}.", scene))
    return frames


def _build_film(args: Args, base: Scene) -> list[tuple[str, Scene]]:
    frames: list[tuple[str, Scene]] = []
    for number in range(1, int(args["number"]) + 1):
        plural = "" if number == 1 else "s"
        frames.append((f"After {number} step{plural}:", _shift(base, number, args["side"])))
    return frames


def uncover(scene: Scene, way: str) -> Scene:
    """A table that is its own mirror image, with what the cover hides in its place again."""
    for cell, thing in scene.things().items():
        if thing == COVER:
            return scene.put({cell: _mirror(scene, {"way": way}, scene).at(cell)})
    return scene


def _correct(base: Scene, args: Args, source: Scene) -> Scene:
    """Do what an objection asks for: `at CELL there should be THING`, or `the background should be COLOUR`."""
    subject, _, expected = args["objection"].partition(" should be ")
    if subject == "the background":
        return base.put({}, expected)
    cell = subject.split(" ")[1]
    if expected == "nothing":
        return base.put({cell: None})
    return base.put({cell: parse_thing(expected.partition(" ")[2])})


def _add_any(base: Scene, args: Args, source: Scene) -> Scene:
    """The choice in the arguments; without one, a red object in the first empty cell."""
    cell = args.get("cell", "")
    if not cell:
        empty = _empty_cells(base)
        if not empty:
            return base
        cell = empty[0]
    return base.put({cell: parse_thing(args.get("thing") or f"red {args['shape']}")})


def _draw_any(base: Scene, args: Args, source: Scene) -> Scene:
    """The choice in the arguments; without one, red objects in the first cells."""
    things = args.get("things", "")
    if not things:
        cells = CELLS[: int(args["number"])]
        things = ", ".join(f"red {args['shape']} at {cell}" for cell in cells)
    return scene_from_text(f"{args['background']}: {things}")


def _empty_cells(scene: Scene) -> list[str]:
    return [cell for cell in CELLS if scene.at(cell) is None]


def shortest_paths(scene: Scene, start: str, end: str) -> list[list[str]]:
    """All shortest paths from cell to neighbouring cell over empty cells, both ends included; none if there is no
    path."""
    paths = [[start]]
    seen = {start}
    while paths:
        complete = [path for path in paths if path[-1] == end]
        if complete:
            return complete
        longer: list[list[str]] = []
        for path in paths:
            for cell in neighbours(path[-1]):
                is_free = scene.at(cell) is None or cell == end
                if is_free and cell not in seen:
                    longer.append([*path, cell])
        seen |= {path[-1] for path in longer}
        paths = longer
    return []


def neighbours(cell: str) -> list[str]:
    """The cells above, left, right and below that are on the table."""
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
    "background": _set_background,
    "restore": _restore,
    "put back": _add,
    "copy": _copy,
    "mirror": _mirror,
    "rotate": _rotate,
    "gravity": _drop,
    "drift": _drift,
    "one more": _add_one_more,
    "one less": _remove_one,
    "pattern": _complete_pattern,
    "route": _mark_route,
    "steps": _lay_out_steps,
    "correct": _correct,
    "add any": _add_any,
    "draw any": _draw_any,
    "hours": _drift_hours,
    "double": _double,
    "trait": _take_trait,
    "sum": _place_sum,
    "draw route": _draw_route,
    "draw steps": _draw_steps,
    "panel": _draw_panel,
    "switch": _turn_switches,
    "build": _draw,
    "film": _end_film,
}
EDITS = ("add", "remove", "recolour", "move", "background")  # the basic ones, which `bench/tiny.py` averages
