"""A pool of replicas on Ray Serve (extra `ray`): on this machine, or on a cluster that is there already.

On this machine Ray is started for this command alone, listens on loopback with a token of its own, and ends with it. In
a cluster only our application is put there, and only that is taken away. GPUs and CPUs that are not there are said
before anyone waits for them: Ray itself would wait for ever. A replica that dies takes the requests that it held with
it; they come back as errors that a client asks again."""

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import math
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
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError, WeftError
from weft.models.endpoint import CallError
from weft.serving.chat import ModelCard, format_error
from weft.serving.replica import Replica, ReplicaResponse, ReplicaSpec

DEPLOYMENT = "Replica"
SPACE = "weft"
PREFIX = "weft-ray-"
MARK = "WEFT_RAY_FOLDER"
PATIENCE = 20.0  # seconds for Ray to end in the ordinary way
GONE = 3  # looks at a cluster that says nothing, after which it is gone
STORE = 512 * 2**20  # bytes that Ray keeps what it passes on in
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LOOK = 1.0  # seconds that what was seen of the replicas is good for
CONNECT = 5.0  # seconds for a cluster to answer at all
SILENT = 10.0  # seconds for it to say how it is
Tell = Callable[[str], None]
T = TypeVar("T")


class ReplicaResources(Struct, frozen=True):
    """What replicas need, and where they go."""

    replicas: int
    gpus_each: float | None = None
    cpus_each: float | None = None
    address: str | None = None


class LoadingProgress:
    """Where replicas say how far they are, while they are being made."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def put(self, who: str, what: str) -> None:
        self._told[who] = what

    def read(self) -> dict[str, str]:
        return self._told


class RayReplica:
    """A replica, as Ray makes it. It is ready when its weights are loaded."""

    async def __init__(self, job: ReplicaSpec, board: Any, near: bool) -> None:  # type: ignore[misc]
        if near:
            _keep_to_loopback()
        try:
            await self._made(job, board)
        except Exception as failed:
            if isinstance(failed, (UserError, CallError)):
                said = str(failed)
            else:
                said = f"{type(failed).__name__}: {failed}"
            await board.put.remote("failed", " ".join(said.split())[:500])
            raise

    async def _made(self, job: ReplicaSpec, board: Any) -> None:
        self._replica = await asyncio.to_thread(Replica, job)
        place = self._replica.replica_id
        loading = asyncio.ensure_future(self._replica.load())
        while not (await asyncio.wait({loading}, timeout=1.0))[0]:
            board.put.remote(place, self._replica.status_line)
        await loading
        board.put.remote(place, "ready")

    async def answer(self, body: bytes) -> ReplicaResponse:
        return await self._replica.answer(body)

    async def card(self) -> ModelCard:
        return self._replica.card

    async def check_health(self) -> None:
        self._replica.check()


class RayPool:
    def __init__(self, wants: ReplicaResources, job: ReplicaSpec, tell: Tell) -> None:
        self.wants = wants
        self._job = job
        self._tell = tell
        self._ray: Any = None
        self._serve: Any = None
        self._handle: Any = None
        self._folder = ""
        self._app = f"weft-{socket.gethostname()}-{os.getpid()}"
        self._seen: tuple[float, tuple[int, int]] = (0.0, (0, wants.replicas))
        # looks at which it said nothing
        self._hand = RayThread()
        self._closing = False
        self.silent = 0
        self._board: Any = None
        self.card: ModelCard

    async def start(self) -> None:
        """Until all replicas are ready. Raises UserError where they never will be."""
        await self._asked(self._begin)
        await self._asked(self._deploy)
        await self._made()
        card: ModelCard = await self._handle.card.remote()
        self.card = replace(card, replicas=self.wants.replicas)

    async def _asked(self, ask: Callable[[], T]) -> T:
        """A question to Ray, which may take its time. None is asked once the end has begun: Ray would begin again for
        it, wherever it found a cluster."""

        def still() -> T:
            if self._closing:
                raise PoolClosing("it is being closed")
            return ask()

        return await asyncio.wrap_future(self._hand.do(still))

    # Ray

    def _begin(self) -> None:
        if importlib.util.find_spec("ray") is None:
            raise UserError("several replicas need Ray; install the extra, from the clone: pip install -e '.[ray]'")
        os.environ.update(
            {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_LOG_TO_STDERR": "0", "RAY_ENABLE_AUTO_CONNECT": "0"}
        )
        named: dict[str, Any] = {"namespace": SPACE, "log_to_driver": False, "logging_level": logging.ERROR}
        if self.wants.address:
            _reachable(self.wants.address)
            named["address"] = self.wants.address
        else:
            remove_leftovers()
            self._folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")  # Ray makes its own inside it open to all
            token = secrets.token_hex(32)
            os.environ.update(
                {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
            )
            os.environ[MARK] = self._folder  # all that Ray starts has it
            cpus = max(os.cpu_count() or 1, math.ceil(self.wants.replicas * self._cpus) + 1)
            named |= {"address": "local", "num_cpus": cpus, "include_dashboard": False}
            named |= {"object_store_memory": STORE, "_temp_dir": f"{self._folder}/r"}
        self._tell("starting Ray" if not self.wants.address else f"joining the Ray cluster at {self.wants.address}")
        self._ray = importlib.import_module("ray")
        try:
            self._ray.init(**named)
        except Exception as failed:
            if self.wants.address:
                same = "the nodes and this command must have the same RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH (or RAY_AUTH_TOKEN)"
                raise UserError(
                    f"the cluster at {self.wants.address} could not be joined: {_short(str(failed))}; {same}"
                ) from None
            raise UserError(f"Ray could not be started: {type(failed).__name__}: {_short(str(failed))}") from None
        self._serve = importlib.import_module("ray.serve")
        for name in ("ray", "ray.serve"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._check()
        self._serve.start(proxy_location="Disabled", logging_config={"log_level": "ERROR", "enable_access_log": False})
        if self.wants.address and sys.platform == "linux":
            _left_by_others(self._serve)

    @property
    def _cpus(self) -> float:
        if self.wants.cpus_each is None:
            return 1.0
        return self.wants.cpus_each

    @property
    def _gpus(self) -> float:
        if self.wants.gpus_each is not None:
            return self.wants.gpus_each
        if self._ray.cluster_resources().get("GPU", 0):
            return 1.0
        return 0.0

    def _check(self) -> None:
        """Whether there is what the replicas need: in all, and for each on one machine."""
        nodes: list[Mapping[str, Any]] = [node for node in self._ray.nodes() if node.get("Alive")]
        for kind, each, option in (("GPU", self._gpus, "--gpus-each"), ("CPU", self._cpus, "--cpus-each")):
            there = [float(node.get("Resources", {}).get(kind, 0)) for node in nodes]
            if each:
                fit = sum(math.floor(count / each + 1e-9) for count in there)
            else:
                fit = self.wants.replicas
            if fit < self.wants.replicas:
                if len(nodes) > 1:
                    where = f"{len(nodes)} machines"
                else:
                    if not self.wants.address:
                        where = "this machine"
                    else:
                        where = "the cluster"
                raise UserError(
                    f"{self.wants.replicas} replicas with {each:g} {kind}s each want {self.wants.replicas * each:g}; {where} has "
                    f"{sum(there):g}: give fewer --replicas, or another {option}"
                )

    def _deploy(self) -> None:
        serve = self._serve
        job = self._job
        try:  # whoever asks for what cannot be is told by one, and not by all
            card: ModelCard = self._ray.get(
                self._ray.remote(num_cpus=0, num_gpus=self._gpus, max_retries=0)(read_model_card).remote(job)
            )
        except self._ray.exceptions.RayTaskError as failed:
            cause = getattr(failed, "cause", None)
            raise UserError(str(cause) if isinstance(cause, UserError) else _short(str(failed))) from None
        except self._ray.exceptions.RayError as failed:
            raise UserError(f"the process that was to load {job.model} ended: {type(failed).__name__}") from None
        router = importlib.import_module("ray.serve.config").RequestRouterConfig
        board = self._ray.remote(num_cpus=0)(LoadingProgress).remote()
        self._board = board
        made = serve.deployment(RayReplica).options(
            name=DEPLOYMENT,
            num_replicas=self.wants.replicas,
            max_ongoing_requests=card.at_once,
            max_queued_requests=-1,
            max_constructor_retry_count=2,
            health_check_period_s=2,
            health_check_timeout_s=60,
            graceful_shutdown_timeout_s=5,
            graceful_shutdown_wait_loop_s=0.2,
            request_router_config=router(initial_backoff_s=0.01, backoff_multiplier=1.0, max_backoff_s=0.02),
            ray_actor_options={"num_cpus": self._cpus, "num_gpus": self._gpus},
        )
        target = serve.RunTarget(made.bind(job, board, not self.wants.address), name=self._app, route_prefix=None)
        (self._handle,) = serve.run_many([target], wait_for_applications_running=False)

    async def _made(self) -> None:
        """Wait until all are, telling how far they are."""
        said = ""
        while True:
            status: Any = (await self._asked(self._serve.status)).applications[self._app]
            one = status.deployments.get(DEPLOYMENT)
            if one:
                ready = _ready(one)
            else:
                ready = 0
            if status.status.value == "RUNNING":
                return
            if status.status.value in ("DEPLOY_FAILED", "UNHEALTHY"):
                told: dict[str, str] = await self._board.read.remote()
                why = told.get("failed") or _short(one.message if one else status.message)
                raise UserError(f"the replicas could not be made: {why}")
            told = await self._board.read.remote()
            words = sorted({what for who, what in told.items() if what and what != "ready" and who != "failed"})
            line = f"{ready} of {self.wants.replicas} replicas ready" + (f"; {'; '.join(words)}" if words else "")
            if line != said:
                self._tell(line)
                said = line
            await asyncio.sleep(0.5)

    # a pool

    async def answer(self, body: bytes) -> ReplicaResponse:
        exceptions: Any = self._ray.exceptions
        try:
            return await self._handle.answer.remote(body)
        except exceptions.RayActorError:
            return ReplicaResponse(
                500, format_error("the replica that worked on it is gone: ask again", "replica_lost")
            )
        except exceptions.RayError as failed:
            return ReplicaResponse(500, format_error(_short(str(failed)), "replica_failed"))
        except Exception as failed:
            full = type(failed).__name__ == "BackPressureError"
            return ReplicaResponse(
                429 if full else 500, format_error(_short(str(failed)), "queue_full" if full else "replica_failed")
            )

    async def health(self) -> tuple[int, int]:
        at, seen = self._seen
        if time.monotonic() - at > LOOK:
            try:
                status: Any = await asyncio.wait_for(self._asked(self._serve.status), SILENT)
                ready = _ready(status.applications[self._app].deployments[DEPLOYMENT])
                self.silent = 0
            except Exception:  # it says nothing
                ready, self.silent = 0, self.silent + 1
            seen = (ready, self.wants.replicas)
            self._seen = (time.monotonic(), seen)
        return seen

    @property
    def is_gone(self) -> bool:
        return self.silent >= GONE

    async def close(self) -> None:
        """What is still starting is waited for: Ray cannot be stopped in the middle of that. What does not end is
        ended."""
        self._closing = True
        await asyncio.wait({asyncio.wrap_future(self._hand.do(self._end))}, timeout=PATIENCE)
        if self._folder:
            _removed(Path(self._folder))

    def _end(self) -> None:
        if self._ray is None:
            return
        with contextlib.suppress(Exception):
            if self.wants.address and self._serve is not None:
                self._serve.delete(self._app)
        with contextlib.suppress(Exception):
            self._ray.shutdown()


class RayThread:
    """One thread for all that is done with Ray, one after another. It lives as long as the process does: what Ray
    starts dies with the thread that started it."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._live, name="Ray's", daemon=True).start()

    def do(self, job: Callable[[], T]) -> "Future[T]":
        done: Future[T] = Future()
        self._jobs.put((job, done))
        return done

    def _live(self) -> None:
        while True:
            job, done = self._jobs.get()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                done.set_result(job())
            except Exception as error:
                done.set_exception(error)
            except BaseException as error:
                done.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
            del job, done


class PoolClosing(WeftError):
    """Nothing is asked any more."""


def read_model_card(job: ReplicaSpec) -> ModelCard:
    """What a replica would say of itself, in a process of Ray's."""
    return Replica(job).card


def _ready(deployment: Any) -> int:
    return sum(
        count for state, count in deployment.replica_states.items() if str(getattr(state, "value", state)) == "RUNNING"
    )


def remove_leftovers() -> None:
    """What commands left behind that were killed: processes and folders."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        if number.isdigit() and sys.platform == "linux" and not Path(f"/proc/{number}").exists():
            _removed(folder)


def _removed(folder: Path) -> None:
    """A folder of Ray's, and whoever is still at work in it."""
    mark = f"{MARK}={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def _left_by_others(serve: Any) -> None:
    """Applications of ours in a cluster whose commands on this machine are no more."""
    for name in serve.status().applications:
        host, _, number = name.removeprefix("weft-").rpartition("-")
        if (
            name.startswith("weft-")
            and host == socket.gethostname()
            and number.isdigit()
            and not Path(f"/proc/{number}").exists()
        ):
            serve.delete(name)


def _reachable(address: str) -> None:
    """Raises UserError for a cluster that is not there: Ray would try for minutes."""
    place, told = (os.environ.get("RAY_ADDRESS", ""), "") if address == "auto" else (address, "")
    if address == "auto" and not place:  # where Ray itself looks
        noted = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir())) / "ray" / "ray_current_cluster"
        with contextlib.suppress(OSError):
            place = noted.read_text().strip()
            told = f", which {noted} names"
    if not place:
        raise UserError(
            "no Ray cluster is known here: start one with `ray start --head`, give HOST:PORT, or leave --address out"
        )
    host, _, port = place.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT).close()
    except (OSError, ValueError) as failed:
        raise UserError(
            f"no Ray cluster answers at {place}{told} ({failed}): start one with `ray start --head`, or leave --address out"
        ) from None


def _short(told: str) -> str:
    """The last line of a traceback: what went wrong."""
    lines = [line.strip() for line in COLOURS.sub("", told).splitlines() if line.strip()]
    if lines:
        return lines[-1][:500]
    return "(nothing was said)"


def _keep_to_loopback() -> None:
    """In a replica on this machine: the port that replicas could reach each other by, which none of ours does, is not
    for the network."""
    module: Any = importlib.import_module("ray.serve._private.replica")
    add = getattr(module, "add_port_to_grpc_server", None)
    if callable(add):

        def near(server: Any, address: str, *more: Any, **named: Any) -> Any:
            return add(server, re.sub(r"^(\[::\]|0\.0\.0\.0)", "127.0.0.1", address), *more, **named)

        module.add_port_to_grpc_server = near
