"""A pool of replicas on Ray Serve (extra `ray`): on this machine, or on a running cluster.

On this machine Ray is started for this command alone, listens on loopback with a token of its own, and ends with it. On
a cluster only our application is added, and only that is removed. Missing GPUs and CPUs are reported before anyone
waits for them: Ray itself would wait for ever. A replica that dies loses the requests that it held; they become errors
that clients retry.
"""

import asyncio
import contextlib
import importlib
import logging
import math
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.calls.sending import scrub_message
from weft.errors import UserError, WeftError, message_of
from weft.models.endpoint import CallError
from weft.models.function import run_in_thread
from weft.models.providers.served_card import ModelCard
from weft.ray_cluster import RayCluster, RayThread, is_running, last_line
from weft.serving.chat import format_error
from weft.serving.replica import Replica, ReplicaResponse, ReplicaSpec

DEPLOYMENT = "Replica"
SHUTDOWN_GRACE_S = 20.0
MAX_FAILED_CHECKS = 3  # in a row, after which the cluster counts as gone
HEALTH_CACHE_S = 1.0
STATUS_TIMEOUT_S = 10.0
MAX_STATUS = 500  # characters of what a replica reports
MAX_RESPONSE_BYTES = 128 * 1024 * 1024
REPLICA_ID = re.compile(r"([\w.-]{1,255}:[0-9]{1,10})?")
COUNTER = re.compile(r"[a-z_]{1,64}")
FAILED = "failed"  # the key under which a replica reports why it could not load
PrintStatus = Callable[[str], None]
T = TypeVar("T")


class ReplicaResources(Struct, frozen=True):
    """How many replicas there are, what each needs, and where they run."""

    replicas: int
    gpus_each: float | None = None  # None: one where there are GPUs
    cpus_each: float | None = None  # None: one
    address: str | None = None  # of a running cluster; None: Ray is started on this machine


class LoadingProgress:
    """A Ray actor in which replicas report how far they are, by replica."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}

    def put(self, replica: str, line: str) -> None:
        self._lines[replica] = line

    def read(self) -> dict[str, str]:
        return self._lines


class RayReplica:
    """A replica as a Ray actor. It is ready when its weights are loaded."""

    async def __init__(  # type: ignore[misc]
        self, spec: ReplicaSpec, progress: Any, loopback_only: bool, identity: bytes
    ) -> None:
        """`identity` is the model's. A machine that has another one under its name has no part in the answers."""
        if loopback_only:
            _listen_on_loopback()
        try:
            await self._load(spec, progress, identity)
        except Exception as error:
            problem = _describe(error)
            await progress.put.remote(FAILED, problem)
            raise RuntimeError(problem) from None  # a model's own error may be one that nobody else can unpickle

    async def _load(self, spec: ReplicaSpec, progress: Any, identity: bytes) -> None:
        self._replica = await run_in_thread(Replica, spec)
        replica_id = self._replica.replica_id
        if _encode_identity(self._replica.card) != identity:
            raise UserError(f"{replica_id} has another model under this name: all must have the same weights and code")
        loading = asyncio.ensure_future(self._replica.load())
        while not (await asyncio.wait({loading}, timeout=1.0))[0]:
            progress.put.remote(replica_id, str(self._replica.status_line)[:MAX_STATUS])
        await loading
        progress.put.remote(replica_id, "ready")

    async def answer(self, body: bytes) -> ReplicaResponse:
        return await self._replica.answer(body)

    async def check_health(self) -> None:
        self._replica.check()


class RayPool:
    card: ModelCard  # set by `start`

    def __init__(self, resources: ReplicaResources, spec: ReplicaSpec, print_status: PrintStatus) -> None:
        self._resources = resources
        self._spec = spec
        self._print_status = print_status
        self._cluster = RayCluster(resources.address, print_status)
        self._ray: Any = None
        self._serve: Any = None
        self._handle: Any = None
        self._progress: Any = None
        self._app = f"weft-{socket.gethostname()}-{os.getpid()}"
        self._checked_at = 0.0
        self._ready = 0  # replicas at the last check
        self._failed_checks = 0  # in a row
        self._thread = RayThread()
        self._closing = False

    async def start(self) -> None:
        """Start Ray and all replicas; return when they are ready. Raises UserError where they never will be."""
        await self._call_ray(self._start_ray)
        await self._call_ray(self._deploy)
        try:
            await self._wait_until_ready()
        except WeftError:
            raise
        except Exception as error:  # whatever it is, the cluster did not answer
            raise UserError(f"Ray ended while the replicas were started: {last_line(message_of(error))}") from None

    async def _call_ray(self, function: Callable[[], T]) -> T:
        """Run a function in Ray's thread. Raises PoolClosing once `close` was called.

        A later call would start Ray anew, wherever it found a cluster.
        """

        def call_unless_closing() -> T:
            if self._closing:
                raise PoolClosing("the pool is closing")
            return function()

        return await asyncio.wrap_future(self._thread.submit(call_unless_closing))

    # Ray

    def _start_ray(self) -> None:
        cpus = math.ceil(self._resources.replicas * self._cpus) + 1
        self._ray = self._cluster.start(cpus, purpose="several replicas")
        self._serve = importlib.import_module("ray.serve")
        logging.getLogger("ray.serve").setLevel(logging.CRITICAL)
        self._check_resources()
        self._serve.start(proxy_location="Disabled", logging_config={"log_level": "ERROR", "enable_access_log": False})
        if self._resources.address and sys.platform == "linux":
            _delete_orphaned_apps(self._serve)

    @property
    def _cpus(self) -> float:
        if self._resources.cpus_each is None:
            return 1.0
        return self._resources.cpus_each

    @property
    def _gpus(self) -> float:
        if self._resources.gpus_each is not None:
            return self._resources.gpus_each
        if self._ray.cluster_resources().get("GPU", 0):
            return 1.0
        return 0.0

    def _check_resources(self) -> None:
        """Raise UserError where the machines cannot hold all replicas. Each replica must fit on one machine."""
        replicas = self._resources.replicas
        nodes: list[Mapping[str, Any]] = [node for node in self._ray.nodes() if node.get("Alive")]
        place = "this machine"
        if len(nodes) > 1:
            place = f"{len(nodes)} machines"
        elif self._resources.address:
            place = "the cluster"
        for kind, each, option in (("GPU", self._gpus, "--gpus-each"), ("CPU", self._cpus, "--cpus-each")):
            if not each:
                continue
            available = [float(node.get("Resources", {}).get(kind, 0)) for node in nodes]
            if sum(math.floor(count / each + 1e-9) for count in available) < replicas:
                raise UserError(
                    f"{replicas} replicas with {each:g} {kind}s each want {replicas * each:g}; {place} has "
                    f"{sum(available):g}: give fewer --replicas, or another {option}"
                )

    def _deploy(self) -> None:
        card = replace(self._read_card(), replicas=self._resources.replicas)
        self.card = card
        router = importlib.import_module("ray.serve.config").RequestRouterConfig
        self._progress = self._ray.remote(num_cpus=0)(LoadingProgress).remote()
        deployment = self._serve.deployment(RayReplica).options(
            name=DEPLOYMENT,
            num_replicas=self._resources.replicas,
            max_ongoing_requests=card.concurrency,
            max_queued_requests=-1,
            max_constructor_retry_count=2,
            health_check_period_s=2,
            health_check_timeout_s=60,
            graceful_shutdown_timeout_s=5,
            graceful_shutdown_wait_loop_s=0.2,
            request_router_config=router(initial_backoff_s=0.01, backoff_multiplier=1.0, max_backoff_s=0.02),
            ray_actor_options={"num_cpus": self._cpus, "num_gpus": self._gpus},
        )
        loopback_only = not self._resources.address
        bound = deployment.bind(self._spec, self._progress, loopback_only, _encode_identity(card))
        target = self._serve.RunTarget(bound, name=self._app, route_prefix=None)
        (self._handle,) = self._serve.run_many([target], wait_for_applications_running=False)

    def _read_card(self) -> ModelCard:
        """Read the model's card in one process of Ray's, so that a wrong option fails once and not in every replica."""
        task = self._ray.remote(num_cpus=0, num_gpus=self._gpus, max_retries=0)(read_model_card)
        try:
            answer: Any = self._ray.get(task.remote(self._spec))
        except self._ray.exceptions.RayError as error:
            raise UserError(f"the process that was to load {self._spec.model} ended: {type(error).__name__}") from None
        return self._parse_card(answer)

    def _parse_card(self, answer: Any) -> ModelCard:
        """Return the card in what `read_model_card` sent. Raises UserError if there is none."""
        try:
            card, problem = msgspec.json.decode(answer, type=tuple[ModelCard | None, str])
        except (TypeError, ValueError, RecursionError) as error:
            raise UserError(f"{self._spec.model} has no card that can be used: {message_of(error)}") from None
        if card is None:
            raise UserError(problem)
        return card

    async def _wait_until_ready(self) -> None:
        """Wait for all replicas, printing how far they are. Raises UserError where they fail."""
        printed = ""
        while True:
            app: Any = (await self._call_ray(self._serve.status)).applications[self._app]
            state = app.status.value
            if state == "RUNNING":
                return
            deployment = app.deployments.get(DEPLOYMENT)
            reported: dict[object, object] = await self._progress.read.remote()
            progress = {str(name): str(line)[:MAX_STATUS] for name, line in reported.items()}
            failure = progress.pop(FAILED, "")
            if state in ("DEPLOY_FAILED", "UNHEALTHY"):
                reason = failure or last_line((deployment or app).message)
                raise UserError(f"the replicas could not be started: {reason}")
            line = f"{_count_ready(deployment)} of {self._resources.replicas} replicas ready"
            loading = set(progress.values()) - {"", "ready"}
            if loading:
                line += f"; {'; '.join(sorted(loading))}"
            if line != printed:
                self._print_status(line)
                printed = line
            await asyncio.sleep(0.5)

    # the pool

    async def answer(self, body: bytes) -> ReplicaResponse:
        exceptions: Any = self._ray.exceptions
        try:
            return _check_response(await self._handle.answer.remote(body))
        except exceptions.RayActorError:
            return ReplicaResponse(500, format_error("the replica that worked on it died: ask again", "replica_lost"))
        except Exception as error:
            message = scrub_message(last_line(message_of(error)))
            if type(error).__name__ == "BackPressureError":
                return ReplicaResponse(429, format_error(message, "queue_full"))
            return ReplicaResponse(500, format_error(message, "replica_failed"))

    async def health(self) -> tuple[int, int]:
        if time.monotonic() - self._checked_at > HEALTH_CACHE_S:
            try:
                status: Any = await asyncio.wait_for(self._call_ray(self._serve.status), STATUS_TIMEOUT_S)
                self._ready = _count_ready(status.applications[self._app].deployments[DEPLOYMENT])
                self._failed_checks = 0
            except Exception:  # whatever it is, the cluster did not answer
                self._ready = 0
                self._failed_checks += 1
            self._checked_at = time.monotonic()
        return self._ready, self._resources.replicas

    @property
    def is_gone(self) -> bool:
        """Whether the cluster has not answered for several checks."""
        return self._failed_checks >= MAX_FAILED_CHECKS

    async def close(self) -> None:
        """Shut Ray down; what does not end in time is killed.

        A start under way is waited for: Ray cannot be stopped in the middle of it.
        """
        self._closing = True
        stopping = asyncio.wrap_future(self._thread.submit(self._stop_ray))
        await asyncio.wait({stopping}, timeout=SHUTDOWN_GRACE_S)
        self._cluster.remove_folder()

    def _stop_ray(self) -> None:
        with contextlib.suppress(Exception):
            if self._resources.address and self._serve is not None:
                self._serve.delete(self._app)
        self._cluster.stop()


class PoolClosing(WeftError):
    """The pool is closing, and makes no further calls to Ray."""


class NoResponse(WeftError):
    """A replica sent what is no HTTP answer."""


def read_model_card(spec: ReplicaSpec) -> bytes:
    """Build a replica without loading its weights. Return its card, or why there is none, as JSON.

    Runs in a process of Ray's. No object of the model's code leaves it.
    """
    try:
        return msgspec.json.encode((Replica(spec).card, ""))
    except BaseException as error:  # also SystemExit
        return msgspec.json.encode((None, _describe(error)))


def _encode_identity(card: ModelCard) -> bytes:
    """Return the identity as it is compared between processes, of which one may have it from JSON."""
    identity: Any = msgspec.json.decode(msgspec.json.encode(card.identity))
    return msgspec.json.encode(identity, order="sorted")


def _describe(error: BaseException) -> str:
    """Return in one line why a model cannot be used."""
    message = message_of(error)
    if not isinstance(error, (UserError, CallError)):
        message = f"{type(error).__name__}: {message}"
    return " ".join(scrub_message(message).split())[:MAX_STATUS]


def _check_response(response: object) -> ReplicaResponse:
    """Return an HTTP answer that a server can pass on. Raises NoResponse for anything else that a replica sent."""
    try:
        checked = msgspec.convert(
            msgspec.to_builtins(response, builtin_types=(bytes,)), ReplicaResponse, builtin_types=(bytes,)
        )
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise NoResponse("the replica sent what is no answer") from None
    if not 200 <= checked.status <= 599:
        raise NoResponse(f"the replica sent the status {checked.status}")
    if len(checked.body) > MAX_RESPONSE_BYTES:
        raise NoResponse(f"the replica sent {len(checked.body):,} bytes, more than the limit of {MAX_RESPONSE_BYTES:,}")
    if not REPLICA_ID.fullmatch(checked.replica) or not all(map(COUNTER.fullmatch, checked.counters)):
        raise NoResponse("the replica has a name, or counters, that no replica has")
    return checked


def _count_ready(deployment: Any) -> int:
    if not deployment:
        return 0
    ready = 0
    for state, count in deployment.replica_states.items():
        if str(getattr(state, "value", state)) == "RUNNING":
            ready += count
    return ready


def _delete_orphaned_apps(serve: Any) -> None:
    """Delete our applications in a cluster whose commands ran on this machine and are gone."""
    for name in serve.status().applications:
        host, _, process_id = name.removeprefix("weft-").rpartition("-")
        is_ours = name.startswith("weft-") and host == socket.gethostname() and process_id.isdigit()
        if is_ours and not is_running(process_id):
            serve.delete(name)


def _listen_on_loopback() -> None:
    """Bind a replica's gRPC port to loopback. Replicas could call each other by it; ours never do."""
    module: Any = importlib.import_module("ray.serve._private.replica")
    add_port = getattr(module, "add_port_to_grpc_server", None)
    if not callable(add_port):
        return

    def add_loopback_port(server: Any, address: str, *more: Any, **named: Any) -> Any:
        return add_port(server, re.sub(r"^(\[::\]|0\.0\.0\.0)", "127.0.0.1", address), *more, **named)

    module.add_port_to_grpc_server = add_loopback_port
