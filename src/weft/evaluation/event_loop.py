"""The event loop of a run: it ends when the run does, whatever tasks and threads a user's model left in it."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from weft.calls.interrupts import interrupt_loop
from weft.errors import WeftError

CLOSE_GRACE_S = 5.0  # what a model left in the loop may finish once the run is over
MAX_INTERRUPTS = 4  # after this many, stop waiting for the work to end
MAX_EXITS = 10  # each task that a model ends by sys.exit() ends the loop once more, while others still close files
T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Return a coroutine's result, inside a running event loop (a notebook) as well as outside of one.

    An interrupt ends the work, with a moment for calls in flight, and is then raised here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_in_loop(work)
    results: list[T | BaseException] = []
    loops: list[asyncio.AbstractEventLoop] = []
    done = threading.Event()

    async def register_loop_and_work() -> T:
        loops.append(asyncio.get_running_loop())
        return await work

    def run_in_thread() -> None:
        try:
            results.append(run_in_loop(register_loop_and_work()))
        except BaseException as error:
            results.append(error)
        finally:
            done.set()

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run_in_thread,), name="weft", daemon=True).start()
    for _ in range(MAX_INTERRUPTS):
        try:
            done.wait()  # not join(): a thread whose join was interrupted counts as ended
            break
        except KeyboardInterrupt:
            for loop in loops:
                interrupt_loop(loop)
    else:
        raise KeyboardInterrupt
    result = results[0]
    if isinstance(result, BaseException):
        raise result
    return result


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Return a coroutine's result, in a loop of its own. Raises WeftError if a user's model ended that loop."""
    try:
        return _run_and_close(work)
    except (SystemExit, GeneratorExit, asyncio.CancelledError) as error:
        raise WeftError(
            f"a model or a benchmark of yours ended weft's event loop ({type(error).__name__}): "
            "run the same command again to go on"
        ) from None
    except RuntimeError as error:
        if "Event loop" not in str(error):
            raise
        raise WeftError(
            f"a model of yours stopped weft's event loop ({error}): run the same command again to go on"
        ) from None


def _run_and_close(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, but for its end: that waits for every task and thread, for as long as they like."""
    runner = asyncio.Runner()
    threads = ThreadPoolExecutor(thread_name_prefix="asyncio")  # the loop's own, which is closed with a limit
    try:
        runner.get_loop().set_default_executor(threads)
        return runner.run(work)
    finally:
        _close(runner, threads)


def _close(runner: asyncio.Runner, threads: ThreadPoolExecutor) -> None:
    loop = runner.get_loop()
    try:
        if not loop.is_closed():
            for _ in range(MAX_EXITS):
                with contextlib.suppress(SystemExit):
                    loop.run_until_complete(_cancel_tasks())
                    break
            closing = threading.Thread(target=threads.shutdown, kwargs={"cancel_futures": True}, daemon=True)
            closing.start()
            closing.join(CLOSE_GRACE_S)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _cancel_tasks() -> None:
    """Cancel every other task and close the generators, within CLOSE_GRACE_S."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    tasks.add(loop.create_task(loop.shutdown_asyncgens()))
    done, _ = await asyncio.wait(tasks, timeout=CLOSE_GRACE_S)
    for task in done:
        if not task.cancelled():
            task.exception()  # or asyncio shows a traceback of what was only cancelled
