"""Builds on Ray whose models and workers lie. A model whose code does anything costs the same rows as in one process, and
no object of its code gets into the process that keeps the journal and the keys. A worker that sends anything costs the
rows that it was given: what is kept is what an honest worker makes."""

import asyncio
import random
import re
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from msgspec.structs import replace

from fuzz import ROOT, Broken
from fuzz.actors import Actor, StubbornError, Trap, TrapError, lying
from weft.building.build import run_build
from weft.building.draft import Row
from weft.building.parts import Part, read_rows, write_part
from weft.building.preparation import prepare
from weft.building.progress import BuildProgress
from weft.building.ray_crew import _RayCrew, make_portable
from weft.building.ray_keeper import Answer, Failure, Keeper
from weft.building.ray_worker import Worker
from weft.building.request import BuildRequest
from weft.calls.sending import RetryPolicy
from weft.models.endpoint import NO_RETRY
from weft.workspace import close_endpoints

RECIPE = f"{ROOT / 'tests' / 'building' / 'recipes.py'}:Pairs"
MODELS = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests")!r}]
import hashlib, json
from PIL import Image
from fuzz.actors import Liar
from weft.models.endpoint import EndpointReply
from weft.types import Text

class Writer(Liar):
    def honest(self, text, request):
        name = hashlib.sha256(text.encode()).hexdigest()[:6]
        return EndpointReply((Text(json.dumps({{"name": name}})),), "answered", served_model=self.name)

class Painter(Liar):
    def __init__(self, blobs):
        super().__init__("painter", version=1)
        self.blobs = blobs

    def honest(self, text, request):
        colour = tuple(hashlib.sha256(text.encode()).digest()[:3])
        return EndpointReply((self.blobs.put_pil(Image.new("RGB", (16, 16), colour)),), "answered", served_model=self.name)

writer = Writer("writer", version=1)
"""
SEEDS = 40  # of one build
WORKERS = 2
PATIENCE_S = 300.0  # for one build


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    """`count` rows, in builds of SEEDS."""
    done: Counter[str] = Counter()
    (folder / "models.py").write_text(MODELS)
    for number in range(max(1, count // (2 * SEEDS))):
        seed = chance.randrange(10**9)
        work = folder / f"{number}"
        with lying(seed, random.Random(seed).choice([0.05, 0.2, 0.5]), folder / "unpickled"):
            asyncio.run(_lying_models(work, seed, done))
        with lying(seed, 0.0, folder / "unpickled", watched=False):
            asyncio.run(_lying_workers(work, seed, done))
        (folder / "unpickled").unlink(missing_ok=True)
        shutil.rmtree(work)
    return done


def request_of(out: Path) -> BuildRequest:
    models = f"{out.parent.parent / 'models.py'}"
    players = {"writer": f"{models}:writer", "painter": f"{models}:Painter"}
    policy = RetryPolicy(tries=2, rate_limit_tries=2, empty_tries=2, base=0.0, cap=0.0)
    return BuildRequest(RECIPE, out, players, seeds=SEEDS, part_size=10, retry_policy=policy)


async def _lying_models(work: Path, seed: int, done: Counter[str]) -> None:
    """The rows of a build by workers are those of a build in this process."""
    await _in_time(run_build(request_of(work / "here")), f"seed {seed}, models that lie")
    rows = await _in_time(_build_by_workers(work / "there", None), f"seed {seed}, models that lie to workers")
    for here, there in zip(read_rows(work / "here"), rows, strict=True):
        done[f"models that lie: {here.outcome}"] += 1
        if _without_addresses(here) != _without_addresses(there):
            raise Broken(f"seed {seed}, row {here.number}: {here!r} here, {there!r} by workers")


def _without_addresses(row: Row) -> Row:
    """Errors may show objects by their addresses in memory."""
    return replace(row, detail=re.sub("0x[0-9a-f]+", "", row.detail))


async def _lying_workers(work: Path, seed: int, done: Counter[str]) -> None:
    """What is kept is what honest workers make; the rest says why not."""
    chance = random.Random(seed)
    honest = await _in_time(_build_by_workers(work / "honest", None), f"seed {seed}, honest workers")
    told: Counter[str] = Counter()
    rows = await _in_time(
        _build_by_workers(work / "told", partial(_lie, chance, told)), f"seed {seed}, workers that lie"
    )
    done["lies of workers"] += told.total()
    for true, row in zip(honest, rows, strict=True):
        done[f"workers that lie: {row.outcome}"] += 1
        if row.outcome == "failed":
            if not row.reason:
                raise Broken(f"seed {seed}: row {row.number} failed without a reason")
        elif (row.outcome, row.draft) != (true.outcome, true.draft):
            raise Broken(f"seed {seed}: row {row.number} is {row!r}, and {true!r} of honest workers")


async def _in_time(work: Any, what: str) -> Any:
    try:
        return await asyncio.wait_for(work, PATIENCE_S)
    except TimeoutError:
        raise Broken(f"{what}: hangs") from None


async def _build_by_workers(out: Path, lie: Any) -> list[Row]:
    """All rows, made by stand-ins of Ray's actors and written to the folder as the command writes them."""
    request = request_of(out)
    _, _, endpoints, manifest = prepare(request)
    await close_endpoints(endpoints.values())
    sent = make_portable(request)
    here = str(Path.cwd())
    keeper = Actor(Keeper())
    workers = [Actor(Worker(number, sent, here, "keeper"), lie) for number in range(WORKERS)]
    crew = _RayCrew(keeper, workers, BuildProgress(), lambda note: None)
    with patch("ray.get_actor", lambda name: keeper):
        in_flight = await crew.open(sent, manifest.run)
        watching = asyncio.ensure_future(crew.watch())
        room = asyncio.Semaphore(in_flight)

        async def make(number: int) -> Row:
            async with room:
                return await crew.make(number)

        try:
            rows = list(await asyncio.gather(*(make(number) for number in range(SEEDS))))
        finally:
            watching.cancel()
            await crew.close()
    if crew.halt.reason is not None:
        raise Broken(f"the build ended: {crew.halt.reason}")
    for number, row in enumerate(rows):
        if not isinstance(row, Row) or row.number != number or not row.outcome:
            raise Broken(f"row {number} is {row!r}")
    write_part(out, Part(0, range(SEEDS)), rows)
    return list(read_rows(out))


def _lie(chance: random.Random, told: Counter[str], method: str, result: Any) -> Any:
    """Send something else, or raise, in place of every fifth result."""
    if method not in ("make", "answer") or chance.random() < 0.8:
        return result
    from ray import exceptions

    told[method] += 1
    row = msgspec.json.encode(Row(chance.randrange(SEEDS, 2 * SEEDS), outcome="kept"))
    odd: list[Any] = [
        None, 5, "text", b"", b"{", b"null", b"[]", b"{}", b'{"number": "no"}', b"\xff", b"[" * 100_000, b'{"number":' * 3000,
        Trap(), [Trap()], row, row.decode(), msgspec.json.decode(row), Row(1, outcome="kept"), bytearray(row), [row],
        row.replace(b"kept", b"forged"), row.replace(b'"number":', b'"number":-'), msgspec.json.encode(Row(0)),
        msgspec.json.encode(Answer()), msgspec.json.encode(Answer(failure=Failure("no", NO_RETRY, False, False, False, ""))),
        b'{"failure": {"message": 5}}', b'{"reply": {"parts": [5], "outcome": "answered"}}', b'{"reply": {"parts": [], "outcome": "forged"}}',
        b'{"reply": {"parts": [{"type": "text"}], "outcome": "answered"}}', Answer(), int, lambda: None, ValueError("returned"),
        TrapError(), StubbornError(1, 2), ValueError("raised"), RuntimeError("two\nlines \x1b[31m"), exceptions.RaySystemError("lost"),
        exceptions.ActorDiedError(), exceptions.ActorUnavailableError("away", None), exceptions.ObjectLostError("0" * 8, "", ""),
        exceptions.GetTimeoutError("late"), exceptions.TaskCancelledError(),
    ]  # fmt: skip
    lie = chance.choice(odd)
    if isinstance(lie, Exception) and chance.random() < 0.9:
        raise lie
    if chance.random() < 0.02:
        return b" " * (65 * 2**20) + b"{}"
    return lie
