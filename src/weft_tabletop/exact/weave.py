"""WEAVE's four questions, answered from pixels and the sidecar, in points out of ten.

    key_point            the share of key points that hold in the scene read from the image
    visual_consistency   the share of cells that should not have changed, and of the background, that did not
    image_quality        10 for an image as clean as a drawing, less by its distance from one and for cells that cannot
                         be read
    accuracy             10 exact, 5 partly right, 0 otherwise

Key points are relative to the images that the question shows: a model that edits its own wrong image rightly is
right."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft_tabletop.exact.cells import (
    describe_cell,
    describe_distance,
    describe_losses,
    describe_wrong_cell,
    rate_quality,
    wrong_cells,
)
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import CELLS, Scene, SceneReading, scene_from_text

Reference = Mapping[str, Any]  # of a turn, from the sidecar
KeyPoint = Mapping[str, Any]
Score = tuple[float, str]  # points out of ten, and the reason
Decision = tuple[bool, str]  # whether a key point holds, and the reason why not


class Change(Struct, frozen=True):
    """What a request does to the image that it is about."""

    base: Scene
    expected: Scene


def score_image(metric: str, reference: Reference, output: SceneReading, shown: Sequence[SceneReading]) -> Score:
    """Score an image. `shown` are the reference images of the question, in the order of its key points."""
    if metric == "image_quality":
        return rate_quality(output), f"{describe_distance(output)}, {len(output.unknown)} cells cannot be read"
    change = _find_change(reference, shown)
    touched: set[str] = set(reference["cells"])
    if change is not None:
        touched.update(change.base.changed_cells(change.expected))
    if metric == "visual_consistency":
        if shown:
            touched.update(shown[0].unknown)
        return _score_consistency(output, change, touched)
    decisions = [_decide(point, output, change, touched) for point in reference["points"]]
    reasons = [reason for holds, reason in decisions if not holds]
    share = sum(holds for holds, _ in decisions) / len(decisions)
    return 10 * share, "; ".join(reasons) or "every key point holds"


def _find_change(reference: Reference, shown: Sequence[SceneReading]) -> Change | None:
    """What the request does to the image that the question shows first; None if it draws from words alone."""
    if reference["points"][0]["check"] != "done":
        return None
    source: Scene | None = None
    points = [point for point in reference["points"] if point["check"] != "fact"]  # those that show an image
    for reading, point in zip(shown, points, strict=True):
        if point["check"] == "taken":
            source = reading.scene
    base = shown[0].scene
    return Change(base, Operation(reference["kind"], reference["args"]).apply(base, source))


def _decide(point: KeyPoint, output: SceneReading, change: Change | None, touched: set[str]) -> Decision:
    if point["check"] == "fact":
        return _decide_fact(point, output)
    assert change is not None
    expected = change.expected
    wrong = wrong_cells(output, expected, sorted(touched))
    if expected.background != change.base.background and output.scene.background != expected.background:
        return False, _describe_background(output, expected.background)
    if wrong:
        return False, describe_wrong_cell(output, expected, wrong[0])
    return True, ""


def _decide_fact(point: KeyPoint, output: SceneReading) -> Decision:
    if "scene" in point:
        return _decide_scene(scene_from_text(point["scene"]), output)
    if "background" in point:
        is_right = output.scene.background == point["background"]
        return is_right, _describe_background(output, point["background"])
    for cell, thing in point["cells"].items():
        if cell in output.unknown or str(output.scene.at(cell) or "") != (thing or ""):
            return False, f"at {cell} is {describe_cell(output, cell)}, not {thing or 'nothing'}"
    return True, ""


def _decide_scene(expected: Scene, output: SceneReading) -> Decision:
    if expected.background != output.scene.background:
        return False, _describe_background(output, expected.background)
    wrong = [*expected.changed_cells(output.scene), *output.unknown]
    if wrong:
        return False, describe_wrong_cell(output, expected, wrong[0])
    return True, ""


def _describe_background(output: SceneReading, expected: str) -> str:
    return f"the background is {output.scene.background}, not {expected}"


def _score_consistency(output: SceneReading, change: Change | None, touched: set[str]) -> Score:
    if change is None:
        return 10.0, "nothing had to stay the same"
    base = change.base
    stable = [cell for cell in CELLS if cell not in touched]
    lost = wrong_cells(output, base, stable)
    is_background_stable = change.expected.background == base.background
    kept = len(stable) - len(lost)
    if is_background_stable:
        kept += output.scene.background == base.background
    total = len(stable) + is_background_stable
    if not total:
        return 10.0, describe_losses(lost)
    return 10 * kept / total, describe_losses(lost)


def score_answer(answer: str, expected: str) -> Score:
    """Score a text: exact, partly right (some of several items, or the verdict without its reason), or not."""
    normal_answer = _normalise(answer)
    normal_expected = _normalise(expected)
    if normal_answer == normal_expected:
        return 10, "exact"
    if re.fullmatch(r"[A-E]+", expected.strip()):
        return _score_letters(answer, expected)
    if set(normal_answer.split(", ")) & set(normal_expected.split(", ")):
        return 5, f"partly right: expected {expected}"
    return 0, f"expected {expected}"


def _score_letters(answer: str, expected: str) -> Score:
    """Half for some of several letters, if none is wrong. Letters in the middle of a sentence are no choice."""
    letters: set[str] = set()
    if re.fullmatch(r"[A-E ,.]+", answer.strip()):
        letters = set(re.findall(r"[A-E]", answer))
    if letters and letters <= set(expected):
        return 5, "some of the letters"
    return 0, f"expected {expected}"


def _normalise(text: str) -> str:
    words = re.sub(r"\s+", " ", text.lower())
    return re.sub(r"\b(a|an|the) ", "", words).strip(" .!")
