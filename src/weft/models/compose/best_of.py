"""Best of N: the model makes N candidates at once and picks one itself.

Draws differ in their number, so each candidate is a call of its own.
"""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from weft.models.compose.base import join_replies
from weft.models.compose.phrasing import Candidate, Phrasing
from weft.models.compose.strategy import Strategy, output_of
from weft.store.blobs import Blobs
from weft.types import Message, Modality, Model, Reply, Request

SAME_CANDIDATES = "all {count} candidates are the same"  # a server with a fixed seed, for example


class BestOf(Strategy):
    def __init__(self, model: Model, blobs: Blobs, phrasing: Phrasing, count: int) -> None:
        super().__init__(model, blobs, phrasing)
        self._count = count

    async def generate(self, messages: tuple[Message, ...], request: Request) -> Reply:
        replies = await self._draw_all(messages, request)
        failed = _first_failed(replies)
        if failed is not None:  # picking among fewer would be another strategy
            return join_replies(failed, _without(replies, failed))
        candidates = _distinct_candidates(replies, request.modality)
        if len(candidates) < 2:
            return self._without_pick(replies, candidates, request.modality)

        async def ask(pick_request: tuple[Message, ...]) -> Reply:
            return await self.ask("model", pick_request, replace(request, modality="text"))

        index, pick_replies = await self._phrasing.pick(ask, messages, list(candidates))
        failed_pick = _first_failed(pick_replies)
        if failed_pick is not None:
            return replace(join_replies(failed_pick, [*replies, *_without(pick_replies, failed_pick)]), parts=())
        final = list(candidates.values())[index]
        return join_replies(final, [*_without(replies, final), *pick_replies])

    async def _draw_all(self, messages: tuple[Message, ...], request: Request) -> list[Reply]:
        """Make all candidates at once. All are awaited even if one raises: each may have to be paid for."""
        draws = [
            self.ask("model", messages, replace(request, draw=request.draw + number)) for number in range(self._count)
        ]
        replies: list[Reply] = []
        raised: BaseException | None = None
        for result in await asyncio.gather(*draws, return_exceptions=True):
            if isinstance(result, BaseException):
                raised = raised or result
            else:
                replies.append(result)
        if raised is not None:
            raise raised
        return replies

    def _without_pick(self, replies: Sequence[Reply], candidates: dict[Candidate, Reply], modality: Modality) -> Reply:
        """Return the only candidate, or the first reply if none has an output."""
        final = next(iter(candidates.values()), replies[0])
        others = _without(replies, final)
        if candidates and all(output_of(reply, modality) for reply in replies):
            final = replace(
                final, reason=SAME_CANDIDATES.format(count=self._count), notes=(*final.notes, "same candidates")
            )
        return join_replies(final, others)


def _distinct_candidates(replies: Sequence[Reply], modality: Modality) -> dict[Candidate, Reply]:
    """Return the first reply of each distinct output, in the order of the outputs' last occurrences.

    The order is part of the pick's prompt, and so of its cache key.
    """
    candidates: dict[Candidate, Reply] = {}
    for reply in reversed(replies):
        output = output_of(reply, modality)
        if output:
            candidates[output] = reply
    return dict(reversed(candidates.items()))


def _first_failed(replies: Sequence[Reply]) -> Reply | None:
    return next((reply for reply in replies if reply.outcome == "failed"), None)


def _without(replies: Sequence[Reply], excluded: Reply) -> list[Reply]:
    """Return the other replies. A model may return the same object several times: it is left out once."""
    others = list(replies)
    for position, reply in enumerate(others):
        if reply is excluded:
            del others[position]
            break
    return others
