"""Replies that a dry run uses in place of calls: they obey every rule, so that a row passes all steps."""

from typing import Any

import msgspec

from weft.types import Reply, Request, Text
from weft_recipes.recall_prompts import KINDS

REQUIREMENT = "Compared with <image>, the change is done and all else is the same, down to the light and the table."
REQUEST = "In Image #1, change the colour of the wooden chair on the left of the window from brown to a dark green."
CAPTION = "A {} ceramic cup with a thin golden rim stands on a plain wooden table in soft light from the left."


def fusion_reply(request: Request) -> Reply | None:
    """Return what stands in for a reply of the roles of `weave-fusion`."""
    task = _task(request)
    if task == "fusion script":
        assert request.schema is not None
        inputs = int(request.schema["properties"]["captions"]["minItems"])
        names = " and ".join(f"Image #{number}" for number in range(1, inputs + 1))
        points = [{"image": number, "requirement": REQUIREMENT} for number in range(1, inputs + 1)]
        captions = [CAPTION.format(f"number {number}") for number in range(1, inputs + 1)]
        return _reply({"captions": captions, "fusion": f"Put the main objects of {names} together.", "points": points})
    if task == "edit":
        return _reply({"instruction": REQUEST, "reverse": REQUEST, "requirement": REQUIREMENT})
    return question_reply(request)


def question_reply(request: Request) -> Reply | None:
    """Return what stands in for a question about an image."""
    if _task(request) != "question":
        return None
    return _reply({"question": "How many chairs stand at the window in Image #1?", "answer": "three of them"})


def sequence_reply(request: Request) -> Reply | None:
    """Return what stands in for a reply of the roles of `weave-sequence`."""
    if _task(request) != "sequence script":
        return question_reply(request)
    rounds = _count_rounds(request)
    character = "the wooden chair"
    written: list[dict[str, Any]] = []
    for number in range(1, rounds + 1):
        text = f"In Image #{number}, move {character} to the other side of the window, as it was in Image #1."
        written.append(
            {"kind": "change", "instruction": text, "points": [{"image": number, "requirement": REQUIREMENT}]}
        )
    caption = f"{CAPTION.format('blue')} Behind it stands {character}."
    return _reply({"character": character, "caption": caption, "rounds": written})


def recall_reply(request: Request) -> Reply | None:
    """Return what stands in for a reply of the roles of `weave-recall`."""
    if _task(request) != "recall script":
        return question_reply(request)
    rounds = _count_rounds(request)
    written: list[dict[str, Any]] = []
    for number in range(1, rounds + 1):
        kind = KINDS[number % len(KINDS)]
        text = f"In Image #{number}, change the colour of the chair beside the window to a dark green."
        points = [{"image": number, "requirement": REQUIREMENT}]
        if number == 1:
            kind = "remove"
        if number == rounds:
            kind = "restore"
            text = f"In Image #{number}, put the cup back where it was in Image #1."
            points.append({"image": 1, "requirement": REQUIREMENT})
        written.append({"kind": kind, "instruction": text, "points": points})
    return _reply({"caption": CAPTION.format("blue"), "rounds": written, "removed_in": 1, "restored_in": rounds})


def _task(request: Request) -> str:
    return request.question.metrics[0] if request.question else ""


def _count_rounds(request: Request) -> int:
    """Return how many rounds a script is to have."""
    assert request.question is not None
    (rounds,) = request.question.material["rounds"]
    assert isinstance(rounds, Text)
    return int(rounds.text)


def _reply(content: dict[str, Any]) -> Reply:
    return Reply("answered", (Text(msgspec.json.encode(content).decode()),))
