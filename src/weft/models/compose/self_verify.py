"""Self-verification: the model reviews what it made and makes it again after its objection, at most so often. The last
one counts."""

from msgspec.structs import replace

from weft.models.compose.base import join_replies
from weft.models.compose.phrasing import Phrasing
from weft.models.compose.strategy import Strategy, output_of
from weft.store.blobs import Blobs
from weft.types import Message, Model, Reply, Request


class SelfVerify(Strategy):
    def __init__(self, model: Model, blobs: Blobs, words: Phrasing, most: int) -> None:
        super().__init__(model, blobs, words)
        self._most = most

    async def generate(self, messages: tuple[Message, ...], want: Request) -> Reply:
        best = await self.ask("model", messages, want)
        behind: list[Reply] = []
        for number in range(1, self._most + 1):
            made = output_of(best, want.modality)
            if made:
                asked = self._words.review_request(messages, made)
            else:
                asked = None
            if asked is None:
                break
            review = await self.ask("model", asked, replace(want, modality="text"))
            behind.append(review)
            if review.outcome == "failed":
                return replace(join_replies(review, [best, *behind[:-1]]), parts=())
            if not review.text or self._words.is_approval(review.text):  # no objection, or none that could be followed
                break
            again = await self.ask(
                "model", self._words.redraw_request(messages, made, review.text), replace(want, draw=want.draw + number)
            )
            if again.outcome == "failed":
                return join_replies(again, [best, *behind])
            if not output_of(again, want.modality):  # it would not make it again: what it had stands
                behind.append(again)
                break
            behind.append(best)
            best = again
        return join_replies(best, behind)
