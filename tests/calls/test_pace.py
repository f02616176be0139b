"""Whether more calls in flight get more done: against servers that are simulated to the millisecond, and one that is
real."""

import asyncio
import base64
import heapq
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

import weft
from server import drawn
from waiting import HANGS
from weft.calls.budget import Budget
from weft.calls.caller import Caller, RetryPolicy
from weft.calls.limiter import Limiter, ThroughputMonitor
from weft.models.endpoint import TRANSIENT, CallError, Endpoint, EndpointReply
from weft.store.journal import Journal
from weft.types import Message, Modality, Request, Text


def simulated(
    seconds: Callable[[int], float], places: int, calls: int, start: int, *, careful: bool = False
) -> tuple[list[float], float]:
    """A server that works on `places` requests at once, the n-th in `seconds(n)`; always more to do. The limit after
    each call, and the time that all took."""
    pace, limit, lowered, now = ThroughputMonitor(careful=careful), float(start), False, 0.0
    free, flying, limits = [0.0] * places, list[tuple[float, float, int, int]](), list[float]()
    sent = 0
    while len(limits) < calls:
        while len(flying) < int(limit) and sent < calls + 64:
            begins = max(now, heapq.heappop(free))
            heapq.heappush(free, begins + seconds(sent))
            heapq.heappush(flying, (begins + seconds(sent), now, sent, len(flying) + 1))
            sent += 1
        now, began, number, beside = heapq.heappop(flying)
        kind = "image" if seconds(number) > 1 else "text"
        advice = pace.add_call(kind, now - began, beside, limit)
        if advice == "lower":
            limit, lowered = max(1.0, min(limit / 2, 2 * pace.useful_concurrency)), True
        elif advice == "grow":
            limit = min(64.0, limit + (1 / limit if lowered else 1))
        limits.append(limit)
    return limits, now


def test_behind_a_lock_it_stays_low_and_loses_nothing():
    limits, took = simulated(lambda _: 1.0, places=1, calls=200, start=2, careful=True)
    assert max(limits) <= 7 and sum(limits) / len(limits) < 4
    assert took == pytest.approx(200, rel=0.02), "the server is never idle"


def test_from_a_higher_start_it_comes_down():
    limits, took = simulated(lambda _: 1.0, places=1, calls=300, start=8)
    assert max(limits) <= 33 and max(limits[150:]) <= 8
    assert took == pytest.approx(300, rel=0.02)


def test_where_there_is_room_it_grows_to_the_most():
    limits, took = simulated(lambda _: 0.5, places=64, calls=600, start=8)
    assert limits[-1] == 64 and took < 1.5 * 600 * 0.5 / 64 + 2


def test_it_finds_about_as_many_as_the_server_has_places_for():
    limits, took = simulated(lambda _: 1.0, places=12, calls=600, start=8)
    assert took < 1.25 * 600 / 12
    assert 6 <= sum(limits[300:]) / 300 <= 40


def test_a_mixture_of_long_and_short_calls_is_no_queue():
    limits, _ = simulated(lambda number: 10.0 if number % 3 == 0 else 0.4, places=64, calls=600, start=8)
    assert limits[-1] >= 32


def test_who_answers_at_once_is_not_waited_for():
    limits, _ = simulated(lambda _: 0.001, places=1, calls=400, start=8)
    assert limits[-1] == 64


def test_a_careful_one_measures_before_it_grows():
    pace = ThroughputMonitor(careful=True)
    assert [pace.add_call("text", 1.0, 2, 2.0) for _ in range(3)] == ["stay"] * 3
    assert pace.add_call("text", 1.0, 2, 2.0) == "grow"


def test_free_places_begin_a_new_round():
    pace = ThroughputMonitor(careful=True)
    for _ in range(3):
        pace.add_call("text", 1.0, 2, 2.0)
    pace.discard_round()
    assert pace.add_call("text", 1.0, 2, 2.0) == "stay"


def test_the_limiter_follows_it():
    class Low(ThroughputMonitor):
        def add_call(self, *_: Any) -> Any:
            return "lower"

    async def go() -> float:
        limiter = Limiter(start=8, throughput=Low())
        await asyncio.gather(*(_through(limiter) for _ in range(20)))
        return limiter.limit

    async def _through(limiter: Limiter) -> None:
        async with limiter.slot("text"):
            await asyncio.sleep(0.001)

    assert asyncio.run(go()) < 8


# a real server that works on one request at a time


class Locked:
    """The authors' way of serving: a lock around the model. Who hung up is worked on all the same."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.worked, self.url = seconds, 0, ""
        self._loop, self._lock = asyncio.new_event_loop(), threading.Lock()
        self._waiting = 0
        self.most = 0

    def start(self) -> None:
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(HANGS)

    async def _start(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/infer", self._infer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/infer"

    async def _infer(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self._waiting += 1
        self.most = max(self.most, self._waiting)
        await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(self._work)))
        self._waiting -= 1
        picture = base64.b64encode(drawn(str(len(body["history"])))).decode()
        return web.json_response(
            {"response": {"image": picture} if body["output_mode"] == "image_only" else {"text": "B"}}
        )

    def _work(self) -> None:
        with self._lock:
            threading.Event().wait(self.seconds)
            self.worked += 1

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(HANGS)
        self._loop.call_soon_threadsafe(self._loop.stop)


class LockedEndpoint(Endpoint):
    """The same in simulated time: 0.08 s for each, and nobody waits for more than two."""

    def __init__(self) -> None:
        super().__init__("locked", address="http://locked")
        self.initial_concurrency = 2  # as for servers of the authors' kind
        self.waiting = self.most = self.worked = 0
        self._lock, self._at_work = asyncio.Lock(), set[asyncio.Task[None]]()

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        work = asyncio.ensure_future(self._work())
        self._at_work.add(work)
        try:
            async with asyncio.timeout(2.0):
                await asyncio.shield(work)
        except TimeoutError:
            raise CallError("it did not answer within 2 s", TRANSIENT, timed_out=True) from None
        return EndpointReply((Text("B"),), "answered")

    async def _work(self) -> None:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        async with self._lock:
            await asyncio.sleep(0.08)
        self.waiting -= 1
        self.worked += 1


class Nowhere:
    """A journal without a thread of its own, which simulated time would not wait for."""

    def count_tickets(self, address: str) -> int:
        return 0

    def find_reply(self, *_: Any) -> None:
        return None

    def put_call(self, *_: Any, **__: Any) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done


def test_a_server_with_a_lock_is_not_flooded_and_nobody_times_out(in_simulated_time: Callable[..., Any]):
    """Thirty dialogues of two turns at 0.08 s each, and no more than two seconds for a call: sent all at once, many
    would time out, and be worked on for nobody."""

    async def go() -> LockedEndpoint:
        endpoint, journal = LockedEndpoint(), cast(Journal, Nowhere())
        caller = Caller(
            endpoint,
            role="model",
            journal=journal,
            budget=Budget(None),
            retry_policy=RetryPolicy(tries=4, base=0.01, cap=0.05),
        )

        async def dialogue(number: int) -> list[str]:
            asked = [Message("user", (Text(f"Draw {number}."),)), Message("user", (Text(f"Which of {number}?"),))]
            kinds: tuple[Modality, ...] = ("image", "text")
            return [
                (await caller.reply(tuple(asked[: at + 1]), Request(kind))).outcome for at, kind in enumerate(kinds)
            ]

        outcomes = await asyncio.gather(*(dialogue(number) for number in range(30)))
        assert all(one != "failed" for dialogue in outcomes for one in dialogue)
        return endpoint

    done = in_simulated_time(go())
    assert done.worked == 60 and done.most <= 8


@pytest.fixture
def locked() -> Iterator[Locked]:
    server = Locked(0.08)
    server.start()
    yield server
    server.stop()


def test_a_server_with_a_lock_is_not_flooded(locked: Locked, tmp_path: Path):
    """The same over the wire, where what is slow on a busy machine does not time out."""
    rows = []
    for number in range(30):
        ask = {
            "turn": 1,
            "modality": "image",
            "input": [{"text": f"Draw {number}."}],
            "output": {"evaluation_points": ["drawn"]},
        }
        which = {"turn": 2, "modality": "text", "input": [{"text": "Which?\nA. a\nB. b"}], "output": {"answer": "B"}}
        rows.append(
            {"sample_id": str(number), "domain": "Cooking", "subdomain": "cooking_workflow", "tasks": [ask, which]}
        )
    (tmp_path / "data" / "images").mkdir(parents=True)
    (tmp_path / "data" / "benchmark.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = weft.evaluate(
        "imug", data=tmp_path / "data", model=f"infer/{locked.url}", judge="constant/3", home=tmp_path / "home",
        model_options={"timeout": HANGS}, retry_policy=RetryPolicy(tries=4, base=0.01, cap=0.05),
    )  # fmt: skip
    assert {turn.reply.outcome for turn in run.turns} == {"answered"} and len(run.turns) == 60
    # how far the limit rises depends on measured times, which a busy machine moves; in simulated time it is exact
    assert locked.most < 30 and locked.worked == 60, (locked.most, locked.worked)


def test_time_outs_lower_the_limit(locked: Locked, tmp_path: Path):
    """From as many as the user allows: each time-out in a round halves it, as a 429 does."""
    from weft.models.providers.infer import Infer
    from weft.store.blobs import Blobs

    async def go() -> int:
        journal = Journal(tmp_path / "journal.sqlite")
        endpoint = Infer([locked.url], Blobs(tmp_path / "blobs"), timeout=0.3)
        caller = Caller(
            endpoint,
            role="model",
            journal=journal,
            budget=Budget(None),
            concurrency=16,
            retry_policy=RetryPolicy(tries=8, base=0.01, cap=0.05),
        )
        asked = [caller.reply((Message("user", (Text(str(number)),)),), Request("text")) for number in range(16)]
        await asyncio.gather(*asked)
        await endpoint.close()
        journal.close()
        return caller.limiter.decreases

    assert asyncio.run(go()) >= 1
