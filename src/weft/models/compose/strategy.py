"""A test-time strategy: a composition around one Model. It acts where something is to be made; questions pass through.

What it makes again, reviews and chooses among is the whole of what was due: one picture, or for an `interleaved` reply
all of its parts."""

from weft.models.compose.base import Composition
from weft.models.compose.phrasing import Phrasing
from weft.store.blobs import Blobs
from weft.types import Message, Modality, Model, Part, Reply, Request


class Strategy(Composition):
    roles = ("model",)

    def __init__(self, model: Model, blobs: Blobs, words: Phrasing) -> None:
        super().__init__(model.name, {"model": model}, blobs)
        self._words = words

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        if want.modality == "text":
            return await self.ask("model", messages, want)
        return await self.generate(messages, want)

    async def generate(self, messages: tuple[Message, ...], want: Request) -> Reply:
        raise TypeError(f"{type(self).__name__} has no make")


def output_of(reply: Reply, kind: Modality) -> tuple[Part, ...]:
    """What counts of a reply: its picture, or all that it says and shows; nothing where it has not what was due."""
    if reply.outcome != "answered":
        return ()
    if kind == "image":
        if reply.last_image is not None:
            return (reply.last_image,)
        return ()
    return reply.output
