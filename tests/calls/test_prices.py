"""Money, to the cent: every rule of prices, estimates, bounds and budgets by itself."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from server import drawn
from waiting import HANGS, until_in_loop
from weft.calls import prices
from weft.calls.budget import Budget, Charge
from weft.calls.caller import Caller
from weft.calls.prices import (
    BillingExcess,
    Price,
    add_usage,
    estimate_image_tokens,
    estimate_usage,
    find_price,
    max_image_tokens,
    upper_bound,
)
from weft.errors import BudgetReached
from weft.models.endpoint import Endpoint, EndpointReply
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Image, Message, Request, Text, Thought, Usage


def endpoint(model: str, address: str = "https://api.test/v1") -> Endpoint:
    return Endpoint(model, address=address)


def picture(width: int, height: int) -> Image:
    return Image("d", "image/png", width, height, 1)


def test_a_price_is_per_million_tokens_of_each_side():
    assert Price(2.0, 8.0).cost_of(Usage(1_000_000, 500_000)) == 6.0
    assert Price(3.0, 0.0).cost_of(Usage(10, 99)) == pytest.approx(0.00003)


def test_ones_own_prices_come_first_and_are_found_by_the_longest_name():
    own = {"gpt": {"in": 1, "out": 2}, "gpt-4": {"in": 3, "out": 4}, "_note": {"in": 9, "out": 9}}
    assert find_price(endpoint("gpt-4-mini"), own) == Price(3.0, 4.0)
    assert find_price(endpoint("gpt-3"), own) == Price(1.0, 2.0)
    assert find_price(endpoint("gpt"), own) == Price(1.0, 2.0)
    assert find_price(endpoint("_note"), own) is None and find_price(endpoint("gpt4"), own) is None, (
        "a name is a whole word of a name"
    )


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gpt-4o", True),
        ("gpt-4o-2024-08-06", True),
        ("gpt-4o:x", True),
        ("gpt-4o@x", True),
        ("gpt-4o.5", False),
        ("gpt-4ox", False),
    ],
)
def test_shipped_prices_are_of_a_model_and_its_dated_versions(model: str, known: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prices, "_read_shipped_prices", lambda: {"_about": "x", "gpt-4o": {"in": 2.5, "out": 10.0}})
    assert find_price(endpoint(model)) == (Price(2.5, 10.0) if known else None)


def test_the_shipped_file_has_prices_and_they_are_numbers():
    shipped = prices._read_shipped_prices()
    assert find_price(endpoint("gpt-4o")) == Price(shipped["gpt-4o"]["in"], shipped["gpt-4o"]["out"])


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1", "local:x", "python:x"]
)
def test_what_runs_on_this_machine_is_free_unless_the_user_prices_it(address: str):
    assert find_price(endpoint("gpt-4o", address)) == Price(0, 0)
    assert find_price(endpoint("gpt-4o", address), {"gpt-4o": {"in": 1, "out": 2}}) == Price(1.0, 2.0)
    assert find_price(endpoint("unheard-of")) is None


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (512, 512, 255),
        (24, 24, 255),
        (1024, 1024, 765),
        (2048, 4096, 1105),
        (4096, 2048, 1105),
        (512, 513, 425),
        (100, 8000, 765),
        (769, 769, 765),
    ],
)
def test_a_picture_is_counted_in_tiles_of_512(width: int, height: int, tokens: int):
    """Fitted into 2048 x 2048, then its shorter side into 768; 85 and 170 a tile."""
    assert estimate_image_tokens(picture(width, height)) == tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (10, 10, 2500),
        (1600, 1600, 3413),
        (1400, 1400, 2613),
        (3000, 3000, 12000),
        (768, 8000, 8192),
        (7168, 280, 2676),
        (1540, 1540, 3162),
        (3072, 770, 3153),
        (5376, 28, 2500),
        (28000, 28, 9546),
        (7680, 77, 2580),
        (7681, 77, 2838),
        (77, 7681, 2838),
        (2801, 701, 2626),
    ],
)
def test_at_the_most_it_is_the_most_of_all_rules(width: int, height: int, tokens: int):
    assert max_image_tokens(picture(width, height)) == tokens


def test_what_is_expected_of_a_call():
    messages = (Message("user", (Text("x" * 9), picture(512, 512), Thought("yyyy"))), Message("user", (Text(""),)))
    assert estimate_usage(messages, Request("text")) == Usage(3 + 255 + 2 + 1, 400)
    assert (
        estimate_usage((), Request("image")) == Usage(0, 1300, images=1) == estimate_usage((), Request("interleaved"))
    )


def test_what_a_call_may_use_at_the_most():
    messages = (Message("system", (Text("é" * 10),)), Message("user", (Text("abc"), picture(10, 10))))
    assert upper_bound((), Request("text"), {}, None) == Usage(16, 8192)
    assert upper_bound(messages, Request("text"), {}, None).tokens_in == 16 + 16 + 20 + 16 + 3 + 2500
    schema = {"type": "object"}
    assert upper_bound((), Request("text", schema), {}, None).tokens_in == 16 + len(msgspec.json.encode(schema))
    for parameters, longest, out in (
        ({"max_tokens": 70}, 5, 70), ({"max_completion_tokens": 60}, 5, 60), ({}, 50, 50), ({"n": 3}, 50, 150),
        ({"max_tokens": 7, "n": 2}, None, 14), ({"n": 0}, 50, 50), ({"max_tokens": 70, "max_completion_tokens": 60}, None, 70),
    ):  # fmt: skip
        assert upper_bound((), Request("text"), {"parameters": parameters}, longest).tokens_out == out
    assert upper_bound((), Request("text"), {"parameters": None}, None).tokens_out == 8192


def test_usages_add_up_and_a_cost_that_is_known_stays_known():
    assert add_usage(Usage(1, 2, 0.5), Usage(3, 4, 0.25)) == Usage(4, 6, 0.75)
    assert add_usage(Usage(1, 2), Usage(3, 4)) == Usage(4, 6, None)
    assert add_usage(Usage(1, 2, 0.5), Usage()) == Usage(1, 2, 0.5) == add_usage(Usage(), Usage(1, 2, 0.5))


def test_what_is_billed_beyond_the_most_raises_what_is_reserved_from_then_on():
    over, price, bound = BillingExcess(), Price(10.0, 100.0), Usage(1000, 100)
    assert over.max_cost(bound, price) == pytest.approx(0.02)
    over.update(bound, Usage(500, 50), price)
    assert over == BillingExcess(), "what is within the most changes nothing"
    over.update(bound, Usage(2000, 50), price)
    assert over.tokens_in == 2.0 and over.max_cost(bound, price) == pytest.approx(0.03)
    over.update(bound, Usage(10, 300), price)
    assert over.tokens_out == 3.0 and over.max_cost(bound, price) == pytest.approx(0.05) and over.cost == 1.0
    over.update(bound, Usage(10, 10, 0.2), price)
    assert over.cost == pytest.approx(10.0) and over.max_cost(bound, price) == pytest.approx(0.2)
    over.update(bound, Usage(1500, 150, 0.01), price)
    assert (over.tokens_in, over.tokens_out, over.cost) == (2.0, 3.0, pytest.approx(10.0)), "it never falls again"
    free = BillingExcess()
    free.update(bound, Usage(1, 1, 0.5), Price(0, 0))
    assert free.cost == 1.0 and free.max_cost(bound, Price(0, 0)) == 0
    none = BillingExcess()
    none.update(Usage(0, 0), Usage(5, 7, images=2), price)
    assert (none.tokens_in, none.tokens_out, none.images) == (5.0, 7.0, 2)
    none.update(Usage(1, 1, images=1), Usage(1, 1, images=2), price)
    assert none.images == 2 and none.max_cost(Usage(images=1), Price(0, 0, 1.0)) == 3.0


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_room_is_taken_and_given_back():
    async def work() -> None:
        budget = Budget(1.0)
        async with budget.hold(Charge(0.6)) as spent:
            assert budget.held == 0.6 and budget.spent == 0.0
            spent.cost = 0.25
        assert budget.held == 0.0 and budget.spent == 0.25 and not budget.unknown
        async with budget.hold(Charge(0.75)):
            assert budget.held == 0.75
        assert budget.spent == 0.25, "what is not told is free"
        with pytest.raises(BudgetReached, match=r"up to \$0.7600 and could pass the budget of \$1; \$0.2500 is spent"):
            async with budget.hold(Charge(0.76)):
                pass
        with pytest.raises(ValueError, match="mine"):
            async with budget.hold(Charge(0.5)) as spent:
                spent.cost = 0.5
                raise ValueError("mine")
        assert budget.spent == 0.75 and budget.held == 0.0, "what was spent counts, whatever happened"

    run(work())


def test_without_a_limit_there_is_always_room_and_an_unknown_cost_is_noted():
    async def work() -> None:
        budget = Budget()
        async with budget.hold(Charge(1e9)) as spent:
            spent.cost = None
        assert budget.unknown and budget.spent == 0.0
        async with budget.hold(Charge(0.0)) as spent:
            spent.cost = 3.0
        assert budget.unknown and budget.spent == 3.0

    run(work())


def test_who_finds_no_room_beside_others_waits_for_them_to_come_back():
    async def work() -> list[str]:
        budget, told = Budget(1.0), list[str]()
        back = {name: asyncio.Event() for name in "abcd"}

        async def call(name: str, most: float, cost: float) -> None:
            try:
                async with budget.hold(Charge(most)) as spent:
                    told.append(f"{name} goes")
                    await back[name].wait()
                    spent.cost = cost
            except BudgetReached:
                told.append(f"{name} is refused")

        calls = [
            asyncio.create_task(call(*one))
            for one in (("a", 0.7, 0.1), ("b", 0.5, 0.5), ("c", 1.0001, 0.0), ("d", 0.3, 0.3))
        ]
        await until_in_loop("d is under way", lambda: "d goes" in told)
        assert "b goes" not in told
        back["a"].set()
        await until_in_loop("b is under way", lambda: "b goes" in told)
        for one in back.values():
            one.set()
        await asyncio.gather(*calls)
        assert budget.spent == pytest.approx(0.9) and budget.held == 0.0
        async with budget.hold(Charge(0.1 - 1e-9)):
            pass
        return told

    assert run(work()) == ["a goes", "c is refused", "d goes", "b goes"]


def test_exactly_the_limit_may_be_spent():
    async def work() -> None:
        budget = Budget(1.0)
        async with budget.hold(Charge(0.5)):
            async with budget.hold(Charge(0.5)) as spent:
                assert budget.held == 1.0
                spent.cost = 0.5
        async with budget.hold(Charge(0.5)) as spent:
            spent.cost = 0.5
        assert budget.spent == 1.0
        async with budget.hold(Charge(0.0)):
            pass
        with pytest.raises(BudgetReached):
            async with budget.hold(Charge(0.0001)):
                pass

    run(work())


def test_one_who_cannot_have_room_any_more_is_told_while_others_are_under_way():
    """What is spent meanwhile may make waiting pointless."""

    async def work() -> None:
        budget, waits, later = Budget(1.0), asyncio.Event(), asyncio.Event()

        async def costly() -> None:
            async with budget.hold(Charge(0.8)) as spent:
                await waits.wait()
                spent.cost = 0.8

        async def long() -> None:
            async with budget.hold(Charge(0.1)):
                await later.wait()

        async def third() -> None:
            async with budget.hold(Charge(0.3)):
                pass

        tasks = [asyncio.create_task(costly()), asyncio.create_task(long()), asyncio.create_task(third())]
        await until_in_loop("two under way", lambda: budget.held == pytest.approx(0.9))
        assert not tasks[2].done(), "there may be room for it yet"
        waits.set()
        with pytest.raises(BudgetReached):
            await asyncio.wait_for(tasks[2], HANGS)
        later.set()
        await asyncio.gather(*tasks[:2])

    run(work())


def test_pictures_that_are_paid_for_each_are_counted_and_reserved(tmp_path: Path):
    """A service that bills by the picture says nothing of tokens: what came is what is paid."""

    class Painter(Endpoint):
        async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
            return EndpointReply((blobs.put(drawn("x")),), "answered")

    blobs, journal, budget = Blobs(tmp_path / "blobs"), Journal(tmp_path / "journal.sqlite"), Budget(0.10)
    price = find_price(endpoint("flux"), {"flux": {"image": 0.04}})
    assert price == Price(0, 0, 0.04) and price.scaled_by(0.5).image == 0.02
    made = Caller(Painter("flux"), role="model", journal=journal, budget=budget, price=price, blobs=blobs, run="r")

    async def draw() -> list[float | None]:
        costs = [(await made.reply((), Request("image", draw=number))).usage.cost for number in range(2)]
        with pytest.raises(BudgetReached):
            await made.reply((), Request("image", draw=2))
        return costs

    assert asyncio.run(draw()) == [0.04, 0.04] and budget.spent == pytest.approx(0.08)
    journal.close()
