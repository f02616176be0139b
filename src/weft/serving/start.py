"""From what a user asks for to a door that is open, and shut again."""

import asyncio
import contextlib
import os
import re
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, TextIO

import msgspec
from msgspec import Struct

from weft.errors import UserError, WeftError
from weft.models.batching import is_batch_running
from weft.models.config import read_config
from weft.models.endpoint import CallError
from weft.models.registry import COMPOSITION_PATTERN
from weft.secrets import hide, strip_url_secrets
from weft.serving.app import LOOPBACK, ServingApp
from weft.serving.local_pool import LocalPool
from weft.serving.ray_pool import RayPool, ReplicaResources
from weft.serving.replica import ReplicaSpec
from weft.untrusted import format_for_terminal

TOKEN_VARIABLE = "WEFT_SERVE_TOKEN"


class ServePlan(Struct, frozen=True, kw_only=True):
    model: str
    options: Mapping[str, Any] = {}
    replicas: int = 1
    gpus_each: float | None = None
    cpus_each: float | None = None
    address: str | None = None
    name: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    home: str = ".weft"

    @property
    def served_name(self) -> str:
        """What it is called in an address: the end of a path, or the name of a file."""
        if self.name:
            return self.name
        file, own, _ = self.model.partition(".py:")
        if own:
            return Path(file).name
        return self.model.rstrip("/").rpartition("/")[2]


def serve(plan: ServePlan, *, child: bool = False) -> int:
    """Serve until Ctrl-C; gives the exit code. `child`: for a parent that ends it by closing standard input."""
    if re.fullmatch(r"[\w.-]+", plan.served_name) is None:
        raise UserError(f"{plan.served_name!r} cannot be a part of an address: give --name")
    if (
        plan.model == "reference"
        or plan.model.startswith(("folder/", "served/"))
        or COMPOSITION_PATTERN.fullmatch(plan.model)
    ):
        raise UserError(f"{strip_url_secrets(plan.model)} cannot be served: give one model")
    folder = str(Path.cwd())
    job = ReplicaSpec(
        plan.model,
        plan.options,
        plan.served_name,
        str(Path(plan.home).absolute()),
        folder,
        {"models": read_config().get("models", {})},
    )
    try:  # before anything is loaded
        if ":" in plan.host:
            family = socket.AF_INET6
        else:
            family = socket.AF_INET
        listening = socket.create_server((plan.host, plan.port), family=family, backlog=1024)
    except OSError as error:
        raise UserError(f"{plan.host}:{plan.port} cannot be used: {error.strerror}; give another --port") from None
    with listening, _own_output() as out:
        code = asyncio.run(_serve(plan, job, listening, out, child))
        if is_batch_running() or "ray" in sys.modules:  # what Ray has running in this process may not let it end
            sys.stderr.flush()
            os._exit(code)
    return code


@contextlib.contextmanager
def _own_output() -> Generator[TextIO]:
    """Standard output for the address alone: what a model prints goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept), "w") as out:
            yield out
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _say(text: str) -> None:
    print(format_for_terminal(text), file=sys.stderr, flush=True)


async def _serve(plan: ServePlan, job: ReplicaSpec, listening: socket.socket, out: TextIO, child: bool) -> int:
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    made = not token and plan.host not in LOOPBACK
    if made:
        token = secrets.token_urlsafe(24)
    if token and not made:
        hide(token)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    _heed(loop, stop)
    if child:
        threading.Thread(target=_until_closed, args=(loop, stop), daemon=True).start()
    wants = ReplicaResources(plan.replicas, plan.gpus_each, plan.cpus_each, plan.address)
    alone = plan.replicas == 1 and plan.address is None and plan.gpus_each is None
    if alone:
        pool = LocalPool(job)
    else:
        pool = RayPool(wants, job, _say)
    starting = asyncio.ensure_future(_started(pool))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            _say("stopped before it was ready")
            return 130
        await starting
        _heed(loop, stop)  # Ray has put handlers of its own there
        door = ServingApp(pool, plan.served_name, token, plan.host)
        runner, address = await door.start(listening=listening)
        try:
            _introduce(plan, pool, address, token if made else "", out, child)
            await _open(pool, stopping)
        finally:
            await runner.cleanup()
            _say(f"served {sum(door.counts.by_status.values())} requests; closing")
    finally:
        stopping.cancel()
        await asyncio.shield(pool.close())
    return 0


def _heed(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)


async def _started(pool: LocalPool | RayPool) -> None:
    if isinstance(pool, RayPool):
        await pool.start()
        return
    loading = asyncio.ensure_future(pool.load())
    said = ""
    try:
        while not (await asyncio.wait({loading}, timeout=0.5))[0]:
            if pool.status_line and pool.status_line != said:
                _say(pool.status_line)
                said = pool.status_line
        await loading
    except CallError as error:
        raise UserError(str(error)) from None


async def _open(pool: LocalPool | RayPool, stopping: "asyncio.Future[Any]") -> None:
    """While the door is open: who is there is told when it changes."""
    before: tuple[int, int] | None = None
    while not stopping.done():
        looking = asyncio.ensure_future(pool.health())
        await asyncio.wait({looking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not looking.done():
            looking.cancel()
            return
        now = looking.result()
        if before is not None and now != before:
            _say(f"{now[0]} of {now[1]} replicas ready")
        if isinstance(pool, LocalPool) and not now[0]:
            raise WeftError("the model cannot be used any more: start it again")
        if isinstance(pool, RayPool) and pool.is_gone:
            raise WeftError("Ray is gone: start it again")
        before = now
        await asyncio.wait({stopping}, timeout=2.0)


def _introduce(plan: ServePlan, pool: LocalPool | RayPool, address: str, token: str, out: TextIO, child: bool) -> None:
    url = f"{address}/v1"
    if child:
        print(msgspec.json.encode({"name": plan.served_name, "url": url}).decode(), file=out, flush=True)
        return
    if plan.replicas > 1:
        many = f"{plan.replicas} replicas"
    else:
        many = "one replica"
    _say(f"{strip_url_secrets(plan.model)}: {many}, up to {pool.card.at_once} calls each at once")
    if token:
        print(f"its token, for WEFT_API_KEY where it is called from: {token}", file=sys.stderr, flush=True)
    _say(f"weft run BENCHMARK --data DATA --judge JUDGE --model served/{plan.served_name}@{address}")
    _say(f"{url}/chat/completions; {address}/health, {address}/metrics; Ctrl-C ends it")
    print(url, file=out, flush=True)


def _until_closed(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """A parent that is gone closes our standard input, however it went."""
    with contextlib.suppress(OSError, ValueError):
        while os.read(0, 4096):
            pass
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(stop.set)
