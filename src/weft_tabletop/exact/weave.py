"""WEAVE's four questions, answered from pixels and the sidecar, in points out of ten.

    key_point            share of key points that hold in the scene read from the picture
    visual_consistency   share of cells that should not have changed, and the background, that did not
    image_quality        10 for a picture as clean as a drawing, less by its distance from one and for cells that cannot
    be read
    accuracy             10 exact, 5 partly right, 0 otherwise

What is right is relative to the pictures that the question shows: a model that edits its own wrong picture rightly is
right."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft_tabletop.exact.imug import describe_cell
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import CELLS, Scene, SceneReading, scene_from_text


def score_image(
    metric: str, turn: Mapping[str, Any], made: SceneReading, references: Sequence[SceneReading]
) -> tuple[float, str]:
    if metric == "image_quality":
        score = max(0, 10 - round(made.residual / 4) - len(made.unknown))
        return score, f"distance from a clean drawing {made.residual:.1f}, {len(made.unknown)} cells cannot be read"
    if turn["points"][0]["check"] == "done":
        base = references[0].scene
    else:
        base = None
    source = next((r.scene for r, p in zip(references, _shown(turn), strict=True) if p["check"] == "taken"), None)
    if base is None:
        due = None
    else:
        due = Operation(turn["kind"], turn["args"]).apply(base, source)
    touched: set[str] = {*turn["cells"], *(base.changed_cells(due) if base and due else ())}
    if metric == "visual_consistency":
        return _consistency(made, base, due, touched | set(references[0].unknown if references else ()))
    held = [_holds(point, made, base, due, touched) for point in turn["points"]]
    failed = [why for ok, why in held if not ok]
    return 10 * sum(ok for ok, _ in held) / len(held), "; ".join(failed) or "every key point holds"


def _shown(turn: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The key points that show a picture, in order."""
    return [point for point in turn["points"] if point["check"] != "fact"]


def _holds(
    point: Mapping[str, Any], made: SceneReading, base: Scene | None, due: Scene | None, touched: set[str]
) -> tuple[bool, str]:
    if point["check"] == "fact":
        return _fact(point, made)
    assert due is not None and base is not None
    wrong = [cell for cell in sorted(touched) if cell in made.unknown or made.scene.at(cell) != due.at(cell)]
    if due.background != base.background and made.scene.background != due.background:
        return False, f"the background is {made.scene.background}, not {due.background}"
    return (
        not wrong,
        f"at {wrong[0]} is {describe_cell(made, wrong[0])}, not {due.at(wrong[0]) or 'nothing'}" if wrong else "",
    )


def _fact(point: Mapping[str, Any], made: SceneReading) -> tuple[bool, str]:
    if "scene" in point:
        due = scene_from_text(point["scene"])
        wrong = due.changed_cells(made.scene) + list(made.unknown)
        if due.background != made.scene.background:
            return False, f"the background is {made.scene.background}, not {due.background}"
        return (
            not wrong,
            f"at {wrong[0]} is {describe_cell(made, wrong[0])}, not {due.at(wrong[0]) or 'nothing'}" if wrong else "",
        )
    if "background" in point:
        return made.scene.background == point[
            "background"
        ], f"the background is {made.scene.background}, not {point['background']}"
    for cell, thing in point["cells"].items():
        if cell in made.unknown or str(made.scene.at(cell) or "") != (thing or ""):
            return False, f"at {cell} is {describe_cell(made, cell)}, not {thing or 'nothing'}"
    return True, ""


def _consistency(made: SceneReading, base: Scene | None, due: Scene | None, touched: set[str]) -> tuple[float, str]:
    if base is None or due is None:
        return 10.0, "nothing had to stay the same"
    stay = [cell for cell in CELLS if cell not in touched]
    changed = [cell for cell in stay if cell in made.unknown or made.scene.at(cell) != base.at(cell)]
    ground = due.background == base.background
    kept = len(stay) - len(changed) + (ground and made.scene.background == base.background)
    return 10 * kept / (
        len(stay) + ground
    ) if stay or ground else 10.0, f"changed without need: {', '.join(changed) or 'no cell'}"


def score_answer(said: str, due: str) -> tuple[float, str]:
    """Exact, partly right (some of several items, or the verdict without its reason), or not."""
    mine = _normal(said)
    right = _normal(due)
    if mine == right:
        return 10, "exact"
    letters = re.fullmatch(r"[A-E]+", due.strip())
    if letters:
        if re.fullmatch(r"[A-E ,.]+", said.strip()):
            chosen = set(re.sub(r"[^A-E]", "", said))
        else:
            chosen = set[str]()
        if chosen & set(due) and not chosen - set(due):
            return (5, "some of the letters")
        return (0, f"{due} was due")
    items = set(mine.split(", "))
    wanted = set(right.split(", "))
    if items & wanted:
        return 5, f"partly: {due} was due"
    return 0, f"{due} was due"


def _normal(text: str) -> str:
    return re.sub(r"\b(a|an|the) ", "", re.sub(r"\s+", " ", text.lower())).strip(" .!")
