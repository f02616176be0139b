"""Best of N: the model makes it N times at once and picks one itself. Draws are told apart by their number, so each is its own call."""

import asyncio

from msgspec.structs import replace

from weft.models.compose.base import joined
from weft.models.compose.strategy import Strategy, made_of
from weft.models.compose.words import Words
from weft.store.blobs import Blobs
from weft.types import Message, Model, Reply, Want

SAME = "all {count} candidates are the same"  # a server with a fixed seed draws the same again, and nothing is chosen


class BestOf(Strategy):
    def __init__(self, model: Model, blobs: Blobs, words: Words, count: int) -> None:
        super().__init__(model, blobs, words)
        self._count = count

    async def make(self, messages: tuple[Message, ...], want: Want) -> Reply:
        draws = [self.ask("model", messages, replace(want, draw=want.draw + number)) for number in range(self._count)]
        found = await asyncio.gather(*draws, return_exceptions=True)  # all come back, whatever one does: each may have been paid for
        raised = next((one for one in found if isinstance(one, BaseException)), None)
        if raised is not None:
            raise raised
        replies = [one for one in found if not isinstance(one, BaseException)]
        failed = next((reply for reply in replies if reply.outcome == "failed"), None)
        if failed is not None:  # a pick among fewer would be another strategy
            return joined(failed, [reply for reply in replies if reply is not failed])
        distinct = {made: reply for reply in reversed(replies) if (made := made_of(reply, want.kind))}
        candidates = list(distinct.items())[::-1]
        if len(candidates) < 2:
            final = candidates[0][1] if candidates else replies[0]
            if candidates and all(made_of(reply, want.kind) for reply in replies):
                final = replace(final, reason=SAME.format(count=self._count), notes=(*final.notes, "same candidates"))
            return joined(final, [reply for reply in replies if reply is not final])

        async def ask(asked: tuple[Message, ...]) -> Reply:
            return await self.ask("model", asked, replace(want, kind="text"))

        chosen, said = await self._words.pick(ask, messages, [made for made, _ in candidates])
        broken = next((reply for reply in said if reply.outcome == "failed"), None)
        if broken is not None:
            return replace(joined(broken, list(replies)), parts=())
        final = candidates[chosen][1]
        return joined(final, [*(reply for reply in replies if reply is not final), *said])
