"""What all strategies share: asking the inner model in a shape it can take, and one reply for all the calls behind it."""

from collections.abc import Sequence

from msgspec.structs import replace

from weft.errors import PictureError
from weft.fit import fitted
from weft.store.blobs import Blobs
from weft.strategies.words import Words
from weft.types import Message, Model, Reply, Takes, Usage, Want


class Strategy:
    def __init__(self, model: Model, blobs: Blobs, words: Words) -> None:
        self.name, self.takes = model.name, Takes()  # it is given everything; the inner model's fit comes after its own additions
        self._model, self._blobs, self._words = model, blobs, words

    async def reply(self, messages: tuple[Message, ...], want: Want) -> Reply:
        if want.kind == "text":
            return await self.ask(messages, want)
        return await self.draw(messages, want)

    async def draw(self, messages: tuple[Message, ...], want: Want) -> Reply:
        return await self.ask(messages, want)

    async def ask(self, messages: tuple[Message, ...], want: Want) -> Reply:
        try:
            messages = await fitted(messages, self._model.takes, self._blobs)
        except PictureError as error:
            return Reply("failed", reason=f"what the model is to see cannot be made: {error}")
        return await self._model.reply(messages, want)


def joined(final: Reply, behind: Sequence[Reply]) -> Reply:
    """The final reply, with the keys and the usage of everything behind it."""
    replies = [*behind, final]
    costs = [reply.usage.cost for reply in replies]
    usage = Usage(
        sum(reply.usage.tokens_in for reply in replies),
        sum(reply.usage.tokens_out for reply in replies),
        None if None in costs else sum(cost for cost in costs if cost is not None),
    )
    return replace(final, usage=usage, keys=tuple(dict.fromkeys(key for reply in replies for key in reply.keys)))
