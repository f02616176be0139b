"""KRIS-Bench: which scores an edit has, the mean over single scores, and the scripts' readings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from edits import Painter
from weft.benchmarks.base import load_benchmark
from weft.benchmarks.kris.data import CATEGORIES, DIMENSIONS
from weft.benchmarks.kris.official_reading import read_scores
from weft.store.blobs import Blobs
from weft_tabletop.make import make

COLOURS = ("red", "green", "blue", "white", "black", "gray")


def item(category: str, number: int = 1, **more: Any) -> dict[str, Any]:
    names: Any = f"{number}.png"
    if category == "temporal_prediction":
        names = [f"{number}-{frame}.png" for frame in (1, 2, 4)]
    if category == "multi-element_composition":
        names = [f"{number}-1.png", f"{number}-2.png"]
    truth = f"{number}_gt.png" if category == "viewpoint_change" else ""
    return {"ori_img": names, "gt_img": truth, "ins_en": f"Change {category}.", "explain_en": "It turns red."} | more


def write(folder: Path, *categories: str, **more: Any) -> Path:
    for category in categories:
        own = item(category, **more)
        place = folder / category
        place.mkdir(parents=True)
        names = own["ori_img"] if isinstance(own["ori_img"], list) else [own["ori_img"]]
        for number, name in enumerate([*names, own["gt_img"]]):
            if name:
                Pil.new("RGB", (8 + number, 8), COLOURS[number]).save(place / name)
        (place / "annotation.json").write_text(json.dumps({"1": own}))
    return folder


class Judge:
    """Says what it is told about each question, and keeps what it was shown."""

    name, version = "by-metric", "1"

    def __init__(self, say: Callable[[Any], Any]) -> None:
        self.say = say
        self.shown: list[tuple[tuple[str, ...], list[Any]]] = []

    def __call__(self, messages: Any, want: str, question: Any) -> Any:
        self.shown.append((question.metrics, list(messages[0][1])))
        return self.say(question)


def scored(question: Any) -> Any:
    """3 for what was asked for, 2 for knowledge, 5 for the rest."""
    scores = {"instruction": 3, "knowledge": 2}
    entries = {metric: {"reasoning": "so", "score": scores.get(metric, 5)} for metric in question.metrics}
    return entries if len(entries) > 1 else next(iter(entries.values()))


def evaluate(tmp_path: Path, judge: Any, *categories: str, model: Any = None, **options: Any) -> weft.Run:
    data = tmp_path / "data"
    if not data.exists():
        write(data, *categories)
    return weft.evaluate("kris", data=data, model=model or Painter(), judge=judge, home=tmp_path / "home", **options)


def cells(run: weft.Run, table: int = 0, arithmetic: tuple[str, ...] = ("", "strict")) -> dict[str, Any]:
    row = next(row for row in run.tables()[table].run_rows if row.arithmetic in arithmetic)
    return {column: cell.value for column, cell in row.cells.items()}


def test_every_single_score_counts_alike(tmp_path: Path):
    found = evaluate(tmp_path, Judge(scored), "color_change", "physics")
    by_dimension, by_metric = cells(found), cells(found, 1)
    assert by_dimension["Attribute"] == pytest.approx((100 + 100 + 50) / 3)
    assert by_dimension["Natural"] == pytest.approx((100 + 100 + 50 + 25) / 4)
    assert by_dimension["Overall"] == pytest.approx((250 + 275) / 7) and by_dimension["Social"] is None
    assert (by_metric["KP"], by_metric["IF"], by_metric["VC"]) == (25, 50, 100)


def test_knowledge_is_scored_in_three_dimensions_alone(tmp_path: Path):
    found = evaluate(tmp_path, Judge(scored), *CATEGORIES)
    with_knowledge = {verdict.sample.rpartition("-")[0] for verdict in found.verdicts if verdict.metric == "knowledge"}
    assert with_knowledge == {*DIMENSIONS["social"], *DIMENSIONS["natural"], *DIMENSIONS["logical"]}
    assert len(found.verdicts) == 3 * len(CATEGORIES) + len(with_knowledge)


def test_the_judge_sees_sources_frames_and_a_right_result_where_there_is_one(tmp_path: Path):
    judge = Judge(scored)
    evaluate(tmp_path, judge, "viewpoint_change", "temporal_prediction", "multi-element_composition")
    counts: dict[tuple[str, ...], list[int]] = {}
    for metrics, parts in judge.shown:
        counts.setdefault(metrics, []).append(sum(isinstance(part, Pil.Image) for part in parts))
    assert sorted(counts["quality",]) == [1, 1, 1]
    assert sorted(counts["consistency",]) == [2, 3, 4]
    assert sorted(counts["instruction",]) == [3, 3, 4], "the view has its right result beside source and output"
    texts = " ".join(part for _, parts in judge.shown for part in parts if isinstance(part, str))
    assert "Frame 4 of the sequence" in texts and "to be frame 3" in texts


def test_a_missing_image_is_zero_and_the_scripts_skip_it(tmp_path: Path):
    write(tmp_path / "data", "color_change", "physics")
    outputs = tmp_path / "outputs" / "color_change"
    outputs.mkdir(parents=True)
    Pil.new("RGB", (8, 8)).save(outputs / "1.jpg")
    found = evaluate(tmp_path, Judge(scored), model=f"folder/{tmp_path / 'outputs'}")
    assert cells(found)["Natural"] == 0 and cells(found)["Overall"] == pytest.approx(250 / 7)
    assert cells(found, arithmetic=("official",))["Overall"] == pytest.approx(250 / 3)
    assert cells(found, arithmetic=("official",))["Natural"] is None


def test_an_unusable_reply_is_unscored(tmp_path: Path):
    def say(question: Any) -> Any:
        return "no idea" if question.metrics == ("quality",) else scored(question)

    found = evaluate(tmp_path, Judge(say), "color_change")
    lost = [verdict for verdict in found.verdicts if verdict.value is None]
    assert [verdict.metric for verdict in lost] == ["quality"]
    assert cells(found)["Overall"] == pytest.approx(75)


@pytest.mark.parametrize(
    ("script", "names", "text", "scores"),
    [
        ("common", ("consistency",), 'so {"reasoning": "x", "consistency_score": 4}', [4]),
        ("common", ("consistency",), '{"consistency_score": 9}', [9]),
        ("common", ("consistency",), '{"consistency_score": null} but 2', [2]),
        ("knowledge", ("consistency",), '{"consistency_score": null} but 2', [None]),
        ("common", ("consistency",), "consistency score 3, though 5/5 was meant", [3]),
        ("knowledge", ("consistency",), "consistency score 3, though 5/5 was meant", [5]),
        ("multi", ("consistency",), "consistency score 3, though 5/5 was meant", [5]),
        ("view", ("quality",), "there are 2 cats", [2]),
        ("common", ("quality",), "there are 12 cats", [None]),
        ("knowledge", ("instruction", "knowledge"), '{"instruction_score": 3, "knowledge_score": 4.7}', [3, 4]),
        ("knowledge", ("instruction", "knowledge"), "instruction_score: 2, 5 of them", [2, None]),
        ("knowledge", ("instruction", "knowledge"), '{"instruction_score": "x"} knowledge score: 1', [None, 1]),
    ],
)
def test_the_scripts_readings(script: str, names: tuple[str, ...], text: str, scores: list[int | None]):
    assert list(read_scores(script, names, text).values()) == scores


SCRIPT = """
def evaluate_with_gpt():
    [{"text": "before:"}, {"text": "after:"}, {"text": "right:"}]

def evaluate_multi_element_with_gpt(idx):
    [{"text": f"part {idx}:"}, {"text": "whole:"}]

def evaluate_temporal_with_gpt(frame_num, frame_type):
    [{"text": f"{frame_type} frame {frame_num}:"}]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "utils").mkdir(parents=True)
    names = ("consist", "consist_multi", "consist_temporal", "quality", "instruction_following",
             "view_instruction_following", "instruction_multi", "instruction_temporal", "dual_evaluation")  # fmt: skip
    lines = [f"prompt_{name} = {f'{name} {{instruct}} {{{{x}}}}'!r}" for name in names]
    (folder / "utils" / "prompts.py").write_text("\n".join(lines) + "\n")
    for name in ("common", "knowledge", "view_change", "multi_element", "temporal_prediction"):
        (folder / f"metrics_{name}.py").write_text(SCRIPT)
    return folder


def test_the_released_prompts_are_filled_and_images_stand_in_the_scripts_order(tmp_path: Path, checkout: Path):
    judge = Judge(
        lambda question: "4/5" if len(question.metrics) == 1 else '{"instruction_score": 2, "knowledge_score": 7}'
    )
    found = evaluate(tmp_path, judge, "temporal_prediction", "physics", prompts=f"official:{checkout}")
    texts = {
        metrics: ["IMAGE" if isinstance(part, Pil.Image) else part for part in parts] for metrics, parts in judge.shown
    }
    assert texts["instruction", "knowledge"] == [
        "dual_evaluation Change physics. {x}", "before:", "IMAGE", "after:", "IMAGE",
    ]  # fmt: skip
    temporal = next(parts for metrics, parts in judge.shown if metrics == ("instruction",))
    labels = [part for part in temporal if isinstance(part, str)]
    assert labels[1:] == ["Reference frame 1:", "Reference frame 2:", "Generated frame 3:", "Reference frame 4:"]
    assert any(parts[0] == "quality {instruct} {{x}}" for _, parts in judge.shown), "it is sent without filling"
    official = cells(found, 1, ("official",))
    assert official["IF"] == (25 + 75) / 2 and official["KP"] == 150, "a number off the scale counts for the scripts"
    assert cells(found, 1)["KP"] is None, "and is none for weft"


@pytest.mark.parametrize(
    ("category", "more", "why"),
    [
        ("color_change", {"ori_img": ["1.png", "2.png"]}, "one image"),
        ("color_change", {"ori_img": ""}, "one image"),
        ("temporal_prediction", {"ori_img": ["1-1.png", "1-2.png"]}, "all frames but one"),
        ("viewpoint_change", {"gt_img": ""}, "gt_img"),
        ("physics", {"ins_en": ""}, "ins_en"),
    ],
)
def test_each_problem_of_an_item_is_named_with_its_category_and_key(
    category: str, more: dict[str, Any], why: str, tmp_path: Path
):
    data = write(tmp_path / "data", category, **more)
    dataset = load_benchmark("kris").load(data, Blobs(tmp_path / "blobs"))
    assert not list(dataset.samples)
    (problem,) = dataset.problems
    assert f"{category}: 1" in str(problem) and why in str(problem)


def test_the_tabletop_has_edits_whose_scores_are_known(tmp_path: Path):
    data = make("tabletop-kris", tmp_path / "data", samples=15, seed=2)
    for model, expected in (("tabletop/oracle", 100), ("copy", None)):
        run = weft.evaluate("kris", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
        assert all(verdict.value is not None for verdict in run.verdicts)
        by_metric = cells(run, 1)
        assert by_metric["AVG"] == expected or (expected is None and (by_metric["VC"], by_metric["IF"]) == (100, 0))
