"""A build from its request to its files: opens models by role, goes through the parts that are not done, and writes the
WEAVE layout when all are.

    outcome = await run_build(BuildRequest("weave-recall", Path("DATA"), {"writer": "MODEL", ...}, seeds=1000))
"""

import asyncio
import math
import statistics
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from weft.building.context import Tools
from weft.building.crew import Crew, build_parts
from weft.building.draft import Row
from weft.building.dry_run import RoleForecast, forecast_rows
from weft.building.export import write_dataset
from weft.building.features import JournalFeatures
from weft.building.manifest import FILE, BuildManifest, write_manifest
from weft.building.parts import find_open_parts, read_rows, remove_replaced_parts, split_seeds, write_part
from weft.building.preparation import prepare
from weft.building.progress import BuildProgress
from weft.building.recipe import Recipe
from weft.building.request import BuildRequest, limits_of
from weft.building.rows import make_row
from weft.calls.interrupts import INTERRUPT_GRACE_S, Interrupted, on_interrupt
from weft.errors import WeftError
from weft.models.endpoint import Endpoint
from weft.store.locks import lock_run
from weft.store.schema import journal_file
from weft.workspace import Workspace, close_endpoints

NORMAL_95 = 1.96
OnStart = Callable[["OpenBuild"], None]


class OpenBuild(Struct):
    """A build whose models are open."""

    request: BuildRequest
    recipe: Recipe
    manifest: BuildManifest
    out: Path
    home: Path
    progress: BuildProgress
    notes: list[str]


class BuildOutcome(Struct, frozen=True):
    """How a build ended. `reason` is why it is not complete."""

    out: Path
    manifest: BuildManifest
    progress: BuildProgress
    reason: WeftError | None
    failed: int  # rows that the next command tries again


class MeasuredCost(Struct, frozen=True):
    """What the seeds of a build cost that are done, whoever paid for them."""

    seeds: int
    kept: int
    cost: float  # of one seed, in USD, with all its tries and mendings
    deviation: float  # standard deviation of the cost of a seed
    left: int  # seeds that are not done

    @property
    def rest(self) -> float:
        """What the seeds that are left will cost, if they cost as much."""
        return self.cost * self.left

    @property
    def margin(self) -> float:
        """Half of the 95% prediction interval of `rest`: both the mean and the seeds that are left vary by chance."""
        return NORMAL_95 * self.deviation * math.sqrt(self.left**2 / self.seeds + self.left)


class BuildForecast(Struct, frozen=True):
    """What a build would call for the seeds that are left."""

    manifest: BuildManifest
    total: int  # seeds of the build, or of its shard
    seeds: int  # that are in parts that are not done
    roles: Mapping[str, RoleForecast]
    local: tuple[str, ...]  # roles whose models answer here, at no cost
    measured: "MeasuredCost | None" = None  # what the seeds cost that are done


async def forecast_build(request: BuildRequest) -> BuildForecast:
    """Return what a build would call and cost. No paid call is made, and the folder is not touched."""
    with tempfile.TemporaryDirectory(prefix="weft-dry-") as folder:
        _, workspace, _, _ = prepare(request)
        if not journal_file(workspace.home).exists():
            request = replace(request, home=Path(folder))
        recipe, workspace, endpoints, manifest = prepare(request)
        parts = find_open_parts(request.out.absolute(), request.seeds, manifest.part_size, manifest.shard)
        seeds = [number for part in parts for number in part.seeds]
        async with workspace.open(endpoints, composed=True) as models:
            for caller in models.callers.values():
                caller.book_under(manifest.run)
            roles = await forecast_rows(recipe, models, seeds)
        local = tuple(role for role, endpoint in endpoints.items() if not endpoint.cacheable)
        total = sum(len(part.seeds) for part in split_seeds(request.seeds, manifest.part_size, manifest.shard))
    return BuildForecast(manifest, total, len(seeds), roles, local, measure_cost(request.out.absolute(), seeds))


def measure_cost(out: Path, seeds: Sequence[int]) -> MeasuredCost | None:
    """Return what a seed cost so far; None if none is done, or a price is unknown. `seeds` are those of open parts, of
    which some may be done."""
    if not (out / FILE).exists():
        return None
    costs: list[float] = []
    kept = 0
    left = set(seeds)
    for row in read_rows(out):
        if row.cost is None:
            return None
        if row.outcome != "failed":
            costs.append(row.cost)
            kept += row.outcome == "kept"
            left.discard(row.number)
    if not costs:
        return None
    deviation = statistics.stdev(costs) if len(costs) > 1 else 0.0
    return MeasuredCost(len(costs), kept, math.fsum(costs) / len(costs), deviation, len(left))


async def run_build(
    request: BuildRequest, on_start: OnStart | None = None, on_note: Callable[[str], None] = lambda note: None
) -> BuildOutcome:
    """Build what is not done yet. Raises UserError for a mistake of the user's; other reasons are in the outcome.

    `on_note` gets what a user who waits should know, such as that a worker died.
    """
    recipe, workspace, endpoints, manifest = prepare(request)
    out = request.out.absolute()
    opened = OpenBuild(request, recipe, manifest, out, workspace.home, BuildProgress(), [])
    async with AsyncExitStack() as closing:
        if request.ray is None:
            crew = await closing.enter_async_context(_open_crew(opened, workspace, endpoints))
        else:
            from weft.building.ray_crew import open_ray_crew

            await close_endpoints(endpoints.values())  # others are made where they are used
            crew = await closing.enter_async_context(open_ray_crew(request, manifest, opened.progress, on_note))
        for folder in dict.fromkeys((workspace.home, out)):  # a build's folder has one writer, whatever its home
            closing.enter_context(lock_run(folder, manifest.run))
        await _build(opened, crew, on_start)
        if crew.halt.reason is None and not manifest.shard:
            write_dataset(out, recipe, workspace.blobs)
    return BuildOutcome(out, manifest, opened.progress, crew.halt.reason, opened.progress.outcomes["failed"])


@asynccontextmanager
async def _open_crew(
    opened: OpenBuild, workspace: Workspace, endpoints: Mapping[str, Endpoint]
) -> AsyncGenerator[Crew]:
    """Open the models here, and make rows in this process."""
    request = opened.request
    async with workspace.open(endpoints, limits_of(request), composed=True) as models:
        for caller in models.callers.values():
            caller.book_under(opened.manifest.run)
        opened.progress.calls = models.callers
        features = JournalFeatures(models.journal)
        manifest = opened.manifest
        tools = Tools(models.callers, models.blobs, features, test_share=manifest.test_share, tries=manifest.tries)
        steps = opened.recipe.steps()

        def make(number: int) -> Awaitable[Row]:
            return make_row(opened.recipe, steps, number, tools)

        yield Crew(make, models.halt, request.rows_in_flight or models.samples_in_flight, models.halt.stop)


async def _build(opened: OpenBuild, crew: Crew, on_start: OnStart | None) -> None:
    request = opened.request
    manifest = opened.manifest
    write_manifest(opened.out, manifest)
    remove_replaced_parts(opened.out)
    parts = find_open_parts(opened.out, request.seeds, manifest.part_size, manifest.shard)
    everything = split_seeds(request.seeds, manifest.part_size, manifest.shard)
    progress = opened.progress
    progress.total = sum(len(part.seeds) for part in everything)
    progress.earlier = progress.total - sum(len(part.seeds) for part in parts)
    progress.done = progress.earlier
    if progress.earlier:
        opened.notes.append(f"{len(everything) - len(parts)} of {len(everything)} parts are done already")
    if on_start is not None:
        on_start(opened)
    work = asyncio.ensure_future(
        build_parts(parts, crew, lambda part, rows: write_part(opened.out, part, rows), progress.add)
    )

    def interrupt() -> None:
        is_first = crew.halt.reason is None
        crew.stop(Interrupted("interrupted"))
        asyncio.get_running_loop().call_later(INTERRUPT_GRACE_S if is_first else 0, work.cancel)

    with on_interrupt(interrupt):
        try:
            await work
        except asyncio.CancelledError:
            if crew.halt.reason is None:
                raise
