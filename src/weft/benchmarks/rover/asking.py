"""How a model is asked: how to answer, then `Task: ` and the task, then the pictures; and what it is told if no picture came."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from weft.outside import text_file
from weft.types import Image, Message, Reply, Text

TASK = "\n\nTask: "
MOST = 2  # times that a missing picture is asked for again


@functools.cache
def instructions(code: str) -> Mapping[str, str]:
    """The texts beside a half's code, each as one line."""
    return {path.stem: " ".join(text_file(path).split()) for path in (Path(code).parent / "rubrics").glob("*.md")}


def request(how: str, task: str, pictures: Sequence[Image]) -> tuple[Message, ...]:
    return (Message("user", (Text(f"{how}{TASK}{task}"), *pictures)),)


def again(code: str, messages: tuple[Message, ...], reply: Reply, tries: int) -> tuple[Message, ...] | None:
    """The request with more urgency, where it brought no picture; None where it did, was refused or lost, or was repeated often enough."""
    if reply.outcome in ("failed", "refused") or reply.images or tries > MOST:
        return None
    insist = f" {instructions(code)['insist']}{TASK}"
    last = messages[-1]
    parts = [
        Text(part.text.replace(TASK, insist, 1)) if isinstance(part, Text) and TASK in part.text and insist not in part.text else part
        for part in last.parts
    ]
    return (*messages[:-1], Message(last.role, tuple(parts)))


def counts(replies: Sequence[Reply]) -> Reply:
    """Of a request and its repetitions: the one with the picture; if there is none, the first that says or shows anything. One that was
    lost leaves the task open."""
    if replies[-1].outcome == "failed":
        return replies[-1]
    drawn = next((reply for reply in replies if reply.images), None)
    return drawn or next((reply for reply in replies if reply.text or reply.thoughts), replies[-1])
