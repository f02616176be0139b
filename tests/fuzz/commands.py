"""Commands in processes of their own, forked from this one so that they begin at once, with limits of time, memory and
file size."""

import contextlib
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz import Broken
from weft.cli import main

LEAVE = os._exit  # a command guards against models that call it
MEMORY = 4 * 1024**3  # bytes of data
FILE_SIZE = 300 * 1024**2  # bytes that a file may grow to
SECONDS = 60.0


class Ended(NamedTuple):
    """How a command ended."""

    words: list[str]
    code: int
    out: str
    err: str


class Command:
    """A command that goes on by itself; its output is in files of its folder."""

    def __init__(self, words: list[str], folder: Path, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called in the process of the command."""
        self._words = words
        self._files = folder / ".stdout", folder / ".stderr"
        sys.stdout.flush()
        self._child = os.fork()
        if self._child == 0:
            _become(words, folder, *self._files, before)

    def kill(self) -> bool:
        """End it by kill -9. Return whether it was still going on."""
        os.kill(self._child, signal.SIGKILL)
        _, status = os.waitpid(self._child, 0)
        return os.WIFSIGNALED(status)

    def end(self, seconds: float = SECONDS) -> Ended:
        """Wait for its end. Raises Broken for a command that hangs, shows a traceback, ends with a code that none has,
        or fills the disk."""
        code = self._wait(seconds)
        texts = [file.read_text("utf-8", "replace") if file.exists() else "" for file in self._files]
        ended = Ended(self._words, code, *texts)
        if code not in (0, 1, 2) or "Traceback" in ended.err or "File too large" in ended.err:
            raise Broken(f"weft {' '.join(self._words)}: exit code {code}: {ended.err[-1500:]}")
        return ended

    def _wait(self, seconds: float) -> int:
        until = time.monotonic() + seconds
        pause = 0.002
        while True:
            pid, status = os.waitpid(self._child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > until:
                self.kill()
                raise Broken(f"weft {' '.join(self._words)}: hangs (over {seconds:.0f} s)")
            time.sleep(pause)
            pause = min(0.05, pause * 1.5)


def run_command(
    words: list[str], folder: Path, seconds: float = SECONDS, before: Callable[[], None] = lambda: None
) -> Ended:
    """Run `weft WORDS` in a folder to its end."""
    return Command(words, folder, before).end(seconds)


def _become(words: list[str], folder: Path, out: Path, err: Path, before: Callable[[], None]) -> None:
    """Be the command; never return."""
    code = 70
    try:
        for file, number in ((out, 1), (err, 2)):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        sys.argv = ["weft", *words]
        before()
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        LEAVE(code)
