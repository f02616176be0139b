"""GEdit-Bench: its data, its two questions, the root of their product, means of tasks, and what the released scripts make
of the same replies."""

import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from edits import Painter, Saying, cells, evaluate, gedit_record, paint, table, write_gedit
from weft.benchmarks import load_benchmark
from weft.benchmarks.gedit import official_reading
from weft.benchmarks.gedit.data import COLUMNS
from weft.errors import UserError
from weft.types import Image
from weft.workspace import open_blobs

PROMPTS = "GEdit-Bench/viescore/vie_prompts.py"
CONSTANTS = {
    "_context_no_delimit": "Judge this.",
    "_prompts_0shot_two_image_edit_rule": "There are two.",
    "_prompts_0shot_tie_rule_SC": "Asked was: <instruction>",
    "_prompts_0shot_rule_PQ": "There is one.",
}
UNREADABLE = ["", "I cannot tell.", "score: eight", "{", '{"score": [8, 7}', "[[8, 7]]", "11"]


def entries(question: Any, first: int, second: int) -> dict[str, Any]:
    names = list(question.schema["properties"])
    return {name: {"reasoning": "so", "score": score} for name, score in zip(names, (first, second), strict=True)}


def scored(question: Any) -> dict[str, Any]:
    """SC 9 of (9, 10) and PQ 4 of (5, 4)."""
    return entries(question, 9, 10) if question.metrics == ("sc",) else entries(question, 5, 4)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    file = tmp_path / "step1x" / PROMPTS
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{name} = {text!r}\n" for name, text in CONSTANTS.items()))
    return tmp_path / "step1x"


def test_overall_is_the_root_of_the_lower_scores_of_each_edit(tmp_path: Path):
    data = write_gedit(tmp_path / "data", [gedit_record(0, "text_change")])
    judge = Saying(scored)
    run = evaluate("gedit", data, tmp_path, judge)
    assert cells(run, "semantics, quality")["SC"] == 9 and cells(run, "semantics, quality")["PQ"] == 4
    assert cells(run, "by task")["Text"] == pytest.approx(6)
    assert [len([part for part in shown if not isinstance(part, str)]) for shown in judge.shown] == [2, 1], (
        "quality is judged without the source"
    )


def test_the_average_is_the_mean_of_tasks_whatever_their_size_and_languages_stay_apart(tmp_path: Path):
    records = [gedit_record(number, "text_change") for number in range(3)]
    records += [gedit_record(3, "tone_transfer"), gedit_record(4, "tone_transfer", "cn")]

    def say(question: Any) -> dict[str, Any]:
        score = {"en-k3": 10, "cn-k4": 2}.get(question.turn_ref.sample, 4)
        return entries(question, score, score)

    run = evaluate("gedit", write_gedit(tmp_path / "data", records), tmp_path, Saying(say))
    assert cells(run, "EN: overall")["Avg"] == pytest.approx(7), "4 and 10, not the mean of four edits"
    assert cells(run, "EN: overall")["BG"] is None and cells(run, "CN: overall")["Avg"] == pytest.approx(2)
    chinese = evaluate("gedit", tmp_path / "data", tmp_path, Saying(say), where={"language": "cn"})
    assert {verdict.sample for verdict in chinese.verdicts} == {"cn-k4"}
    assert all("EN" not in one.title for one in chinese.tables())
    with pytest.raises(UserError, match="there is cn, en"):
        evaluate("gedit", tmp_path / "data", tmp_path, Saying(say), where={"language": "zh"})


def test_the_intersection_is_a_subset_of_its_own(tmp_path: Path):
    records = [gedit_record(0, "ps_human"), gedit_record(1, "ps_human", intersection=False)]

    def say(question: Any) -> dict[str, Any]:
        return entries(question, 8, 8) if question.turn_ref.sample == "en-k0" else entries(question, 2, 2)

    data = write_gedit(tmp_path / "data", records)
    whole = cells(evaluate("gedit", data, tmp_path, Saying(say)), "semantics, quality")
    assert (whole["O"], whole["intersection O"]) == (pytest.approx(5), pytest.approx(8))
    run = evaluate("gedit", data, tmp_path, Saying(say), subset="intersection")
    assert {verdict.sample for verdict in run.verdicts} == {"en-k0"} and "subset intersection" in run.name
    assert cells(run, "semantics, quality")["O"] == pytest.approx(8)


def test_a_missing_image_is_zero_and_the_released_scripts_skip_it(tmp_path: Path):
    data = write_gedit(tmp_path / "data", [gedit_record(0, "subject-add"), gedit_record(1, "subject-add")])
    run = evaluate("gedit", data, tmp_path, Saying(scored), Painter(refuses="number 1"))
    assert cells(run, "by task", "strict")["Add"] == pytest.approx(3)
    assert cells(run, "by task", "official")["Add"] == pytest.approx(6)
    assert {v.by for v in run.verdicts if v.sample == "en-k1"} == {"failure"}


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_no_number_in_either_row(text: str, tmp_path: Path, checkout: Path):
    data = write_gedit(tmp_path / "data", [gedit_record(0, "text_change"), gedit_record(1, "text_change")])

    def say(question: Any) -> str:
        unreadable = question.metrics == ("pq",) and question.turn_ref.sample == "en-k1"
        return text if unreadable else '{"score": [9, 4], "reasoning": "so"}'

    run = evaluate("gedit", data, tmp_path, Saying(say), prompts=f"official:{checkout}")
    found = {(v.sample, v.metric): v.value for v in run.verdicts}
    assert found["en-k1", "sc"] == 0.4 and found["en-k1", "pq"] is None and found["en-k1", "overall"] is None
    rows = table(run, "by task").run_rows
    assert all(row.cells["Text"].value == pytest.approx(4) for row in rows)
    assert all((row.cells["Text"].scored, row.cells["Text"].expected) == (1, 2) for row in rows)


def test_an_edit_counts_for_the_scripts_only_if_both_replies_can_be_read(tmp_path: Path, checkout: Path):
    data = write_gedit(tmp_path / "data", [gedit_record(0, "text_change"), gedit_record(1, "text_change")])

    def say(question: Any) -> str:
        if question.turn_ref.sample == "en-k1":
            return "nothing" if question.metrics == ("pq",) else "[10, 10]"
        return "[4, 4]"

    run = evaluate("gedit", data, tmp_path, Saying(say), prompts=f"official:{checkout}")
    assert cells(run, "semantics, quality", "strict")["SC"] == pytest.approx(7)
    assert cells(run, "semantics, quality", "official")["SC"] == pytest.approx(4)


def test_the_scripts_take_a_lone_number_that_weft_does_not(tmp_path: Path, checkout: Path):
    data = write_gedit(tmp_path / "data", [gedit_record(0, "text_change")])
    run = evaluate("gedit", data, tmp_path, Saying(lambda question: "7"), prompts=f"official:{checkout}")
    strict, official = table(run, "by task").run_rows
    assert strict.cells["Text"].value is None and official.cells["Text"].value == pytest.approx(7)
    assert official.cells["Text"].unusable == 1, "the row says that weft could not use the replies"


def test_the_authors_prompts_are_read_from_a_checkout_and_the_edit_is_stretched(tmp_path: Path, checkout: Path):
    data = write_gedit(tmp_path / "data", [gedit_record(0, "text_change")])
    judge = Saying(lambda question: "[9, 4]")
    run = evaluate("gedit", data, tmp_path, judge, prompts=f"official:{checkout}")
    semantics, quality = sorted(judge.shown, key=len, reverse=True)
    assert semantics[0] == "Judge this.\nThere are two.\nAsked was: Change it, number 0."
    assert quality[0] == "Judge this.\nThere is one."
    assert [part.size for part in semantics[1:]] == [(32, 32)] * 2 and quality[1].size == (32, 32)
    assert "gedit" in run.id and cells(run, "by task")["Text"] == pytest.approx(4)


READINGS = [
    ('{"score": [8, 6], "reasoning": "x"}', 6),
    ('||V^=^V||{"score": [3, 9]}||V^=^V|| and {"score": [0, 0]}', 3),
    ('Here: {"score": 7}', 7),
    ('{"score": [8, 6],\n "reasoning":\n "x"}', 6),
    ("{score: [8], reasoning: none}", None),
    ("{score: 8, reasoning: fine}", 8),
    ("[8, 6]", 6),
    ("I say [8,6].", 6),
    ("[8, 6, 4]", None),
    (" 10 ", 10),
    ("11", None),
    ("-1", None),
    ('{"score": [12, 11]}', 11),
    ('{"score": ["8", "6"]}', None),
    ('{"score": []}', None),
    ("rate_limit_exceeded", None),
    ('{"score": [8, 7], "reasoning": "open', 7),
    ("||V^=^V||||V^=^V||", None),
]


@pytest.mark.parametrize(("text", "score"), READINGS)
def test_the_released_reading(text: str, score: float | None):
    assert official_reading.read_score(text) == score


def test_no_reply_whatever_it_is_makes_the_reader_guess_or_fail():
    chance = random.Random(0)
    pieces = ['{"score"', ":", "[", "]", "8", "6", ",", " ", "}", "||V^=^V||", '"reasoning"', '"x"', "\n", "-1", "true"]
    for _ in range(2000):
        text = "".join(chance.choices(pieces, k=chance.randint(0, 14)))
        first, second = official_reading.read_score(text), official_reading.read_score(text)
        assert first == second and (first is None or math.isfinite(first))


def test_outputs_lie_in_the_authors_layout(tmp_path: Path):
    data = write_gedit(tmp_path / "data", [gedit_record(0, "text_change"), gedit_record(1, "ps_human", "cn")])
    paint(tmp_path / "results" / "mine" / "fullset" / "text_change" / "en" / "k0.png", "white")
    paint(tmp_path / "results" / "mine" / "fullset" / "text_change" / "en" / "k0_SRCIMG.png", "red")
    paint(tmp_path / "results" / "mine" / "fullset" / "ps_human" / "cn" / "k1.jpg", "white")
    for folder in ("results", "results/mine", "results/mine/fullset"):
        run = evaluate("gedit", data, tmp_path, Saying(scored), f"folder/{tmp_path / folder}")
        assert all(verdict.value for verdict in run.verdicts), folder
    paint(tmp_path / "results" / "other" / "fullset" / "a.png", "white")
    with pytest.raises(UserError, match="results of 2 models"):
        evaluate("gedit", data, tmp_path, Saying(scored), f"folder/{tmp_path / 'results'}")
    with pytest.raises(UserError, match=r"fullset/<task>/<language>/<key>\.png"):
        evaluate(
            "gedit",
            data,
            tmp_path,
            Saying(scored),
            f"folder/{tmp_path / 'data' / 'nothing'}" if ((tmp_path / "data" / "nothing").mkdir() is None) else "",
        )


def test_records_are_read_from_parquet_with_the_larger_image_for_the_model(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def encoded(size: tuple[int, int]) -> dict[str, Any]:
        out = io.BytesIO()
        Pil.new("RGB", size, "red").save(out, "PNG")
        return {"bytes": out.getvalue(), "path": None}

    record = {**gedit_record(0, "text_change"), "input_image": encoded((20, 20)), "input_image_raw": encoded((90, 90))}
    folder = tmp_path / "hub" / "data"
    folder.mkdir(parents=True)
    parquet.write_table(arrow.Table.from_pylist([record]), folder / "train-00000-of-00001.parquet")
    dataset = load_benchmark("gedit").load(tmp_path / "hub", open_blobs(tmp_path)).load_all()
    (sample,) = dataset.samples
    turn = sample.turns[0]
    assert (
        isinstance(turn.prompt[0], Image)
        and turn.prompt[0].width == 90
        and turn.gold.source.width == 20
        and not dataset.problems
    )
    broken = arrow.Table.from_pylist([{name: record[name] for name in COLUMNS if name != "key"}])
    parquet.write_table(broken, folder / "train-00000-of-00001.parquet")
    with pytest.raises(UserError, match="has no column key"):
        load_benchmark("gedit").load(tmp_path / "hub", open_blobs(tmp_path))


def test_each_problem_of_a_record_is_named(tmp_path: Path):
    records = [
        {**gedit_record(0, "text_change"), "task_type": "text"},
        {**gedit_record(1, "text_change"), "instruction_language": "zh"},
        {**gedit_record(2, "text_change"), "Intersection_exist": "yes"},
        {**gedit_record(3, "text_change"), "key": "../k3"},
        {**gedit_record(4, "text_change"), "input_image": None},
        gedit_record(5, "text_change"),
        {**gedit_record(6, "text_change"), "key": "k5"},
    ]
    dataset = load_benchmark("gedit").load(write_gedit(tmp_path / "data", records), open_blobs(tmp_path)).load_all()
    assert [sample.id for sample in dataset.samples] == ["en-k5"]
    fields = [problem.field for problem in dataset.problems]
    assert fields == ["task_type", "instruction_language", "Intersection_exist", "key", "input_image", "key"]
    with pytest.raises(UserError, match=r"no records in .*stepfun-ai/GEdit-Bench"):
        load_benchmark("gedit").load(paint(tmp_path / "empty" / "a.png", "red").parent, open_blobs(tmp_path))


def test_published_rows_of_two_papers_are_never_one_column():
    tables = {table.title: table for table in load_benchmark("gedit").tables([])}
    by_task, sets = tables.values()
    assert by_task.cells("OmniGen2")["Avg"].value == 5.57 and sets.cells("OmniGen2")["O"].value == 6.42
    assert "WEAVE, Table 3" in by_task.note and "Wan-Weaver, Table 3" in sets.note and "not one" in sets.note


def test_repeats_derive_the_overall_score_of_each_judgement(tmp_path: Path):
    data = write_gedit(tmp_path / "data", [gedit_record(0, "text_change")])
    seen: list[int] = []

    def say(question: Any) -> dict[str, Any]:
        seen.append(1)
        return entries(question, 9, 9) if len(seen) <= 2 else entries(question, 1, 1)

    run = evaluate("gedit", data, tmp_path, Saying(say), judge_repeats=2)
    (overall,) = [verdict for verdict in run.verdicts if verdict.metric == "overall"]
    assert len(overall.merged_from) == 2 and overall.value == pytest.approx(
        sum(one.value or 0 for one in overall.merged_from) / 2
    )


def test_the_tabletop_has_edits_whose_scores_are_known(tmp_path: Path):
    from weft_tabletop.make import make

    data = make("tabletop-gedit", tmp_path / "data", samples=22, seed=1)
    averages: dict[str, Any] = {}
    for model in ("tabletop/oracle", "copy"):
        run = weft.evaluate("gedit", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
        averages[model] = cells(run, "EN: overall")["Avg"]
    assert averages == {"tabletop/oracle": pytest.approx(10), "copy": 0}
    lines = (data / "gedit.jsonl").read_text().splitlines()
    assert len({json.loads(line)["task_type"] for line in lines}) == 11, "each column has rows"
