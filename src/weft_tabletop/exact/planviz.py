"""PlanScore from pixels and the sidecar.

    correctness    each key point by its check: a thing in its cell, a way without a gap, the shortest one, switches,
    counts
    visual         alone: how near the picture is to a clean drawing; beside its source: what had to stay and did
    efficiency     one point off for each thing that the task has no use for

A way may be any of the shortest: the dots that are there are followed."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft_tabletop.world.operations import OFF, ON, Operation, neighbours, shortest_paths
from weft_tabletop.world.scenes import CELLS, COLUMNS, Scene, SceneReading

METRICS = ("correctness", "visual", "efficiency")
Turn = Mapping[str, Any]
Found = tuple[bool, str]


def correctness(turn: Turn, source: SceneReading | None, made: SceneReading) -> tuple[list[Found], int]:
    """Each key point, met or not, and why; and how many steps there are that the task does not need."""
    base = _base(turn, source, made.scene)
    found = [_point(check, base, source, made) for check in turn["checks"]]
    return found, len(_extra(turn, source, made)) if turn["kind"] in ("steps", "draw steps") else 0


def visual(turn: Turn, source: SceneReading | None, made: SceneReading, *, alone: bool) -> tuple[int, str]:
    if alone or source is None:
        points = max(0, 10 - round(made.residual / 4) - len(made.unknown))
        return points // 2, f"distance from a clean drawing {made.residual:.1f}, {len(made.unknown)} cells unread"
    before = source.scene
    may = _may_change(turn, before)
    stay = [cell for cell in CELLS if cell not in may and cell not in source.unknown]
    lost = [cell for cell in stay if cell in made.unknown or made.scene.at(cell) != before.at(cell)]
    kept = len(stay) - len(lost) + (made.scene.background == before.background)
    return (
        5 if kept == len(stay) + 1 else min(4, 5 * kept // (len(stay) + 1))
    ), f"changed without need: {', '.join(lost) or 'no cell'}"


def efficiency(turn: Turn, source: SceneReading | None, made: SceneReading) -> tuple[int, str]:
    extra = _extra(turn, source, made)
    return max(
        0, 5 - len(extra)
    ), f"nobody asked for what is at {', '.join(extra)}" if extra else "nothing that nobody asked for"


def _base(turn: Turn, source: SceneReading | None, made: Scene) -> Scene:
    """The table that a way goes over: the given one, or the one that was to be drawn."""
    if source is not None:
        return source.scene
    if turn["kind"] == "draw route":
        return Operation("draw", turn["args"]).apply(made)
    return Scene(made.background)


def _point(check: Mapping[str, str], base: Scene, source: SceneReading | None, made: SceneReading) -> Found:
    kind = check["check"]
    scene = made.scene
    if kind == "ground":
        return scene.background == check["background"], f"the background is {scene.background}"
    if kind == "thing":
        if check["cell"] in made.unknown:
            found = None
        else:
            found = scene.at(check["cell"])
        return str(found) == check["thing"], f"at {check['cell']} is {_told(made, check['cell'])}"
    if kind == "switch":
        if check["state"] == "on":
            due = ON
        else:
            due = OFF
        return check["cell"] not in made.unknown and scene.at(
            check["cell"]
        ) == due, f"at {check['cell']} is {_told(made, check['cell'])}"
    if kind == "count":
        number = sum(one.shape == check["shape"] for one in scene.things().values())
        return number == int(check["number"]) and made.is_sure, f"there are {number} of that shape"
    if kind in ("others", "kept"):
        assert source is not None
        named = check.get("cells", "").split(", ")
        before = {cell: one for cell, one in source.scene.things().items() if cell not in named}
        moved = [cell for cell, one in before.items() if cell in made.unknown or scene.at(cell) != one]
        return not moved, f"changed: {', '.join(moved)}" if moved else "all that was there is as it was"
    way = _way(base, made, check["from"], check["to"])
    if not way:
        return False, f"the dots do not lead from {check['from']} to {check['to']}"
    told = f"the way goes over {', '.join(way[1:-1])}"
    if kind == "colour":
        colours = {one.colour for cell in way[1:-1] if (one := scene.at(cell))}
        return colours == {check["colour"]}, f"the dots are {', '.join(sorted(colours))}"
    least = len(shortest_paths(base, check["from"], check["to"])[0])
    return kind == "way" or len(way) == least, f"{told}; {least - 2} dots would do"


def _way(base: Scene, made: SceneReading, start: str, end: str) -> list[str]:
    """The shortest way over dots from one thing to another, where nothing was before; none if there is a gap."""
    scene = made.scene
    if scene.at(start) is None or scene.at(end) is None:
        return []
    dots = [
        cell
        for cell, one in scene.things().items()
        if one.shape == "dot" and base.at(cell) is None and cell not in made.unknown
    ]
    ways = [[start]]
    seen = {start}
    while ways:
        done = next((way for way in ways if way[-1] == end), None)
        if done is not None:
            if len(done) > 2:
                return done
            return []
        grown = [
            [*way, cell]
            for way in ways
            for cell in neighbours(way[-1])
            if cell not in seen and (cell in dots or _ends(way, cell, end))
        ]
        seen |= {way[-1] for way in grown if way[-1] != end}
        ways = grown
    return []


def _ends(way: Sequence[str], cell: str, end: str) -> bool:
    return cell == end and len(way) > 1


def _may_change(turn: Turn, before: Scene) -> Sequence[str]:
    """Cells that an answer may change."""
    if turn["kind"] == "switch":
        return turn["args"]["cells"].split(", ")
    if turn["kind"] == "steps":
        return [turn["args"]["row"] + column for column in COLUMNS]
    return [cell for cell in CELLS if before.at(cell) is None]


def _extra(turn: Turn, source: SceneReading | None, made: SceneReading) -> list[str]:
    """Cells with something that the task has no use for."""
    kind = turn["kind"]
    args = turn["args"]
    scene = made.scene
    if source is not None:
        before = source.scene
    else:
        before = Scene(scene.background)
    new = [cell for cell, one in scene.things().items() if one != before.at(cell) or cell in made.unknown]
    if kind in ("route", "draw route"):
        base = _base(turn, source, scene)
        way = _way(base, made, args["cell"], args["to"])
        return [cell for cell in new if cell not in way and not (source is None and base.at(cell) is not None)]
    if kind in ("draw any", "add any"):
        asked = [cell for cell in new if (one := scene.at(cell)) is not None and one.shape == args["shape"]]
        if kind == "draw any":
            due = int(args["number"])
        else:
            due = 1
        return [cell for cell in new if cell not in asked[:due]]
    if kind in ("steps", "draw steps"):
        named = [args["row"] + column for column, _ in zip(COLUMNS, args["things"].split(", "), strict=False)]
    else:
        named = args["switches" if kind == "panel" else "cells"].split(", ")
    return [cell for cell in new if cell not in named]


def _told(made: SceneReading, cell: str) -> str:
    if cell in made.unknown:
        return "nothing that can be read"
    return str(made.scene.at(cell) or "nothing")
