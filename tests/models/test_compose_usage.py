"""What the calls behind one reply cost is counted once each, whichever of them failed; and a role must be known."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from weft.errors import MessagesError
from weft.models.compose.base import Composition
from weft.models.compose.best_of import BestOf
from weft.models.compose.phrasing import English
from weft.store.blobs import Blobs
from weft.types import Message, Outcome, Reply, Request, Takes, Text, Usage

ASKED = (Message("user", (Text("draw"),)),)


class Counting:
    """A model whose reply number n has the cache key n and cost 2 ** n, so that a sum says which were counted."""

    name = "counting"
    takes = Takes()

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = outcomes
        self.count = 0

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        number = self.count
        self.count += 1
        usage = Usage(2**number, 2**number, float(2**number), images=2**number)
        return Reply(self.outcomes[number], (Text(f"answer {number}"),), usage=usage, keys=(str(number),))


class PicksTwice(English):
    """Asks twice which candidate is the best."""

    async def pick(self, ask: Any, messages: tuple[Message, ...], candidates: Sequence[Any]) -> tuple[int, list[Reply]]:
        return 0, [await ask(messages), await ask(messages)]


@pytest.mark.parametrize(
    "outcomes",
    [
        ("answered",) * 4,
        ("answered", "answered", "failed", "answered"),
        ("answered", "answered", "answered", "failed"),
        ("answered", "failed"),
    ],
)
def test_best_of_counts_every_call_once(outcomes: tuple[Outcome, ...], tmp_path: Path):
    model: Any = Counting(*outcomes)
    reply = asyncio.run(BestOf(model, Blobs(tmp_path), PicksTwice(), 2).reply(ASKED, Request("interleaved")))
    total = 2**model.count - 1
    assert model.count == len(outcomes) and set(reply.keys) == {str(number) for number in range(model.count)}
    assert reply.usage == Usage(total, total, float(total), total)


def test_a_role_that_a_composition_does_not_have_is_named(tmp_path: Path):
    class Wrong(Composition):
        roles = ("mind",)

        async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
            return await self.ask("brain", messages, request)

    model: Any = Counting("answered")
    with pytest.raises(MessagesError, match="Wrong asks the role 'brain'; its roles are mind"):
        asyncio.run(Wrong("wrong", {"mind": model}, Blobs(tmp_path)).reply(ASKED, Request("text")))
