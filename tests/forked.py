"""Commands of weft that begin at once: each is a process of its own, forked from one that has already imported what
commands need and has no threads. For tests that run many, about what a command makes of its input. That commands start
at all, and what they do as they are installed, is tested with the installed one (tests/e2e)."""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

NEEDED = ("weft.api", "weft.cli.app", "weft.report.site", "weft.store.recover")


def run_forked(*words: str | bytes, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run `weft WORDS` to its end, in a folder and with the environment that this process has now."""
    with tempfile.TemporaryDirectory() as place:
        out, err = Path(place, "out"), Path(place, "err")
        order = [[os.fsdecode(word) for word in words], str(cwd), dict(os.environ), str(out), str(err)]
        code = _ask(json.dumps(order))
        texts = [file.read_text("utf-8", "replace") for file in (out, err)]
    return subprocess.CompletedProcess([*words], code, *texts)


_lock = threading.Lock()
_server: "subprocess.Popen[str] | None" = None


def _ask(order: str) -> int:
    global _server
    with _lock:
        if _server is None or _server.poll() is not None:
            words = [sys.executable, __file__]
            _server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            atexit.register(_server.communicate)  # it ends when there is no more to read
        assert _server.stdin is not None and _server.stdout is not None
        _server.stdin.write(order + "\n")
        _server.stdin.flush()
        return int(_server.stdout.readline())


def serve() -> None:
    """Read orders line by line until nobody is there to give any; write the exit code of each."""
    import gc
    import importlib
    import importlib.util

    from waiting import HANGS

    for name in NEEDED:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    gc.freeze()  # what is here already is not looked through again in each command
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the process that gives the orders
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.alarm(int(HANGS))
            become(*json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def become(words: list[str], folder: str, environment: dict[str, str], out: str, err: str) -> None:
    """Be the command: it ends as commands do."""
    from weft.cli import main

    for number, file, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        opened = os.open(file, flags | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["weft", *words]
    sys.path[0] = folder  # as with `python -m weft`
    main()


if __name__ == "__main__":
    serve()
