import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from manifests import manifest
from server import drawn
from weft.calls.budget import Budget
from weft.calls.caller import Caller, EndpointDown, RetryPolicy
from weft.calls.prices import Price
from weft.errors import BudgetReached
from weft.models.endpoint import FATAL, NO_RETRY, TRANSIENT, CallError, Endpoint, EndpointReply, Retry
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Message, Reply, Request, Text, Usage

QUICK = RetryPolicy(tries=4, rate_limit_tries=4, base=0.001, cap=0.002)
ASK = (Message("user", (Text("hello"),)),)


class Scripted(Endpoint):
    """An endpoint that follows a script of answers and errors, then answers `ok`."""

    def __init__(self, *script: Any, delay: float = 0.0) -> None:
        super().__init__("scripted", address="http://scripted")
        self.script, self.delay, self.calls = list(script), delay, 0
        self.times: list[float] = []

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        self.calls += 1
        self.times.append(time.monotonic())
        await asyncio.sleep(self.delay)
        step = self.script.pop(0) if self.script else EndpointReply((Text("ok"),), "answered", usage=Usage(10, 5))
        if isinstance(step, Exception):
            raise step
        return step


def caller(endpoint: Scripted, journal: Journal, **options: Any) -> Caller:
    return Caller(
        endpoint, role="model", journal=journal, budget=options.pop("budget", Budget()), retry_policy=QUICK, **options
    )


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.sqlite")


def ask(made: Caller, want: Request = Request("text")) -> Reply:
    return asyncio.run(made.reply(ASK, want))


def test_an_answer_is_remembered_by_every_later_caller(journal: Journal):
    endpoint = Scripted()
    first = ask(caller(endpoint, journal))
    assert ask(caller(endpoint, journal)) == first and endpoint.calls == 1


def test_the_key_covers_parameters_messages_what_is_wanted_and_the_draw(journal: Journal):
    endpoint = Scripted()
    made = caller(endpoint, journal)
    ask(made)
    ask(made, Request("text", draw=1))
    ask(made, Request("text", schema={"type": "object"}))
    ask(made, Request("image"))
    endpoint.identity = {"model": "scripted", "temperature": 0}
    ask(made)
    asyncio.run(made.reply((Message("user", (Text("hello!"),)),), Request("text")))
    assert endpoint.calls == 6


def test_the_same_call_at_the_same_moment_is_made_once(journal: Journal):
    endpoint = Scripted(delay=0.02)
    made = caller(endpoint, journal)

    async def many() -> list[Reply]:
        return await asyncio.gather(*(made.reply(ASK, Request("text")) for _ in range(20)))

    assert len(set(map(str, asyncio.run(many())))) == 1 and endpoint.calls == 1


def test_transient_trouble_is_tried_again_and_counted(journal: Journal):
    endpoint = Scripted(CallError("500", TRANSIENT), CallError("cut", TRANSIENT))
    assert ask(caller(endpoint, journal)).outcome == "answered"
    assert journal._reader.execute("SELECT attempts FROM calls").fetchone() == (3,)


@pytest.mark.parametrize("kind", [NO_RETRY])
def test_a_bad_request_is_not_tried_again_and_fails_without_a_score(journal: Journal, kind: Retry):
    endpoint = Scripted(CallError("400: too many pictures", kind))
    reply = ask(caller(endpoint, journal))
    assert (reply.outcome, endpoint.calls) == ("failed", 1) and "too many pictures" in reply.reason


def test_a_refusal_is_an_answer_and_is_never_tried_again(journal: Journal):
    endpoint = Scripted(EndpointReply((), "refused", "no"))
    made = caller(endpoint, journal)
    assert ask(made).outcome == "refused" and ask(made).outcome == "refused" and endpoint.calls == 1


def test_what_makes_every_call_pointless_ends_the_run(journal: Journal):
    endpoint = Scripted(CallError("401: wrong key", FATAL))
    with pytest.raises(EndpointDown, match="wrong key"):
        ask(caller(endpoint, journal))
    assert endpoint.calls == 1


def test_the_endpoints_own_delay_is_honoured(journal: Journal):
    endpoint = Scripted(CallError("429", Retry("rate_limit", 0.2)))
    made = caller(endpoint, journal)
    assert ask(made).outcome == "answered" and made.limiter.limit < 8
    assert endpoint.times[-1] - endpoint.times[0] >= 0.2, "not before the time that the endpoint asked for"


def test_trouble_without_end_becomes_a_failed_reply_and_is_asked_again_next_time(journal: Journal):
    endpoint = Scripted(*[CallError("503", Retry("rate_limit"))] * 4)
    made = caller(endpoint, journal)
    assert ask(made).outcome == "failed" and endpoint.calls == 4
    assert ask(made).outcome == "answered"


def test_an_empty_body_is_tried_a_few_times_before_it_counts(journal: Journal):
    empty = EndpointReply((), "empty", "an empty reply", retry_advised=True)
    assert ask(caller(Scripted(empty, empty), journal)).outcome == "answered"
    endpoint = Scripted(*[empty] * 9)
    assert ask(caller(endpoint, journal), Request("text", draw=1)).outcome == "empty" and endpoint.calls == 3


def budgeted(journal: Journal, endpoint: Scripted, limit: float, most: int) -> tuple[list[Any], Budget]:
    endpoint.identity = {"model": "scripted", "parameters": {"max_tokens": most}}
    budget = Budget(limit)
    made = caller(endpoint, journal, budget=budget, price=Price(1000.0, 1000.0))

    async def many() -> list[Any]:
        return await asyncio.gather(
            *(made.reply(ASK, Request("text", draw=n)) for n in range(10)), return_exceptions=True
        )

    return asyncio.run(many()), budget


def test_the_budget_stops_before_it_is_passed_even_with_calls_in_flight_together(journal: Journal):
    """Calls cost what they may at the most: 400 tokens at $1 a thousand, and all come at once."""
    costly = [EndpointReply((Text("ok"),), "answered", usage=Usage(10, 400))] * 10
    results, budget = budgeted(journal, Scripted(*costly, delay=0.01), limit=1.0, most=400)
    assert (
        sum(isinstance(one, Reply) for one in results) == 2
        and sum(isinstance(one, BudgetReached) for one in results) == 8
    )
    assert budget.spent == pytest.approx(0.82) and budget.held == 0


def test_calls_that_come_back_cheaper_than_they_might_leave_room_for_others(journal: Journal):
    # each may cost 0.437 and costs 0.015
    results, budget = budgeted(journal, Scripted(delay=0.01), limit=0.537, most=400)
    assert sum(isinstance(one, Reply) for one in results) == 7 and budget.spent == pytest.approx(0.105)


def test_a_reply_that_does_not_say_what_it_used_is_not_free(journal: Journal):
    silent = [EndpointReply((Text("ok"),), "answered")] * 10
    _, budget = budgeted(journal, Scripted(*silent), limit=100.0, most=400)
    assert budget.spent > 3.9


def test_tries_that_came_back_empty_are_paid_for_too(journal: Journal):
    empty = EndpointReply((), "empty", "an empty reply", usage=Usage(10, 5), retry_advised=True)
    endpoint = Scripted(empty, empty)
    made = caller(endpoint, journal, price=Price(1000.0, 1000.0))
    assert ask(made).usage.tokens_out == 15


def test_an_endpoint_that_asks_for_an_hour_ends_the_run_instead_of_holding_it(journal: Journal):
    endpoint = Scripted(CallError("429: come back later", Retry("rate_limit", 3600.0)))
    with pytest.raises(EndpointDown, match="it asks to wait 3600 s"):
        ask(caller(endpoint, journal))


def test_an_answer_that_has_come_is_kept_even_if_nobody_waits_for_it_any_more(journal: Journal):
    async def go() -> None:
        made = caller(Scripted(), journal)
        for n in range(50):
            task = asyncio.create_task(made.reply(ASK, Request("text", draw=n)))
            await asyncio.sleep(0)
            await asyncio.sleep(0.0005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(go())
    journal.begin_run("r", manifest(), [])
    journal.end_run("r", "finished")  # the writer is alive
    assert journal.runs()[0].state == "finished"


def test_an_answer_whose_picture_is_gone_is_asked_for_again(journal: Journal, blobs: Blobs):
    image = blobs.put(drawn("a"))
    endpoint = Scripted(*[EndpointReply((image,), "answered")] * 3)
    made = caller(endpoint, journal, blobs=blobs)
    ask(made, Request("image"))
    ask(made, Request("image"))
    assert endpoint.calls == 1
    blobs.path(image.digest).write_bytes(b"")
    ask(made, Request("image"))
    assert endpoint.calls == 2


def test_an_endpoint_that_answers_nothing_any_more_ends_the_run(journal: Journal):
    endpoint = Scripted(*[CallError("400: no", NO_RETRY)] * 30)
    made = caller(endpoint, journal)

    async def many() -> None:
        for n in range(30):
            await made.reply(ASK, Request("text", draw=n))

    with pytest.raises(EndpointDown, match="25 calls in a row"):
        asyncio.run(many())
