"""A pool of one replica: the model is in this process."""

from weft.models.function import run_in_thread
from weft.models.providers.served_card import ModelCard
from weft.serving.replica import Replica, ReplicaResponse, ReplicaSpec


class LocalPool:
    card: ModelCard  # set by `load`

    def __init__(self, spec: ReplicaSpec) -> None:
        self._spec = spec
        self._replica: Replica | None = None

    async def load(self) -> None:
        """Build the replica in a thread, since a user's file may take long to import; then load its weights."""
        replica: Replica = await run_in_thread(Replica, self._spec)
        self._replica = replica
        self.card = replica.card
        await replica.load()

    @property
    def status_line(self) -> str:
        if self._replica is None:
            return ""
        return self._replica.status_line

    async def answer(self, body: bytes) -> ReplicaResponse:
        assert self._replica is not None
        return await self._replica.answer(body)

    async def health(self) -> tuple[int, int]:
        if self._replica is None:
            return 0, 1
        try:
            self._replica.check()
        except RuntimeError:
            return 0, 1
        return 1, 1

    async def close(self) -> None:
        if self._replica is not None:
            await self._replica.close()
