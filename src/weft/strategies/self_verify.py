"""Self-verification: the model reviews its own picture and redraws it after its objection, at most so often. The last picture counts."""

from msgspec.structs import replace

from weft.numbering import own_picture
from weft.store.blobs import Blobs
from weft.strategies.base import Strategy, joined
from weft.strategies.words import Words
from weft.types import Message, Model, Reply, Want


class SelfVerify(Strategy):
    def __init__(self, model: Model, blobs: Blobs, words: Words, most: int) -> None:
        super().__init__(model, blobs, words)
        self._most = most

    async def draw(self, messages: tuple[Message, ...], want: Want) -> Reply:
        best = await self.ask(messages, want)
        behind: list[Reply] = []
        for number in range(1, self._most + 1):
            made = own_picture(best)
            asked = self._words.review(messages, made) if made is not None else None
            if asked is None or made is None:
                break
            review = await self.ask(asked, replace(want, kind="text"))
            behind.append(review)
            if review.outcome == "failed":
                return replace(joined(review, [best, *behind[:-1]]), parts=())
            if not review.text or self._words.is_fine(review.text):  # no objection, or none that could be followed
                break
            again = await self.ask(self._words.redraw(messages, made, review.text), replace(want, draw=want.draw + number))
            if again.outcome == "failed":
                return joined(again, [best, *behind])
            if own_picture(again) is None:  # it would not draw again: the picture it had stands
                behind.append(again)
                break
            behind.append(best)
            best = again
        return joined(best, behind)
