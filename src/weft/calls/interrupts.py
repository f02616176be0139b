"""Ctrl-C and SIGTERM: what is in flight has a moment to come back, for it may have been paid for; then it is the
end."""

import asyncio
import contextlib
import itertools
import os
import signal
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

from weft.calls.caller import Halt
from weft.errors import WeftError

PATIENT = 4  # times that Ctrl-C is asked for, before it is simply the end
INTERRUPT_GRACE_S = 1.0  # seconds that calls in flight have to come back after Ctrl-C
T = TypeVar("T")


class Interrupted(WeftError):
    """Ctrl-C or SIGTERM."""


async def await_interruptible(work: "asyncio.Future[T]", halt: Halt, when: str) -> T:
    """What is done before there is a run. At Ctrl-C calls in flight have a second to come back."""

    def interrupt() -> None:
        first = halt.reason is None
        halt.stop(Interrupted(f"interrupted {when}; what was answered is kept: the same command goes on"))
        asyncio.get_running_loop().call_later(INTERRUPT_GRACE_S if first else 0, work.cancel)

    try:
        with on_interrupt(interrupt):
            return await work
    except asyncio.CancelledError:
        if not isinstance(halt.reason, Interrupted):
            raise
        raise halt.reason from None


@contextlib.contextmanager
def on_interrupt(act: Callable[[], None]) -> Generator[None]:
    """`act` in the loop, at Ctrl-C and SIGTERM. If the loop has not come round to it when the next one comes, a model
    of the user's blocks it, and is broken off."""
    if threading.current_thread() is not threading.main_thread():
        with _told_from_elsewhere(act):
            yield
        return
    loop = asyncio.get_running_loop()
    waiting = threading.Event()
    pressed = itertools.count(1)

    def come_round() -> None:
        waiting.clear()
        act()

    def told(number: int, frame: Any) -> None:
        if next(pressed) > PATIENT:  # a model that will not be stopped
            os._exit(130)
        if waiting.is_set():
            act()  # the loop may come to another call of the same model before it comes round to this
            raise KeyboardInterrupt
        waiting.set()
        loop.call_soon_threadsafe(come_round)

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_acts: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}


@contextlib.contextmanager
def _told_from_elsewhere(act: Callable[[], None]) -> Generator[None]:
    """In a thread of its own, where no signal comes: whoever waits for it in the main thread passes it on."""
    loop = asyncio.get_running_loop()
    acts = _acts.setdefault(loop, [])
    acts.append(act)
    try:
        yield
    finally:
        acts.remove(act)
        if not acts:
            _acts.pop(loop, None)


def interrupt_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Ctrl-C for what goes on in another thread's loop."""

    def act() -> None:
        acts = _acts.get(loop)
        if acts:
            acts[-1]()
        else:
            for task in asyncio.all_tasks(loop):
                task.cancel()

    with contextlib.suppress(RuntimeError):  # it is over already
        loop.call_soon_threadsafe(act)


def find_root_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that a person can act on, out of those that came together."""
    leaves = [
        find_root_error(cast(BaseExceptionGroup[BaseException], e)) if isinstance(e, BaseExceptionGroup) else e
        for e in group.exceptions
    ]
    return next((error for error in leaves if isinstance(error, WeftError)), leaves[0])
