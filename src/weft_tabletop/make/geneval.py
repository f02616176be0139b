"""GenEval on the tabletop: prompts of its six tasks about objects on a table, in the format of its records.

A class is a shape. The prompt says which object is in which cell, so that every rule follows from its words."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft_tabletop.make.files import write_lines
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.world.language import fill_wording
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, COLUMNS, SHAPES, Scene, Thing, list_things
from weft_tabletop.world.wordings import WORDINGS

TASKS = ("single_object", "two_object", "counting", "colors", "position", "color_attr")
CLASSES = tuple(shape for shape in SHAPES if shape != "dot")
COUNTS = (2, 3, 4)
IMAGES_PER_PROMPT = 4
Placed = tuple[Thing, str]  # an object and its cell


def write_geneval(out: Path, samples: int, seed: int) -> None:
    """Write so many prompts, the tasks in turn: `evaluation_metadata.jsonl` and the sidecar."""
    out.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    references: dict[str, Any] = {}
    for number in range(samples):
        task = TASKS[number % len(TASKS)]
        rng = random.Random(f"geneval {seed} {task} {number // len(TASKS)}")
        rules, placed = _make_prompt(task, rng)
        scene = Scene(rng.choice(tuple(BACKGROUNDS))).put({cell: thing for thing, cell in placed})
        args = {"background": scene.background, "things": list_things(scene)}
        records.append({"tag": task, **rules, "prompt": fill_wording(rng.choice(WORDINGS["draw"]), args, {})})
        references[f"{number:05}"] = {"turns": [{"scene": str(scene)}] * IMAGES_PER_PROMPT}
    write_lines(out / "evaluation_metadata.jsonl", records)
    write_sidecar(out, references)


def _make_prompt(task: str, rng: random.Random) -> tuple[dict[str, Any], Sequence[Placed]]:
    """Return the rules of a prompt, and the objects that it asks for."""
    first, second = rng.sample(CLASSES, 2)
    colours = rng.sample(tuple(COLOURS), 2)
    cells = rng.sample(CELLS, 2)
    things = [Thing(colours[0], first), Thing(colours[1], second)]
    if task == "counting":
        count = rng.choice(COUNTS)
        placed = [(Thing(rng.choice(tuple(COLOURS)), first), cell) for cell in rng.sample(CELLS, count)]
        include = [{"class": first, "count": count}]
        return {"include": include, "exclude": [{"class": first, "count": count + 1}]}, placed
    if task in ("single_object", "colors"):
        rule: dict[str, Any] = {"class": first, "count": 1}
        if task == "colors":
            rule["color"] = colours[0]
        return {"include": [rule]}, [(things[0], cells[0])]
    rules: list[dict[str, Any]] = [{"class": thing.shape, "count": 1} for thing in things]
    if task == "color_attr":
        for rule, colour in zip(rules, colours, strict=True):
            rule["color"] = colour
    if task == "position":
        cells, relation = _place_two(rng)
        rules[1]["position"] = [relation, 0]
    return {"include": rules}, list(zip(things, cells, strict=True))


def _place_two(rng: random.Random) -> tuple[list[str], str]:
    """Return two cells of one row or one column, and where the second is from the first."""
    line = rng.choice(CELLS)
    if rng.random() < 0.5:
        first, second = rng.sample([f"{line[0]}{column}" for column in COLUMNS], 2)
        return [first, second], "right of" if second > first else "left of"
    first, second = rng.sample([cell for cell in CELLS if cell[1] == line[1]], 2)
    return [first, second], "below" if second > first else "above"
