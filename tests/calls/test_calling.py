"""A caller's decisions one by one: waits, tries, money, denials, what is kept and what is handed on."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from server import drawn
from waiting import HANGS, until_in_loop
from weft.calls import caller as call_module
from weft.calls import limiter, sending
from weft.calls.budget import Budget
from weft.calls.caller import Caller, EndpointDown, Halt, RetryPolicy, RunHalted, build_request, strip_foreign_state
from weft.calls.prices import Price
from weft.errors import BudgetReached, StoreError, WeftError
from weft.models.endpoint import DENIED, FATAL, NO_RETRY, TRANSIENT, CallError, Endpoint, EndpointReply, Retry
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Message, Reply, Request, State, Takes, Text, Thought, Usage

QUICK = RetryPolicy(tries=4, rate_limit_tries=3, empty_tries=2, unreachable_tries=2, base=0.0001, cap=0.0002)
ASK = (Message("user", (Text("hello"),)),)
OK = EndpointReply((Text("ok"),), "answered", usage=Usage(10, 5))

EMPTY, PUSHED, LATER = (
    EndpointReply((), "empty", "e", retry_advised=True),
    CallError("x", Retry("rate_limit")),
    CallError("x", TRANSIENT),
)


class Scripted(Endpoint):
    def __init__(self, *script: Any, address: str = "http://scripted", **identity: Any) -> None:
        super().__init__("scripted", address=address, **identity)
        self.script, self.calls = list(script), 0

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        self.calls += 1
        await asyncio.sleep(0)
        step = self.script.pop(0) if self.script else OK
        if isinstance(step, BaseException):
            raise step
        return step


@pytest.fixture
def journal(tmp_path: Path):
    made = Journal(tmp_path / "journal.sqlite")
    yield made
    made.close()


def caller(endpoint: Endpoint, journal: Journal, **options: Any) -> Caller:
    options.setdefault("retry_policy", QUICK)
    return Caller(endpoint, role="model", journal=journal, budget=options.pop("budget", Budget()), **options)


def ask(made: Caller, draw: int = 0) -> Reply:
    return asyncio.run(made.reply(ASK, Request("text", draw=draw)))


def rows(journal: Journal) -> list[Any]:
    journal.flush()
    return journal._rows("SELECT outcome, cost, attempts, tokens_in, tokens_out FROM calls ORDER BY id")


# patience


def test_waits_are_drawn_up_to_the_base_doubled_each_time_and_never_over_the_cap(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[float, float]] = []
    monkeypatch.setattr(random, "uniform", lambda low, high: asked.append((low, high)) or high)
    patience = RetryPolicy(base=0.5, cap=30.0)
    assert [patience.choose_wait(TRANSIENT, tried) for tried in (0, 1, 2, 5, 6, 9)] == [0.5, 1.0, 2.0, 16.0, 30.0, 30.0]
    assert (
        patience.choose_wait(Retry("rate_limit", 7.0), 3) == 7.5
        and patience.choose_wait(Retry("rate_limit", 0.0), 3) == 0.5
    )
    assert RetryPolicy(base=4.0).choose_wait(Retry("rate_limit", 7.0), 3) == 8.0, (
        "at most a second more than was asked for"
    )
    assert {low for low, _ in asked} == {0}


def test_the_usual_patience():
    usual = RetryPolicy()
    assert (usual.tries, usual.rate_limit_tries, usual.empty_tries, usual.unreachable_tries) == (6, 30, 3, 4)
    assert (usual.base, usual.cap, usual.max_wait) == (0.5, 30.0, 600.0)
    assert (
        limiter.START_CONCURRENCY,
        limiter.MAX_CONCURRENCY,
        call_module.MAX_CONSECUTIVE_FAILURES,
        sending.MAX_DENIALS,
    ) == (8, 64, 25, 3)


# tries


@pytest.mark.parametrize(
    ("script", "outcome", "calls", "attempts"),
    [
        ([], "answered", 1, 1),
        ([CallError("x", TRANSIENT)], "answered", 2, 2),
        ([CallError("x", TRANSIENT)] * 3, "answered", 4, 4),
        ([CallError("x", TRANSIENT)] * 4, "failed", 4, 4),
        ([CallError("x", Retry("rate_limit"))] * 2, "answered", 3, 3),
        ([CallError("x", Retry("rate_limit"))] * 3, "failed", 3, 3),
        ([CallError("x", NO_RETRY)], "failed", 1, 1),
        ([CallError("x", TRANSIENT), CallError("x", NO_RETRY)], "failed", 2, 2),
        ([EndpointReply((), "empty", "e", retry_advised=True)], "answered", 2, 2),
        ([EndpointReply((), "empty", "e", retry_advised=True)] * 2, "empty", 2, 2),
        ([EndpointReply((), "empty", "e")], "empty", 1, 1),
        ([CallError("x", Retry("rate_limit"))] * 2 + [CallError("x", TRANSIENT)] * 3, "answered", 6, 6),
        ([ValueError("mine")], "failed", 1, 1),
        ([EMPTY, PUSHED, LATER, CallError("x", NO_RETRY)], "failed", 4, 4),
        ([EMPTY, PUSHED, PUSHED, LATER, LATER, LATER, LATER], "failed", 7, 7),
        ([EMPTY, PUSHED, LATER, LATER, PUSHED, PUSHED], "failed", 6, 6),
        ([PUSHED, LATER, EMPTY, EMPTY], "empty", 4, 4),
    ],
)
def test_how_often_is_tried(journal: Journal, script: list[Any], outcome: str, calls: int, attempts: int):
    endpoint = Scripted(*script)
    made = caller(endpoint, journal)
    reply = ask(made)
    assert (reply.outcome, endpoint.calls, rows(journal)[0][2]) == (outcome, calls, attempts)
    retried = calls - 1
    assert sum(made.tally.retries.values()) == retried and made.tally.calls == 1
    if outcome == "failed" and calls > 2 and script[-1].retry.kind != "no":
        assert f"(after {attempts} tries)" in reply.reason


def test_an_endpoint_that_was_never_reached_ends_the_run_sooner(journal: Journal):
    there = CallError("nobody there", TRANSIENT, unreachable=True)
    endpoint = Scripted(there, there)
    with pytest.raises(EndpointDown, match="nobody there") as caught:
        ask(caller(endpoint, journal))
    assert endpoint.calls == 2 and caught.value.user_fault
    endpoint = Scripted(OK, there, there, there, there)
    made = caller(endpoint, journal)
    assert ask(made, 1).outcome == "answered" and ask(made, 2).outcome == "failed", (
        "once reached, it is a call that failed"
    )
    endpoint = Scripted(there, there)
    with pytest.raises(EndpointDown):
        ask(caller(endpoint, journal, retry_policy=RetryPolicy(tries=1, base=0.0001, cap=0.0001)), 3)
    assert endpoint.calls == 1


def test_a_wait_that_is_too_long_ends_the_run(journal: Journal):
    patience = RetryPolicy(max_wait=5.0, base=0.0001)
    with pytest.raises(EndpointDown, match="it asks to wait 6 s") as caught:
        ask(caller(Scripted(CallError("429", Retry("rate_limit", 6.0))), journal, retry_policy=patience))
    assert not caught.value.user_fault
    made = caller(Scripted(CallError("429", Retry("rate_limit", 0.001))), journal, retry_policy=patience)
    before = made.limiter.limit
    assert ask(made).outcome == "answered" and made.limiter.decreases == 1 and made.limiter.limit < before


def test_a_wait_of_just_the_longest_is_waited(journal: Journal):
    patience = RetryPolicy(max_wait=0.01, base=0.0001)
    assert (
        ask(caller(Scripted(CallError("429", Retry("rate_limit", 0.01))), journal, retry_policy=patience)).outcome
        == "answered"
    )
    assert (
        ask(caller(Scripted(PUSHED), journal, retry_policy=RetryPolicy(max_wait=0.5, base=0.0001)), 1).outcome
        == "answered"
    )


def test_the_mark_of_an_endpoint_is_the_same_for_ever(journal: Journal):
    """States in journals are known by it."""
    assert caller(Scripted(), journal)._endpoint_digest == "76cea071c3093577"


def test_waits_grow_with_every_try_of_whatever_kind(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    told: list[tuple[str, int]] = []

    def wait(self: RetryPolicy, retry: Retry, tried: int) -> float:
        told.append((retry.kind, tried))
        return 0.0

    monkeypatch.setattr(RetryPolicy, "choose_wait", wait)
    made = caller(Scripted(PUSHED, LATER, PUSHED, EMPTY), journal)
    assert made.round == 1 and made.run == "" and ask(made).outcome == "answered"
    assert told == [("rate_limit", 1), ("transient", 2), ("rate_limit", 3), ("transient", 1)]


def test_what_makes_every_call_pointless_ends_the_run(journal: Journal):
    with pytest.raises(EndpointDown, match="no quota") as caught:
        ask(caller(Scripted(CallError("no quota", FATAL)), journal))
    assert caught.value.user_fault


def test_so_many_failures_in_a_row_and_it_is_gone(journal: Journal):
    made = caller(Scripted(*[CallError("x", NO_RETRY)] * 24, OK, *[CallError("last", NO_RETRY)] * 25), journal)
    outcomes = [ask(made, draw).outcome for draw in range(49)]
    assert outcomes == ["failed"] * 24 + ["answered"] + ["failed"] * 24
    with pytest.raises(EndpointDown, match="25 calls in a row failed; the last: last") as caught:
        ask(made, 99)
    assert not caught.value.user_fault
    here = caller(Scripted(*[CallError("x", NO_RETRY)] * 30, address="python:x"), journal)
    assert [ask(here, draw).outcome for draw in range(200, 230)] == ["failed"] * 30, (
        "what is on this machine is not gone"
    )


def test_a_halted_run_makes_no_call(journal: Journal):
    halt = Halt()
    halt.stop(WeftError("enough"))
    halt.stop(WeftError("later"))
    endpoint = Scripted()
    with pytest.raises(RunHalted, match="enough"):
        ask(caller(endpoint, journal, halt=halt))
    assert endpoint.calls == 0


def test_a_full_store_is_no_failed_call(journal: Journal):
    with pytest.raises(StoreError):
        ask(caller(Scripted(StoreError("full")), journal))
    assert rows(journal) == []


# denials


def many(made: Caller, count: int, first: int = 0) -> list[Any]:
    async def go() -> list[Any]:
        asked = (made.reply(ASK, Request("text", draw=first + draw)) for draw in range(count))
        return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), HANGS)

    return asyncio.run(go())


def kinds(results: list[Any]) -> list[str]:
    return [one.outcome if isinstance(one, Reply) else type(one).__name__ for one in results]


def test_one_denial_among_answers_is_its_own_trouble(journal: Journal):
    denied = CallError("403", DENIED)
    assert sorted(kinds(many(caller(Scripted(denied), journal), 4))) == ["answered"] * 3 + ["failed"]
    assert sorted(kinds(many(caller(Scripted(denied, denied), journal), 3, 10))) == ["answered", "failed", "failed"]
    made = caller(Scripted(OK, *[denied] * 6), journal)
    assert kinds(many(made, 1, 20)) == ["answered"] and kinds(many(made, 6, 30)) == ["failed"] * 6
    again = caller(Scripted(*[denied] * 6), journal)
    assert kinds(many(again, 1, 20)) == ["answered"] and kinds(many(again, 6, 40)) == ["failed"] * 6, (
        "what was answered before counts"
    )


def test_three_denials_before_any_answer_are_enough(journal: Journal):
    endpoint = Scripted(*[CallError("401", DENIED)] * 50)
    results = kinds(many(caller(endpoint, journal, concurrency=1), 20))
    assert results[:2] == ["failed", "failed"] and set(results[2:]) == {"EndpointDown"}


def test_one_denial_is_enough_for_a_call_that_only_tries_the_endpoint_out_and_counts_for_no_other(journal: Journal):
    denied = CallError("401", DENIED)
    made = caller(Scripted(denied, denied, denied, OK, denied), journal)
    with pytest.raises(EndpointDown, match="401"):
        asyncio.run(made.ask_uncached(ASK, Request("text")))
    assert [ask(made, draw).outcome for draw in (1, 2)] == ["failed", "failed"], "two of three, without the one before"
    assert ask(made, 3).outcome == "answered"
    assert asyncio.run(made.ask_uncached(ASK, Request("text"))).outcome == "failed", (
        "where others are answered it is its own trouble"
    )


def test_what_only_tries_the_endpoint_out_is_asked_each_time_and_journalled_under_no_run(journal: Journal):
    endpoint = Scripted()
    made = caller(endpoint, journal, run="mine")
    for _ in range(2):
        assert asyncio.run(made.ask_uncached(ASK, Request("text"))).outcome == "answered"
    assert endpoint.calls == 2 and made.tally.calls == 0
    journal.flush()
    assert journal._rows("SELECT run, attempts FROM calls") == [("preflight", 1)] * 2


# money


PRICE = Price(1000.0, 1000.0)  # a thousandth of a dollar a token


def test_what_is_read_is_billed_by_its_usage_and_the_rest_at_what_was_expected(journal: Journal):
    budget = Budget(100.0)
    made = caller(
        Scripted(CallError("x", TRANSIENT), OK, parameters={"max_tokens": 100}), journal, price=PRICE, budget=budget
    )
    expected, most = 0.402, 0.137  # 2 tokens in and 400 out; 16 + 16 + 5 and 100
    assert ask(made).usage == Usage(10, 5, pytest.approx(0.015 + expected))
    assert budget.spent == pytest.approx(0.015 + most) and budget.held == 0
    outcome, cost, attempts, tokens_in, tokens_out = rows(journal)[0]
    assert (outcome, attempts, tokens_in, tokens_out) == ("answered", 2, 10, 5) and cost == pytest.approx(
        0.015 + expected
    )


@pytest.mark.parametrize(
    ("error", "billed"),
    [
        (CallError("x", NO_RETRY), False),
        (CallError("x", NO_RETRY, billed=True), True),
        (CallError("x", Retry("rate_limit")), False),
        (CallError("x", TRANSIENT), True),
        (CallError("x", TRANSIENT, billed=False), False),
        (CallError("x", TRANSIENT, unreachable=True), False),
        (ValueError("mine"), True),
    ],
)
def test_which_trouble_may_have_been_billed(journal: Journal, error: Exception, billed: bool):
    budget = Budget(100.0)
    patience = RetryPolicy(tries=1, rate_limit_tries=1, unreachable_tries=2, base=0.0001)
    made = caller(
        Scripted(OK, error, parameters={"max_tokens": 100}), journal, price=PRICE, budget=budget, retry_policy=patience
    )
    ask(made)
    assert ask(made, 1).outcome == "failed"
    assert budget.spent == pytest.approx(0.015 + (0.137 if billed else 0)) and rows(journal)[1][1] == pytest.approx(
        0.402 if billed else 0
    )


def test_a_reply_that_does_not_say_what_it_used_counts_at_the_most_and_is_told_as_expected(journal: Journal):
    budget = Budget(100.0)
    silent = EndpointReply((Text("ok"),), "answered")
    made = caller(Scripted(silent, parameters={"max_tokens": 100}), journal, price=PRICE, budget=budget)
    assert ask(made).usage.cost == pytest.approx(0.402) and budget.spent == pytest.approx(0.137)


def test_what_a_provider_says_it_costs_is_believed(journal: Journal):
    budget = Budget(0.99)
    told = EndpointReply((Text("ok"),), "answered", usage=Usage(10, 5, 0.5))
    made = caller(Scripted(told, parameters={"max_tokens": 100}), journal, price=PRICE, budget=budget)
    assert ask(made).usage.cost == 0.5 and budget.spent == 0.5
    with pytest.raises(BudgetReached, match=r"up to \$0.5000"):  # and is reserved from then on
        ask(made, 9)
    open_budget = Budget()
    unknown = caller(Scripted(told, OK), journal, budget=open_budget)
    assert ask(unknown, 1).usage.cost == 0.5 and not open_budget.unknown
    assert ask(unknown, 2).usage.cost is None and open_budget.unknown and open_budget.spent == 0.5


@pytest.mark.parametrize(
    ("usage", "cost", "counted"),
    [
        (Usage(0, 5), 0.005, 0.137),
        (Usage(5, 0), 0.005, 0.137),
        (Usage(0, 0, 0.0), 0.0, 0.0),
        (Usage(1, 1, 0.5), 0.5, 0.5),
        (Usage(3, 4), 0.007, 0.007),
    ],
)
def test_a_usage_of_one_side_alone_is_recorded_and_counts_at_the_most(
    journal: Journal, usage: Usage, cost: float, counted: float
):
    budget = Budget(100.0)
    sent = EndpointReply((Text("ok"),), "answered", usage=usage)
    made = caller(Scripted(sent, parameters={"max_tokens": 100}), journal, price=PRICE, budget=budget)
    assert ask(made).usage.cost == pytest.approx(cost) and budget.spent == pytest.approx(counted)


@pytest.mark.parametrize("odd", ["text", EndpointReply((Text(5),), "answered")])  # type: ignore[arg-type]
def test_what_is_no_reply_may_have_been_billed(journal: Journal, odd: Any):
    budget = Budget(100.0)
    made = caller(Scripted(odd, parameters={"max_tokens": 100}), journal, price=PRICE, budget=budget)
    assert ask(made).outcome == "failed" and budget.spent == pytest.approx(0.137)


@pytest.mark.parametrize(
    "usage", [Usage(-1, 5), Usage(5, -1), Usage(1, 1, -0.5), Usage(1, 1, float("nan")), Usage(1, 1, float("inf"))]
)
def test_a_usage_that_is_none_is_not_believed(journal: Journal, usage: Usage):
    budget = Budget(100.0)
    sent = EndpointReply((Text("ok"),), "answered", usage=usage)
    made = caller(Scripted(sent, parameters={"max_tokens": 100}), journal, price=PRICE, budget=budget)
    assert ask(made).usage == Usage(0, 0, pytest.approx(0.402)) and budget.spent == pytest.approx(0.137)


def test_the_first_call_under_a_budget_goes_alone(journal: Journal):
    class Counting(Scripted):
        now = most = 0
        at_first: int | None = None

        async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.at_first is None and alone:
                await asyncio.sleep(0.01)  # others would follow at once
            else:
                await until_in_loop("all others at once", lambda: self.most >= 6 - alone)
            self.at_first = self.most if self.at_first is None else self.at_first
            self.now -= 1
            return OK

    free: dict[str, Any] = {"budget": Budget(100.0), "price": Price(0, 0)}
    for at, (options, first) in enumerate(
        (({"budget": Budget(100.0), "price": PRICE}, 1), (free, 6), ({"price": PRICE}, 6), ({}, 6))
    ):
        endpoint, alone = Counting(), first == 1
        assert kinds(many(caller(endpoint, journal, **options), 6, 100 * at)) == ["answered"] * 6
        assert endpoint.at_first == first


def test_no_room_is_told_before_the_call(journal: Journal):
    endpoint = Scripted(parameters={"max_tokens": 100})
    with pytest.raises(BudgetReached):
        ask(caller(endpoint, journal, price=PRICE, budget=Budget(0.13)))
    assert endpoint.calls == 0


# what is kept, and what is handed on


def test_how_many_may_be_in_flight(journal: Journal):
    def limits(own: int | None, **options: Any) -> tuple[float, int]:
        endpoint = Scripted()
        endpoint.concurrency = own
        limiter = caller(endpoint, journal, **options).limiter
        return limiter.limit, limiter.maximum

    assert limits(None) == (8.0, 64) and limits(3) == (3.0, 3) and limits(100) == (8.0, 100)
    assert (
        limits(None, concurrency=20) == (20.0, 20)
        and limits(3, concurrency=20) == (3.0, 3)
        and limits(50, concurrency=20) == (20.0, 20)
    )


def test_the_same_call_is_made_once_however_many_want_it(journal: Journal):
    endpoint = Scripted()
    made = caller(endpoint, journal)

    async def go() -> list[Reply]:
        return await asyncio.gather(*(made.reply(ASK, Request("text")) for _ in range(5)))

    replies = asyncio.run(go())
    assert endpoint.calls == 1 and len({reply.keys for reply in replies}) == 1
    assert ask(made).outcome == "answered" and endpoint.calls == 1 and made.tally.cached == 1
    assert made.find_cached(ASK, Request("text")) is not None and made.find_cached(ASK, Request("text", draw=7)) is None
    made.void(replies[0].keys, "useless")
    journal.flush()
    assert caller(endpoint, journal, run="another").find_cached(ASK, Request("text")) is None


def test_what_has_no_memo_is_asked_each_time_and_nothing_is_kept(journal: Journal):
    endpoint = Scripted(CallError("x", NO_RETRY), address="local:x")
    endpoint.cacheable = False
    made = caller(endpoint, journal)
    assert [ask(made).outcome for _ in range(3)] == ["failed", "answered", "answered"] and endpoint.calls == 3
    assert rows(journal) == [] and made.find_cached(ASK, Request("text")) is None and made.tally.calls == 3
    with pytest.raises(EndpointDown):
        endpoint.script = [CallError("over", FATAL)]
        ask(made)
    kept = caller(endpoint, journal, always_record=True)
    assert ask(kept).outcome == "answered" and len(rows(journal)) == 1


def test_a_key_is_of_everything_that_can_change_an_answer():
    base = build_request({"model": "a"}, ASK, Request("text"))
    assert build_request({"model": "a"}, ASK, Request("text")) == base and len(base[1]) == 64
    others = [
        build_request({"model": "b"}, ASK, Request("text")),
        build_request({"model": "a"}, (), Request("text")),
        build_request({"model": "a"}, ASK, Request("image")),
        build_request({"model": "a"}, ASK, Request("text", draw=1)),
        build_request({"model": "a"}, ASK, Request("text", {"type": "object"})),
    ]
    assert len({key for _, key in [base, *others]}) == 6
    assert build_request({"a": 1, "b": 2}, ASK, Request()) == build_request({"b": 2, "a": 1}, ASK, Request())


def test_states_and_thoughts_go_back_to_who_gave_them_alone():
    mine, other = State("s", "me"), State("t", "you")
    messages = (
        Message("assistant", (Thought("a"), Thought("b", mine), Text("c", other), Text("d", mine))),
        Message("assistant", (Thought("x", other),)),
    )
    assert strip_foreign_state(messages, "me") == (
        Message("assistant", (Thought("b", mine), Text("c"), Text("d", mine))),
    )
    assert strip_foreign_state(ASK, "me") is ASK


def test_what_no_endpoint_may_send_is_a_failed_call(journal: Journal):
    bad: list[Any] = [
        "text",
        None,
        EndpointReply((), "odd"),
        EndpointReply((Text(5),), "answered"),
        EndpointReply("x", "answered"),
    ]  # type: ignore[arg-type]
    made = caller(Scripted(*bad), journal)
    for draw in range(len(bad)):
        reply = ask(made, draw)
        assert reply.outcome == "failed" and "scripted returned" in reply.reason, reply
    own = Scripted(EndpointReply((Text("ok"),), "answered"))
    own.output_checked = False
    assert ask(caller(own, journal), 50).outcome == "answered"


def test_what_is_told_of_trouble_is_text(journal: Journal):
    made = caller(Scripted(CallError("moved to \udcff", NO_RETRY), ValueError("\ud800")), journal)
    assert ask(made).reason == "moved to ?" and ask(made, 1).reason == "scripted raised ValueError: ?"


def test_an_answer_is_what_was_due_or_none(journal: Journal, blobs: Blobs):
    image = blobs.put(drawn("a"))
    made = caller(Scripted(EndpointReply((image,), "answered", "why")), journal, blobs=blobs)
    assert (made.name, made.takes, made.role) == ("scripted", Takes(), "model")
    reply = ask(made)
    assert reply.outcome == "empty" and reply.reason == "an image where text was expected"
    kept = caller(Scripted(EndpointReply((Text("ok"),), "answered", "a note")), journal)
    assert ask(kept, 5).reason == "a note"
