"""Evaluation points of a tabletop picture: what they say (`written`), and how far each is met, 0 to 5, read from pixels (`scored`).

Points are relative to the pictures that the judge is shown, so a model that edits its own wrong picture rightly is right.

    done    the share of cells that the request changes, the background included, that are as they are due
    kept    the share of all other cells that are as they were
    fact    what the request says by itself: cells by name, or the background
    new     a thing of the kind asked for stands where nothing was
    only    the table has so many of the shape and nothing else
    clean   how near the picture is to a clean drawing
"""

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from weft.tabletop.dialogues import TableTurn
from weft.tabletop.language import OPEN, described, plural, say, with_article
from weft.tabletop.operations import Operation
from weft.tabletop.world import CELLS, Reading, Scene, scene_from

Check = Mapping[str, Any]
Point = tuple[str, Check]
Scored = tuple[int, str]  # points out of five, and why


def written(turn: TableTurn, chance: random.Random) -> tuple[list[str], list[Check]]:
    """The points of a request in words, and what each means."""
    clean: Point = ("Every object on the table is sharp and easy to tell.", {"check": "clean"})
    points: list[Point]
    a = turn.args
    if turn.kind == "add any":
        thing = with_article(a["shape"])
        points = [(f"There is {thing} in a cell that was empty before.", {"check": "new"}), (_KEPT, {"check": "kept"}), clean]
    elif turn.kind == "draw any":
        number, shapes = a["number"], plural(a["shape"])
        points = [
            (f"The background is {a['background']}.", {"check": "fact", "background": a["background"]}),
            (f"There are exactly {number} {shapes} and nothing else.", {"check": "only"}),
            clean,
        ]
    elif turn.kind == "draw" and turn.scene is not None:
        points = [
            (f"The background is {a['background']}.", {"check": "fact", "background": a["background"]}),
            (f"The picture shows {described(turn.scene)}.", {"check": "fact", "scene": str(turn.scene)}),
            clean,
        ]
    else:
        words = "What the other picture gives is in its place."
        if turn.kind not in ("copy", "restore"):
            words = f"This is done: {say(turn.kind, a, {'image': 'the table'}, chance)}"
        points = [(words, {"check": "done"}), (_KEPT, {"check": "kept"}), clean]
        if turn.kind in ("add", "replace"):
            said = f"At {a['cell']} there is {with_article(a['thing'])}."
            points.insert(1, (said, {"check": "fact", "cells": {a["cell"]: a["thing"]}}))
    return [words for words, _ in points], [check for _, check in points]


_KEPT = "Everything else is as it was."


def visible(turn: TableTurn) -> dict[str, str]:
    """The arguments that the request's words tell; the choice in an open one is the model's."""
    hidden = {"add any": ("cell", "thing"), "draw any": ("things",)}.get(turn.kind, ())
    return {name: value for name, value in turn.args.items() if name not in hidden}


def scored(turn: Mapping[str, Any], made: Reading, base: Scene | None, source: Scene | None, unknown: Collection[str] = ()) -> list[Scored]:
    """Each check of a turn of the sidecar. Without the picture it is relative to, a request cannot have been done. Cells `unknown` in that
    picture already are nobody's fault now."""
    checks: Sequence[Check] = turn["points"]
    operation = Operation(turn["kind"], turn["args"])
    if operation.kind in OPEN:
        due = None if base is None or operation.kind == "draw any" else _nearest(made, base, operation)
    else:
        due = None if base is None else operation.apply(base, source)
    return [_score(check, turn, made, base, due, unknown) for check in checks]


def _nearest(made: Reading, base: Scene, operation: Operation) -> Scene:
    """Of all right results of an open addition, the one nearest to what was made."""
    new = [
        cell
        for cell in CELLS
        if base.at(cell) is None and (thing := made.scene.at(cell)) is not None and thing.shape == operation.args["shape"]
    ]
    return base.put({new[0]: made.scene.at(new[0])}) if new else base


def _score(check: Check, turn: Mapping[str, Any], made: Reading, base: Scene | None, due: Scene | None, unknown: Collection[str]) -> Scored:
    kind = check["check"]
    if kind == "clean":
        return max(0, 5 - round(made.residual / 8) - len(made.unknown)), f"distance from a clean drawing {made.residual:.1f}"
    if kind == "fact":
        return _fact(check, made)
    if kind == "only":
        things = [thing.shape for thing in made.scene.things().values()]
        right, due_number = things.count(turn["args"]["shape"]), int(turn["args"]["number"])
        off = abs(right - due_number) + len(things) - right + len(made.unknown)
        return max(0, 5 - 2 * off), f"{right} of the {due_number} and {len(things) - right} others are there"
    if base is None or due is None:
        return 0, "there is no picture that it could have been made from"
    if kind == "new":
        return (5, "it is there") if due != base else (0, "no empty cell got one")
    touched = set(base.differs_at(due))
    ground = due.background != base.background
    if kind == "done":
        return _share([cell for cell in CELLS if cell in touched], made, due, ground)
    return _share([cell for cell in CELLS if cell not in touched and cell not in unknown], made, due, not ground)


def _share(cells: Sequence[str], made: Reading, due: Scene, ground: bool) -> Scored:
    """5 for all; else two less for each that is wrong, and no more than the share that is right."""
    wrong = [cell for cell in cells if cell in made.unknown or made.scene.at(cell) != due.at(cell)]
    off = len(wrong) + (ground and made.scene.background != due.background)
    total = len(cells) + ground
    if not off:
        return 5, "all of it"
    first = f"at {wrong[0]} is {at(made, wrong[0])}, not {due.at(wrong[0]) or 'nothing'}" if wrong else "the background is another"
    return max(0, min(5 - 2 * off, int(5 * (total - off) / total))), f"{off} of {total} are wrong: {first}"


def _fact(check: Check, made: Reading) -> Scored:
    if "background" in check:
        ok = made.scene.background == check["background"]
        return 5 if ok else 0, f"the background is {made.scene.background}"
    if "scene" in check:
        return _share(CELLS, made, scene_from(check["scene"]), True)
    for cell, thing in check["cells"].items():
        if cell in made.unknown or str(made.scene.at(cell) or "") != thing:
            return 0, f"at {cell} is {at(made, cell)}, not {thing}"
    return 5, "so it is"


def at(made: Reading, cell: str) -> str:
    return "something that cannot be read" if cell in made.unknown else str(made.scene.at(cell) or "nothing")
