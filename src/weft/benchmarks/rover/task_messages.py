"""How a model is asked: how to answer, then `Task: ` and the task, then the pictures; what it is told if no picture
came; and which of its replies counts. Both halves do this alike."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from weft.benchmarks.follow_up import FollowUp
from weft.types import Image, Message, Reply, Text, Turn
from weft.untrusted import read_text_file

TASK = "\n\nTask: "
MOST = 2  # times that a missing picture is asked for again


@functools.cache
def read_instructions(folder: Path) -> Mapping[str, str]:
    """The texts beside a half's code, each as one line."""
    return {path.stem: " ".join(read_text_file(path).split()) for path in (folder / "rubrics").glob("*.md")}


class InsistOnImage(FollowUp):
    max_tries = 1 + MOST

    def __init__(self, folder: Path) -> None:
        """`folder` holds a half's code; `insist` is one of its texts."""
        self._folder = folder

    def next_messages(
        self, turn: Turn, messages: tuple[Message, ...], reply: Reply, tries: int
    ) -> tuple[Message, ...] | None:
        """The request with more urgency, where it brought no picture; None where it did, was refused or lost, or
        repeated often enough."""
        if turn.modality == "text" or reply.outcome in ("failed", "refused") or reply.images or tries > MOST:
            return None
        insist = f" {read_instructions(self._folder)['insist']}{TASK}"
        last = messages[-1]
        parts = [
            Text(part.text.replace(TASK, insist, 1))
            if isinstance(part, Text) and TASK in part.text and insist not in part.text
            else part
            for part in last.parts
        ]
        return (*messages[:-1], Message(last.role, tuple(parts)))

    def pick_reply(self, turn: Turn, replies: Sequence[Reply]) -> Reply:
        """The one with the picture; if there is none, the first that says or shows anything. One that was lost leaves
        the task open."""
        if replies[-1].outcome == "failed":
            return replies[-1]
        drawn = next((reply for reply in replies if reply.images), None)
        return drawn or next((reply for reply in replies if reply.text or reply.thoughts), replies[-1])


def build_task_messages(how: str, task: str, pictures: Sequence[Image]) -> tuple[Message, ...]:
    return (Message("user", (Text(f"{how}{TASK}{task}"), *pictures)),)
