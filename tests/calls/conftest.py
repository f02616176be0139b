import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest


class Simulated(asyncio.SelectorEventLoop):
    """Time passes only while all are waiting, and then at once."""

    now = 100.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0].when())
        super()._run_once()


@pytest.fixture
def in_simulated_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    def run(work: Coroutine[Any, Any, Any]) -> Any:
        loop = Simulated()
        monkeypatch.setattr(time, "monotonic", loop.time)
        try:
            return loop.run_until_complete(asyncio.wait_for(work, 10_000))
        finally:
            loop.close()

    return run
