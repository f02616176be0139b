"""Evaluation points of a tabletop picture in words, and what each means for the judge that reads pixels
(`weft_tabletop.exact.imug`)."""

import random
from collections.abc import Mapping
from typing import Any

from weft_tabletop.make.dialogues import TableTurn
from weft_tabletop.world.language import describe_scene, phrase_request, plural, with_article

Check = Mapping[str, Any]
Point = tuple[str, Check]


def write_points(turn: TableTurn, rng: random.Random) -> tuple[list[str], list[Check]]:
    """The points of a request in words, and what each means."""
    clean: Point = ("Every object on the table is sharp and easy to tell.", {"check": "clean"})
    points: list[Point]
    a = turn.args
    if turn.kind == "add any":
        thing = with_article(a["shape"])
        points = [
            (f"There is {thing} in a cell that was empty before.", {"check": "new"}),
            (_KEPT, {"check": "kept"}),
            clean,
        ]
    elif turn.kind == "draw any":
        number = a["number"]
        shapes = plural(a["shape"])
        points = [
            (f"The background is {a['background']}.", {"check": "fact", "background": a["background"]}),
            (f"There are exactly {number} {shapes} and nothing else.", {"check": "only"}),
            clean,
        ]
    elif turn.kind == "draw" and turn.scene is not None:
        points = [
            (f"The background is {a['background']}.", {"check": "fact", "background": a["background"]}),
            (f"The picture shows {describe_scene(turn.scene)}.", {"check": "fact", "scene": str(turn.scene)}),
            clean,
        ]
    else:
        words = "What the other picture gives is in its place."
        if turn.kind not in ("copy", "restore"):
            words = f"This is done: {phrase_request(turn.kind, a, {'image': 'the table'}, rng)}"
        points = [(words, {"check": "done"}), (_KEPT, {"check": "kept"}), clean]
        if turn.kind in ("add", "replace"):
            said = f"At {a['cell']} there is {with_article(a['thing'])}."
            points.insert(1, (said, {"check": "fact", "cells": {a["cell"]: a["thing"]}}))
    return [words for words, _ in points], [check for _, check in points]


_KEPT = "Everything else is as it was."


def visible_args(turn: TableTurn) -> dict[str, str]:
    """The arguments that the request's words tell; the choice in an open one is the model's."""
    hidden = {"add any": ("cell", "thing"), "draw any": ("things",)}.get(turn.kind, ())
    return {name: value for name, value in turn.args.items() if name not in hidden}
