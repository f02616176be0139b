"""PlanViz's six kinds of tasks on the tabletop, in the official layout, with the sidecar: ways around objects, things
in order, and panels of switches; drawn from words, or on a given table.

Open tasks have more than one right image: any shortest way, things of any colour in any place. A key point has a check
in the sidecar under the same number, by which the exact judge decides it."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weft.benchmarks.planviz.files import TASK_LISTS, PlanVizTask, write_tasks
from weft.store.images import encode_png
from weft_tabletop.make.dialogues import DialogueMaker
from weft_tabletop.make.questions import MAKERS
from weft_tabletop.make.requests import RequestContent, choose_route
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.world.language import phrase_request
from weft_tabletop.world.operations import Operation, shortest_paths
from weft_tabletop.world.scenes import COLUMNS, Scene, draw
from weft_tabletop.world.wordings import pluralise, with_article

Check = dict[str, str]
KeyPoint = tuple[str, Check]  # in words, and for the judge that reads pixels
TASKS = (("route", "gen"), ("route", "edit"), ("workflow", "gen"), ("workflow", "edit"), ("ui", "gen"), ("ui", "edit"))
CLOSED_KINDS = {
    ("route", "gen"): "draw route",
    ("route", "edit"): "route",
    ("workflow", "gen"): "draw steps",
    ("workflow", "edit"): "steps",
    ("ui", "gen"): "panel",
    ("ui", "edit"): "switch",
}
OPEN_KINDS = {**CLOSED_KINDS, ("ui", "gen"): "draw any", ("ui", "edit"): "add any"}
CHOSEN_ARGS = ("thing", "cell", "things")  # in an open request the choice is the model's: its words do not say these
ON_A_TABLE = ("route", "steps", "switch", "add any")  # kinds that start from a given table
ORDINALS = ("first", "second", "third", "fourth")


def write_planviz(out: Path, samples: int, seed: int) -> None:
    """Write so many tasks, the six kinds in turn, and the sidecar."""
    references: dict[str, Any] = {}
    write_tasks(out, [_build_task(number, seed, references) for number in range(samples)])
    write_sidecar(out, references)


def _build_task(number: int, seed: int, references: dict[str, Any]) -> PlanVizTask:
    """Build a task, and add its checks to the references."""
    subtask, task = TASKS[number % len(TASKS)]
    round_number = number // len(TASKS)
    name = f"{round_number + 1:03}"
    rng = random.Random(f"planviz {seed} {subtask} {task} {name}")
    is_open = subtask != "workflow" and round_number % 2 == 0
    kind = (OPEN_KINDS if is_open else CLOSED_KINDS)[subtask, task]
    args, base = _choose_content(kind, rng, is_open=is_open)
    stated = args
    if kind in ("add any", "draw any"):
        stated = {key: value for key, value in args.items() if key not in CHOSEN_ARGS}
    points = list(key_points(kind, stated, base))
    task_list = next(other for other in TASK_LISTS if (other.subtask, other.task) == (subtask, task))
    checks = [check for _, check in points]
    references[f"{task_list.name}-{name}"] = {"turns": [{"kind": kind, "args": stated, "checks": checks}]}
    text = phrase_request(kind, args, {"image": "the table"}, rng)
    images = (b"", b"")
    if task == "edit":
        after = Operation(kind, args).apply(base)
        images = (encode_png(draw(base)), encode_png(draw(after)))
    ending = "open" if is_open else "closed"
    return PlanVizTask(subtask, task, text, [words for words, _ in points], ending, name, *images)


def _choose_content(kind: str, rng: random.Random, *, is_open: bool) -> tuple[dict[str, str], Scene]:
    """Choose arguments, and the table that they are about.

    An open route has several shortest ways, a closed one has exactly one.
    """
    while True:
        base = start_scene([kind], rng) if kind in ON_A_TABLE else Scene("white")
        content = _make_content(kind, DialogueMaker("", [base], rng))
        if content is None:
            continue
        args = content[0]
        if kind in ("route", "draw route"):
            table = base if kind == "route" else Operation("draw", args).apply(base)
            has_several = len(shortest_paths(table, args["cell"], args["to"])) > 1
            if has_several != is_open:
                continue
        return args, base


def _make_content(kind: str, maker: DialogueMaker) -> RequestContent | None:
    if kind == "route":
        return choose_route(maker, 1)
    return MAKERS[kind](maker, 1)


def key_points(kind: str, args: Mapping[str, str], base: Scene) -> Iterator[KeyPoint]:
    """Yield the key points of a task in words, each with its check."""
    if "background" in args:
        background = args["background"]
        yield f"The background is {background}", {"check": "ground", "background": background}
    if kind == "draw route":
        yield from _object_points(args)
    if kind in ("route", "draw route"):
        yield from _route_points(args)
    elif kind in ("steps", "draw steps"):
        yield from _step_points(args)
    elif kind == "panel":
        yield from _panel_points(args)
    elif kind == "switch":
        yield from _switch_points(args)
    elif kind == "draw any":
        check = {"check": "count", "shape": args["shape"], "number": args["number"]}
        yield f"There are exactly {args['number']} {pluralise(args['shape'])}", check
    elif kind == "add any":
        yield from _addition_points(args, base)


def _object_points(args: Mapping[str, str]) -> Iterator[KeyPoint]:
    for item in args["things"].split(", "):
        thing, _, cell = item.partition(" at ")
        check = {"check": "thing", "cell": cell, "thing": thing}
        yield f"{with_article(thing).capitalize()} is at {cell}", check


def _route_points(args: Mapping[str, str]) -> Iterator[KeyPoint]:
    ends = {"from": args["cell"], "to": args["to"]}
    yield f"Dots mark a way without a gap from {args['cell']} to {args['to']}", {"check": "way", **ends}
    yield f"The dots of the way are {args['colour']}", {"check": "colour", "colour": args["colour"], **ends}
    yield "No way over empty cells is shorter than the one that is marked", {"check": "shortest", **ends}


def _step_points(args: Mapping[str, str]) -> Iterator[KeyPoint]:
    row = args["row"]
    for ordinal, column, thing in zip(ORDINALS, COLUMNS, args["things"].split(", "), strict=False):
        cell = row + column
        words = f"The {ordinal} thing of row {row}, at {cell}, is {with_article(thing)}"
        yield words, {"check": "thing", "cell": cell, "thing": thing}


def _panel_points(args: Mapping[str, str]) -> Iterator[KeyPoint]:
    on = args["cells"].split(", ")
    for cell in args["switches"].split(", "):
        state = "on" if cell in on else "off"
        yield f"The switch at {cell} is there, and is {state}", {"check": "switch", "cell": cell, "state": state}


def _switch_points(args: Mapping[str, str]) -> Iterator[KeyPoint]:
    state = args["state"]
    for cell in args["cells"].split(", "):
        yield f"The switch at {cell} is turned {state}", {"check": "switch", "cell": cell, "state": state}
    yield "All other switches are as they were", {"check": "others", "cells": args["cells"]}


def _addition_points(args: Mapping[str, str], base: Scene) -> Iterator[KeyPoint]:
    shape = args["shape"]
    before = sum(thing.shape == shape for thing in base.things().values())
    check = {"check": "count", "shape": shape, "number": str(before + 1)}
    yield f"There is one more {shape} than before", check
    yield "It stands where nothing was", {"check": "kept"}
