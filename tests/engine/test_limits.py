import asyncio
import time

from weft.engine.limits import Limiter


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
            limiter.pushed_back(began)
        assert limiter.limit == 16, "ten 429s of one burst are one message"
        limiter.pushed_back(time.monotonic() + 1)
        assert limiter.limit == 8

    asyncio.run(go())


def test_a_retry_after_holds_new_calls_back():
    async def go() -> tuple[float, float]:
        limiter = Limiter(start=4)
        until = time.monotonic() + 0.15
        limiter.pushed_back(time.monotonic(), delay=0.15)
        async with limiter.slot() as taken:
            return taken, until

    taken, until = asyncio.run(go())
    assert taken >= until


def test_cancelled_waiters_give_their_place_back():
    async def go() -> None:
        limiter = Limiter(start=1, maximum=1)
        async with limiter.slot():
            waiting = [asyncio.create_task(_enter(limiter)) for _ in range(5)]
            await asyncio.sleep(0.01)
            for task in waiting[:3]:
                task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 1)
        assert limiter.active == 0

    asyncio.run(go())


async def _enter(limiter: Limiter) -> None:
    async with limiter.slot():
        await asyncio.sleep(0.001)
