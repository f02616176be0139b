"""Whole runs against a real socket: resuming, overlap, what a failure costs, and what the model really saw."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from server import Provider, Seen, judge_score
from toy import more_records, toy_records, write_weave
from waiting import until_in_loop
from weft.api import report
from weft.benchmarks.weave import Weave
from weft.benchmarks.weave.tables import build_metric_cells
from weft.calls.caller import EndpointDown, RetryPolicy
from weft.errors import BudgetReached, UserError, WeftError
from weft.report.dialogues import read_dataset_turn
from weft.results.run import load_run
from weft.store.journal import Journal
from weft.store.locks import lock_run
from weft.types import Image, Verdict

Serve = Callable[..., Provider]
QUICK = RetryPolicy(tries=3, rate_limit_tries=50, base=0.001, cap=0.002)


def evaluate(data: Path, home: Path, provider: Provider, **options: Any) -> weft.Run:
    options.setdefault("model", f"openai-chat/model@{provider.url}")
    options.setdefault("judge", f"openai-chat/judge@{provider.url}")
    return weft.evaluate("weave", data=data, home=home, retry_policy=QUICK, concurrency=8, **options)


def test_the_same_command_again_makes_no_call_and_comes_to_the_same_table(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    first = evaluate(toy, tmp_path / "home", provider)
    calls = provider.count
    assert calls == 10 + 22
    second = evaluate(toy, tmp_path / "home", provider)
    assert provider.count == calls and second.report("csv") == first.report("csv") and second.id == first.id


def test_another_judge_costs_judge_calls_only(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    evaluate(toy, tmp_path / "home", provider)
    before = provider.count
    evaluate(toy, tmp_path / "home", provider, judge_options={"temperature": 0.5})
    assert provider.count - before == 22


def test_the_table_is_what_the_judge_said(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    run = evaluate(toy, tmp_path / "home", provider)
    said = sorted(judge_score(seen) for seen in provider.seen if seen.is_judge)
    assert sorted(verdict.score for verdict in run.verdicts if verdict.score is not None) == said
    assert all(verdict.value == verdict.score / 10 for verdict in run.verdicts if verdict.score is not None)
    strict = run.table().run_rows[0]
    assert strict.arithmetic != "official"
    assert strict.cells["Avg"] == build_metric_cells(run.verdicts, official=False)["Avg"]


def test_a_turn_is_judged_while_the_next_is_generated(tmp_path: Path, serve: Serve):
    records = [toy_records()[2]]  # one dialogue of three turns
    came: list[str] = []

    async def fault(seen: Seen, times: int, request: web.Request) -> None:
        came.append("judge" if seen.is_judge else "model")
        if came.count("model") == 2:
            await until_in_loop("a judge who is asked while the second turn is generated", lambda: "judge" in came)

    evaluate(write_weave(tmp_path / "one", records), tmp_path / "home", serve(fault=fault))
    assert came.index("judge") < len(came) - 1 - came[::-1].index("model"), (
        "the first judgement is asked for before the last turn"
    )


def test_a_models_failures_are_zero_and_ours_are_unscored(toy: Path, tmp_path: Path, serve: Serve):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        text = " ".join(seen.texts)
        if seen.is_judge:
            return None
        if "Paint the door" in text:
            return Provider.completion(seen, {"role": "assistant", "content": None, "refusal": "no doors"})
        if "Put the hat" in text:
            return web.json_response({"error": {"message": "At most 1 image(s)"}}, status=400)
        if "chess board" in text:
            return Provider.completion(seen, {"role": "assistant", "content": "here is a board: ..."})
        return None

    run = evaluate(toy, tmp_path / "home", serve(fault=fault))
    found = {(v.sample, v.turn, v.metric): v for v in run.verdicts}
    assert len(found) == 22, "every turn is there: scored, zero, or unscored"
    refused = found["7", 0, "key_point"]
    assert (refused.value, refused.by) == (0.0, "failure") and "no doors" in refused.reason
    lost_reference = found["7", 2, "key_point"]
    assert (lost_reference.value, lost_reference.by) == (
        0.0,
        "failure",
    ) and "which the model did not make" in lost_reference.reason
    assert found["7", 2, "image_quality"].by == "judge", "the picture itself can still be judged"
    ours = found["9", 0, "key_point"]
    assert ours.value is None and "400: At most 1 image(s)" in ours.reason
    waits = found["9", 1, "image_quality"]
    assert waits.value is None and "waits for turn 1, which failed" in waits.reason
    text = found["12", 0, "visual_consistency"]
    assert text.value == 0.0 and "text where an image was expected: here is a board" in text.reason
    report = run.report("md")
    assert "(strict)" in report and "(official)" in report and "unscored (6): http" in report


def test_what_failed_is_asked_again_by_the_next_command(toy: Path, tmp_path: Path, serve: Serve):
    broken = {"on": True}

    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=500) if broken["on"] and "Put the hat" in " ".join(seen.texts) else None

    provider = serve(fault=fault)
    first = evaluate(toy, tmp_path / "home", provider)
    assert sum(verdict.value is None for verdict in first.verdicts) == 6
    broken["on"] = False
    before = provider.count
    second = evaluate(toy, tmp_path / "home", provider)
    assert all(verdict.value is not None for verdict in second.verdicts) and provider.count - before == 2 + 6


def test_faults_of_every_kind_in_a_fifth_of_all_replies_change_no_number(more: Path, tmp_path: Path, serve: Serve):
    """429, 500, cut connection, bad JSON, empty reply: tried again until a good one comes. The table equals the one
    without faults."""
    clean = serve()
    expected = evaluate(more, tmp_path / "clean", clean)
    faulty = serve(fault=fault_in_a_fifth())
    model = f"openai-chat/model@{faulty.url}"
    run = evaluate(more, tmp_path / "home", faulty, model=model, judge=f"openai-chat/judge@{faulty.url}")
    assert all(verdict.value is not None for verdict in run.verdicts)
    assert run.report("csv") == expected.report("csv")
    assert faulty.count > clean.count * 1.1, "faults did happen"


def fault_in_a_fifth(refusals: bool = False) -> Callable[..., Any]:
    """Decided by the request and how often it was seen, so that a run has one right outcome."""
    kinds = ("429", "500", "cut", "json", "empty", *(("refusal",) if refusals else ()))

    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        number = int(seen.digest[8:14], 16)
        if number % 5 or times > (99 if refusals and kinds[number // 5 % len(kinds)] == "refusal" else 1):
            return None
        kind = kinds[number // 5 % len(kinds)]
        if kind == "429":
            return web.json_response(
                {"error": {"message": "slow", "code": "rate_limit_exceeded"}},
                status=429,
                headers={"Retry-After": "0.01"},
            )
        if kind == "500":
            return web.Response(status=500, text="oops")
        if kind == "json":
            return web.Response(text='{"choices": [{"message"', content_type="application/json")
        if kind == "empty":
            return Provider.completion(seen, {"role": "assistant", "content": ""})
        if kind == "refusal":
            return Provider.completion(seen, {"role": "assistant", "content": None, "refusal": "I would rather not"})
        response = web.StreamResponse(headers={"Content-Length": "5000"})
        await response.prepare(request)
        await response.write(b'{"choi')
        assert request.transport is not None
        request.transport.close()
        return response

    return fault


def test_refusals_among_the_faults_are_zero_for_the_model_and_unscored_for_the_judge(
    more: Path, tmp_path: Path, serve: Serve
):
    provider = serve(fault=fault_in_a_fifth(refusals=True))
    run = evaluate(more, tmp_path / "home", provider)
    due = sum(3 if turn.modality == "image" else 1 for turn in run.turns)
    assert len(run.verdicts) == due, "nothing is dropped silently"
    for verdict in run.verdicts:
        if verdict.value is None:
            assert verdict.reason == "the judge refused: I would rather not"
        elif verdict.by == "failure":
            assert verdict.value == 0.0 and ("I would rather not" in verdict.reason or "did not make" in verdict.reason)
    good = [
        judge_score(seen)
        for seen in {seen.key: seen for seen in provider.seen if seen.is_judge}.values()
        if not refused(seen)
    ]
    # equal questions share one call
    said = {v.keys: v.score for v in run.verdicts if v.by == "judge" and v.value is not None}
    assert sorted(said.values()) == sorted(good), "exactly what the good replies say"


def refused(seen: Seen) -> bool:
    number = int(seen.digest[8:14], 16)
    return number % 5 == 0 and number // 5 % 6 == 5


@pytest.fixture
def more(tmp_path: Path) -> Path:
    """Enough dialogues for every kind of fault to occur."""
    return write_weave(tmp_path / "more", more_records(6))


MODES = [("none", "all-first"), ("partial", "all-first")]
MODES += [(mode, placement) for mode in ("full", "dialogue") for placement in ("all-first", "inline")]


@pytest.mark.parametrize(("mode", "placement"), MODES)
@pytest.mark.parametrize("past", ["own", "reference"])
def test_the_real_dialogues_run_whole_and_no_future_picture_crosses_the_wire(
    real: Path, tmp_path: Path, serve: Serve, mode: str, placement: str, past: str
):
    provider = serve()
    run = evaluate(real, tmp_path / "home", provider, history=mode, placement=placement, past=past)
    assert (
        len(run.turns) == 39 and all(verdict.value is not None for verdict in run.verdicts) and len(run.verdicts) == 97
    )
    records = {str(record["idx"]): record for record in json.loads((real / "test" / "test.json").read_text())}
    wire = {seen.digest: seen for seen in provider.seen if not seen.is_judge}
    assert len(wire) == len(provider.seen) - sum(seen.is_judge for seen in provider.seen)
    own = {turn.reply.images[-1].digest: (turn.sample, turn.turn) for turn in run.turns if turn.reply.images}
    for turn in run.turns:
        record = records[turn.sample]
        digests = [hashlib.sha256((real / "test" / path).read_bytes()).hexdigest() for path in record["images"]]
        due = [
            int(chat["content"].split("#")[1])
            for chat in record["chats"][2 * turn.turn + 1 :: 2]
            if chat["type"] == "image"
        ]
        forbidden = {digests[number - 1] for number in due}
        shown = {
            part["digest"]
            for message in json.loads(turn.messages_json)
            for part in message["parts"]
            if part["type"] == "image"
        }
        assert not shown & forbidden, f"sample {turn.sample} turn {turn.turn} saw its future"
        for digest in shown & own.keys():
            assert own[digest][0] == turn.sample and own[digest][1] < turn.turn
    sent = {picture for seen in provider.seen if not seen.is_judge for picture in seen.pictures}
    journalled = {
        "sha256:" + part["digest"]
        for turn in run.turns
        for message in json.loads(turn.messages_json)
        for part in message["parts"]
        if part["type"] == "image"
    }
    assert sent == journalled, "what the journal says was shown is what crossed the wire"


def test_the_official_modes_run_too(real: Path, tmp_path: Path, serve: Serve):
    for mode in ("none", "partial", "full"):
        run = evaluate(real, tmp_path / mode, serve(), history=mode, official=True)
        assert len(run.turns) == 39 and all(verdict.value is not None for verdict in run.verdicts)


def test_text_only_runs_fill_the_rest_from_the_dataset(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    run = evaluate(toy, tmp_path / "home", provider, turns="text", history="full")
    assert {verdict.metric for verdict in run.verdicts} == {"accuracy"} and len(run.verdicts) == 4
    assert run.record.manifest.options["past"] == "reference"


def test_a_budget_ends_the_run_before_it_is_passed_and_the_rest_can_follow(
    toy: Path, tmp_path: Path, serve: Serve, monkeypatch: Any
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weft.toml").write_text(
        '[prices."model"]\nin = 100.0\nout = 1000.0\n[prices."judge"]\nin = 10.0\nout = 10.0\n'
    )
    provider = serve()
    limited = {
        "model_options": {"max_tokens": 500},
        "judge_options": {"max_tokens": 500},
    }  # a model call costs 0.02, and 0.54 at the most, 0.25 more for each picture
    with pytest.raises(BudgetReached, match=r"could pass the budget of \$1.2"):
        evaluate(toy, tmp_path / "home", provider, budget=1.2, **limited)
    journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
    stopped = load_run(journal, "last")
    spent = sum(total.cost or 0 for total in stopped.totals)
    assert stopped.record.state == "stopped" and 0 < spent <= 1.2
    done = provider.count
    evaluate(toy, tmp_path / "home", provider, **limited)
    assert provider.count == 32 and done < 32, "no call was made twice"


def test_a_budget_needs_a_price(toy: Path, tmp_path: Path, serve: Serve):
    with pytest.raises(UserError, match="--budget needs a price for nobody-knows"):
        evaluate(toy, tmp_path / "home", serve(), budget=1.0, model="openai-chat/nobody-knows@https://203.0.113.1/v1")


def test_a_wrong_key_ends_the_run_at_once(toy: Path, tmp_path: Path, serve: Serve):
    async def fault(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        return web.json_response({"error": {"message": "Incorrect API key"}}, status=401) if seen.is_judge else None

    provider = serve(fault=fault)
    with pytest.raises(EndpointDown, match="answered 401: it wants a key"):
        evaluate(toy, tmp_path / "home", provider)


def test_an_unreachable_endpoint_is_named(toy: Path, tmp_path: Path, serve: Serve):
    with pytest.raises(EndpointDown, match="cannot reach http://127.0.0.1:9/v1"):
        evaluate(toy, tmp_path / "home", serve(), model="openai-chat/m@http://127.0.0.1:9/v1")


def test_the_ground_truth_gets_full_marks_through_the_whole_path(toy: Path, tmp_path: Path):
    for history in ("none", "partial", "full", "dialogue"):
        run = weft.validate("weave", toy, home=tmp_path / "home", history=history)
        assert {cell.value for cell in run.table().cells(run.name).values()} == {1.0}


def test_pictures_are_stored_once_however_often_they_are_sent(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    run = evaluate(toy, tmp_path / "home", provider, history="dialogue")
    stored = sum(path.stat().st_size for path in (tmp_path / "home" / "blobs").rglob("*") if path.is_file())
    given = {
        hashlib.sha256(path.read_bytes()).hexdigest(): path.stat().st_size for path in (toy / "test" / "imgs").iterdir()
    }
    made = {image.digest: image.size for turn in run.turns for image in turn.reply.images}
    assert stored == sum({**given, **made}.values())
    assert b"base64" not in (tmp_path / "home" / "journal.sqlite").read_bytes()


def test_a_row_that_cannot_be_written_is_told_and_costs_no_other(
    toy: Path, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    put = Journal.put_verdict

    def spoilt(self: Journal, run: str, verdict: Any) -> Any:
        if (verdict.sample, verdict.turn, verdict.metric) == ("7", 0, "key_point"):
            return self._put("INSERT INTO nowhere VALUES (1)", ())
        return put(self, run, verdict)

    monkeypatch.setattr(Journal, "put_verdict", spoilt)
    with pytest.raises(WeftError, match="cannot be written: no such table: nowhere"):
        evaluate(toy, tmp_path / "home", serve())
    journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
    kept = load_run(journal, "last")
    assert kept.record.state == "stopped" and len(kept.verdicts) == 21 and len(kept.turns) == 10


def test_verdicts_and_replies_know_their_calls(toy: Path, tmp_path: Path, serve: Serve):
    run = evaluate(toy, tmp_path / "home", serve())
    journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
    for keys in [verdict.keys for verdict in run.verdicts] + [turn.reply.keys for turn in run.turns]:
        assert len(keys) == 1 and journal.find_reply(keys[0], run.id, 1) is not None


def test_a_benchmark_that_scores_a_failed_reply_is_overruled(toy: Path, tmp_path: Path):
    """No error ever becomes a number, whatever a benchmark makes of it."""

    class Naive(Weave):
        def questions(self, sample: Any, turn: Any, dialogue: Any, view: Any, rubrics: Any) -> Any:
            metric = "accuracy" if turn.modality == "text" else "key_point"
            return (Verdict(sample.id, turn.number, metric, 0.0, "nothing came", "failure"),)

    def broken(messages: Any, want: Any) -> str:
        raise RuntimeError("out of memory")

    run = weft.evaluate(Naive(), data=toy, model=broken, judge="constant/1", home=tmp_path / "home")
    assert run.verdicts and all(verdict.value is None and "out of memory" in verdict.reason for verdict in run.verdicts)


def test_a_run_that_was_killed_says_so_and_a_running_one_does_not(toy: Path, tmp_path: Path):
    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/1", home=tmp_path / "home")
    journal = Journal(tmp_path / "home" / "journal.sqlite")
    journal.begin_run(run.id, run.record.manifest, [], "weave")
    assert load_run(journal, "last").record.state == "killed" and "UNFINISHED" in report([load_run(journal, "last")])
    with lock_run(tmp_path / "home", run.id):
        assert load_run(journal, "last").record.state == "running"
    journal.close()


def test_what_a_report_shows_of_a_turn_has_the_given_pictures_it_names(toy: Path, tmp_path: Path):
    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/1", home=tmp_path / "home")
    asked = {
        (turn.sample, turn.turn): [part.label for part in read_dataset_turn(turn).prompt if isinstance(part, Image)]
        for turn in run.turns
    }
    assert asked["7", 0] == [1] and asked["7", 2] == [1] and asked["9", 0] == [3, 1], (
        "made pictures stand in their own turns"
    )
