"""A pool of one: the model is in this process."""

from weft.models.function import in_thread
from weft.serving.chat import Card
from weft.serving.replica import Answer, Job, Replica


class Alone:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._replica: Replica | None = None
        self.card: Card

    async def load(self) -> None:
        """A file of the user's may take long to import: that is done elsewhere than in the loop."""
        replica: Replica = await in_thread(Replica, self._job)
        self._replica, self.card = replica, replica.card
        await replica.load()

    @property
    def standing(self) -> str:
        return self._replica.standing if self._replica is not None else ""

    async def answer(self, body: bytes) -> Answer:
        assert self._replica is not None
        return await self._replica.answer(body)

    async def health(self) -> tuple[int, int]:
        try:
            if self._replica is not None:
                self._replica.check()
        except RuntimeError:
            return 0, 1
        return int(self._replica is not None), 1

    async def close(self) -> None:
        if self._replica is not None:
            await self._replica.close()
