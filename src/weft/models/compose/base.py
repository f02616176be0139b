"""Models made of Models. A composition has roles, each played by a Model with limits, memo and price of its own; what
it replies carries the keys and the usage of all the calls behind it, so that plans, reviews and candidates are in the
journal and in the cost.

    class Cascade(Composition):
        roles = ("reasoner", "painter")

        async def reply(self, messages, want):
            plan = await self.ask("reasoner", messages, replace(want, kind="text"))
            return joined(await self.ask("painter", ..., want), [plan])

On the command line it is NAME:role=MODEL,role=MODEL; a class of one's own is file.py:Name:role=MODEL,..."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from weft.errors import ImageError
from weft.models.adapt import adapt_messages_async
from weft.models.compose.phrasing import Phrasing
from weft.store.blobs import Blobs
from weft.types import Message, Model, Reply, Request, Takes, Usage

TRIES_NOTE = "tries made: {count}"  # for a reply that a protocol asked for more than once


class Composition:
    roles: tuple[str, ...] = ()  # who plays in it
    version: str = "1"  # goes into the manifest: change it with what the composition asks
    dry_run_note: str = ""  # what a dry run must say of how its calls are counted
    # how those of its parts are spoken to, by role, that have a language of their own
    phrasings: Mapping[str, Phrasing] = {}
    takes = Takes()  # it is given everything; the fit of each part comes after its own additions

    def __init__(self, name: str, models: Mapping[str, Model], blobs: Blobs) -> None:
        self.name = name
        self.parts = models
        self.blobs = blobs

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        raise TypeError(f"{type(self).__name__} has no reply")

    async def ask(self, role: str, messages: tuple[Message, ...], want: Request) -> Reply:
        """One of its parts, in a shape that it can take."""
        return await ask_model(self.parts[role], messages, want, self.blobs)


async def ask_model(model: Model, messages: tuple[Message, ...], want: Request, blobs: Blobs) -> Reply:
    try:
        messages = await adapt_messages_async(messages, model.takes.for_modality(want.modality), blobs)
    except ImageError as error:
        return Reply("failed", reason=f"what the model is to see cannot be made: {error}")
    return await model.reply(messages, want)


def join_replies(final: Reply, behind: Sequence[Reply]) -> Reply:
    """The final reply, with the keys and the usage of everything behind it."""
    replies = [*behind, final]
    costs = [reply.usage.cost for reply in replies]
    usage = Usage(
        sum(reply.usage.tokens_in for reply in replies),
        sum(reply.usage.tokens_out for reply in replies),
        None if None in costs else sum(cost for cost in costs if cost is not None),
    )
    return replace(final, usage=usage, keys=tuple(dict.fromkeys(key for reply in replies for key in reply.keys)))
