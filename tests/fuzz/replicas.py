"""Replicas on Ray that lie: models whose code does anything, and replicas that send anything. Every request gets an HTTP
answer, the server goes on, an honest answer belongs to its request, and no object of a model gets into the server."""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from fuzz import ROOT, Broken
from fuzz.actors import Actor, StubbornError, Trap, TrapError, dumps, loads, lying
from weft.errors import WeftError
from weft.serving.app import ServingApp
from weft.serving.ray_pool import (
    LoadingProgress,
    RayPool,
    RayReplica,
    ReplicaResources,
    _encode_identity,
    read_model_card,
)
from weft.serving.replica import Replica, ReplicaResponse, ReplicaSpec

MODEL = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests")!r}]
from fuzz.actors import Liar

model = Liar("model", version=1)
"""
REQUESTS = 100  # at one server
TOGETHER = 8
PATIENCE_S = 120.0  # for one answer
LINE = re.compile(r"# TYPE \w+ (gauge|counter)|\w+(\{\w+=\"[^\"]*\"\})? [-+.\w]+")
CODES = (200, 400, 422, 429, 500)


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    """`count` requests, and a card and a start of a model that lies for every fifty."""
    done: Counter[str] = Counter()
    for number in range(max(1, count // (2 * REQUESTS))):
        seed = chance.randrange(10**9)
        (folder / "model.py").write_text(MODEL)
        with lying(seed, 0.4, folder / "unpickled"):
            asyncio.run(_serve(folder, seed, None, done))
        with lying(seed, 0.0, folder / "unpickled", watched=False):
            asyncio.run(_serve(folder, seed, partial(_lie, random.Random(seed)), done))
        (folder / "unpickled").unlink(missing_ok=True)
        for start in range(4):
            with lying(seed, 0.0, folder / "unpickled"):
                asyncio.run(_start(folder / f"{number}-{start}", random.Random(f"{seed} {start}"), done))
    return done


def spec_of(folder: Path, name: str = "model.py:model") -> ReplicaSpec:
    return ReplicaSpec(f"{folder}/{name}", {}, "model", str(folder / "home"))


async def _serve(folder: Path, seed: int, lie: Callable[[str, Any], Any] | None, done: Counter[str]) -> None:
    import ray

    pool = RayPool(ReplicaResources(2), spec_of(folder), lambda line: None)
    replica = _Answering(Replica(spec_of(folder)))
    pool._ray = ray
    pool._handle = Actor(replica, lie)
    pool.card = replica.replica.card
    app = ServingApp(pool, "model")
    runner, address = await app.start()
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE_S)) as client:
            room = asyncio.Semaphore(TOGETHER)
            await asyncio.gather(
                *(_ask(client, address, number, room, lie is not None, done) for number in range(REQUESTS))
            )
            await _look(client, address)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Broken(f"seed {seed}: no answer: {type(error).__name__}: {error}") from None
    except Broken as broken:
        raise Broken(f"seed {seed}: {broken}") from None
    finally:
        await runner.cleanup()


class _Answering:
    """The part of `RayReplica` that answers."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica

    async def answer(self, body: bytes) -> ReplicaResponse:
        return await self.replica.answer(body)


async def _ask(
    client: aiohttp.ClientSession, address: str, number: int, room: asyncio.Semaphore, told: bool, done: Counter[str]
) -> None:
    """Ask once. An answer with the status 200 is the model's own, to this request."""
    text = "x" * (number + 1)
    body = {"model": "model", "messages": [{"role": "user", "content": text}]}
    async with room, client.post(f"{address}/v1/chat/completions", json=body) as came:
        sent = await came.read()
    who = "replicas that lie" if told else "models that lie"
    done[f"{who}: {came.status}"] += 1
    if came.status not in CODES:
        raise Broken(f"request {number}: {came.status} {sent[:300]!r}")
    try:
        answer: Any = json.loads(sent)
    except ValueError:
        raise Broken(f"request {number}: {came.status}, and no JSON: {sent[:300]!r}") from None
    if came.status != 200 and not isinstance(answer.get("error", {}).get("message"), str):
        raise Broken(f"request {number}: {came.status} without an error: {sent[:300]!r}")
    if came.status == 200 and told and answer["choices"][0]["message"]["content"] != f"I read {len(text)} letters.":
        raise Broken(f"request {number}: {sent[:300]!r}")


async def _look(client: aiohttp.ClientSession, address: str) -> None:
    async with client.get(f"{address}/v1/models") as came:
        if came.status != 200 or json.loads(await came.read())["data"][0]["id"] != "model":
            raise Broken(f"/v1/models: {came.status}")
    async with client.get(f"{address}/metrics") as came:
        for line in (await came.text()).splitlines():
            if not LINE.fullmatch(line):
                raise Broken(f"/metrics: {line[:300]!r}")


def _lie(chance: random.Random, method: str, result: Any) -> Any:
    """Send something else, or raise, in place of every third answer. An answer to another request, of the same kind,
    cannot be told from the model's own."""
    if chance.random() < 0.66:
        return result
    from ray import exceptions

    class BackPressureError(Exception):
        pass

    sound = b'{"error": {"message": "so"}}'
    odd: list[Any] = [
        None, 5, "text", b"{}", [], {}, object, Trap(), (200, sound), ReplicaResponse(0, sound), ReplicaResponse(99, sound),
        ReplicaResponse(100, sound), ReplicaResponse(700, sound), ReplicaResponse(-1, sound), ReplicaResponse(10**30, sound),
        ReplicaResponse("200", sound), ReplicaResponse(500, "text"), ReplicaResponse(500, None), ReplicaResponse(500, Trap()),  # type: ignore[arg-type]
        ReplicaResponse(500, sound, 'x"} 1\nweft_forged 7'), ReplicaResponse(500, sound, Trap()), ReplicaResponse(500, sound, "\ud800:1"),  # type: ignore[arg-type]
        ReplicaResponse(500, sound, "x" * 10_000 + ":1"), ReplicaResponse(500, sound, "host:1", {"a b\n": 1.0}),
        ReplicaResponse(500, sound, "host:1", {"in_flight": "many"}), ReplicaResponse(500, sound, "host:1", {"in_flight": float("nan")}),  # type: ignore[dict-item]
        ReplicaResponse(500, sound, "host:1", {"in_flight": Trap()}), ReplicaResponse(500, sound, "host:1", None), ReplicaResponse(500, sound, "host:1", {5: 5}),  # type: ignore[arg-type]
        ReplicaResponse(500, sound, "host:1", {"x" * 5000: 1.0}), ReplicaResponse(500, sound, "host:1", {"in_flight": 1e308}),
        TrapError(), StubbornError(1, 2), ValueError("raised"), RuntimeError("two\nlines \x1b[31m \ud800"), BackPressureError("full"),
        SystemExit(0), exceptions.RaySystemError("lost"), exceptions.ActorDiedError(), exceptions.ActorUnavailableError("away", None),
        exceptions.TaskCancelledError(), exceptions.GetTimeoutError("late"), exceptions.OutOfMemoryError("no room"),
    ]  # fmt: skip
    if chance.random() < 0.01:
        return ReplicaResponse(500, b" " * (129 * 2**20))
    lie = chance.choice(odd)
    if isinstance(lie, BaseException) and chance.random() < 0.9:
        raise lie
    return lie


# models that lie about themselves, and that cannot be loaded

ENDS = [
    "raise Trap.error()", "raise Stubborn(1, 2)", "raise SystemExit(0)", "raise KeyboardInterrupt()", "raise Unprintable()", "raise GeneratorExit()",
    "raise ValueError('no weights\\n\\x1b[31m')", "raise ValueError('\\ud800')", "raise StopIteration(Trap())", "raise BaseException(Trap())", "pass",
]  # fmt: skip
FACTS = [
    "Trap()", "'\\ud800'", "float('nan')", "10**30", "(1, 2)", "{1: 2}", "{'a': Trap()}", "[None] * 1000", "lambda: None", "b'x'", "Words('a')",
    "set('a')",
]  # fmt: skip
START = """
import sys
sys.path[:0] = [{tests!r}]
from fuzz.actors import Liar, StubbornError as Stubborn, Trap, TrapError, UnprintableError as Unprintable, Words
Trap.error = TrapError
{imported}

class Model(Liar):
    status_line = {status}

    def __init__(self):
        {made}
        super().__init__("model", version=1, fact={fact})

    async def load(self):
        {loaded}
"""


async def _start(folder: Path, chance: random.Random, done: Counter[str]) -> None:
    """Read a card and start a replica: both work, or say in one line why not."""
    import ray

    folder.mkdir()  # noqa: ASYNC240
    place = chance.choice(["imported", "made", "loaded", "fact", "status"])
    parts = {"imported": "", "made": "pass", "loaded": "pass", "fact": "1", "status": "''"}
    parts[place] = chance.choice(FACTS if place in ("fact", "status") else ENDS)
    (folder / "start.py").write_text(START.format(tests=str(ROOT / "tests"), **parts))
    what = f"{place}: {parts[place]}"
    pool = RayPool(ReplicaResources(2), spec_of(folder, "start.py:Model"), lambda line: None)
    pool._ray = ray
    lines: list[str] = []
    try:
        card = pool._parse_card(_through_pickles(read_model_card(spec_of(folder, "start.py:Model"))))
    except WeftError as error:
        done["cards refused"] += 1
        lines = [str(error)]
    else:
        done["cards read"] += 1
        progress = LoadingProgress()
        replica = RayReplica.__new__(RayReplica)
        try:
            await RayReplica.__init__(
                replica, spec_of(folder, "start.py:Model"), Actor(progress), False, _encode_identity(card)
            )
            done["replicas started"] += 1
        except Exception as error:
            _through_pickles(error)
            done["replicas refused"] += 1
            lines = [str(error)]
        for _ in range(5):
            await asyncio.sleep(0)  # what it reports comes
        _through_pickles(progress.read())
    for line in lines:
        if not line or "\n" in line:
            raise Broken(f"{what}: {line!r}")


def _through_pickles(value: Any) -> Any:
    return loads(dumps(value))
