"""`weft serve`, from the user's options to a running server, and its shutdown."""

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
from weft.models.config import read_config
from weft.models.endpoint import CallError
from weft.models.registry import COMPOSITION_PATTERN
from weft.secrets import hide, strip_url_secrets
from weft.serving.app import LOOPBACK, ServingApp
from weft.serving.chat import SETTINGS
from weft.serving.local_pool import LocalPool
from weft.serving.ray_pool import RayPool, ReplicaResources
from weft.serving.replica import ReplicaSpec
from weft.untrusted import format_for_terminal

TOKEN_VARIABLE = "WEFT_SERVE_TOKEN"
HEALTH_INTERVAL_S = 2.0
Pool = LocalPool | RayPool


class ServePlan(Struct, frozen=True, kw_only=True):
    """What to serve, where, and on how many replicas: the options of `weft serve`."""

    model: str
    options: Mapping[str, Any] = {}
    replicas: int = 1
    gpus_each: float | None = None  # per replica; None: one where there are GPUs
    cpus_each: float | None = None  # per replica; None: one
    address: str | None = None  # of a running Ray cluster
    name: str = ""  # that clients use; empty: derived from `model`
    host: str = "127.0.0.1"
    port: int = 8000
    home: str = ".weft"
    ignored_settings: tuple[str, ...] = ()  # that a request may have and that change nothing

    @property
    def served_name(self) -> str:
        """The name that clients use: `name`, or else the last part of the model's path, or its file's name."""
        if self.name:
            return self.name
        file, separator, _ = self.model.partition(".py:")
        if separator:
            return Path(file).name
        return self.model.rstrip("/").rpartition("/")[2]


def serve(plan: ServePlan, *, child: bool = False) -> int:
    """Serve until Ctrl-C and return the exit code.

    `child`: print the address as JSON, and stop when the parent closes standard input.
    """
    spec = _build_spec(plan)
    listening = _open_socket(plan)  # before weights are loaded, so that a port in use is found at once
    with listening, _redirect_stdout() as out:
        return asyncio.run(_serve(plan, spec, listening, out, child))


def _build_spec(plan: ServePlan) -> ReplicaSpec:
    if re.fullmatch(r"[\w.-]+", plan.served_name) is None:
        raise UserError(f"{plan.served_name!r} cannot be part of an address: give --name")
    is_composition = COMPOSITION_PATTERN.fullmatch(plan.model) is not None
    if is_composition or plan.model == "reference" or plan.model.startswith(("folder/", "served/")):
        raise UserError(f"{strip_url_secrets(plan.model)} cannot be served: give one model")
    home = str(Path(plan.home).absolute())
    config = {"models": read_config().get("models", {})}
    unknown = [name for name in plan.ignored_settings if name not in SETTINGS]
    if unknown:
        raise UserError(f"--ignore {unknown[0]}: no such setting; there are {', '.join(SETTINGS)}")
    return ReplicaSpec(plan.model, plan.options, plan.served_name, home, str(Path.cwd()), config, plan.ignored_settings)


def _open_socket(plan: ServePlan) -> socket.socket:
    family = socket.AF_INET
    if ":" in plan.host:
        family = socket.AF_INET6
    try:
        return socket.create_server((plan.host, plan.port), family=family, backlog=1024)
    except OSError as error:
        raise UserError(f"{plan.host}:{plan.port} cannot be used: {error.strerror}; give another --port") from None


@contextlib.contextmanager
def _redirect_stdout() -> Generator[TextIO]:
    """Keep standard output for the address alone: everything that a model prints goes to standard error."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(saved), "w") as out:
            yield out
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


def _print_status(text: str) -> None:
    print(format_for_terminal(text), file=sys.stderr, flush=True)


async def _serve(plan: ServePlan, spec: ReplicaSpec, listening: socket.socket, out: TextIO, child: bool) -> int:
    token, is_new_token = _choose_token(plan)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    _stop_on_signals(loop, stop)
    if child:
        threading.Thread(target=_wait_for_closed_stdin, args=(loop, stop), daemon=True).start()
    pool = _build_pool(plan, spec)
    starting = asyncio.ensure_future(_start_pool(pool))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            _print_status("stopped before it was ready")
            return 130
        await starting
        _stop_on_signals(loop, stop)  # again: Ray has replaced the handlers
        app = ServingApp(pool, plan.served_name, token, plan.host)
        runner, address = await app.start(listening=listening)
        try:
            if child:
                server = {"name": plan.served_name, "url": f"{address}/v1"}
                print(msgspec.json.encode(server).decode(), file=out, flush=True)
            else:
                _print_introduction(plan, pool, address, token if is_new_token else "", out)
            await _watch_health(pool, stopping)
        finally:
            await runner.cleanup()
            _print_status(f"served {sum(app.counts.by_status.values())} requests; closing")
    finally:
        stopping.cancel()
        await asyncio.shield(pool.close())
    return 0


def _choose_token(plan: ServePlan) -> tuple[str, bool]:
    """Return the token, from the environment or, for a server beyond loopback, a new one; and whether it is new."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        hide(token)
        return token, False
    if plan.host in LOOPBACK:
        return "", False
    return secrets.token_urlsafe(24), True


def _build_pool(plan: ServePlan, spec: ReplicaSpec) -> Pool:
    if plan.replicas == 1 and plan.address is None and plan.gpus_each is None:
        return LocalPool(spec)
    resources = ReplicaResources(plan.replicas, plan.gpus_each, plan.cpus_each, plan.address)
    return RayPool(resources, spec, _print_status)


def _stop_on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)


async def _start_pool(pool: Pool) -> None:
    """Start a pool, printing how far it is. Raises UserError where it cannot start."""
    if isinstance(pool, RayPool):
        await pool.start()
        return
    loading = asyncio.ensure_future(pool.load())
    printed = ""
    try:
        while not (await asyncio.wait({loading}, timeout=0.5))[0]:
            if pool.status_line and pool.status_line != printed:
                _print_status(pool.status_line)
                printed = pool.status_line
        await loading
    except CallError as error:
        raise UserError(str(error)) from None


async def _watch_health(pool: Pool, stopping: "asyncio.Future[Any]") -> None:
    """Print how many replicas are ready when that changes, until the server stops. Raises WeftError if all are lost."""
    previous: tuple[int, int] | None = None
    while not stopping.done():
        checking = asyncio.ensure_future(pool.health())
        await asyncio.wait({checking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not checking.done():
            checking.cancel()
            return
        ready, expected = checking.result()
        if previous is not None and (ready, expected) != previous:
            _print_status(f"{ready} of {expected} replicas ready")
        if isinstance(pool, LocalPool) and not ready:
            raise WeftError("the model cannot be used any more: start `weft serve` again")
        if isinstance(pool, RayPool) and pool.is_gone:
            raise WeftError("Ray does not answer any more: start `weft serve` again")
        previous = (ready, expected)
        await asyncio.wait({stopping}, timeout=HEALTH_INTERVAL_S)


def _print_introduction(plan: ServePlan, pool: Pool, address: str, new_token: str, out: TextIO) -> None:
    replicas = "one replica"
    if plan.replicas > 1:
        replicas = f"{plan.replicas} replicas"
    _print_status(
        f"{strip_url_secrets(plan.model)}: {replicas}, each with up to {pool.card.concurrency} concurrent calls"
    )
    if new_token:
        # printed as it is: everything else that is printed is scrubbed of secrets
        print(f"its token; clients need it in WEFT_API_KEY: {new_token}", file=sys.stderr, flush=True)
    _print_status(f"weft run BENCHMARK --data DATA --judge JUDGE --model served/{plan.served_name}@{address}")
    _print_status(f"{address}/v1/chat/completions; {address}/health, {address}/metrics; Ctrl-C stops it")
    print(f"{address}/v1", file=out, flush=True)


def _wait_for_closed_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop when standard input is closed, as it is when the parent process ends in any way."""
    with contextlib.suppress(OSError, ValueError):
        while os.read(0, 4096):
            pass
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(stop.set)
