import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from waiting import HANGS
from weft.calls.limiter import Limiter


def test_no_more_than_the_limit_are_in_flight_and_all_get_their_turn():
    async def go() -> tuple[int, int]:
        limiter = Limiter(start=3, maximum=3)
        most = done = 0

        async def work() -> None:
            nonlocal most, done
            async with limiter.slot():
                most = max(most, limiter.active)
                await asyncio.sleep(0.001)
            done += 1

        await asyncio.gather(*(work() for _ in range(40)))
        assert limiter.active == 0
        return most, done

    assert asyncio.run(go()) == (3, 40)


def test_the_limit_grows_while_all_slots_are_used_and_halves_once_for_calls_turned_away_together():
    async def go() -> None:
        limiter = Limiter(start=4, maximum=32)

        async def work() -> None:
            async with limiter.slot():
                await asyncio.sleep(0.001)

        await asyncio.gather(*(work() for _ in range(200)))
        assert limiter.limit == 32
        began = time.monotonic()
        for _ in range(10):
            limiter.back_off(began)
        assert limiter.limit == 16, "ten 429s of one burst are one message"
        limiter.back_off(time.monotonic() + 1)
        assert limiter.limit == 8

    asyncio.run(go())


def test_a_retry_after_holds_new_calls_back(in_simulated_time: Callable[..., Any]):
    async def go() -> float:
        limiter = Limiter(start=4)
        began = time.monotonic()
        limiter.back_off(began, delay=15)
        async with limiter.slot() as taken:
            return taken - began

    assert in_simulated_time(go()) == 15


def test_cancelled_waiters_give_their_place_back():
    async def go() -> None:
        limiter = Limiter(start=1, maximum=1)
        async with limiter.slot():
            waiting = [asyncio.create_task(_enter(limiter)) for _ in range(5)]
            await asyncio.sleep(0)
            assert len(limiter._waiters) == 5
            for task in waiting[:3]:
                task.cancel()
            await asyncio.sleep(0)
            assert len(limiter._waiters) == 2
        await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), HANGS)
        assert limiter.active == 0

    asyncio.run(go())


async def _enter(limiter: Limiter) -> None:
    async with limiter.slot():
        await asyncio.sleep(0.001)


def test_the_usual_limits():
    limiter = Limiter()
    assert (limiter.limit, limiter.minimum, limiter.maximum, limiter.active, limiter.decreases) == (8.0, 1, 64, 0, 0)
    assert Limiter(start=9, maximum=4).limit == 4.0


def test_it_grows_by_one_a_call_before_the_first_push_back_and_by_a_share_after():
    async def go() -> None:
        limiter = Limiter(start=1, maximum=4)
        async with limiter.slot():
            pass
        assert limiter.limit == 2.0, "the one slot there was, was used"
        async with limiter.slot():
            pass
        assert limiter.limit == 2.0, "one of two: no need for more"
        async with limiter.slot(), limiter.slot():
            pass
        assert limiter.limit == 3.0
        limiter.back_off(time.monotonic())
        assert (limiter.limit, limiter.decreases) == (1.5, 1)
        async with limiter.slot():
            pass
        assert limiter.limit == 1.5 + 1 / 1.5
        async with limiter.slot():
            waiting = [asyncio.create_task(_enter(limiter)) for _ in range(4)]
            await asyncio.sleep(0)
            assert limiter.active == 2, "two fit, the others wait"
        assert limiter.limit > 2.5, "somebody waits"
        await asyncio.gather(*waiting)
        await asyncio.gather(*(_enter(limiter) for _ in range(60)))
        assert limiter.limit == 4.0, "never over the most"

    asyncio.run(asyncio.wait_for(go(), HANGS))


def test_what_fails_does_not_let_it_grow():
    async def go() -> None:
        limiter = Limiter(start=1, maximum=4)
        try:
            async with limiter.slot():
                raise ValueError
        except ValueError:
            pass
        assert limiter.limit == 1.0 and limiter.active == 0

    asyncio.run(go())


def test_it_halves_down_to_the_least_and_only_for_calls_that_began_after_the_last_time(monkeypatch: pytest.MonkeyPatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    limiter = Limiter(start=8, minimum=2)
    limiter.back_off(99.0)
    assert (limiter.limit, limiter.decreases) == (4.0, 1)
    limiter.back_off(99.9)
    assert (limiter.limit, limiter.decreases) == (4.0, 1), "it had been in flight with the other"
    clock[0] = 101.0
    limiter.back_off(100.0)
    assert (limiter.limit, limiter.decreases) == (2.0, 2), "one that began just then is news"
    clock[0] = 102.0
    limiter.back_off(101.5)
    assert (limiter.limit, limiter.decreases) == (2.0, 3), "never under the least"


def test_the_longest_wait_counts(in_simulated_time: Callable[..., Any]):
    async def go() -> float:
        limiter = Limiter()
        began = time.monotonic()
        limiter.back_off(began, delay=8)
        limiter.back_off(began, delay=1)
        limiter.back_off(began, delay=None)
        limiter.back_off(began, delay=0)
        async with limiter.slot() as taken:
            assert limiter.active == 1
        assert limiter.active == 0
        return taken - began

    assert in_simulated_time(go()) == 8


def test_who_is_cancelled_while_held_back_gives_the_place_back(in_simulated_time: Callable[..., Any]):
    async def go() -> None:
        limiter = Limiter(start=1, maximum=1)
        limiter.back_off(time.monotonic(), delay=5)
        held = asyncio.create_task(_enter(limiter))
        other = asyncio.create_task(_enter(limiter))
        await asyncio.sleep(1)
        assert limiter.active == 1
        held.cancel()
        await other
        assert limiter.active == 0 and held.cancelled()

    in_simulated_time(go())


def test_who_is_cancelled_just_as_a_place_is_given_gives_it_back():
    async def go() -> None:
        limiter = Limiter(start=1, maximum=1)
        async with limiter.slot():
            first, second = (asyncio.create_task(_enter(limiter)) for _ in range(2))
            await asyncio.sleep(0)
        first.cancel()  # its place is counted already, and it has not gone on
        await asyncio.wait_for(second, HANGS)
        assert limiter.active == 0 and not limiter._waiters

    asyncio.run(go())


# in simulated time, with always more to do


class Away(Exception):
    """Turned away, to come again after `delay` seconds if the server says so."""

    def __init__(self, delay: float | None = None) -> None:
        self.delay = delay


async def asked(limiter: Limiter, answer: Callable[[], Awaitable[None]], calls: int) -> tuple[float, int]:
    """Answers a second, and how many calls were turned away on the way to them."""
    away, began = 0, time.monotonic()

    async def call() -> None:
        nonlocal away
        while True:
            try:
                async with limiter.slot() as taken:
                    try:
                        return await answer()
                    except Away as error:
                        limiter.back_off(taken, error.delay)
                        raise
            except Away as error:
                away += 1
                await asyncio.sleep(error.delay or 0.5)

    await asyncio.gather(*(call() for _ in range(calls)))
    return calls / (time.monotonic() - began), away


def test_where_it_was_too_many_it_grows_slowly_until_that_is_out_of_date(in_simulated_time: Callable[..., Any]):
    async def limits(delay: float | None) -> list[float]:
        limiter = Limiter(start=20)
        limiter.back_off(time.monotonic(), delay)
        working = asyncio.create_task(asked(limiter, lambda: asyncio.sleep(1), 10_000))
        found = []
        for seconds in (delay or 0, 7.5, 30, 30, 60):
            await asyncio.sleep(seconds)
            found.append(limiter.limit)
        working.cancel()
        return found

    halved, back, careful, out_of_date, grown = in_simulated_time(limits(None))
    assert halved == 10 and 16 <= back < 17, "one a round, up to near the twenty that were too many"
    assert 19 <= careful < 21 and out_of_date > 22 and grown == 64
    halved, back, careful, later, still = in_simulated_time(limits(5.0))
    assert halved == 10 and 16 <= back < 17
    assert careful < 17.5 and later < 18.5 and still < 20.5, (
        "the longer a push-back holds calls back, the less often it is risked"
    )


def test_a_rate_with_a_retry_after_is_used_and_seldom_overrun(in_simulated_time: Callable[..., Any]):
    tokens, filled, turned = 20.0, 100.0, list[float]()

    async def answer() -> None:
        nonlocal tokens, filled
        now = time.monotonic()
        assert not any(at < now < at + 1 for at in turned), "nobody comes before the time"
        tokens, filled = min(20.0, tokens + 40 * (now - filled)), now
        if tokens < 1:
            turned.append(now)
            raise Away(1.0)
        tokens -= 1
        await asyncio.sleep(0.1)

    rate, away = in_simulated_time(asked(Limiter(), answer, 2000))
    assert rate > 0.8 * 40 and away < 30


@pytest.mark.parametrize(("timeout", "most"), [(0.0, 30), (2.0, 120)])
def test_near_what_an_overloaded_server_can_do_it_stays(
    in_simulated_time: Callable[..., Any], timeout: float, most: int
):
    """Sixteen are worked on; others are turned away at once, or hang until nobody waits for them."""
    working = 0

    async def answer() -> None:
        nonlocal working
        if working == 16:
            await asyncio.sleep(timeout)
            raise Away
        working += 1
        await asyncio.sleep(0.2)
        working -= 1

    rate, away = in_simulated_time(asked(Limiter(), answer, 3000))
    assert rate > 0.8 * 16 / 0.2 and away < most
