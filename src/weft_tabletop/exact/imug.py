"""IMUG-Bench's evaluation points, each 0 to 5, read from pixels.

Points are relative to the pictures that the judge is shown, so a model that edits its own wrong picture rightly is
right.

    done    the share of cells that the request changes, the background included, that are as they are due
    kept    the share of all other cells that are as they were
    fact    what the request says by itself: cells by name, or the background
    new     a thing of the kind asked for stands where nothing was
    only    the table has so many of the shape and nothing else
    clean   how near the picture is to a clean drawing
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from weft_tabletop.world.language import OPEN
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import CELLS, Scene, SceneReading, scene_from_text

Check = Mapping[str, Any]
Scored = tuple[int, str]  # points out of five, and why


def score_points(
    turn: Mapping[str, Any], made: SceneReading, base: Scene | None, source: Scene | None, unknown: Collection[str] = ()
) -> list[Scored]:
    """Each check of a turn of the sidecar. Without the picture it is relative to, a request cannot have been done.
    Cells `unknown` in that picture already are nobody's fault now."""
    checks: Sequence[Check] = turn["points"]
    operation = Operation(turn["kind"], turn["args"])
    if operation.kind in OPEN:
        if base is None or operation.kind == "draw any":
            due = None
        else:
            due = _nearest(made, base, operation)
    else:
        if base is None:
            due = None
        else:
            due = operation.apply(base, source)
    return [_score(check, turn, made, base, due, unknown) for check in checks]


def _nearest(made: SceneReading, base: Scene, operation: Operation) -> Scene:
    """Of all right results of an open addition, the one nearest to what was made."""
    new = [
        cell
        for cell in CELLS
        if base.at(cell) is None
        and (thing := made.scene.at(cell)) is not None
        and thing.shape == operation.args["shape"]
    ]
    if new:
        return base.put({new[0]: made.scene.at(new[0])})
    return base


def _score(
    check: Check,
    turn: Mapping[str, Any],
    made: SceneReading,
    base: Scene | None,
    due: Scene | None,
    unknown: Collection[str],
) -> Scored:
    kind = check["check"]
    if kind == "clean":
        return max(
            0, 5 - round(made.residual / 8) - len(made.unknown)
        ), f"distance from a clean drawing {made.residual:.1f}"
    if kind == "fact":
        return _fact(check, made)
    if kind == "only":
        things = [thing.shape for thing in made.scene.things().values()]
        right = things.count(turn["args"]["shape"])
        due_number = int(turn["args"]["number"])
        off = abs(right - due_number) + len(things) - right + len(made.unknown)
        return max(0, 5 - 2 * off), f"{right} of the {due_number} and {len(things) - right} others are there"
    if base is None or due is None:
        return 0, "there is no picture that it could have been made from"
    if kind == "new":
        if due != base:
            return (5, "it is there")
        return (0, "no empty cell got one")
    touched = set(base.changed_cells(due))
    ground = due.background != base.background
    if kind == "done":
        return _share([cell for cell in CELLS if cell in touched], made, due, ground)
    return _share([cell for cell in CELLS if cell not in touched and cell not in unknown], made, due, not ground)


def _share(cells: Sequence[str], made: SceneReading, due: Scene, ground: bool) -> Scored:
    """5 for all; else two less for each that is wrong, and no more than the share that is right."""
    wrong = [cell for cell in cells if cell in made.unknown or made.scene.at(cell) != due.at(cell)]
    off = len(wrong) + (ground and made.scene.background != due.background)
    total = len(cells) + ground
    if not off:
        return 5, "all of it"
    if wrong:
        first = f"at {wrong[0]} is {describe_cell(made, wrong[0])}, not {due.at(wrong[0]) or 'nothing'}"
    else:
        first = "the background is another"
    return max(0, min(5 - 2 * off, int(5 * (total - off) / total))), f"{off} of {total} are wrong: {first}"


def _fact(check: Check, made: SceneReading) -> Scored:
    if "background" in check:
        ok = made.scene.background == check["background"]
        return 5 if ok else 0, f"the background is {made.scene.background}"
    if "scene" in check:
        return _share(CELLS, made, scene_from_text(check["scene"]), True)
    for cell, thing in check["cells"].items():
        if cell in made.unknown or str(made.scene.at(cell) or "") != thing:
            return 0, f"at {cell} is {describe_cell(made, cell)}, not {thing}"
    return 5, "so it is"


def describe_cell(made: SceneReading, cell: str) -> str:
    if cell in made.unknown:
        return "something that cannot be read"
    return str(made.scene.at(cell) or "nothing")
