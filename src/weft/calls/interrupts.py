"""Ctrl-C and SIGTERM: calls in flight get a moment to return, since they may have been paid for; then work is
cancelled."""

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

MAX_INTERRUPTS = 4  # Ctrl-C beyond this ends the process at once
INTERRUPT_GRACE_S = 1.0  # calls in flight may return after Ctrl-C
T = TypeVar("T")
_handlers: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}  # of loops outside of the main thread


class Interrupted(WeftError):
    """Ctrl-C or SIGTERM."""


async def await_interruptible(work: "asyncio.Future[T]", halt: Halt, when: str) -> T:
    """Await work that is done before there is a run. Raises Interrupted at Ctrl-C, after the grace for calls."""

    def interrupt() -> None:
        grace = 0.0
        if halt.reason is None:
            grace = INTERRUPT_GRACE_S
        halt.stop(Interrupted(f"interrupted {when}; answers so far are kept; run the same command again to resume"))
        asyncio.get_running_loop().call_later(grace, work.cancel)

    try:
        with on_interrupt(interrupt):
            return await work
    except asyncio.CancelledError:
        if not isinstance(halt.reason, Interrupted):
            raise
        raise halt.reason from None


@contextlib.contextmanager
def on_interrupt(act: Callable[[], None]) -> Generator[None]:
    """Call `act` in the event loop at Ctrl-C and SIGTERM.

    If the next signal comes before the loop got to it, a user's model blocks the loop: KeyboardInterrupt is raised in
    that model.
    """
    if threading.current_thread() is not threading.main_thread():
        with _register(act):
            yield
        return
    loop = asyncio.get_running_loop()
    waiting = threading.Event()
    signals = itertools.count(1)

    def act_in_loop() -> None:
        waiting.clear()
        act()

    def handle(number: int, frame: Any) -> None:
        if next(signals) > MAX_INTERRUPTS:  # a model that will not be stopped
            os._exit(130)
        if waiting.is_set():
            act()  # the loop may start another call of the same model before it gets to `act_in_loop`
            raise KeyboardInterrupt
        waiting.set()
        loop.call_soon_threadsafe(act_in_loop)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _register(act: Callable[[], None]) -> Generator[None]:
    """Let `interrupt_loop` call `act`: signals reach only the main thread, which passes them on."""
    loop = asyncio.get_running_loop()
    handlers = _handlers.setdefault(loop, [])
    handlers.append(act)
    try:
        yield
    finally:
        handlers.remove(act)
        if not handlers:
            _handlers.pop(loop, None)


def interrupt_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Interrupt the work in another thread's loop, as Ctrl-C would."""

    def interrupt() -> None:
        handlers = _handlers.get(loop)
        if handlers:
            handlers[-1]()
            return
        for task in asyncio.all_tasks(loop):
            task.cancel()

    with contextlib.suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(interrupt)


def find_root_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error of a group that a person can act on: the first that weft raised, else the first."""
    errors: list[BaseException] = []
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            errors.append(find_root_error(cast(BaseExceptionGroup[BaseException], error)))
        else:
            errors.append(error)
    return next((error for error in errors if isinstance(error, WeftError)), errors[0])
