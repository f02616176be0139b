"""How the process of a command ends: whatever a user's model left behind cannot keep it from exiting, and a model that
ends it is no success."""

import _thread
import contextlib
import inspect
import os
import sys
import threading
import time
from typing import NoReturn

EXIT_GRACE_S = 5.0  # threads, processes and exit hooks of a model may finish after the last line
WRITE_GRACE_S = 0.5  # answers that have just come are written, before a model ends the process
FAILURE = 1
POOL_THREADS = ("ThreadPoolExecutor", "asyncio")  # their pools are waited for even where they are daemons


def guard_exit() -> None:
    """Let no `os._exit` of a model pass for a command that is done: it says so, and exits with FAILURE for 0.

    Processes that a model forked end as they like. An exit from C cannot be seen from within the process.
    """
    process = os.getpid()
    leave = os._exit

    def leave_with_note(status: int) -> NoReturn:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        is_own = caller is not None and str(caller.f_globals.get("__name__")).partition(".")[0] == "weft"
        if is_own or os.getpid() != process:
            leave(status)
        time.sleep(WRITE_GRACE_S)
        with contextlib.suppress(OSError, ValueError):
            print(
                f"weft: a model called os._exit({status}), which ends the program: answers so far are saved; "
                "run the same command again to resume",
                file=sys.stderr,
            )
        _flush()
        leave(status or FAILURE)

    os._exit = leave_with_note


def read_exit_code(code: object) -> int:
    """Return what a shell sees of a SystemExit's code."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    return FAILURE


def end_process(code: int) -> None:
    """Let the process exit in the ordinary way, with the same code, within EXIT_GRACE_S.

    Call it last in the program's own entry point, and nowhere else: it ends the process of whoever calls it.
    """
    _flush()
    if _is_exit_unsafe():
        os._exit(code)
    try:
        _thread.start_new_thread(_exit_after_grace, (code,))
    except RuntimeError:  # no memory for a thread, and so none to wait with
        os._exit(code)


def _is_exit_unsafe() -> bool:
    """Return whether threads of a library are at work, which an ordinary exit would crash or wait for forever."""
    if "ray" in sys.modules and "weft.serving.start" in sys.modules:
        return True
    if "weft.models.batching" not in sys.modules:
        return False
    from weft.models.batching import is_batch_running

    return is_batch_running()


def _exit_after_grace(code: int) -> None:
    time.sleep(EXIT_GRACE_S)
    what = _describe_leftovers()
    with contextlib.suppress(OSError, ValueError):  # standard error is closed
        print(f"weft: all results are saved; not waiting for {what} that a model left behind", file=sys.stderr)
    _flush()
    os._exit(code)


def _describe_leftovers() -> str:
    """Name what is still busy, and end the processes among it: nobody would wait for them any more."""
    busy = [f"thread {thread.name}" for thread in threading.enumerate() if _is_left_over(thread)]
    if "multiprocessing" in sys.modules:
        import multiprocessing

        for process in multiprocessing.active_children():
            busy.append(f"process {process.pid}")
            process.kill()
    return ", ".join(busy) or "an exit hook"


def _is_left_over(thread: threading.Thread) -> bool:
    own = (threading.main_thread(), threading.current_thread())
    return thread not in own and (not thread.daemon or thread.name.startswith(POOL_THREADS))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, a broken pipe, or none at all
            stream.flush()
