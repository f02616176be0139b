"""A build from its request to its files: opens models by role, goes through the parts that are not done, and writes the
WEAVE layout when all are.

    outcome = await run_build(BuildRequest("weave-recall", Path("DATA"), {"writer": "MODEL", ...}, seeds=1000))
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from weft.building.context import Tools
from weft.building.dry_run import RoleForecast, forecast_rows
from weft.building.export import write_dataset
from weft.building.local import LocalExecutor
from weft.building.manifest import (
    FILE,
    BuildManifest,
    build_manifest,
    check_size,
    continue_manifest,
    home_to_continue,
    write_manifest,
)
from weft.building.parts import find_open_parts, split_seeds, write_part
from weft.building.progress import BuildProgress
from weft.building.recipe import Recipe, load_recipe, open_recipe
from weft.building.request import BuildRequest, open_endpoints
from weft.calls.interrupts import INTERRUPT_GRACE_S, Interrupted, on_interrupt
from weft.calls.roles import Limits, ModelsByRole
from weft.errors import UserError, WeftError
from weft.models.endpoint import Endpoint
from weft.store.locks import lock_run
from weft.store.schema import journal_file
from weft.workspace import Workspace

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


def prepare(request: BuildRequest) -> tuple[Recipe, Workspace, Mapping[str, Endpoint], BuildManifest]:
    """Return what a build needs, without a call and without writing anything. Raises UserError for a mistake."""
    if request.seeds < 1:
        raise UserError("--seeds: give at least 1")
    check_size(request.seeds, request.part_size)
    out = request.out.absolute()
    if out.is_file():
        raise UserError(f"{request.out} is a file: --out is a folder")
    recipe = open_recipe(load_recipe(request.recipe), request.recipe, request.options)
    home = (request.home or out).absolute()
    if request.home is None and (out / FILE).exists():
        home = home_to_continue(out)
    workspace = Workspace(home)
    endpoints = open_endpoints(request, recipe, workspace)
    wanted = build_manifest(
        request.recipe,
        recipe,
        endpoints,
        seeds=request.seeds,
        part_size=request.part_size,
        out=out,
        home=home,
    )
    return recipe, workspace, endpoints, continue_manifest(out, wanted)


class BuildForecast(Struct, frozen=True):
    """What a build would call for the seeds that are left."""

    manifest: BuildManifest
    seeds: int  # that are left
    roles: Mapping[str, RoleForecast]
    local: tuple[str, ...]  # roles whose models answer here, at no cost


async def forecast_build(request: BuildRequest) -> BuildForecast:
    """Return what a build would call and cost. No paid call is made, and the folder is not touched."""
    with tempfile.TemporaryDirectory(prefix="weft-dry-") as folder:
        _, workspace, _, _ = prepare(request)
        if not journal_file(workspace.home).exists():
            request = replace(request, home=Path(folder))
        recipe, workspace, endpoints, manifest = prepare(request)
        parts = find_open_parts(request.out.absolute(), request.seeds, manifest.part_size)
        seeds = [number for part in parts for number in part.seeds]
        async with workspace.open(endpoints, composed=True) as models:
            for caller in models.callers.values():
                caller.book_under(manifest.run)
            roles = await forecast_rows(recipe, models, seeds)
        local = tuple(role for role, endpoint in endpoints.items() if not endpoint.cacheable)
    return BuildForecast(manifest, len(seeds), roles, local)


async def run_build(request: BuildRequest, on_start: OnStart | None = None) -> BuildOutcome:
    """Build what is not done yet. Raises UserError for a mistake of the user's; other reasons are in the outcome."""
    recipe, workspace, endpoints, manifest = prepare(request)
    out = request.out.absolute()
    limits = Limits(
        budget=request.budget,
        concurrency=request.concurrency,
        retry_policy=request.retry_policy,
        preflight=request.preflight,
    )
    async with workspace.open(endpoints, limits, composed=True) as models:
        with ExitStack() as locks:
            for folder in dict.fromkeys((workspace.home, out)):  # a build's folder has one writer, whatever its home
                locks.enter_context(lock_run(folder, manifest.run))
            progress = BuildProgress(calls=models.callers)
            opened = OpenBuild(request, recipe, manifest, out, workspace.home, progress, [])
            await _build(opened, models, on_start)
            reason = models.halt.reason
            if reason is None:
                write_dataset(out, recipe, workspace.blobs)
    return BuildOutcome(out, manifest, progress, reason, progress.outcomes["failed"])


async def _build(opened: OpenBuild, models: ModelsByRole, on_start: OnStart | None) -> None:
    request = opened.request
    manifest = opened.manifest
    write_manifest(opened.out, manifest)
    for caller in models.callers.values():
        caller.book_under(manifest.run)
    parts = find_open_parts(opened.out, request.seeds, manifest.part_size)
    everything = split_seeds(request.seeds, manifest.part_size)
    progress = opened.progress
    progress.total = request.seeds
    progress.earlier = request.seeds - sum(len(part.seeds) for part in parts)
    progress.done = progress.earlier
    if progress.earlier:
        opened.notes.append(f"{len(everything) - len(parts)} of {len(everything)} parts are done already")
    if on_start is not None:
        on_start(opened)
    tools = Tools(models.callers, models.blobs, models.journal)
    in_flight = request.rows_in_flight or models.samples_in_flight
    executor = LocalExecutor(opened.recipe, tools, models.halt, in_flight)
    work = asyncio.ensure_future(
        executor.run(parts, lambda part, rows: write_part(opened.out, part, rows), progress.add)
    )

    def interrupt() -> None:
        is_first = models.halt.reason is None
        models.halt.stop(Interrupted("interrupted"))
        asyncio.get_running_loop().call_later(INTERRUPT_GRACE_S if is_first else 0, work.cancel)

    with on_interrupt(interrupt):
        try:
            await work
        except asyncio.CancelledError:
            if models.halt.reason is None:
                raise
