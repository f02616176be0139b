"""Self-verification: the model reviews its output and makes it again after its own objection; the last output
counts."""

from msgspec.structs import replace

from weft.models.compose.base import join_replies
from weft.models.compose.phrasing import Phrasing
from weft.models.compose.strategy import Strategy, output_of
from weft.store.blobs import Blobs
from weft.types import Message, Model, Reply, Request


class SelfVerify(Strategy):
    """Reviews and repeats at most `max_rounds` times."""

    def __init__(self, model: Model, blobs: Blobs, phrasing: Phrasing, max_rounds: int) -> None:
        super().__init__(model, blobs, phrasing)
        self._max_rounds = max_rounds

    async def generate(self, messages: tuple[Message, ...], request: Request) -> Reply:
        best = await self.ask("model", messages, request)
        behind: list[Reply] = []
        for number in range(1, self._max_rounds + 1):
            output = output_of(best, request.modality)
            if not output:
                break
            review_request = self._phrasing.review_request(messages, output)
            if review_request is None:
                break
            review = await self.ask("model", review_request, replace(request, modality="text"))
            if review.outcome == "failed":
                return replace(join_replies(review, [best, *behind]), parts=())
            behind.append(review)
            if not review.text or self._phrasing.is_approval(review.text):  # no objection that could be followed
                break
            redraw_request = self._phrasing.redraw_request(messages, output, review.text)
            repeated = await self.ask("model", redraw_request, replace(request, draw=request.draw + number))
            if repeated.outcome == "failed":
                return join_replies(repeated, [best, *behind])
            if not output_of(repeated, request.modality):  # it made nothing: the previous output stands
                behind.append(repeated)
                break
            behind.append(best)
            best = repeated
        return join_replies(best, behind)
