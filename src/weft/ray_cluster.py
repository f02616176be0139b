"""Ray: started on this machine for one command, or a running cluster that is joined.

On this machine it listens on loopback with a token of its own, and ends with the command. A cluster is its owner's: it
is only joined, and left.
"""

import contextlib
import importlib
import importlib.util
import logging
import os
import queue
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from weft.errors import UserError

NAMESPACE = "weft"
FOLDER_PREFIX = "weft-ray-"
FOLDER_VARIABLE = "WEFT_RAY_FOLDER"  # in the environment of every process that our Ray starts
OBJECT_STORE_BYTES = 512 * 2**20
COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")
CONNECT_TIMEOUT_S = 5.0
SLOW_START = "timed out during startup"  # in what Ray says of processes that have not started in time
T = TypeVar("T")


class RayCluster:
    """Ray for one command. `start` and `stop` are called in one thread that lives as long as the process."""

    def __init__(self, address: str | None, print_status: Callable[[str], None]) -> None:
        """`address` is that of a running cluster, or `auto`; None: Ray is started on this machine."""
        self.address = address
        self.ray: Any = None
        self._print_status = print_status
        self._folder = ""

    def start(self, cpus: int, *, purpose: str) -> Any:
        """Start or join Ray and return its module. A Ray of our own hands out at least this many CPUs.

        Raises UserError where there is no Ray, or no cluster.
        """
        if importlib.util.find_spec("ray") is None:
            raise UserError(f"{purpose} need Ray; install the extra, from the clone: pip install -e '.[ray]'")
        os.environ.update(
            {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_LOG_TO_STDERR": "0", "RAY_ENABLE_AUTO_CONNECT": "0"}
        )
        arguments: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": logging.ERROR}
        if self.address:
            check_reachable(self.address)
            arguments["address"] = self.address
            self._print_status(f"joining the Ray cluster at {self.address}")
        else:
            arguments |= self._prepare_own(cpus)
            self._print_status("starting Ray")
        self.ray = importlib.import_module("ray")
        try:
            self._init(arguments)
        except Exception as error:
            reason = last_line(str(error))
            if not self.address:
                raise UserError(f"Ray could not be started: {type(error).__name__}: {reason}") from None
            raise UserError(
                f"the cluster at {self.address} could not be joined: {reason}; the nodes and this command must have "
                "the same RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH (or RAY_AUTH_TOKEN)"
            ) from None
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        return self.ray

    def _init(self, arguments: Mapping[str, Any]) -> None:
        """Call `ray.init`. Ray gives its processes half a minute to start: on a busy machine, it is tried again."""
        for last in (False, False, True):
            try:
                self.ray.init(**arguments)
                return
            except Exception as error:
                if last or self.address or SLOW_START not in str(error):
                    raise
            self.ray.shutdown()
            self._print_status("starting Ray once more: this machine is busy")

    def _prepare_own(self, cpus: int) -> dict[str, Any]:
        """Prepare folder and environment of a Ray of our own; return the arguments that start it."""
        remove_leftovers()
        # Ray's own folder inside it is readable by everyone
        self._folder = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-")
        os.environ.update(
            {
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN": secrets.token_hex(32),
                FOLDER_VARIABLE: self._folder,
            }
        )
        return {
            "address": "local",
            "num_cpus": max(os.cpu_count() or 1, cpus),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_temp_dir": f"{self._folder}/r",
        }

    def stop(self) -> None:
        """Leave the cluster, or end a Ray of our own."""
        if self.ray is not None:
            with contextlib.suppress(Exception):
                self.ray.shutdown()

    def remove_folder(self) -> None:
        """Remove what a Ray of our own leaves behind; what has not ended is killed."""
        if self._folder:
            remove_ray_folder(Path(self._folder))


class RayThread:
    """One thread for all calls to Ray, one after another. It lives as long as the process: what Ray starts dies with
    the thread that started it."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="Ray's", daemon=True).start()

    def submit(self, function: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._calls.put((function, future))
        return future

    def _run(self) -> None:
        while True:
            function, future = self._calls.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)
            except BaseException as error:
                future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
            del function, future


def remove_leftovers() -> None:
    """Remove processes and folders of earlier commands on this machine that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        process_id = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        if process_id.isdigit() and sys.platform == "linux" and not is_running(process_id):
            remove_ray_folder(folder)


def is_running(process_id: str) -> bool:
    return Path(f"/proc/{process_id}").exists()


def import_ray_errors() -> tuple[type[Exception], type[Exception]]:
    """Return Ray's `RayActorError` and `RayError`: an actor died; anything that Ray raises."""
    errors: Any = importlib.import_module("ray.exceptions")
    return errors.RayActorError, errors.RayError


def remove_ray_folder(folder: Path) -> None:
    """Kill the processes that our Ray started with this folder, and remove it."""
    variable = f"{FOLDER_VARIABLE}={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if variable in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def check_reachable(address: str) -> None:
    """Raise UserError for a cluster that does not answer: Ray would try for minutes."""
    target = address
    source = ""
    if address == "auto":
        target, source = _find_cluster()
    if not target:
        raise UserError(
            "no Ray cluster is known here: start one with `ray start --head`, give HOST:PORT, or leave --address out"
        )
    host, _, port = target.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise UserError(
            f"no Ray cluster answers at {target}{source} ({error}): start one with `ray start --head`, "
            "or leave --address out"
        ) from None


def _find_cluster() -> tuple[str, str]:
    """Return the address that Ray itself would use for `auto`, and where it was found, for messages."""
    target = os.environ.get("RAY_ADDRESS", "")
    if target:
        return target, ""
    file = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir())) / "ray" / "ray_current_cluster"
    try:
        return file.read_text().strip(), f", which {file} names"
    except OSError:
        return "", ""


def last_line(text: str) -> str:
    """Return the last line of a traceback: what went wrong."""
    lines = COLOUR_CODES.sub("", text).strip().splitlines()
    if not lines:
        return "(no message)"
    return lines[-1].strip()[:500]
