"""ROVER's questions, answered from pixels and the sidecar, 1 to 5 by the share of what is right.

    reasoning_process        objects with their cells that the plan names, against those of the right result
    reasoning_visual         cells that the request changes, the background included, that are as they are due
    reasoning_alignment      objects with their cells that the plan names, against those of the picture (IG)
                             whether the answer is the one that the picture shows, and the right one (TG)
    visual_consistency       cells that should not have changed, and the background, that did not
    image_quality            how near the picture is to a clean drawing
    interleaved_reasoning    the picture on the way against the true one; the given table again is worth 1

What is right is worked out from the table that the question shows."""

import re
from collections.abc import Mapping
from typing import Any

from weft.benchmarks.rover.tg.answers import extract_final_answer
from weft_tabletop.exact.imug import describe_cell
from weft_tabletop.exact.weave import score_answer
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, with_article
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, SHAPES, Scene, SceneReading, Thing

TASK_METRICS = ("reasoning_process", "reasoning_visual", "reasoning_alignment", "visual_consistency", "image_quality")
PUZZLE_METRICS = ("interleaved_reasoning", "reasoning_alignment")
NAMED = re.compile(rf"\b({'|'.join(COLOURS)}) ({'|'.join(SHAPES)}) at ([a-d][1-4])\b")
GROUND = re.compile(rf"\b({'|'.join(BACKGROUNDS)}) (?:table|background|panel)\b")
# shares for 5, 4, 3 and 2
BANDS = (1.0, 0.8, 0.6, 0.3)
STRICT = (1.0, 0.9, 0.8, 0.5)
Score = tuple[int, str]


def score_band(share: float, bands: tuple[float, ...] = BANDS) -> int:
    return next((5 - at for at, least in enumerate(bands) if share >= least), 1)


def score_task(
    metric: str, turn: Mapping[str, Any], source: SceneReading, made: SceneReading | None, plan: str
) -> Score:
    base = source.scene
    due = Operation(turn["kind"], turn["args"]).apply(base)
    if metric == "reasoning_process":
        return _named(plan, due, "the right result")
    if made is None:
        return 1, "there is no picture"
    if metric == "reasoning_alignment":
        return _named(plan, made.scene, "the picture")
    if metric == "image_quality":
        points = max(0, 10 - round(made.residual / 4) - len(made.unknown))
        return score_band(
            points / 10, (0.9, 0.8, 0.6, 0.4)
        ), f"distance from a clean drawing {made.residual:.1f}, {len(made.unknown)} cells unread"
    changed = base.changed_cells(due)
    if metric == "visual_consistency":
        stay = [cell for cell in CELLS if cell not in changed and cell not in source.unknown]
        lost = [cell for cell in stay if cell in made.unknown or made.scene.at(cell) != base.at(cell)]
        ground = made.scene.background == base.background
        return score_band(
            (len(stay) - len(lost) + ground) / (len(stay) + 1)
        ), f"changed without need: {', '.join(lost) or 'no cell'}"
    wrong = [cell for cell in changed if cell in made.unknown or made.scene.at(cell) != due.at(cell)]
    if wrong:
        told = f"at {wrong[0]} is {describe_cell(made, wrong[0])}, not {due.at(wrong[0]) or 'nothing'}"
    else:
        told = "all that had to change is right"
    if turn["type"] in ("mathematical", "abstract"):
        bands = STRICT
    else:
        bands = BANDS
    return score_band((len(changed) - len(wrong)) / len(changed) if changed else 1.0, bands), told


def _named(plan: str, scene: Scene, what: str) -> Score:
    """What a plan names, against what a table has: things in their cells, and the background if it is named."""
    named = {cell: Thing(colour, shape) for colour, shape, cell in NAMED.findall(plan)}
    if not named and "nothing" not in plan:
        return 1, "the plan names no object and its cell"
    there = scene.things()
    right = sum(there.get(cell) == thing for cell, thing in named.items())
    every = len({*named, *there})
    ground = GROUND.search(plan)
    if ground:
        right, every = right + (ground.group(1) == scene.background), every + 1
    return score_band(right / every if every else 1.0), f"{right} of {every} that are named or there agree with {what}"


def score_puzzle(metric: str, turn: Mapping[str, Any], source: SceneReading, made: SceneReading, reply: str) -> Score:
    asked = TableRequest(turn["kind"], turn["args"], {})
    due = answers.helper_scene(asked, {"image": source.scene})
    if metric == "interleaved_reasoning":
        return _on_the_way(source, made, due)
    shown = answer_shown(asked, source.scene, made.scene)
    said = extract_final_answer(reply)
    fits = is_same_answer(said, shown)
    right = is_same_answer(said, str(turn["answer"]))
    told = f"it says {said[:60]!r}, its picture shows {shown or 'no answer'}, {turn['answer']} is right"
    if turn["type"] == "physical":
        return (5 if fits else 1), told
    if turn["type"] == "logical":
        return (1 if not right else 5 if fits else 2), told
    return (5 if right and fits else 2 if right or fits else 1), told


def _on_the_way(source: SceneReading, made: SceneReading, due: Scene) -> Score:
    wrong = [cell for cell in CELLS if cell in made.unknown or made.scene.at(cell) != due.at(cell)]
    if made.scene == source.scene and due != source.scene:
        return 1, "it is the given table again"
    if not wrong and made.scene.background == due.background:
        return 5, "it is the true picture"
    changed = source.scene.changed_cells(due)
    if changed:
        share = sum(cell not in wrong for cell in changed) / len(changed)
    else:
        share = 1.0
    if share == 1 and len(wrong) <= 2:
        score = 4
    else:
        score = min(3, score_band(share))
    return score, f"{len(wrong)} cells are not as in the true picture, {', '.join(wrong[:4])}"


def answer_shown(asked: TableRequest, source: Scene, made: Scene) -> str:
    """The answer that a picture on the way shows, whether right or wrong."""
    if asked.kind == "then":
        found = made.at(asked.args["cell"])
        if found:
            return with_article(str(found))
        return "nothing"
    if asked.kind == "way":
        dots = Thing(asked.args["colour"], "dot")
        return str(sum(thing == dots and source.at(cell) != dots for cell, thing in made.things().items()))
    hidden = [cell for cell, thing in source.things().items() if thing == Thing("black", "dot")]
    if hidden:
        found = made.at(hidden[0])
    else:
        found = None
    return next((item[0] for item in asked.args["pieces"].split(", ") if item[3:] == str(found)), "")


def is_same_answer(said: str, due: str) -> bool:
    return bool(due) and score_answer(said.strip(" ."), due)[0] == 10
