"""PlanViz's six kinds of tasks on the tabletop, in the official layout, with the sidecar: ways around objects, things
in order, panels of switches, drawn from words or on a given table.

Open tasks have more than one right picture: any shortest way, things of any colour in any place. A key point has a
check in the sidecar under the same number, by which the exact judge decides it."""

import random
from pathlib import Path
from typing import Any

from weft.benchmarks.planviz.files import TASK_LISTS, PlanVizTask, write_tasks
from weft.store.images import encode_png
from weft_tabletop.make.dialogues import DialogueMaker, start_scene
from weft_tabletop.make.requests import MAKERS, any_route
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.world.language import phrase_request, plural, with_article
from weft_tabletop.world.operations import Operation, shortest_paths
from weft_tabletop.world.scenes import COLUMNS, Scene, draw

Check = dict[str, str]
CELLS = (("route", "gen"), ("route", "edit"), ("workflow", "gen"), ("workflow", "edit"), ("ui", "gen"), ("ui", "edit"))
CLOSED = {
    ("route", "gen"): "draw route",
    ("route", "edit"): "route",
    ("workflow", "gen"): "draw steps",
    ("workflow", "edit"): "steps",
    ("ui", "gen"): "panel",
    ("ui", "edit"): "switch",
}
OPEN = {**CLOSED, ("ui", "gen"): "draw any", ("ui", "edit"): "add any"}
ORDER = ("first", "second", "third", "fourth")


def write_planviz(out: Path, samples: int, seed: int) -> None:
    truth: dict[str, Any] = {}
    write_tasks(out, [_task(number, seed, truth) for number in range(samples)])
    write_sidecar(out, truth)


def _task(number: int, seed: int, truth: dict[str, Any]) -> PlanVizTask:
    subtask, task = CELLS[number % len(CELLS)]
    name = f"{number // len(CELLS) + 1:03}"
    rng = random.Random(f"planviz {seed} {subtask} {task} {name}")
    if subtask == "workflow" or number // len(CELLS) % 2:
        ended = "closed"
    else:
        ended = "open"
    kind = (OPEN if ended == "open" else CLOSED)[subtask, task]
    args, base = _made(kind, ended, rng)
    if kind in ("add any", "draw any"):
        said = {key: value for key, value in args.items() if key not in ("thing", "cell", "things")}
    else:
        said = args
    after = Operation(kind, args).apply(base)
    told = points(kind, said, base)
    listed = next(one for one in TASK_LISTS if (one.subtask, one.task) == (subtask, task))
    truth[f"{listed.name}-{name}"] = {"turns": [{"kind": kind, "args": said, "checks": [check for _, check in told]}]}
    text = phrase_request(kind, args, {"image": "the table"}, rng)
    edits = task == "edit"
    if edits:
        pictures = (encode_png(draw(base)), encode_png(draw(after)))
    else:
        pictures = (b"", b"")
    return PlanVizTask(subtask, task, text, [point for point, _ in told], ended, name, *pictures)


def _made(kind: str, ended: str, rng: random.Random) -> tuple[dict[str, str], Scene]:
    """Arguments, and the table that they are about. Routes that are open have several shortest ways, those that are
    closed one."""
    while True:
        if kind in ("route", "steps", "switch", "add any"):
            base = start_scene([kind], rng)
        else:
            base = Scene("white")
        maker = DialogueMaker("", [base], rng)
        if kind == "route":
            made = any_route(maker, 1)
        else:
            made = MAKERS[kind](maker, 1)
        if made is None:
            continue
        args = made[0]
        if kind in ("route", "draw route"):
            if kind == "route":
                table = base
            else:
                table = Operation("draw", args).apply(base)
            if (len(shortest_paths(table, args["cell"], args["to"])) > 1) != (ended == "open"):
                continue
        return args, base


def points(kind: str, args: dict[str, str], base: Scene) -> list[tuple[str, Check]]:
    """Key points in words, each with its check."""
    ground = args.get("background", "")
    made: list[tuple[str, Check]] = []
    if ground:
        made.append((f"The background is {ground}", {"check": "ground", "background": ground}))
    if kind == "draw route":
        for item in args["things"].split(", "):
            what, _, cell = item.partition(" at ")
            made.append(
                (f"{with_article(what).capitalize()} is at {cell}", {"check": "thing", "cell": cell, "thing": what})
            )
    if kind in ("route", "draw route"):
        ends = {"from": args["cell"], "to": args["to"]}
        made += [
            (f"Dots mark a way without a gap from {args['cell']} to {args['to']}", {"check": "way", **ends}),
            (f"The dots of the way are {args['colour']}", {"check": "colour", "colour": args["colour"], **ends}),
            ("No way over empty cells is shorter than the one that is marked", {"check": "shortest", **ends}),
        ]
    if kind in ("steps", "draw steps"):
        for which, column, what in zip(ORDER, COLUMNS, args["things"].split(", "), strict=False):
            cell = args["row"] + column
            told = f"The {which} thing of row {args['row']}, at {cell}, is {with_article(what)}"
            made.append((told, {"check": "thing", "cell": cell, "thing": what}))
    if kind == "panel":
        on = args["cells"].split(", ")
        for cell in args["switches"].split(", "):
            if cell in on:
                state = "on"
            else:
                state = "off"
            made.append(
                (f"The switch at {cell} is there, and is {state}", {"check": "switch", "cell": cell, "state": state})
            )
    if kind == "switch":
        for cell in args["cells"].split(", "):
            told = f"The switch at {cell} is turned {args['state']}"
            made.append((told, {"check": "switch", "cell": cell, "state": args["state"]}))
        made.append(("All other switches are as they were", {"check": "others", "cells": args["cells"]}))
    if kind == "draw any":
        told = f"There are exactly {args['number']} {plural(args['shape'])}"
        made.append((told, {"check": "count", "shape": args["shape"], "number": args["number"]}))
    if kind == "add any":
        before = sum(thing.shape == args["shape"] for thing in base.things().values())
        told = f"There is one more {args['shape']} than before"
        made.append((told, {"check": "count", "shape": args["shape"], "number": str(before + 1)}))
        made.append(("It stands where nothing was", {"check": "kept"}))
    return made
