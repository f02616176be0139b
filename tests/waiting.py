"""How tests wait: for one thing that they name, and as long as it takes. The limit is for what hangs, not for what is
slow."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

# Seconds. A busy machine takes many times as long as an idle one.
HANGS = float(os.environ.get("WEFT_TEST_HANGS", "600"))


def until(what: str, look: Callable[[], Any], running: Any = None) -> Any:
    """Wait until `look` finds something, and give that. A process that should be `running` meanwhile must not end
    before."""
    limit = time.monotonic() + HANGS
    while time.monotonic() < limit:
        ended = running is not None and running.poll() is not None
        try:
            if found := look():
                return found
        except OSError:
            pass  # a server or a file that is not there yet
        assert not ended, f"the process ended with {running.returncode} before this: {what}"
        time.sleep(0.02)
    raise AssertionError(f"this did not come: {what}")


async def until_in_loop(what: str, look: Callable[[], Any]) -> Any:
    """The same in a loop, whose tasks go on meanwhile."""
    limit = time.monotonic() + HANGS
    while time.monotonic() < limit:
        if found := look():
            return found
        await asyncio.sleep(0.001)
    raise AssertionError(f"this did not come: {what}")


@contextlib.contextmanager
def comes_to_an_end(what: str) -> Iterator[None]:
    """For work in this thread that would take hours, were it done badly."""

    def hangs(*_: Any) -> None:
        raise AssertionError(f"this did not come to an end: {what}")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
