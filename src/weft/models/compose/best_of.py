"""Best of N: the model makes it N times at once and picks one itself. Draws are told apart by their number, so each is
its own call."""

import asyncio

from msgspec.structs import replace

from weft.models.compose.base import join_replies
from weft.models.compose.phrasing import Phrasing
from weft.models.compose.strategy import Strategy, output_of
from weft.store.blobs import Blobs
from weft.types import Message, Model, Reply, Request

SAME = "all {count} candidates are the same"  # a server with a fixed seed draws the same again, and nothing is chosen


class BestOf(Strategy):
    def __init__(self, model: Model, blobs: Blobs, words: Phrasing, count: int) -> None:
        super().__init__(model, blobs, words)
        self._count = count

    async def generate(self, messages: tuple[Message, ...], want: Request) -> Reply:
        draws = [self.ask("model", messages, replace(want, draw=want.draw + number)) for number in range(self._count)]
        # all come back, whatever one does: each may have been paid for
        found = await asyncio.gather(*draws, return_exceptions=True)
        raised = next((one for one in found if isinstance(one, BaseException)), None)
        if raised is not None:
            raise raised
        replies = [one for one in found if not isinstance(one, BaseException)]
        failed = next((reply for reply in replies if reply.outcome == "failed"), None)
        if failed is not None:  # a pick among fewer would be another strategy
            return join_replies(failed, [reply for reply in replies if reply is not failed])
        distinct = {made: reply for reply in reversed(replies) if (made := output_of(reply, want.modality))}
        candidates = list(distinct.items())[::-1]
        if len(candidates) < 2:
            if candidates:
                final = candidates[0][1]
            else:
                final = replies[0]
            if candidates and all(output_of(reply, want.modality) for reply in replies):
                final = replace(final, reason=SAME.format(count=self._count), notes=(*final.notes, "same candidates"))
            return join_replies(final, [reply for reply in replies if reply is not final])

        async def ask(asked: tuple[Message, ...]) -> Reply:
            return await self.ask("model", asked, replace(want, modality="text"))

        chosen, said = await self._words.pick(ask, messages, [made for made, _ in candidates])
        broken = next((reply for reply in said if reply.outcome == "failed"), None)
        if broken is not None:
            return replace(join_replies(broken, list(replies)), parts=())
        final = candidates[chosen][1]
        return join_replies(final, [*(reply for reply in replies if reply is not final), *said])
