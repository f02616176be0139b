"""A pool of one: the model is in this process."""

from weft.models.function import run_in_thread
from weft.serving.chat import ModelCard
from weft.serving.replica import Replica, ReplicaResponse, ReplicaSpec


class LocalPool:
    def __init__(self, job: ReplicaSpec) -> None:
        self._job = job
        self._replica: Replica | None = None
        self.card: ModelCard

    async def load(self) -> None:
        """A file of the user's may take long to import: that is done elsewhere than in the loop."""
        replica: Replica = await run_in_thread(Replica, self._job)
        self._replica, self.card = replica, replica.card
        await replica.load()

    @property
    def status_line(self) -> str:
        if self._replica is not None:
            return self._replica.status_line
        return ""

    async def answer(self, body: bytes) -> ReplicaResponse:
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
