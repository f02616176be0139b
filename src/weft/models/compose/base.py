"""Models made of models.

A composition has roles, each played by a Model with its own limits, cache and price. Its reply carries the cache keys
and the usage of all calls behind it, so that plans, reviews and candidates are in the journal and in the cost.

    class Cascade(Composition):
        roles = ("reasoner", "painter")

        async def reply(self, messages, request):
            plan = await self.ask("reasoner", messages, replace(request, modality="text"))
            return join_replies(await self.ask("painter", ..., request), [plan])

On the command line it is NAME:role=MODEL,role=MODEL; the user's own class is file.py:Name:role=MODEL,...
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from weft.errors import ImageError, MessagesError
from weft.models.adapt import adapt_messages_async
from weft.models.compose.phrasing import Phrasing
from weft.models.message_checks import check_roles
from weft.store.blobs import Blobs
from weft.types import Message, Model, Reply, Request, Takes, Usage

TRIES_NOTE = "tries made: {count}"  # for a reply that a protocol asked for more than once


class Composition:
    """The base class: name the roles, and implement `reply` with `ask` and `join_replies`."""

    roles: tuple[str, ...] = ()
    version: str = "1"  # part of the manifest: change it when the composition asks differently
    dry_run_note: str = ""  # how a dry run counts its calls
    phrasings: Mapping[str, Phrasing] = {}  # by role: how models that do not read English are asked
    takes = Takes()  # everything: messages are adapted for each model when that is asked

    def __init__(self, name: str, models: Mapping[str, Model], blobs: Blobs) -> None:
        """`models` are by role."""
        self.name = name
        self.models = models
        self.blobs = blobs

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        raise TypeError(f"{type(self).__name__} has no reply")

    async def ask(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply:
        """Ask the model of a role, with messages adapted to what it takes. Raises MessagesError for an unknown role."""
        if role not in self.models:
            raise MessagesError(f"{type(self).__name__} asks the role {role!r}; its roles are {', '.join(self.models)}")
        return await ask_model(self.models[role], messages, request, self.blobs)


async def ask_model(model: Model, messages: tuple[Message, ...], request: Request, blobs: Blobs) -> Reply:
    """Ask a model, with messages adapted to what it takes; an image that cannot be adapted is a failed reply.

    Raises MessagesError for a message whose role no model knows.
    """
    check_roles(messages, "a composition asks with")
    try:
        messages = await adapt_messages_async(messages, model.takes.for_modality(request.modality), blobs)
    except ImageError as error:
        return Reply("failed", reason=f"the model's input cannot be prepared: {error}")
    return await model.reply(messages, request)


def join_replies(final: Reply, behind: Sequence[Reply]) -> Reply:
    """Return the final reply with the cache keys and the usage of all replies behind it added."""
    tokens_in = 0
    tokens_out = 0
    images = 0
    cost: float | None = 0
    keys: dict[str, None] = {}
    for reply in (*behind, final):
        tokens_in += reply.usage.tokens_in
        tokens_out += reply.usage.tokens_out
        images += reply.usage.images
        if cost is None or reply.usage.cost is None:
            cost = None
        else:
            cost += reply.usage.cost
        keys |= dict.fromkeys(reply.keys)
    return replace(final, usage=Usage(tokens_in, tokens_out, cost, images), keys=tuple(keys))
