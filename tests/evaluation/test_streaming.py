"""Datasets are streamed: the digest comes from the files, the first call goes out while later records are unread, and
memory holds few."""

import asyncio
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
from weft.benchmarks.record_files import (
    digest_dataset,
    find_image_names,
    read_json_array,
    read_json_lines,
    read_json_records,
)
from weft.benchmarks.weave import Weave
from weft.benchmarks.weave.data import WeaveRecords, load
from weft.calls.caller import RetryPolicy
from weft.errors import UserError, WeftError
from weft.evaluation.config import RunConfig
from weft.evaluation.session import open_run
from weft.models.endpoint import Endpoint, EndpointReply
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Dataset, Gives, Sample, Text

Serve = Callable[..., Provider]


class Slow(Weave):
    """The last record is not read before somebody has been asked about the first."""

    asked = threading.Event()
    broken = False

    def load(self, data: Path, blobs: Any) -> Any:  # type: ignore[override]
        class Records(WeaveRecords):
            def sample(self, name: str, record: dict[str, Any]) -> Any:
                if record["idx"] == 15 and not Slow.asked.wait(HANGS):
                    raise TimeoutError("nobody was asked while this was being read")
                return super().sample(name, record)

            def __iter__(self) -> Any:
                yield from super().__iter__()
                if Slow.broken:
                    raise UserError("the disk is full")

        return Records(data / "test" / "test.json", data / "test", blobs).dataset(
            "weave", read_json_array(data / "test" / "test.json")
        )


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
    return weft.evaluate(
        benchmark, data=data, home=home, retry_policy=RetryPolicy(tries=2, base=0.001, cap=0.002), **ends, **options
    )


def test_the_first_call_goes_out_before_the_last_record_is_read(
    slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve
):
    provider = serve(answer=telling)
    run = evaluate(slow, toy, tmp_path / "home", provider)
    assert max(provider.times.values()) == 1, "no call is made twice"
    late = evaluate("weave", toy, tmp_path / "late", serve())
    assert run.report("csv") == late.report("csv")
    assert run.record.expected is not None and run.record.expected.turns == len(run.turns)


def test_only_samples_that_are_chosen_are_asked_about(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=telling)
    run = evaluate(slow, toy, tmp_path / "home", provider, where={"domain": "recall"})
    assert {turn.sample for turn in run.turns} == {"7"} and provider.count == 3 + 7


def test_a_dataset_that_cannot_be_read_to_its_end_stops_the_run_and_loses_no_answer(
    slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve
):
    provider = serve(answer=telling)
    Slow.broken = True
    with pytest.raises(UserError, match="the disk is full"):
        evaluate(slow, toy, tmp_path / "home", provider)
    record = Journal(tmp_path / "home" / "journal.sqlite", readonly=True).runs()[0]
    assert (record.state, record.expected) == ("stopped", None), "how much there is of it is not known"
    Slow.broken, before = False, Counter(provider.times)
    run = evaluate(slow, toy, tmp_path / "home", provider)
    assert before and all(provider.times[key] == 1 for key in before), "not even those in flight are asked again"
    assert run.record.state == "finished" and sum(total.calls for total in run.totals) == provider.count


def test_who_is_turned_away_before_all_is_read_ends_the_run(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    async def denied(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        Slow.asked.set()
        return web.json_response({"error": {"message": "no such key"}}, status=401)

    with pytest.raises(WeftError, match="401"):
        evaluate(slow, toy, tmp_path / "home", serve(fault=denied))


def test_outputs_made_elsewhere_are_judged_while_the_rest_is_read(slow: type[Slow], tmp_path: Path, serve: Serve):
    data = write_weave(tmp_path / "data", toy_records())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "toy_2.png").write_bytes(drawn("second"))
    provider = serve(answer=telling)
    judge = f"openai-chat/judge@{provider.url}"
    run = weft.evaluate(slow, data=data, home=tmp_path / "home", model=f"folder/{tmp_path / 'out'}", judge=judge)
    assert provider.count == 3 and len(run.verdicts) == 22


def test_a_benchmark_may_give_samples_that_are_in_memory(toy: Path, tmp_path: Path, serve: Serve):
    class Some(Weave):
        def load(self, data: Path, blobs: Any) -> Any:  # type: ignore[override]
            whole = super().load(data, blobs).load_all()
            return replace(whole, samples=whole.samples[:1])

    provider = serve()
    run = evaluate(Some, toy, tmp_path / "home", provider)
    assert provider.count == sum(total.calls for total in run.totals) == 3 + 7


def test_the_same_command_twice_at_once_pays_once(slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(evaluate(slow, toy, tmp_path / "home", provider)))
    thread.start()
    until("the first command has asked", lambda: provider.count)
    with pytest.raises(UserError, match="already going on"):
        evaluate(slow, toy, tmp_path / "home", provider)
    Slow.asked.set()
    thread.join(HANGS)
    assert found and max(provider.times.values()) == 1


def test_void_answers_of_an_unfinished_run_stand_in_its_round(
    slow: type[Slow], toy: Path, tmp_path: Path, serve: Serve
):
    """A judge that talks nonsense at first: an interrupted run comes to the table of one that was not."""
    nonsense = serve(answer=lambda seen: {"role": "assistant", "content": "no"} if seen.is_judge else telling(seen))
    run = evaluate(slow, toy, tmp_path / "home", nonsense)
    journal = Journal(tmp_path / "home" / "journal.sqlite")
    journal.end_run(run.id, "stopped")
    journal.close()
    asked = nonsense.count
    nonsense.answer = telling
    again = evaluate(slow, toy, tmp_path / "home", nonsense)
    assert nonsense.count == asked and all(one.value is None for one in again.verdicts)


def test_few_samples_are_in_memory_at_a_time(tmp_path: Path):
    """Three thousand records, of which only those in flight and a few hundred ahead are alive."""
    alive = Counter[str]()
    most = 0

    class Counting(Weave):
        def load(self, data: Path, blobs: Any) -> Any:  # type: ignore[override]
            class Records(WeaveRecords):
                def sample(self, name: str, record: dict[str, Any]) -> Any:
                    nonlocal most
                    alive["read"] += 1
                    most = max(most, alive["read"] - alive["done"])
                    return super().sample(name, record)

            return Records(data / "test" / "test.json", data / "test", blobs).dataset(
                "weave", read_json_array(data / "test" / "test.json")
            )

        def questions(self, answered: Any) -> Any:
            alive["done"] += answered.turn.number == len(answered.sample.turns) - 1
            return super().questions(answered)

    records = [{**toy_records()[0], "idx": number} for number in range(3000)]
    run = weft.evaluate(
        Counting,
        data=write_weave(tmp_path / "data", records),
        home=tmp_path / "home",
        model="reference",
        judge="constant/5",
    )
    assert run.record.expected is not None and run.record.expected.samples == 3000
    assert most < 1000, "they are not all read before they are asked about"


def test_a_digest_is_of_the_records_and_the_images_that_they_name(toy: Path, tmp_path: Path):
    blobs = Blobs(tmp_path / "blobs")
    first = load(toy, blobs).digest
    assert load(toy, blobs).digest == first, "the same files, the same digest"
    (toy / "test" / "unrelated.png").write_bytes(drawn("unrelated"))
    (toy / "test" / "notes.txt").write_text("nothing to do with it")
    assert load(toy, blobs).digest == first, "what no record names is no part of it"
    image = next((toy / "test" / "imgs").iterdir())
    before = image.read_bytes()
    image.write_bytes(drawn("another"))
    assert load(toy, blobs).digest != first
    image.write_bytes(before)
    assert load(toy, blobs).digest == first, "when a file was written does not count"
    file = toy / "test" / "test.json"
    file.write_text(file.read_text().replace("door", "gate"))
    assert load(toy, blobs).digest != first


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path):
    file = tmp_path / "records.json"
    file.write_text(json.dumps([{"a": 1}, {"a": 2}]))
    rows = read_json_array(file)
    assert [json.loads(row) for row in rows] == [{"a": 1}, {"a": 2}] == [json.loads(row) for row in rows], (
        "as often as one likes"
    )
    file.write_text(json.dumps([{"a": 1}, {"a": 2}, {"a": 3}]))
    with pytest.raises(UserError, match="has changed since it was opened"):
        list(rows)


@pytest.mark.parametrize("between", [",\n ", " ,", ","])
def test_the_elements_of_an_array_are_found_whatever_stands_between_them(tmp_path: Path, between: str):
    records = ['{"a": 1}', '{"a": {"b": [1, 2]}}', '{"a": "}, {"}']
    (tmp_path / "one.json").write_text(f"\ufeff[{between.join(records)}]", encoding="utf-8")
    assert [json.loads(row)["a"] for row in read_json_array(tmp_path / "one.json")] == [1, {"b": [1, 2]}, "}, {"]


def test_lines_and_arrays_are_told_apart(tmp_path: Path):
    (tmp_path / "lines.jsonl").write_bytes(b'{"a": 1}\r\n\r\n  \n{"a": 2}\n')
    assert [json.loads(row)["a"] for row in read_json_lines(tmp_path / "lines.jsonl")] == [1, 2]
    (tmp_path / "lines.json").write_text('[{"a": 1}]')
    assert [json.loads(row)["a"] for row in read_json_records(tmp_path / "lines.json")] == [1]
    with pytest.raises(UserError, match="broken JSON"):
        (tmp_path / "bad.json").write_text('[{"a": 1},')
        read_json_array(tmp_path / "bad.json")


def test_images_are_found_by_their_names_in_json(tmp_path: Path):
    data = rb'{"images": ["a/b.png", "C.JPG", "caf\u00e9.webp"], "text": "not.png at its end", "x": "y.txt"}'
    assert find_image_names(data) == {"a/b.png", "C.JPG", "café.webp"}
    (tmp_path / "one.png").write_bytes(b"1" * 10_000)
    some = [
        ("one.png", tmp_path / "one.png"),
        ("none.png", tmp_path / "none.png"),
        ("out", tmp_path / ".." / "one.png"),
    ]
    assert digest_dataset(["x"], some) == digest_dataset(["x"], some[::-1]) != digest_dataset(["y"], some)


def test_a_turn_whose_record_has_changed_is_not_judged_again(toy: Path, tmp_path: Path):
    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "home")
    file = toy / "test" / "test.json"
    text = file.read_text()
    file.write_text(text.replace("door", "gate"))
    with pytest.raises(UserError, match="is not the dataset"):
        weft.judge(run.id, judge="constant/6", home=tmp_path / "home")
    file.write_text(text)
    assert weft.judge(run.id, judge="constant/6", home=tmp_path / "home").verdicts


def test_nothing_is_read_twice_to_open_a_run(toy: Path, tmp_path: Path):
    """Opening waits for one sample; a dry run for none."""
    read: list[Sample] = []

    class Noting(Weave):
        def load(self, data: Path, blobs: Any) -> Any:  # type: ignore[override]
            whole = super().load(data, blobs)
            return replace(whole, samples=Noted(whole.samples))

    class Noted:
        def __init__(self, samples: Any) -> None:
            self._samples = samples

        def __iter__(self) -> Any:
            for sample in self._samples:
                read.append(sample)
                yield sample

    config = RunConfig(benchmark=Noting, data=toy, model="copy", judge="constant/5", home=tmp_path / "home")

    async def open_both() -> None:
        async with open_run(config):
            assert len(read) == 1
        async with open_run(config, dry=True):
            assert len(read) == 1

    asyncio.run(open_both())


def test_a_dataset_that_is_edited_while_a_run_reads_it_ends_the_run(tmp_path: Path):
    """Neither a mixture of two versions nor records that are broken by the edit."""
    records = [{**toy_records()[0], "idx": number} for number in range(600)]
    data = write_weave(tmp_path / "data", records)
    file = data / "test" / "test.json"
    first = threading.Event()

    def model(messages: Any, want: str) -> Any:
        if not first.is_set():
            first.set()
            file.write_text(file.read_text().replace("Paint", "Print"))
        return "words"

    with pytest.raises(UserError, match="has changed since it was opened"):
        weft.evaluate("weave", data=data, model=model, judge="constant/5", home=tmp_path / "home")
    assert Journal(tmp_path / "home" / "journal.sqlite", readonly=True).runs()[0].state == "stopped"


class Own(Weave):
    """A user's own, whose samples come from a function."""

    def load(self, data: Path, blobs: Any) -> Any:  # type: ignore[override]
        whole = super().load(data, blobs).load_all()
        return Dataset(whole.name, whole.digest, self.given(whole.samples), (), len(whole.samples))

    def given(self, samples: Any) -> Any:
        yield from samples


def test_samples_that_can_be_read_once_alone_are_kept(toy: Path, tmp_path: Path):
    ends: dict[str, Any] = {"data": toy, "model": "reference", "judge": "constant/5"}
    whole = weft.evaluate(Own, home=tmp_path / "a", **ends)
    assert len(whole.turns) == 10
    shards = [weft.evaluate(Own, home=tmp_path / "b", shard=f"{number}/2", **ends) for number in (1, 2)]
    assert shards[-1].record.state == "finished" and len(shards[-1].turns) == 10


@pytest.mark.parametrize("reads", [0, 2])
def test_what_a_benchmark_raises_while_it_reads_names_it_and_loses_nothing_before(
    toy: Path, tmp_path: Path, reads: int
):
    class Raising(Own):
        def given(self, samples: Any) -> Any:
            class Some:
                def __iter__(self) -> Any:
                    yield from samples[:reads]
                    raise KeyError("midway")

            return Some()

    with pytest.raises(WeftError, match=r"benchmark weave: reading .*KeyError.*midway"):
        weft.evaluate(Raising, data=toy, model="reference", judge="constant/5", home=tmp_path / "home")
    journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
    assert [len(journal.turns(run.id)) for run in journal.runs()] == ([sum(1 for _ in range(5))] if reads else [])


def test_what_a_generator_of_samples_raises_names_the_benchmark(toy: Path, tmp_path: Path):
    class Raising(Own):
        def given(self, samples: Any) -> Any:
            yield samples[0]
            raise KeyError("midway")

    with pytest.raises(WeftError, match=r"benchmark weave: loading .*KeyError.*midway"):
        weft.evaluate(Raising, data=toy, model="reference", judge="constant/5", home=tmp_path / "home")


def test_no_sample_is_left_by_a_limit_of_zero(toy: Path, tmp_path: Path):
    with pytest.raises(UserError, match="no sample is left by what was asked for"):
        weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path, limit=0)


def test_problems_are_told_once_however_often_the_data_are_read(tmp_path: Path):
    data = write_weave(tmp_path / "data", toy_records())
    file = data / "test" / "test.json"
    file.write_text(json.dumps([*json.loads(file.read_text()), {"idx": 99}, toy_records()[0]]))
    dataset = load(data, Blobs(tmp_path / "blobs"))
    both = [iter(dataset.samples), iter(dataset.samples)]
    assert [next(one).id for one in both] and [len(list(one)) for one in both] == [len(toy_records()) - 1] * 2
    told = [str(problem) for problem in dataset.problems]
    assert len(told) == len(set(told)) and sum("repeats the idx" in one for one in told) == 1


def test_a_shard_without_a_turn_that_the_model_can_answer_leaves_the_others_alone(tmp_path: Path):
    """A model of words alone, and a shard of images alone: its turns count as no answer, and the first shard's stay."""
    records = [{**toy_records()[0], "idx": number} for number in range(4)]
    data = write_weave(tmp_path / "data", records)

    class Words(Endpoint):
        gives = Gives(image=False)

        async def send(self, messages: Any, want: Any) -> EndpointReply:
            return EndpointReply((Text("words"),), "answered")

    ends: dict[str, Any] = {"data": data, "model": Words("words"), "judge": "constant/5", "home": tmp_path / "home"}
    first = weft.evaluate("weave", shard="1/2", **ends)
    both = weft.evaluate("weave", shard="2/2", turns="all", **ends)
    assert first.turns and both.record.state == "finished" and len(both.turns) == 2 * len(first.turns)
