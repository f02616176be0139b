"""How a model is asked: how to answer, then `Task: ` and the task, then the pictures; what it is told if no picture came; and which of its
replies counts. Both halves do this alike."""

import functools
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path

from weft.benchmarks.base import Benchmark
from weft.benchmarks.rover.outputs import Outputs
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.types import Image, Message, Reply, Text, Turn
from weft.untrusted import text_file

TASK = "\n\nTask: "
MOST = 2  # times that a missing picture is asked for again


class RoverHalf(Benchmark):
    most_tries = 1 + MOST
    full, digits = 100.0, 1

    @property
    def instructions(self) -> Mapping[str, str]:
        """The texts beside a half's code, each as one line."""
        return _texts(Path(inspect.getfile(type(self))).parent)

    def again(self, turn: Turn, messages: tuple[Message, ...], reply: Reply, tries: int) -> tuple[Message, ...] | None:
        """The request with more urgency, where it brought no picture; None where it did, was refused or lost, or repeated often enough."""
        if turn.want == "text" or reply.outcome in ("failed", "refused") or reply.images or tries > MOST:
            return None
        insist = f" {self.instructions['insist']}{TASK}"
        last = messages[-1]
        parts = [
            Text(part.text.replace(TASK, insist, 1)) if isinstance(part, Text) and TASK in part.text and insist not in part.text else part
            for part in last.parts
        ]
        return (*messages[:-1], Message(last.role, tuple(parts)))

    def counts(self, turn: Turn, replies: Sequence[Reply]) -> Reply:
        """The one with the picture; if there is none, the first that says or shows anything. One that was lost leaves the task open."""
        if replies[-1].outcome == "failed":
            return replies[-1]
        drawn = next((reply for reply in replies if reply.images), None)
        return drawn or next((reply for reply in replies if reply.text or reply.thoughts), replies[-1])

    def outputs(self, folder: Path, blobs: Blobs) -> Endpoint:
        return Outputs(folder, blobs)


@functools.cache
def _texts(folder: Path) -> Mapping[str, str]:
    return {path.stem: " ".join(text_file(path).split()) for path in (folder / "rubrics").glob("*.md")}


def request(how: str, task: str, pictures: Sequence[Image]) -> tuple[Message, ...]:
    return (Message("user", (Text(f"{how}{TASK}{task}"), *pictures)),)
