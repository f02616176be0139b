"""Evaluation points of a tabletop image in words, and what each means for the judge that reads pixels
(`weft_tabletop.exact.imug`)."""

import random
from collections.abc import Mapping
from typing import Any

from weft_tabletop.make.dialogues import TableTurn
from weft_tabletop.world.language import describe_scene, phrase_request
from weft_tabletop.world.wordings import pluralise, with_article

Check = Mapping[str, Any]
Point = tuple[str, Check]

# The choice in an open request is the model's: these arguments are not in its words.
CHOSEN_ARGS = {"add any": ("cell", "thing"), "draw any": ("things",)}
KEPT: Point = ("Everything else is as it was.", {"check": "kept"})
CLEAN: Point = ("Every object on the table is sharp and easy to tell.", {"check": "clean"})


def write_points(turn: TableTurn, rng: random.Random) -> tuple[list[str], list[Check]]:
    """Return the points of a request in words, and what each means."""
    if turn.kind == "add any":
        points = _addition_points(turn.args)
    elif turn.kind == "draw any":
        points = _open_drawing_points(turn.args)
    elif turn.kind == "draw" and turn.scene is not None:
        scene_point = (f"The picture shows {describe_scene(turn.scene)}.", {"check": "fact", "scene": str(turn.scene)})
        points = [_background_point(turn.args), scene_point, CLEAN]
    else:
        points = _edit_points(turn, rng)
    return [words for words, _ in points], [check for _, check in points]


def _addition_points(args: Mapping[str, str]) -> list[Point]:
    words = f"There is {with_article(args['shape'])} in a cell that was empty before."
    return [(words, {"check": "new"}), KEPT, CLEAN]


def _open_drawing_points(args: Mapping[str, str]) -> list[Point]:
    words = f"There are exactly {args['number']} {pluralise(args['shape'])} and nothing else."
    return [_background_point(args), (words, {"check": "only"}), CLEAN]


def _background_point(args: Mapping[str, str]) -> Point:
    background = args["background"]
    return f"The background is {background}.", {"check": "fact", "background": background}


def _edit_points(turn: TableTurn, rng: random.Random) -> list[Point]:
    if turn.kind in ("copy", "restore"):
        words = "What the other picture gives is in its place."
    else:
        words = f"This is done: {phrase_request(turn.kind, turn.args, {'image': 'the table'}, rng)}"
    points: list[Point] = [(words, {"check": "done"})]
    if turn.kind in ("add", "replace"):
        cell = turn.args["cell"]
        thing = turn.args["thing"]
        points.append((f"At {cell} there is {with_article(thing)}.", {"check": "fact", "cells": {cell: thing}}))
    return [*points, KEPT, CLEAN]


def visible_args(turn: TableTurn) -> dict[str, str]:
    """The arguments that the request's words state."""
    hidden = CHOSEN_ARGS.get(turn.kind, ())
    return {name: value for name, value in turn.args.items() if name not in hidden}
