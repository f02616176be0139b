"""Workers and replicas of Ray that lie, without a Ray that runs: what stands in for its actors pickles what goes in and
out. `fuzz/nodes.py` has those of a Ray that runs."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fuzz.actors import Actor, Liar, StubbornError, TrapError, dumps, loads, lying
from waiting import HANGS, until_in_loop
from weft.building.draft import Row
from weft.building.progress import BuildProgress
from weft.building.ray_crew import _RayCrew
from weft.building.ray_keeper import Answer, WorkerEndpoint
from weft.building.ray_worker import Worker
from weft.errors import UserError
from weft.models.endpoint import CallError, Endpoint, EndpointReply
from weft.serving.ray_pool import RayPool, RayReplica, ReplicaResources, read_model_card
from weft.serving.replica import ReplicaResponse, ReplicaSpec
from weft.types import Message, Request, Text

pytest.importorskip("ray")
MESSAGES = (Message("user", (Text("hello"),)),)
ODD: list[Any] = [None, 5, "text", b"{", b"null", object, {"status": 200}]


class Sends:
    """A worker or a replica that sends one thing, or raises it."""

    def __init__(self, *things: Any) -> None:
        self.things = list(things)

    async def make(self, number: int, cards: Any) -> Any:
        return self._next()

    async def answer(self, *arguments: Any) -> Any:
        return self._next()

    async def is_ready(self) -> Any:
        return self._next()

    def _next(self) -> Any:
        thing = self.things.pop(0) if len(self.things) > 1 else self.things[0]
        if isinstance(thing, BaseException):
            raise thing
        return thing


def crew_of(*workers: Sends, notes: Callable[[str], None] = print) -> _RayCrew:
    return _RayCrew(Actor(Sends(None)), [Actor(worker) for worker in workers], BuildProgress(), notes)


# builds


OTHER = msgspec.json.encode(Row(7, outcome="kept"))


@pytest.mark.parametrize("sent", [*ODD, OTHER, OTHER.decode(), msgspec.json.encode(Row(3)), TrapError(), StubbornError(1, 2)], ids=repr)  # fmt: skip
def test_a_worker_that_sends_no_row_of_a_seed_costs_that_seed(sent: Any, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("WEFT_ATTACK_MARK", str(tmp_path / "unpickled"))
    row = asyncio.run(_make(crew_of(Sends(sent)), 3))
    assert (row.number, row.outcome, row.step) == (3, "failed", "worker") and row.reason


async def _make(crew: _RayCrew, number: int) -> Row:
    return await crew.make(number)


@pytest.mark.parametrize(
    "sent", [*ODD, b"{}", b'{"reply": {"parts": [5], "outcome": "answered"}}', b"[" * 9999], ids=repr
)
def test_a_worker_that_sends_no_answer_costs_that_call(sent: Any):
    async def ask() -> None:
        endpoint = WorkerEndpoint("writer", Endpoint("model"), [Actor(Sends(sent))])
        with pytest.raises(CallError, match="a worker sent what is no answer") as raised:
            await endpoint.send(MESSAGES, Request("text"))
        assert raised.value.retry.kind == "no" and raised.value.billed

    asyncio.run(ask())


def test_no_object_of_a_model_leaves_its_worker(tmp_path: Path):
    worker: Any = Worker.__new__(Worker)
    worker._endpoints = {"writer": Liar("writer", version=1)}

    async def ask() -> list[bytes]:
        asked = [(Message("user", (Text(f"{number}"),)),) for number in range(400)]
        return [await worker.answer("writer", messages, Request("text"), None) for messages in asked]

    with lying(1, 1.0, tmp_path / "unpickled"):
        answers = asyncio.run(ask())
        assert all(isinstance(loads(dumps(answer)), bytes) for answer in answers)


def test_a_worker_that_cannot_be_started_again_is_left_out_and_the_others_go_on():
    from ray.exceptions import ActorDiedError

    lost = ActorDiedError()
    lost.error_msg = "it has no restarts left"
    notes: list[str] = []

    async def work() -> None:
        dead = Sends(lost)
        crew = crew_of(dead, Sends(msgspec.json.encode(Row(3, outcome="kept"))), notes=notes.append)
        assert (await crew.make(3)).outcome == "kept"
        await until_in_loop("the worker is given up", lambda: len(notes) == 2)
        assert crew.halt.reason is None and "the others go on" in notes[1]
        assert (await crew.make(3)).outcome == "kept"
        alone = crew_of(Sends(lost), notes=notes.append)
        asking = asyncio.ensure_future(alone.make(3))
        await asyncio.wait({asking}, timeout=HANGS)
        assert asking.exception() is not None and "could not be started again" in str(alone.halt.reason)

    asyncio.run(work())


def test_a_call_of_a_worker_that_is_gone_is_answered_by_one_that_is_there():
    from ray.exceptions import ActorDiedError

    class Hanging(Sends):
        async def is_ready(self) -> Any:
            await asyncio.Event().wait()

    answer = msgspec.json.encode(Answer(EndpointReply((Text("yes"),), "answered")))
    workers = [Actor(Gone(ActorDiedError())), Actor(Hanging(answer)), Actor(Sends(answer))]

    async def ask() -> EndpointReply:
        sending = asyncio.ensure_future(WorkerEndpoint("writer", Endpoint("model"), workers).send(MESSAGES, Request()))
        await until_in_loop("an answer", sending.done)
        return sending.result()

    workers[2]._thing.is_ready = _there
    assert asyncio.run(ask()).parts == (Text("yes"),)


async def _there() -> None:
    return None


class Gone(Sends):
    """It may be started again, and never is."""

    asked = 0

    async def is_ready(self) -> Any:
        from ray.exceptions import ActorUnavailableError

        self.asked += 1
        raise ActorUnavailableError("The actor is restarting", None)


def test_nobody_calls_a_worker_that_is_gone_once_the_build_is_closed():
    from ray.exceptions import ActorDiedError

    async def work() -> None:
        gone = Gone(ActorDiedError())
        crew = crew_of(gone, Sends(msgspec.json.encode(Row(3, outcome="kept"))))
        assert (await crew.make(3)).outcome == "kept"
        await until_in_loop("it is waited for", lambda: gone.asked >= 1)
        await crew.close()
        waiting = list(crew._reviving.values())
        await until_in_loop("it is not waited for any more", lambda: all(task.done() for task in waiting))

    asyncio.run(work())


# replicas


def pool_of(replica: Any) -> RayPool:
    import ray

    pool = RayPool(ReplicaResources(1), ReplicaSpec("model", {}, "model"), print)
    pool._ray = ray
    pool._handle = Actor(replica)
    return pool


RESPONSES: list[Any] = [
    *ODD, ReplicaResponse(0, b"{}"), ReplicaResponse(700, b"{}"), ReplicaResponse(200, "text"), ReplicaResponse(200, None),  # type: ignore[arg-type]
    ReplicaResponse(200, b"{}", 'x"} 1\nforged 7'), ReplicaResponse(200, b"{}", "h:1", {"a b": 1.0}), ReplicaResponse(200, b"{}", "h:1", {"a": "b"}),  # type: ignore[dict-item]
    ReplicaResponse(200, b" " * (129 * 2**20)), StubbornError(1, 2), ValueError("two\nlines"), SystemExit(0),
]  # fmt: skip


@pytest.mark.parametrize("sent", RESPONSES, ids=lambda sent: repr(sent)[:40])
def test_a_replica_that_sends_no_answer_is_an_error_that_clients_retry(sent: Any):
    response = asyncio.run(_answer(pool_of(Sends(sent))))
    error = msgspec.json.decode(response.body)["error"]
    assert response.status == 500 and error["message"] and "\n" not in error["message"]
    assert not response.replica and not response.counters


async def _answer(pool: RayPool) -> ReplicaResponse:
    return await pool.answer(b"{}")


MODEL = """
import sys
sys.path[:0] = [{tests!r}]
from fuzz.actors import Liar, StubbornError, Trap, TrapError

class Model(Liar):
    def __init__(self):
        super().__init__("model", version=1, fact={fact})

    async def load(self):
        raise {error}
"""


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Path]:
    with lying(1, 0.0, tmp_path / "unpickled"):
        yield tmp_path


def spec_of(folder: Path, error: str = "TrapError()", fact: str = "1") -> ReplicaSpec:
    tests = str(Path(__file__).parents[1])
    (folder / "model.py").write_text(MODEL.format(tests=tests, error=error, fact=fact))
    return ReplicaSpec(f"{folder}/model.py:Model", {}, "model", str(folder / "home"))


@pytest.mark.parametrize("error", ["TrapError()", "StubbornError(1, 2)", "SystemExit(0)", "BaseException(Trap())"])
def test_why_a_replica_cannot_start_leaves_it_as_text(error: str, watched: Path):
    spec = spec_of(watched, error)
    said: dict[str, str] = {}

    class Progress:
        async def put(self, name: str, line: str) -> None:
            said[name] = line

    async def start() -> BaseException:
        from weft.serving import ray_pool

        identity: Any = ray_pool._encode_identity(pool_of(None)._parse_card(read_model_card(spec)))
        replica = RayReplica.__new__(RayReplica)
        with pytest.raises(Exception) as raised:
            await RayReplica.__init__(replica, spec, Actor(Progress()), False, identity)
        return raised.value

    problem = asyncio.run(start())
    assert str(loads(dumps(problem))) == said["failed"] and said["failed"].count("\n") == 0


@pytest.mark.parametrize("fact", ["Trap()", "lambda: None", "'\\ud800'"])
def test_an_identity_that_is_no_json_is_refused_in_one_line(fact: str, watched: Path):
    answer = loads(dumps(read_model_card(spec_of(watched, fact=fact))))
    with pytest.raises(UserError) as raised:
        pool_of(None)._parse_card(answer)
    assert "\n" not in str(raised.value)


# the parts of the fuzzing suite, small

SCRIPT = """
import random, sys
from pathlib import Path
from fuzz.__main__ import PARTS

for part, count in (("workers", 80), ("replicas", 200)):
    attack, _, _ = PARTS[part]
    folder = Path(sys.argv[1]) / part
    folder.mkdir()
    print(sum(attack(random.Random(f"7 {part}"), count, folder).values()))
"""


def test_the_parts_of_the_fuzzer_hold(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    words = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(int(line) for line in done.stdout.split())
