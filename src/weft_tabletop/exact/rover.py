"""ROVER's questions, answered from pixels and the sidecar, 1 to 5 by the share of what is right.

    reasoning_process        objects with their cells that the plan names, against those of the right result
    reasoning_visual         the cells that the request changes that are as expected
    reasoning_alignment      objects with their cells that the plan names, against those of the image (IG);
                             whether the answer is the one that the image shows, and the right one (TG)
    visual_consistency       the cells that should not have changed, and the background, that did not
    image_quality            how near the image is to a clean drawing
    interleaved_reasoning    the image before the answer against the expected one; the given table again is worth 1

The right result follows from the table that the question shows."""

import re
from collections.abc import Mapping
from typing import Any

from weft.benchmarks.rover.tg.answers import extract_final_answer
from weft_tabletop.exact.cells import describe_distance, describe_losses, describe_wrong_cell, rate_quality, wrong_cells
from weft_tabletop.exact.weave import score_answer
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest
from weft_tabletop.world.operations import COVER, Operation
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, SHAPES, Scene, SceneReading, Thing

Reference = Mapping[str, Any]  # of a turn, from the sidecar
Score = tuple[int, str]  # 1 to 5, and the reason
TASK_METRICS = ("reasoning_process", "reasoning_visual", "reasoning_alignment", "visual_consistency", "image_quality")
PUZZLE_METRICS = ("interleaved_reasoning", "reasoning_alignment")
OBJECT_AT_CELL = re.compile(rf"\b({'|'.join(COLOURS)}) ({'|'.join(SHAPES)}) at ([a-d][1-4])\b")
BACKGROUND = re.compile(rf"\b({'|'.join(BACKGROUNDS)}) (?:table|background|panel)\b")
# The smallest shares for scores of 5, 4, 3 and 2.
BANDS = (1.0, 0.8, 0.6, 0.3)
STRICT_BANDS = (1.0, 0.9, 0.8, 0.5)  # of types with one right result
QUALITY_BANDS = (0.9, 0.8, 0.6, 0.4)
STRICT_TYPES = ("mathematical", "abstract")


def score_band(share: float, bands: tuple[float, ...] = BANDS) -> int:
    """Turn a share into a score from 1 to 5."""
    for index, least in enumerate(bands):
        if share >= least:
            return 5 - index
    return 1


def score_task(
    metric: str, reference: Reference, source: SceneReading, output: SceneReading | None, plan: str
) -> Score:
    """Score an IG sample. `output` is None if the model made no image."""
    expected = Operation(reference["kind"], reference["args"]).apply(source.scene)
    if metric == "reasoning_process":
        return _score_plan(plan, expected, "the right result")
    if output is None:
        return 1, "there is no image"
    if metric == "reasoning_alignment":
        return _score_plan(plan, output.scene, "the image")
    if metric == "image_quality":
        score = score_band(rate_quality(output) / 10, QUALITY_BANDS)
        return score, f"{describe_distance(output)}, {len(output.unknown)} cells unread"
    changed = source.scene.changed_cells(expected)
    if metric == "visual_consistency":
        return _score_consistency(source, output, changed)
    bands = STRICT_BANDS if reference["type"] in STRICT_TYPES else BANDS
    return _score_changes(output, expected, changed, bands)


def _score_consistency(source: SceneReading, output: SceneReading, changed: list[str]) -> Score:
    stable = [cell for cell in CELLS if cell not in changed and cell not in source.unknown]
    lost = wrong_cells(output, source.scene, stable)
    is_background_kept = output.scene.background == source.scene.background
    kept = len(stable) - len(lost) + is_background_kept
    return score_band(kept / (len(stable) + 1)), describe_losses(lost)


def _score_changes(output: SceneReading, expected: Scene, changed: list[str], bands: tuple[float, ...]) -> Score:
    wrong = wrong_cells(output, expected, changed)
    if not wrong:
        return 5, "all that had to change is right"
    share = (len(changed) - len(wrong)) / len(changed)
    return score_band(share, bands), describe_wrong_cell(output, expected, wrong[0])


def _score_plan(plan: str, scene: Scene, subject: str) -> Score:
    """Compare what a plan names with what a table has: objects in their cells, and the background if it is named."""
    named = {cell: Thing(colour, shape) for colour, shape, cell in OBJECT_AT_CELL.findall(plan)}
    if not named and "nothing" not in plan:
        return 1, "the plan names no object and its cell"
    things = scene.things()
    right = sum(things.get(cell) == thing for cell, thing in named.items())
    total = len({*named, *things})
    background = BACKGROUND.search(plan)
    if background:
        right += background.group(1) == scene.background
        total += 1
    share = right / total if total else 1.0
    return score_band(share), f"{right} of {total} that are named or there agree with {subject}"


def score_puzzle(metric: str, reference: Reference, source: SceneReading, output: SceneReading, reply: str) -> Score:
    """Score a TG sample whose answer has an image before it."""
    question = TableRequest(reference["kind"], reference["args"], {})
    if metric == "interleaved_reasoning":
        return _score_helper(source, output, answers.helper_scene(question, {"image": source.scene}))
    shown = find_shown_answer(question, source.scene, output.scene)
    answer = extract_final_answer(reply)
    agrees = is_same_answer(answer, shown)
    is_right = is_same_answer(answer, str(reference["answer"]))
    score = _score_alignment(reference["type"], agrees=agrees, is_right=is_right)
    return score, f"it says {answer[:60]!r}, its image shows {shown or 'no answer'}, {reference['answer']} is right"


def _score_alignment(problem_type: str, *, agrees: bool, is_right: bool) -> int:
    """Score an answer by whether it agrees with its own image, and whether it is right, as the problem type counts
    it."""
    if problem_type == "physical":
        if agrees:
            return 5
        return 1
    if problem_type == "logical":
        if not is_right:
            return 1
        if agrees:
            return 5
        return 2
    if is_right and agrees:
        return 5
    if is_right or agrees:
        return 2
    return 1


def _score_helper(source: SceneReading, output: SceneReading, expected: Scene) -> Score:
    """Score the image before the answer."""
    if output.scene == source.scene and expected != source.scene:
        return 1, "it is the given table again"
    wrong = wrong_cells(output, expected, CELLS)
    if not wrong and output.scene.background == expected.background:
        return 5, "it is the expected image"
    changed = source.scene.changed_cells(expected)
    share = 1.0
    if changed:
        share = sum(cell not in wrong for cell in changed) / len(changed)
    if share == 1 and len(wrong) <= 2:
        score = 4
    else:
        score = min(3, score_band(share))
    return score, f"{len(wrong)} cells are not as expected, {', '.join(wrong[:4])}"


def find_shown_answer(question: TableRequest, source: Scene, output: Scene) -> str:
    """Return the answer that an image shows, right or wrong; empty if it shows none of the options."""
    if question.kind == "then":
        return answers.name_cell_content(output, question.args["cell"])
    if question.kind == "way":
        dot = Thing(question.args["colour"], "dot")
        cells = [cell for cell, thing in output.things().items() if thing == dot and source.at(cell) != dot]
        return str(len(cells))
    covered = [cell for cell, thing in source.things().items() if thing == COVER]
    piece = str(output.at(covered[0])) if covered else ""
    for letter, thing in answers.parse_options(question.args["pieces"]).items():
        if thing == piece:
            return letter
    return ""


def is_same_answer(answer: str, expected: str) -> bool:
    return bool(expected) and score_answer(answer.strip(" ."), expected)[0] == 10
