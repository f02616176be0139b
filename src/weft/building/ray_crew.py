"""Builds on Ray: a keeper on this machine owns the journal, and workers anywhere make the rows.

    weft build RECIPE ... --ray auto                       Ray is started here, and ends with the command
    weft build RECIPE ... --ray 64 --address HOST:6379     workers on a cluster, whose machines share the build's folder

Rows are given out one by one, so that a worker that dies costs its rows' calls in flight: another worker makes those
rows again, with all that was answered.
"""

import asyncio
import contextlib
import importlib
import os
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from weft.building.crew import Crew
from weft.building.draft import Row
from weft.building.manifest import BuildManifest
from weft.building.parts import decode_row
from weft.building.progress import BuildProgress
from weft.building.ray_keeper import MAX_DEATHS, RESTART_CHECK_S, Keeper, PlayerCard, Tally, wait_for_worker
from weft.building.ray_worker import KEEPER_GONE, Worker
from weft.building.request import BuildRequest, RayRequest, split_models
from weft.building.rows import MAX_DETAIL
from weft.calls.caller import Halt
from weft.calls.sending import scrub_message
from weft.errors import StoreError, UserError, WeftError, message_of
from weft.ray_cluster import RayCluster, RayThread, import_ray_errors, last_line

MAX_CALLS = 10_000  # of one actor at once
ROWS_OF_WORKER = 16  # in flight, at least
TALLY_INTERVAL_S = 0.5
CLOSE_TIMEOUT_S = 20.0
T = TypeVar("T")


@contextlib.asynccontextmanager
async def open_ray_crew(
    request: BuildRequest, manifest: BuildManifest, progress: BuildProgress, on_note: Callable[[str], None]
) -> AsyncGenerator[Crew]:
    """Start Ray or join a cluster, start keeper and workers, and end them all afterwards.

    Raises UserError where that cannot be done.
    """
    assert request.ray is not None
    sent = make_portable(request)
    cluster = RayCluster(request.ray.address, on_note)
    thread = RayThread()

    async def call(function: Callable[[], T]) -> T:
        return await asyncio.wrap_future(thread.submit(function))

    try:
        await call(partial(cluster.start, (request.ray.workers or 1) + 1, purpose="builds with --ray"))
        keeper, workers = await call(partial(_start_actors, cluster.ray, request.ray, sent))
        crew = _RayCrew(keeper, workers, progress, on_note)
        rows_in_flight = await crew.open(sent, manifest.run)
        watching = asyncio.ensure_future(crew.watch())
        try:
            yield Crew(
                crew.make,
                crew.halt,
                request.rows_in_flight or max(rows_in_flight, ROWS_OF_WORKER * len(workers)),
                crew.stop,
            )
        finally:
            watching.cancel()
            await crew.close()
    finally:
        await asyncio.wait({asyncio.ensure_future(call(cluster.stop))}, timeout=CLOSE_TIMEOUT_S)
        cluster.remove_folder()


def make_portable(request: BuildRequest) -> BuildRequest:
    """Return the request as other processes can read it. Raises UserError for models that are objects."""
    for role, model in request.models.items():
        if not all(isinstance(name, str) for name in split_models(model)):
            raise UserError(f"{role}: on Ray a model is a name, such as file.py:NAME, not an object of this program")
    home = None if request.home is None else request.home.absolute()
    return replace(request, out=request.out.absolute(), home=home, ray=None)


def _start_actors(ray: Any, asked: RayRequest, request: BuildRequest) -> tuple[Any, list[Any]]:
    """Start the keeper on this machine, and the workers where there is room. Raises UserError where there is none."""
    strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
    nodes: list[Mapping[str, Any]] = [node for node in ray.nodes() if node.get("Alive")]
    cpus = sum(int(node.get("Resources", {}).get("CPU", 0)) for node in nodes)
    workers = asked.workers or max(1, cpus)
    if workers > cpus:
        raise UserError(f"--ray {workers}: the machines have {cpus} CPUs, and each worker takes one")
    gpus = sum(float(node.get("Resources", {}).get("GPU", 0)) for node in nodes)
    if workers * asked.gpus_each > gpus:
        raise UserError(f"{workers} workers with {asked.gpus_each:g} GPUs each; the machines have {gpus:g}")
    here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    environment = {"env_vars": {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}}
    name = f"weft-build-{socket.gethostname()}-{os.getpid()}"
    make_keeper = ray.remote(Keeper).options(name=name, num_cpus=0, max_concurrency=MAX_CALLS, scheduling_strategy=here)
    keeper = make_keeper.remote()
    make_worker = ray.remote(Worker).options(
        num_cpus=1,
        num_gpus=asked.gpus_each,
        max_restarts=-1,
        max_concurrency=MAX_CALLS,
        scheduling_strategy="SPREAD",
        runtime_env=environment,
    )
    folder = str(Path.cwd())
    return keeper, [make_worker.remote(number, request, folder, name) for number in range(workers)]


class _RayCrew:
    """The driver's side: gives rows to workers, and notices when one dies."""

    def __init__(
        self, keeper: Any, workers: list[Any], progress: BuildProgress, on_note: Callable[[str], None]
    ) -> None:
        self.halt = Halt()
        self._keeper = keeper
        self._workers = workers
        self._progress = progress
        self._on_note = on_note
        self._lives: Counter[int] = Counter()  # deaths, by worker
        self._reviving: dict[int, asyncio.Future[None]] = {}
        self._lost: set[int] = set()  # workers that could not be started again
        self._in_flight: Counter[int] = Counter()  # rows, by worker
        self._cards: Mapping[str, PlayerCard] = {}

    async def open(self, request: BuildRequest, run: str) -> int:
        """Open the journal in the keeper, and wait for the workers. Return how many rows may be in flight."""
        _, RayError = import_ray_errors()

        try:
            opened = await self._keeper.open.remote(request, run, str(Path.cwd()), self._workers, os.getpid())
            problems = await asyncio.gather(*(worker.is_ready.remote() for worker in self._workers))
        except RayError as error:
            raise UserError(f"keeper and workers could not be started: {last_line(str(error))}") from None
        for problem in (opened, *problems):
            if isinstance(problem, WeftError):
                raise problem
        self._cards, rows_in_flight = opened
        return rows_in_flight

    async def make(self, number: int) -> Row:
        """Return the row of a seed. A row whose workers die is made again by others; after some, it has failed."""
        RayActorError, _ = import_ray_errors()

        for _ in range(MAX_DEATHS):
            index = await self._choose_worker()
            life = self._lives[index]
            self._in_flight[index] += 1
            try:
                made = await self._workers[index].make.remote(number, self._cards)
            except RayActorError:
                self._note_death(index, life)
                continue
            except Exception as error:  # whatever Ray makes of what a worker raised
                return _fail(number, "a worker failed", last_line(message_of(error)))
            finally:
                self._in_flight[index] -= 1
            if isinstance(made, WeftError):
                raise made
            return _read_row(made, number)
        return _fail(number, f"{MAX_DEATHS} workers died while they made it")

    async def _choose_worker(self) -> int:
        """Return the living worker that has the fewest rows; wait for one if there is none."""
        while True:
            self.halt.check()
            absent = {*self._reviving, *self._lost}
            living = [index for index in range(len(self._workers)) if index not in absent]
            if living:
                return min(living, key=lambda index: self._in_flight[index])
            await asyncio.sleep(RESTART_CHECK_S)

    def _note_death(self, index: int, life: int) -> None:
        """Leave a worker out until Ray has started it again. All rows of one life tell of its one death."""
        if self._lives[index] != life:
            return
        self._lives[index] += 1
        self._on_note(f"worker {index + 1} died; others make its rows again")
        self._reviving[index] = asyncio.ensure_future(self._revive(index))

    async def _revive(self, index: int) -> None:
        RayActorError, _ = import_ray_errors()

        try:
            problem = await wait_for_worker(self._workers[index])
        except RayActorError as error:
            problem = error
        if problem is not None:
            self._give_up(index, f"worker {index + 1} could not be started again: {last_line(message_of(problem))}")
        del self._reviving[index]

    def _give_up(self, index: int, reason: str) -> None:
        """Go on without a worker, such as one of a machine that has left; end the build if it was the last one."""
        self._lost.add(index)
        if len(self._lost) == len(self._workers):
            self.stop(UserError(reason))
        else:
            self._on_note(f"{reason}; the others go on")

    def stop(self, reason: WeftError) -> None:
        """Send no new call."""
        self.halt.stop(reason)
        self._keeper.stop.remote(reason if self.halt.reason is reason else self.halt.reason)

    async def watch(self) -> None:
        """Keep the progress up to date, and end the build when the keeper does."""
        while True:
            await asyncio.sleep(TALLY_INTERVAL_S)
            try:
                await self._read_tally()
            except Exception:  # whatever it is, the keeper did not answer
                self.halt.stop(StoreError(KEEPER_GONE))
                return

    async def _read_tally(self) -> None:
        tally: Tally = await self._keeper.tally.remote()
        self._progress.remote_calls = Counter({"made": tally.made, "cached": tally.cached})
        self._progress.remote_cost = tally.cost
        if tally.reason is not None:
            self.halt.stop(tally.reason)

    async def close(self) -> None:
        """Read the last counts, and close the journal. Nothing calls Ray afterwards: that would end the process."""
        for waiting in self._reviving.values():
            waiting.cancel()
        with contextlib.suppress(Exception):  # a keeper that is gone has closed it
            await asyncio.wait_for(self._read_tally(), CLOSE_TIMEOUT_S)
            await asyncio.wait_for(self._keeper.close.remote(), CLOSE_TIMEOUT_S)


def _read_row(made: object, number: int) -> Row:
    """Return the row that a worker sent; a failed one where it sent anything else, such as the row of another seed."""
    problem = "it sent no row"
    if isinstance(made, bytes):
        try:
            row = decode_row(made)
        except (ValueError, RecursionError) as error:  # msgspec's errors and UnicodeError are ValueErrors
            problem = message_of(error)
        else:
            if row.number == number and row.outcome:
                return row
            problem = f"it sent row {row.number}, {row.outcome or 'unfinished'}"
    return _fail(number, "a worker sent no row of this seed", problem)


def _fail(number: int, reason: str, detail: str = "") -> Row:
    return Row(number, outcome="failed", step="worker", reason=reason, detail=scrub_message(detail)[:MAX_DETAIL])
