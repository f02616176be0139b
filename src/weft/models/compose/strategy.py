"""A test-time strategy: a composition around one model. It acts on requests for images; text requests pass through.

What it repeats, reviews and chooses among is the whole expected output: one image, or all parts of an `interleaved`
reply.
"""

from weft.models.compose.base import Composition
from weft.models.compose.phrasing import Phrasing
from weft.store.blobs import Blobs
from weft.types import Message, Modality, Model, Part, Reply, Request


class Strategy(Composition):
    """The base class: implement `generate`."""

    roles = ("model",)

    def __init__(self, model: Model, blobs: Blobs, phrasing: Phrasing) -> None:
        super().__init__(model.name, {"model": model}, blobs)
        self._phrasing = phrasing

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        if request.modality == "text":
            return await self.ask("model", messages, request)
        return await self.generate(messages, request)

    async def generate(self, messages: tuple[Message, ...], request: Request) -> Reply:
        """Answer a request for an image or an interleaved output."""
        raise TypeError(f"{type(self).__name__} has no generate")


def output_of(reply: Reply, modality: Modality) -> tuple[Part, ...]:
    """Return what counts of a reply: its image, or all of its output; nothing if it is no answer."""
    if reply.outcome != "answered":
        return ()
    if modality != "image":
        return reply.output
    if reply.last_image is None:
        return ()
    return (reply.last_image,)
