"""What has been read of a dataset is asked about while the rest is still being read; and everything else is as if it had not been."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

import weft
from server import Provider, Seen, answer, drawn
from toy import toy_records, write_weave
from waiting import HANGS, until
from weft.benchmarks.weave import Weave
from weft.benchmarks.weave.data import WeaveRecords
from weft.calls.caller import Patience
from weft.errors import UserError
from weft.store.journal import Journal

Serve = Callable[..., Provider]


class Slow(Weave):
    """The last record is not read before somebody has been asked about the first."""

    takes_all_read = True
    asked = threading.Event()
    broken = False

    def load(self, data: Path, blobs: Any) -> Any:  # type: ignore[override]
        class Records(WeaveRecords):
            def sample(self, name: str, record: dict[str, Any]) -> Any:
                if record["idx"] == 15 and not Slow.asked.wait(HANGS):
                    raise TimeoutError("nobody was asked while this was being read")
                return super().sample(name, record)

        records = json.loads((data / "test" / "test.json").read_text())
        made = Records(data / "test" / "test.json", data / "test", blobs).dataset("weave", records)
        if Slow.broken:
            raise UserError("the disk is full")
        return made


@pytest.fixture
def slow() -> type[Slow]:
    Slow.asked.clear()
    Slow.broken = False
    return Slow


def telling(seen: Seen) -> dict[str, Any]:
    Slow.asked.set()
    return answer(seen)


def evaluate(benchmark: Any, data: Path, home: Path, provider: Provider, **options: Any) -> weft.Run:
    ends = {"model": f"openai-chat/model@{provider.url}", "judge": f"openai-chat/judge@{provider.url}"}
    return weft.evaluate(benchmark, data=data, home=home, patience=Patience(tries=2, base=0.001, cap=0.002), **ends, **options)


def test_somebody_is_asked_while_the_rest_is_read_and_nothing_else_differs(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=telling)
    run = evaluate(slow, toy, tmp_path / "home", provider)
    assert max(provider.times.values()) == 1, "no call is made twice"
    usual = serve()
    late = evaluate("weave", toy, tmp_path / "late", usual, limit=100)  # with a limit nobody is asked before all is read
    called = late.report("csv").replace(f'"{late.name}"', run.name).replace(f'"{late.name}: by domain"', f"{run.name}: by domain")
    assert run.report("csv") == called, "with a limit it is called otherwise"
    assert {total.role: total.calls for total in run.totals} == {total.role: total.calls for total in late.totals}
    again = evaluate(slow, toy, tmp_path / "home", provider)
    assert again.id == run.id and provider.count == usual.count


def test_what_is_not_meant_is_not_asked(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=telling)
    run = evaluate(slow, toy, tmp_path / "home", provider, where={"domain": "recall"})
    assert {turn.sample for turn in run.turns} == {"7"} and provider.count == 3 + 7


def test_a_dataset_that_cannot_be_read_loses_no_answer(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=telling)
    Slow.broken = True
    with pytest.raises(UserError, match="the disk is full"):
        evaluate(slow, toy, tmp_path / "home", provider)
    Slow.broken, before = False, Counter(provider.times)
    evaluate(slow, toy, tmp_path / "home", provider)
    done = [key for key, times in before.items() if times]
    assert done and sum(provider.times[key] for key in done) == len(done), "not even those in flight are asked again"


def test_who_is_turned_away_before_all_is_read_ends_the_run_all_the_same(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    async def denied(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        Slow.asked.set()
        return web.json_response({"error": {"message": "no such key"}}, status=401)

    provider = serve(fault=denied)
    with pytest.raises(Exception, match="401"):
        evaluate(slow, toy, tmp_path / "home", provider)


def test_a_call_that_failed_before_all_was_read_is_not_made_again_by_the_same_command(
    slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve
):
    async def fails(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        Slow.asked.set()
        return web.Response(status=500) if not seen.is_judge and "Paint the door" in "".join(seen.texts) else None

    provider = serve(fault=fails)
    run = evaluate(slow, toy, tmp_path / "home", provider)
    painted = [times for key, times in provider.times.items() if times > 1]
    assert painted == [2], "two tries, once"
    assert any(turn.reply.outcome == "failed" for turn in run.turns)


def test_outputs_made_elsewhere_are_judged_early_too(slow: type[Slow], tmp_path: Path, serve: Serve):
    data = write_weave(tmp_path / "data", toy_records())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "toy_2.png").write_bytes(drawn("second"))
    provider = serve(answer=telling)
    judge = f"openai-chat/judge@{provider.url}"
    run = weft.evaluate(slow, data=data, home=tmp_path / "home", model=f"folder/{tmp_path / 'out'}", judge=judge)
    assert provider.count == 3 and len(run.verdicts) == 22


def test_a_benchmark_that_takes_only_some_of_what_is_read_is_read_first(toy: Path, tmp_path: Path, serve: Serve):
    class Some(Weave):
        def load(self, data: Path, blobs: Any) -> Any:  # type: ignore[override]
            whole = super().load(data, blobs)
            return replace(whole, samples=whole.samples[:1])

    provider = serve()
    run = evaluate(Some, toy, tmp_path / "home", provider)
    assert provider.count == sum(total.calls for total in run.totals) == 3 + 7


def test_the_same_command_twice_at_once_pays_once(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=answer, allowed=0)
    found: list[Any] = []

    def first() -> None:
        found.append(evaluate(slow, toy, tmp_path / "home", provider))

    thread = threading.Thread(target=first)
    thread.start()
    until("a call in flight", lambda: provider.in_flight)
    before = provider.count
    with pytest.raises(UserError, match="already going on"):
        evaluate(slow, toy, tmp_path / "home", provider)
    provider.allowed = None
    Slow.asked.set()
    thread.join(HANGS)
    assert found and before and max(provider.times.values()) == 1


def test_answers_that_a_command_left_behind_are_the_next_runs_own(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=telling)
    Slow.broken = True
    with pytest.raises(UserError):
        evaluate(slow, toy, tmp_path / "home", provider)
    Slow.broken, before = False, provider.count
    run = evaluate(slow, toy, tmp_path / "home", provider)
    assert before and sum(total.calls for total in run.totals) == provider.count, "none is nobody's"
    assert max(provider.times.values()) == 1, "what was in flight came back"


def test_void_answers_of_an_unfinished_run_stand_in_its_round(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    """A judge that talks nonsense at first: an interrupted run comes to the table of one that was not."""
    nonsense = serve(answer=lambda seen: {"role": "assistant", "content": "no"} if seen.is_judge else telling(seen))
    run = evaluate(slow, toy, tmp_path / "home", nonsense)
    journal = Journal(tmp_path / "home" / "journal.sqlite")
    journal.end(run.id, "stopped")
    journal.close()
    Slow.asked.clear()
    asked = nonsense.count
    nonsense.answer = telling
    threading.Timer(0.3, Slow.asked.set).start()
    again = evaluate(slow, toy, tmp_path / "home", nonsense)
    assert nonsense.count == asked and all(one.value is None for one in again.verdicts)
