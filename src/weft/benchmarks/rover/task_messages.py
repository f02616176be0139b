"""The messages of a task: how to answer, then `Task: ` and the task, then the images.

If no image comes back, the task is repeated more urgently. ROVER-IG and ROVER-TG both do this.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from weft.benchmarks.follow_up import FollowUp
from weft.types import Image, Message, Part, Reply, Text, Turn
from weft.untrusted import read_text_file

TASK_MARKER = "\n\nTask: "
MAX_REPEATS = 2  # of a request that brought no image


@functools.cache
def read_instructions(folder: Path) -> Mapping[str, str]:
    """Return the texts under `rubrics` in a folder by their names, each as one line."""
    texts: dict[str, str] = {}
    for path in (folder / "rubrics").glob("*.md"):
        texts[path.stem] = " ".join(read_text_file(path).split())
    return texts


def build_task_messages(instruction: str, task: str, images: Sequence[Image]) -> tuple[Message, ...]:
    return (Message("user", (Text(f"{instruction}{TASK_MARKER}{task}"), *images)),)


class InsistOnImage(FollowUp):
    """Repeats a request that brought no image."""

    max_tries = 1 + MAX_REPEATS

    def __init__(self, folder: Path) -> None:
        """`folder` has a text called `insist` under `rubrics`."""
        self._folder = folder

    def next_messages(
        self, turn: Turn, messages: tuple[Message, ...], reply: Reply, tries: int
    ) -> tuple[Message, ...] | None:
        """Return the request with more urgency if it brought no image.

        Returns None if it did, if it was refused or failed, or if it was repeated often enough.
        """
        if turn.modality == "text" or reply.outcome in ("failed", "refused") or reply.images or tries > MAX_REPEATS:
            return None
        insistence = f" {read_instructions(self._folder)['insist']}{TASK_MARKER}"
        last = messages[-1]
        parts: list[Part] = []
        for part in last.parts:
            if isinstance(part, Text) and TASK_MARKER in part.text and insistence not in part.text:
                parts.append(Text(part.text.replace(TASK_MARKER, insistence, 1)))
            else:
                parts.append(part)
        return (*messages[:-1], Message(last.role, tuple(parts)))

    def pick_reply(self, turn: Turn, replies: Sequence[Reply]) -> Reply:
        """Return the reply with an image; without one, the first with any text. A failed call leaves the task open."""
        if replies[-1].outcome == "failed":
            return replies[-1]
        for reply in replies:
            if reply.images:
                return reply
        for reply in replies:
            if reply.text or reply.thoughts:
                return reply
        return replies[-1]
