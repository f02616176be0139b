"""A recipe's questions, answered from pixels: whether an image is what its order says, whether a script's rounds fit
together, whether an answer is right. The question holds all that it is about.

Each wrong cell costs four points of ten, so that one is enough to reject an image at seven."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from weft.models.endpoint import NO_RETRY, CallError
from weft.types import Image, Question, Text
from weft_tabletop.exact.cells import describe_cell, rate_quality, wrong_cells
from weft_tabletop.exact.weave import score_answer
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, parse
from weft_tabletop.world.scenes import CELLS, Scene, SceneReading

BENCHMARK = "build"
COST_OF_CELL = 4  # points of ten
Answer = dict[str, Any]
Read = Callable[[Image], SceneReading]


def answer(question: Question, read: Read) -> Answer:
    """Return the answer in the question's schema. Raises CallError for a question that it does not know."""
    task = question.metrics[0]
    if task == "check image":
        return _check_image(question, read)
    if task == "check script":
        return check_script(_text(question, "script"))
    if task == "check answer":
        return _check_answer(question, read)
    raise CallError(f"tabletop/exact does not know the task {task!r} of a recipe", NO_RETRY)


def expected_scene(request: TableRequest, shown: Mapping[int, Scene]) -> Scene:
    """Return the scene that a request asks for, of images by their numbers. Raises KeyError if one is not shown."""
    scenes = {slot: shown[int(name.removeprefix("Image #"))] for slot, name in request.images.items()}
    return request.operation.apply(scenes.get("image", Scene("white")), scenes.get("source"))


def _check_image(question: Question, read: Read) -> Answer:
    request = parse(_text(question, "request"))
    if request is None:
        raise CallError(f"tabletop/exact does not understand the order: {_text(question, 'request')}", NO_RETRY)
    shown = [part for part in question.material.get("shown", ()) if isinstance(part, Image)]
    made = read(_image(question, "output"))
    readings = {number: read(image) for number, image in enumerate(shown, start=1)}
    expected = expected_scene(request, {number: reading.scene for number, reading in readings.items()})
    base = Scene(expected.background)
    if "image" in request.images:
        base = readings[int(request.images["image"].removeprefix("Image #"))].scene
    touched = base.changed_cells(expected)
    lost = wrong_cells(made, expected, touched)
    changed = wrong_cells(made, expected, [cell for cell in CELLS if cell not in touched])
    is_background_wrong = made.scene.background != expected.background
    is_background_asked = not shown or base.background != expected.background
    wrong_asked = len(lost) + (is_background_wrong and is_background_asked)
    wrong_kept = len(changed) + (is_background_wrong and not is_background_asked)
    scores = {"asked_score": wrong_asked, "kept_score": wrong_kept}
    if "kept_score" not in question.schema["properties"]:
        scores = {"asked_score": wrong_asked + wrong_kept}
    reasons = [f"at {cell} is {describe_cell(made, cell)}, not {expected.at(cell) or 'nothing'}" for cell in lost]
    reasons += [f"{cell} changed" for cell in changed]
    if is_background_wrong:
        reasons.append(f"the background is {made.scene.background}, not {expected.background}")
    answer: Answer = {"reasoning": "; ".join(reasons) or "as ordered"}
    for name, wrong in scores.items():
        answer[name] = max(0, 10 - COST_OF_CELL * wrong)
    return {**answer, "clean_score": rate_quality(made)}


def check_script(text: str) -> Answer:
    """Go through the rounds of a script: each must change something. What a recall script removes must come back; the
    character of a sequence must be in its first image."""
    script = cast(dict[str, Any], msgspec.json.decode(text))
    first = parse(script["caption"])
    problem = "the caption is not understood"
    if first is not None:
        problem = _find_problem(script, expected_scene(first, {}))
    return {"reasoning": problem or "every round fits", "asked_score": 0 if problem else 10}


def _find_problem(script: Mapping[str, Any], start: Scene) -> str:
    scenes = {1: start}
    requests: list[TableRequest] = []
    for number, one in enumerate(script["rounds"], start=1):
        request = parse(one["instruction"])
        if request is None:
            return f"round {number} is not understood"
        try:
            scene = expected_scene(request, scenes)
        except KeyError:
            return f"round {number} is about an image that is not there"
        base = scenes[int(request.images["image"].removeprefix("Image #"))]
        if scene == base:
            return f"round {number} changes nothing"
        requests.append(request)
        scenes[number + 1] = scene
    if "character" in script:
        is_there = str(script["character"]) in map(str, start.things().values())
        return "" if is_there else "the character is not in the first image"
    removed = requests[int(script["removed_in"]) - 1]
    cell = removed.args.get("cell", "")
    last = scenes[int(script["restored_in"]) + 1]
    if removed.kind != "remove" or last.at(cell) != start.at(cell):
        return "what was removed is not brought back"
    return ""


def _check_answer(question: Question, read: Read) -> Answer:
    request = parse(_text(question, "question"))
    if request is None:
        return {"reasoning": "the question is not understood", "asked_score": 0}
    scene = read(_image(question, "image")).scene
    expected = answers.answer(request, dict.fromkeys(request.images, scene))
    score, reason = score_answer(_text(question, "answer"), expected)
    return {"reasoning": reason, "asked_score": round(score)}


def _text(question: Question, name: str) -> str:
    return "".join(part.text for part in question.material.get(name, ()) if isinstance(part, Text))


def _image(question: Question, name: str) -> Image:
    for part in question.material.get(name, ()):
        if isinstance(part, Image):
            return part
    raise CallError(f"the question has no image {name!r}", NO_RETRY)
