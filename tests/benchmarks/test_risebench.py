"""RISEBench: which scores apply to an edit, its score, accuracy by both rules, and what the released script makes of the
same replies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import weft
from edits import Painter, Saying, cells, evaluate, paint, rise_record, table, write_rise
from weft.benchmarks import load_benchmark
from weft.benchmarks.risebench import official_reading
from weft.benchmarks.risebench.facts import EditRules
from weft.benchmarks.risebench.official import PROMPTS
from weft.benchmarks.risebench.scoring import combine
from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.workspace import open_blobs

Scores = Mapping[str, int]


def saying(scores: Scores | Mapping[str, Scores]) -> Saying:
    """A judge with these scores by metric, or by sample and metric."""

    def say(question: Any) -> dict[str, Any]:
        own: Any = scores.get(question.turn_ref.sample, scores)
        return {"reasoning": "so", "score": own[question.metrics[0]]}

    return Saying(say)


def replying(texts: Mapping[str, str], other: str = "**Final Score:** **5**") -> Saying:
    """A judge that says these texts by sample and metric, else another."""
    return Saying(lambda question: texts.get(f"{question.turn_ref.sample} {question.metrics[0]}", other))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "RISEBench"
    folder.mkdir()
    texts = {name: f"{name}: {{instruct}} {{{{x}}}} {{reference}}" for name in PROMPTS.values()}
    for name in ("prompt_generation", "prompt_spatial_qual", "prompt_logical_img_wo_q"):
        texts[name] = f"{name}: {{x}}"
    (folder / "utils.py").write_text("".join(f"{name} = {text!r}\n" for name, text in texts.items()))
    return folder


FULL = {"consistency": 5, "reasoning": 5, "plausibility": 5}


def test_an_edit_is_right_if_all_scores_are_full_and_its_score_is_a_weighted_mean(tmp_path: Path):
    data = write_rise(tmp_path / "data", [rise_record(0), rise_record(1)])
    scores = {"temporal_reasoning_0": FULL, "temporal_reasoning_1": {**FULL, "consistency": 3, "plausibility": 4}}
    run = evaluate("risebench", data, tmp_path, saying(scores))
    assert cells(run, ": accuracy")["Temporal"] == 50
    expected = 25 * (0.3 * 3 + 0.5 * 5 + 0.2 * 4 - 1)
    assert cells(run, "scores")["Overall"] == pytest.approx((100 + expected) / 2)
    assert cells(run, "scores")["Consistency"] == pytest.approx(75)


@pytest.mark.parametrize(
    ("rules", "parts", "score"),
    [
        (EditRules(), (5, 5, 5), 5),
        (EditRules(), (1, 5, 1), 0.3 + 2.5 + 0.2),
        (EditRules(), (5, 1, 5), (1.5 + 0.5 + 1) / 2),
        (EditRules(), (1, 1, 1), 1),
        (EditRules(is_consistency_free=True), (None, 5, 3), 4 + 0.6),
        (EditRules(is_consistency_free=True), (None, 1, 5), 1),
        (EditRules(is_logical=True), (5, 5, None), 5),
        (EditRules(is_logical=True), (5, 1, None), (1.5 + 0.7) / 2),
        (EditRules(is_logical=True), (1, 5, None), 0.3 + 3.5),
        (EditRules(), (None, 5, 5), None),
    ],
)
def test_the_score_of_an_edit(rules: EditRules, parts: tuple[Any, ...], score: float | None):
    found = combine(*parts, is_logical=rules.is_logical, is_free=rules.is_consistency_free)
    assert found == (None if score is None else pytest.approx(score))


def test_an_edit_free_of_consistency_counts_by_the_rule_since_april_2026_and_never_before(tmp_path: Path):
    data = write_rise(tmp_path / "data", [rise_record(0, consistency_free=True), rise_record(1)])
    judge = saying(FULL)
    run = evaluate("risebench", data, tmp_path, judge)
    assert [question.metrics for question in judge.asked if question.turn_ref.sample.endswith("_0")] == [
        ("reasoning",),
        ("plausibility",),
    ]
    assert cells(run, ": accuracy", "official")["Temporal"] == 100, "official follows the rule since then"
    assert cells(run, "until 13 April 2026", "strict")["Temporal"] == 50
    assert cells(run, "until 13 April 2026", "official")["Temporal"] == 50


def test_a_logical_edit_is_zero_or_one_and_has_no_plausibility(tmp_path: Path):
    data = write_rise(tmp_path / "data", [rise_record(0, "logical"), rise_record(1, "logical")])
    scores = {
        "logical_reasoning_0": {"consistency": 1, "reasoning": 1},
        "logical_reasoning_1": {"consistency": 1, "reasoning": 0},
    }
    judge = saying(scores)
    run = evaluate("risebench", data, tmp_path, judge)
    assert len(judge.asked) == 4 and {v.metric for v in run.verdicts if v.by == "judge"} == {"consistency", "reasoning"}
    assert cells(run, ": accuracy")["Logical"] == 50
    assert cells(run, "scores")["Logical"] == pytest.approx((100 + 25 * ((1.5 + 0.7) / 2 - 1)) / 2)


def test_a_missing_field_counts_as_free_in_the_released_score_once_the_data_have_that_column(tmp_path: Path):
    records = [rise_record(0, consistency_free=True), rise_record(1)]
    scores = {"consistency": 1, "reasoning": 5, "plausibility": 5}
    run = evaluate("risebench", write_rise(tmp_path / "a", records), tmp_path, saying(scores))
    assert cells(run, "scores", "official")["Overall"] == 100
    assert cells(run, "scores", "strict")["Overall"] == pytest.approx((100 + 25 * (0.3 + 2.5 + 1 - 1)) / 2)
    alone = evaluate("risebench", write_rise(tmp_path / "b", records[1:]), tmp_path, saying(scores))
    assert len(table(alone, "scores").run_rows) == 1, "without that column both are the same"


def test_a_missing_image_is_zero_and_the_released_script_stops(tmp_path: Path):
    data = write_rise(tmp_path / "data", [rise_record(0), rise_record(1)])
    run = evaluate("risebench", data, tmp_path, saying(FULL), Painter(refuses="number 1"))
    strict, official = table(run, ": accuracy").run_rows
    assert strict.cells["Overall"].value == 50 and official.cells["Overall"].value is None
    assert "stops at an edit without an image" in table(run, ": accuracy").note
    failed = [verdict for verdict in run.verdicts if verdict.sample.endswith("_1")]
    assert len(failed) == 6 and all(verdict.value == 0 and verdict.by == "failure" for verdict in failed)


def test_an_unreadable_reply_is_unscored_and_not_complete_for_the_script(tmp_path: Path, checkout: Path):
    data = write_rise(tmp_path / "data", [rise_record(0), rise_record(1)])
    judge = replying({"temporal_reasoning_1 reasoning": "I cannot tell."})
    run = evaluate("risebench", data, tmp_path, judge, prompts=f"official:{checkout}")
    strict, official = table(run, ": accuracy").run_rows
    assert (strict.cells["Overall"].value, strict.cells["Overall"].scored) == (100, 1)
    assert (official.cells["Overall"].value, official.cells["Overall"].unusable) == (50, 1)
    assert cells(run, "scores", "official")["Overall"] == 100, "an edit without numbers has no score"
    assert cells(run, "scores", "official")["Plausibility"] == 100
    assert table(run, "scores").run_rows[1].cells["Plausibility"].scored == 1


def test_several_numbers_break_the_released_table_and_weft_reads_the_one_that_is_meant(tmp_path: Path, checkout: Path):
    data = write_rise(tmp_path / "data", [rise_record(0)])
    judge = replying({"temporal_reasoning_0 consistency": "**Final Score:** 4\n\n1. The sky is another."})
    run = evaluate("risebench", data, tmp_path, judge, prompts=f"official:{checkout}")
    strict, official = table(run, ": accuracy").run_rows
    assert strict.cells["Overall"].value == 0 and official.cells["Overall"].value is None
    assert "breaks at a reply" in table(run, ": accuracy").note
    assert next(v for v in run.verdicts if v.metric == "consistency").score == 4


@pytest.mark.parametrize(
    ("text", "numbers", "score"),
    [
        ("**Final Score:** **4**", [4], 4),
        ("Final Score: 4/5", [4], 4),
        ("Final Scores: 3", [3], 3),
        ("final score 2", [2], 2),
        ("Final Score: 4\n\n1. It is so.", [4, 1], 4),
        ("Final Score: 4, 5", [4, 5], 4),
        ("Final Score: **X**\nFinal Score: 3", [3], 3),
        ("Score: 4", [], None),
        ("", [], "unusable"),
        ("Final Score: 4\nFinal Score: 2", [4], "unusable"),
        ("Final Score: 4/10", [4], "unusable"),
        ("Final Score: (4)", [], 4),
        ("<think>Final Score: 1</think>\nFinal Score: 5", [1], 5),
    ],
)
def test_both_readings_of_a_reply(text: str, numbers: list[int], score: float | str | None):
    assert official_reading.read_numbers(text) == numbers
    if score == "unusable":
        with pytest.raises(UnusableReply):
            official_reading.parse_score(text, 5)
    else:
        parsed = official_reading.parse_score(text, 5)
        assert (parsed and parsed["score"]) == score


def test_the_released_prompts_are_filled_and_shown_what_the_script_shows(tmp_path: Path, checkout: Path):
    records = [
        rise_record(0, reasoning_img="yes"),
        rise_record(1, "spatial", reference=..., reference_img="images/1_ref.png"),
        rise_record(2, "logical", reference_txt=..., reference_img="images/2_ref.png", reasoning_wo_ins=False),
        rise_record(3, "logical"),
    ]
    judge = replying({}, "Final Score: 1")
    paint(tmp_path / "data" / "images" / "0.png", "red")
    data = write_rise(tmp_path / "data", records)
    paint(data / "images" / "3.png", "white", (1000, 500))
    evaluate("risebench", data, tmp_path, judge, prompts=f"official:{checkout}")
    shown: dict[str, tuple[str, list[Any]]] = {}
    for question, parts in zip(judge.asked, judge.shown, strict=True):
        shown[f"{question.turn_ref.sample} {question.metrics[0]}"] = (parts[0], [part.size for part in parts[1:]])
    own, spatial = "temporal_reasoning_0", "spatial_reasoning_1"
    made = (24, 48)
    assert shown[f"{own} reasoning"] == (
        "prompt_reasoning_w_input: What comes of it, number 0? {x} The right one, number 0.",
        [(32, 32), made],
    )
    assert shown[f"{own} plausibility"] == ("prompt_generation: {x}", [made])
    assert shown[f"{spatial} consistency"][0].startswith("prompt_spatial_cons:")
    assert shown[f"{spatial} reasoning"][0].startswith("prompt_spatial_ref_img:")
    assert shown["logical_reasoning_2 reasoning"] == ("prompt_logical_img_wo_q: {x}", [(32, 32), made])
    assert shown["logical_reasoning_3 reasoning"][1] == [made]
    assert shown["logical_reasoning_3 consistency"][1] == [(768, 384), made]


def test_outputs_lie_in_the_authors_layout_and_a_category_can_be_chosen(tmp_path: Path):
    data = write_rise(tmp_path / "data", [rise_record(0), rise_record(1, "spatial")])
    folder = tmp_path / "outputs" / "mine" / "images"
    paint(folder / "temporal_reasoning" / "temporal_reasoning_0.jpg", "white")
    paint(folder / "spatial_reasoning" / "spatial_reasoning_1.png", "white")
    for root in (tmp_path / "outputs", folder.parent, folder):
        run = evaluate("risebench", data, tmp_path, saying(FULL), f"folder/{root}")
        assert cells(run, ": accuracy")["Overall"] == 100
    run = evaluate("risebench", data, tmp_path, saying(FULL), where={"category": "temporal"})
    assert {verdict.sample for verdict in run.verdicts} == {"temporal_reasoning_0"}


def test_each_problem_of_a_record_is_named(tmp_path: Path):
    records = [
        rise_record(0, category="odd"),
        rise_record(1, reference=...),
        rise_record(2, "logical", reference_txt=...),
        rise_record(3, image=...),
        rise_record(4),
        rise_record(4),
    ]
    dataset = load_benchmark("risebench").load(write_rise(tmp_path / "data", records), open_blobs(tmp_path)).load_all()
    assert [sample.id for sample in dataset.samples] == ["temporal_reasoning_4"]
    fields = [problem.field for problem in dataset.problems]
    assert fields == ["category", "reference", "reference_txt", "image", "index"]
    with pytest.raises(UserError, match=r"no records in .*PhoenixZ/RISEBench"):
        load_benchmark("risebench").load(paint(tmp_path / "empty" / "a.png", "red").parent, open_blobs(tmp_path))


def test_published_rows_stand_by_the_rule_that_they_were_made_by():
    (published,) = load_benchmark("risebench").tables([])
    assert "until 13 April 2026" in published.title and published.cells("BAGEL")["Spatial"].value == 14.0
    assert published.cells("BAGEL + WEAVE-100k")["Spatial"].value == 21.0


def test_the_tabletop_has_edits_whose_scores_are_known(tmp_path: Path):
    from weft_tabletop.make import make

    data = make("tabletop-risebench", tmp_path / "data", samples=16, seed=2)
    found: dict[str, dict[str, Any]] = {}
    for model in ("tabletop/oracle", "copy"):
        run = weft.evaluate("risebench", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
        found[model] = cells(run, ": accuracy", "strict")
    assert set(found["tabletop/oracle"].values()) == {100.0} and set(found["copy"].values()) == {0.0}
