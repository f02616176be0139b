"""A benchmark of somebody else's, in a file, with shapes that WEAVE and IMUG-Bench do not have: nothing in weft knows
it."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil
from PIL import ImageDraw

import weft
from weft.errors import UserError, WeftError
from weft.store.journal import Journal

GARDEN = f"{Path(__file__).parents[1] / 'made_up' / 'garden.py'}:Garden"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three beds, two samples each: one picture to draw, one question, one illustrated answer; one record is broken."""
    folder = tmp_path / "garden"
    folder.mkdir()
    records = []
    for number, (bed, colour) in enumerate([("roses", "red"), ("herbs", "olive"), ("trees", "brown")] * 2):
        picture = Pil.new("RGB", (64, 64), colour)
        picture.putpixel((63, number), (0, 0, number))  # no two are alike: equal questions would share one call
        picture.save(folder / f"{number}.png")
        turns = [
            {"want": "image", "ask": f"Dig a pond, number {number}."},
            {"want": "text", "ask": f"How many ponds are there in {number}?", "true": ["1"]},
            {"want": "interleaved", "ask": f"Show and tell {number}.", "true": ["a pond"]},
        ]
        records.append({"id": f"g{number}", "bed": bed, "picture": f"{number}.png", "turns": turns})
    records.append({"id": "g9", "bed": "weeds", "picture": "0.png", "turns": []})
    (folder / "garden.json").write_text(json.dumps(records))
    return folder


class Gardener:
    """Digs a pond with a thought; copies herbs; refuses to draw trees."""

    name, version = "gardener", "1"

    def __init__(self, colour: str = "blue") -> None:
        self.colour, self.name = colour, f"gardener-{colour}"

    def __call__(self, messages: Any, want: str) -> Any:
        shown = next(part for _, parts in messages for part in parts if not isinstance(part, str)).convert("RGB")
        if want == "text":
            return "1"
        if want == "image" and shown.getpixel((1, 1)) == (165, 42, 42):
            return weft.Reply("refused", reason="trees are sacred")
        if want == "image" and shown.getpixel((1, 1)) == (128, 128, 0):
            return shown
        ImageDraw.Draw(shown).rectangle((10, 30, 50, 60), fill=self.colour)
        thought = weft.Thought(f"a {self.colour} pond")
        return [thought, shown] if want == "image" else [thought, "Here it is:", shown]


class Judge:
    """Answers each question in its own shape, and counts; prefers what stands first."""

    version, concurrency = "1", 4

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, ...]] = Counter()
        self.texts: list[str] = []

    def __call__(self, messages: Any, want: str, question: Any) -> Any:
        self.asked[question.metrics] += 1
        self.texts.append("".join(part for _, parts in messages for part in parts if isinstance(part, str)))

        def entry(score: int) -> dict[str, Any]:
            return {"reasoning": "as programmed", "score": score}

        if "visual" in question.metrics:
            return {"picture": {"visual": entry(3), "alignment": entry(5)}, "thoughts": {"reasoning": entry(4)}}
        return {metric: entry(2) for metric in question.metrics} if len(question.metrics) > 1 else entry(2)


def evaluate(data: Path, tmp_path: Path, judge: Any = None, **options: Any) -> weft.Run:
    options.setdefault("model", Gardener())
    return weft.evaluate(GARDEN, data=data, judge=judge or Judge(), home=tmp_path / "home", **options)


def test_one_call_gives_several_verdicts_a_check_spares_the_judge_and_a_metric_is_derived(data: Path, tmp_path: Path):
    judge = Judge()
    run = evaluate(data, tmp_path, judge)
    found = {(v.sample, v.turn, v.metric): v for v in run.verdicts}
    assert [found["g0", 0, metric].value for metric in ("visual", "alignment", "reasoning", "change", "held")] == [
        0.5,
        1.0,
        0.75,
        0.25,
        0.5,
    ]
    assert found["g0", 0, "visual"].score == 3 and found["g0", 0, "visual"].keys == found["g0", 0, "alignment"].keys
    assert (
        found["g1", 0, "change"].value == 0.0 and "nearly the picture it was given" in found["g1", 0, "change"].reason
    )
    assert {found["g2", 0, metric].by for metric in ("visual", "change")} == {"failure"}, (
        "a refusal is zero on every metric that is due"
    )
    assert judge.asked == {
        ("visual", "alignment", "reasoning"): 4,
        ("change",): 2,
        ("telling",): 6,
        ("telling", "woven"): 6,
    }
    assert len(run.verdicts) == 6 * (4 + 1 + 2) + 6, "and the derived one for every picture"
    assert any("a blue pond" in text for text in judge.texts), (
        "the judge is told the thoughts, which this benchmark asks for"
    )
    strict, official = run.table().run_rows
    assert (strict.arithmetic, official.arithmetic) == ("strict", "official") and strict.cells[
        "Macro"
    ].value < official.cells["Macro"].value
    assert strict.cells["Macro"].low is not None, "with an interval"


def test_a_dry_run_counts_a_call_once_however_many_verdicts_it_gives(data: Path, tmp_path: Path):
    words = [
        sys.executable,
        "-m",
        "weft",
        "run",
        GARDEN,
        "--data",
        str(data),
        "--model",
        "copy",
        "--judge",
        "constant/3",
        "--dry-run",
    ]
    once = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert once.returncode == 0, once.stderr
    assert "constant/3 answers here, 24 times" in once.stdout, "four for each sample: nobody knows yet who copies"
    assert "copy answers here, 18 times" in once.stdout
    thrice = subprocess.run([*words, "--judge-repeats", "3"], cwd=tmp_path, capture_output=True, text=True)
    assert "answers here, 72 times" in thrice.stdout


def test_options_of_its_own_are_in_the_help_the_manifest_and_the_title_and_others_are_refused(
    data: Path, tmp_path: Path
):
    run = evaluate(data, tmp_path, mode="tell", polite=True)
    assert run.record.manifest.options == {"mode": "tell", "threshold": 2.0, "polite": True} and len(run.turns) == 12
    assert run.name == "gardener-blue [mode tell, polite, version 1]"
    helped = subprocess.run(
        [sys.executable, "-m", "weft", "run", GARDEN, "--help"], capture_output=True, text=True
    ).stdout
    assert "--mode draw|tell|both" in helped and "Say please." in helped and "--bed TEXT" in helped
    with pytest.raises(UserError, match="garden has no option 'history'; its own are mode, threshold, polite"):
        evaluate(data, tmp_path, history="full")
    with pytest.raises(UserError, match="garden has no mode 'sing'; there is draw, tell, both"):
        evaluate(data, tmp_path, mode="sing")
    with pytest.raises(UserError, match="option threshold 'high': give a number"):
        evaluate(data, tmp_path, threshold="high")
    with pytest.raises(UserError, match="none has bed 'lilies'; there is herbs, roses, trees"):
        evaluate(data, tmp_path, where={"bed": "lilies"})


def test_repeats_are_a_mean_with_a_spread_and_the_first_draw_is_the_call_that_was_made_before(
    data: Path, tmp_path: Path
):
    class Wavering(Judge):
        version = "w"

        def __call__(self, messages: Any, want: str, question: Any) -> Any:
            said = json.dumps(super().__call__(messages, want, question))
            return json.loads(
                re.sub(r'"score": 3', f'"score": {(2, 4)[(self.asked[question.metrics] - 1) // 2 % 2]}', said)
            )

    judge = Wavering()
    judge.concurrency = 1
    evaluate(data, tmp_path, judge, mode="draw", where={"bed": "roses"})
    before = sum(judge.asked.values())
    run = evaluate(data, tmp_path, judge, mode="draw", where={"bed": "roses"}, judge_repeats=2)
    assert sum(judge.asked.values()) == 2 * before, "the second draws alone are asked for"
    visual = [v for v in run.verdicts if v.metric == "visual"]
    assert all({one.variant for one in v.merged_from} == {"repeat 1", "repeat 2"} for v in visual)
    assert any(v.standard_deviation for v in visual) and all(
        v.value == sum(one.value for one in v.merged_from) / 2 for v in visual
    )
    held = [v for v in run.verdicts if v.metric == "held"]
    assert all(len(v.merged_from) == 2 for v in held), "what follows from others follows for each judgement"
    repeated = next(table for table in run.tables() if table.title == "Repeated judgements")
    assert repeated.cells("reasoning")["standard deviation"].value == 0.0
    row = repeated.cells("visual")
    assert row["variation"].value == pytest.approx(100 * row["standard deviation"].value / row["mean"].value, abs=0.02)
    assert "2 judgements each" in run.name


def test_a_stored_run_is_judged_again_and_no_model_is_asked(data: Path, tmp_path: Path):
    class Once(Gardener):
        calls = 0

        def __call__(self, messages: Any, want: str) -> Any:
            Once.calls += 1
            return super().__call__(messages, want)

    run = evaluate(data, tmp_path, "constant/3", model=Once())
    calls = Once.calls
    judge = Judge()
    other = weft.judge(run, judge=judge, home=tmp_path / "home")
    assert Once.calls == calls == 18 and sum(judge.asked.values()) == 18 and other.id != run.id
    live = evaluate(data, tmp_path, judge, model=Once())
    assert live.id == other.id and live.report("csv") == other.report("csv"), (
        "it is the run that its model would have made"
    )
    assert sum(judge.asked.values()) == 18 and Once.calls == calls


def test_an_interleaved_reply_runs_whole_and_is_shown_in_its_order(data: Path, tmp_path: Path):
    run = evaluate(data, tmp_path, mode="tell", where={"bed": "roses"})
    reply = next(turn.reply for turn in run.turns if turn.modality == "interleaved")
    assert [type(part).__name__ for part in reply.parts] == ["Thought", "Text", "Image"] and reply.outcome == "answered"
    from weft import api

    page = api.write_report([run], tmp_path / "report", home=tmp_path / "home")
    shown = (page.parent / "d" / "0.html").read_text()
    assert shown.index("thoughts") < shown.index("Here it is:") < shown.index("<img", shown.index("Here it is:"))
    assert shown.count("raw judge output") == 2, (
        "once for the question, once for both metrics of the illustrated answer"
    )


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("merge_variants = lambda self, verdicts: 1 / 0", "merging the verdicts of .*ZeroDivisionError"),
        (
            "metrics_for = lambda self, turn: 1 / 0",
            r"benchmark garden, sample g0, turn 1: ZeroDivisionError.*\(bad.py:\d+\)",
        ),
        ("load = lambda self, data, blobs: 1 / 0", "benchmark garden: loading .*ZeroDivisionError"),
    ],
)
def test_what_a_benchmark_does_wrong_is_one_line_with_its_place(data: Path, tmp_path: Path, spoil: str, said: str):
    with pytest.raises(WeftError, match=said):
        spoilt(data, tmp_path, spoil)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            "questions = lambda self, answered: []",
            "nothing is asked or said about visual, alignment, reasoning, change",
        ),
        (
            "questions = lambda self, answered: 1 / 0",
            r"benchmark garden, sample g0, turn 1: ZeroDivisionError.*\(bad.py:\d+\)",
        ),
        ("build_messages = lambda self, *rest: [][1]", r"benchmark garden, sample g0, turn 1: IndexError"),
        (
            "to_scores = lambda self, question, found: found['nothing']",
            r"could not be used, twice: it could not be read: KeyError.*\(bad.py",
        ),
        ("changed = lambda self, answered, blobs: 1 / 0", "ZeroDivisionError"),
    ],
)
def test_what_a_benchmark_raises_on_a_reply_costs_that_reply_alone(data: Path, tmp_path: Path, spoil: str, said: str):
    run = spoilt(data, tmp_path, spoil)
    assert run.record.state == "finished" and run.record.is_complete(len(run.turns))
    unscored = [verdict for verdict in run.verdicts if verdict.value is None]
    assert unscored and any(re.search(said, verdict.reason) for verdict in unscored), {
        verdict.reason for verdict in unscored
    }


def test_a_dry_run_survives_a_check_that_raises(data: Path, tmp_path: Path):
    where = write_spoilt(tmp_path, "changed = lambda self, answered, blobs: 1 / 0")
    command = ["run", where, "--data", str(data), "--model", "copy", "--judge", "constant/max", "--dry-run"]
    done = subprocess.run([sys.executable, "-m", "weft", *command], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "constant/max answers here, 18 times" in done.stdout


def spoilt(data: Path, tmp_path: Path, spoil: str) -> weft.Run:
    where = write_spoilt(tmp_path, spoil)
    return weft.evaluate(where, data=data, model=Gardener(), judge=Judge(), home=tmp_path / "home", concurrency=1)


def write_spoilt(tmp_path: Path, spoil: str) -> str:
    (tmp_path / "bad.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path(GARDEN.rpartition(':')[0]).parent)!r})\nimport garden\n"
        f"class Bad(garden.Garden):\n    {spoil}\n"
    )
    return f"{tmp_path / 'bad.py'}:Bad"


def test_what_is_no_benchmark_says_what_it_lacks():
    from weft.benchmarks import Benchmark, load_benchmark

    class Half(Benchmark):
        name, version, metrics = "half", "1", ("x",)

        def load(self, data: Any, blobs: Any) -> Any: ...

    with pytest.raises(UserError, match="Half is not a benchmark yet: it lacks build_messages, questions, tables"):
        load_benchmark(Half)
    with pytest.raises(UserError, match="derive its class from weft.benchmarks.Benchmark"):
        load_benchmark(object())


def test_its_data_are_checked_and_the_truth_goes_through_nested_schemas(data: Path, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "weft", "data", "check", GARDEN, str(data)], cwd=tmp_path, capture_output=True, text=True
    )
    assert (
        done.returncode == 2
        and "error: garden.json: record 6: bed: 'weeds' is none of roses, herbs, trees" in done.stdout
    )
    assert "6 of 7 records can be used: 18 turns (6 image, 6 interleaved, 6 text)" in done.stdout
    assert "end-to-end check with reference answers: 48 verdicts, all complete" in done.stdout, done.stdout


def test_an_option_may_not_be_called_like_one_that_every_run_has():
    from weft.evaluation.config import RESERVED_NAMES, RunConfig

    # a benchmark may draw its samples in its own way: its option of that name is then the one that counts
    own = {"sample", "seed"}
    assert set(RunConfig.__struct_fields__) - own <= set(RESERVED_NAMES)


def test_the_journal_keeps_every_variant(data: Path, tmp_path: Path):
    run = evaluate(data, tmp_path, mode="draw", where={"bed": "roses"}, judge_repeats=3)
    journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
    kept = journal.verdicts(run.id)
    journal.close()
    assert len([v for v in kept if v.metric == "visual"]) == 3 * 2 and {v.variant for v in kept} == {
        "repeat 1",
        "repeat 2",
        "repeat 3",
    }


def test_a_check_may_lead_to_several_variants_of_a_question(toy: Path, tmp_path: Path):
    from msgspec.structs import replace

    from weft.benchmarks.weave import Weave

    class Twice(Weave):
        version = "twice"

        def questions(self, answered: Any) -> Any:
            for one in super().questions(answered):
                both = [replace(one, variant=variant) for variant in ("a", "b")]
                yield answered.check(one.metrics, lambda blobs, both=both: both)

    for repeats in (1, 2):
        options: Any = {"home": tmp_path / f"home{repeats}", "judge_repeats": repeats}
        run = weft.evaluate(Twice(), data=toy, model="reference", judge="constant/5", **options)
        assert run.record.state == "finished" and {len(verdict.merged_from) for verdict in run.verdicts} == {
            2 * repeats
        }
