"""A test-time strategy: a composition around one Model. It acts where something is to be made; questions pass through.

What it makes again, reviews and chooses among is the whole of what was due: one picture, or for an `interleaved` reply all of its parts."""

from weft.models.compose.base import Composition
from weft.models.compose.words import Words
from weft.store.blobs import Blobs
from weft.types import Kind, Message, Model, Part, Reply, Want


class Strategy(Composition):
    roles = ("model",)

    def __init__(self, model: Model, blobs: Blobs, words: Words) -> None:
        super().__init__(model.name, {"model": model}, blobs)
        self._words = words

    async def reply(self, messages: tuple[Message, ...], want: Want) -> Reply:
        if want.kind == "text":
            return await self.ask("model", messages, want)
        return await self.make(messages, want)

    async def make(self, messages: tuple[Message, ...], want: Want) -> Reply:
        raise TypeError(f"{type(self).__name__} has no make")


def made_of(reply: Reply, kind: Kind) -> tuple[Part, ...]:
    """What counts of a reply: its picture, or all that it says and shows; nothing where it has not what was due."""
    if reply.outcome != "answered":
        return ()
    if kind == "image":
        return (reply.picture,) if reply.picture is not None else ()
    return reply.said
