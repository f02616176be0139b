"""Whether a built dialogue is wholly right: every turn's reference image is exactly what the turn asks for, and every
answer is the right one."""

from weft.building.draft import Attempt, Draft, DraftTurn
from weft.store.blobs import Blobs
from weft_tabletop.exact.building import expected_scene
from weft_tabletop.exact.cells import is_expected_image, rate_quality
from weft_tabletop.world import answers
from weft_tabletop.world.language import parse
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import Scene, SceneReading

CLEAN = 7  # of ten points, below which an image counts as out of focus


def find_faults(draft: Draft, blobs: Blobs) -> list[str]:
    """Return what is wrong with a dialogue, one line for each turn that is not right."""
    faults: list[str] = []
    readings = {number: read_image(image, blobs) for number, image in enumerate(draft.images, start=1)}
    for number, turn in enumerate(draft.turns, start=1):
        fault = _find_fault(turn, readings)
        if fault:
            faults.append(f"turn {number}: {fault}")
    return faults


def is_right_attempt(attempt: Attempt, blobs: Blobs) -> bool:
    """Return whether an attempt's image is exactly what was ordered."""
    if attempt.image is None:
        return False
    request = parse(attempt.prompt)
    if request is None:
        return False
    shown = {number: read_image(image, blobs).scene for number, image in enumerate(attempt.shown, start=1)}
    return _is_right(read_image(attempt.image, blobs), expected_scene(request, shown))


def _find_fault(turn: DraftTurn, readings: dict[int, SceneReading]) -> str:
    request = parse(turn.text)
    if request is None:
        return "it is not understood"
    scenes = {number: reading.scene for number, reading in readings.items()}
    if turn.makes is None:
        shown = {slot: scenes[int(name.removeprefix("Image #"))] for slot, name in request.images.items()}
        return "" if answers.answer(request, shown) == turn.answer else "the answer is wrong"
    if not _is_right(readings[turn.makes], expected_scene(request, scenes)):
        return "the image is not what is asked for"
    return ""


def _is_right(reading: SceneReading, expected: Scene) -> bool:
    return is_expected_image(reading, expected) and rate_quality(reading) >= CLEAN
