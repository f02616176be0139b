"""Self-verification: the model reviews what it made and makes it again after its objection, at most so often. The last one counts."""

from msgspec.structs import replace

from weft.models.compose.base import joined
from weft.models.compose.strategy import Strategy, made_of
from weft.models.compose.words import Words
from weft.store.blobs import Blobs
from weft.types import Message, Model, Reply, Want


class SelfVerify(Strategy):
    def __init__(self, model: Model, blobs: Blobs, words: Words, most: int) -> None:
        super().__init__(model, blobs, words)
        self._most = most

    async def make(self, messages: tuple[Message, ...], want: Want) -> Reply:
        best = await self.ask("model", messages, want)
        behind: list[Reply] = []
        for number in range(1, self._most + 1):
            made = made_of(best, want.kind)
            asked = self._words.review(messages, made) if made else None
            if asked is None:
                break
            review = await self.ask("model", asked, replace(want, kind="text"))
            behind.append(review)
            if review.outcome == "failed":
                return replace(joined(review, [best, *behind[:-1]]), parts=())
            if not review.text or self._words.is_fine(review.text):  # no objection, or none that could be followed
                break
            again = await self.ask("model", self._words.redraw(messages, made, review.text), replace(want, draw=want.draw + number))
            if again.outcome == "failed":
                return joined(again, [best, *behind])
            if not made_of(again, want.kind):  # it would not make it again: what it had stands
                behind.append(again)
                break
            behind.append(best)
            best = again
        return joined(best, behind)
