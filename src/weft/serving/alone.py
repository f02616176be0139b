"""A pool of one: the model is in this process."""

from weft.serving.replica import Answer, Job, Replica
from weft.serving.wire import Card


class Alone:
    def __init__(self, job: Job) -> None:
        self._replica = Replica(job)
        self.card: Card = self._replica.card

    async def load(self) -> None:
        await self._replica.load()

    @property
    def standing(self) -> str:
        return self._replica.standing

    async def answer(self, body: bytes) -> Answer:
        return await self._replica.answer(body)

    async def health(self) -> tuple[int, int]:
        try:
            self._replica.check()
        except RuntimeError:
            return 0, 1
        return 1, 1

    async def close(self) -> None:
        await self._replica.close()
