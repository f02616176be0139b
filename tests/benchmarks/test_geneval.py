"""GenEval: the six rules over detected objects, four images of a prompt, outputs in the authors' layout, and what a
missing image costs in either arithmetic."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import weft
from edits import Saying, paint
from weft.benchmarks import load_benchmark
from weft.benchmarks.geneval.rules import ImageRules, ObjectRule, find_faults, find_relations
from weft.cli.app import app
from weft.errors import UserError
from weft.evaluation.generate import DRAWS_PER_TRY, DRAWS_PER_TURN, MAX_TRIES
from weft.evaluation.suite import SuiteEntry, build_jobs
from weft.judges.detections import COCO_CLASSES, Detection
from weft.types import Table
from weft.workspace import open_blobs
from weft_tabletop.make import make

BOX = (0.0, 0.0, 10.0, 10.0)
Detections = Sequence[Detection]


def found(name: str, count: int = 1, confidence: float = 0.95, color: str = "none") -> list[Detection]:
    return [Detection(name, BOX, confidence, color)] * count


def wants(name: str = "dog", count: int = 1, color: str = "", relation: str = "", target: int = 0) -> ObjectRule:
    return ObjectRule(name, count, color, relation, target)


def above(number: float) -> float:
    """The next 32-bit number."""
    return float(np.nextafter(np.float32(number), np.float32(2)))


ONE = ImageRules("single_object", (wants(),))
TWO = ImageRules("two_object", (wants(), wants("cat")))
THREE = ImageRules("counting", (wants(count=3),), (wants(count=4),))
RED = ImageRules("colors", (wants(color="red"),))
TWO_RED = ImageRules("colors", (wants(count=2, color="red"),))
BESIDE = ImageRules("position", (wants(), wants("cat", relation="right of")))
BOTH = ImageRules("color_attr", (wants(color="red"), wants("cat", color="blue")))


@pytest.mark.parametrize(
    ("rules", "detections", "right"),
    [
        (ONE, [], False),
        (ONE, found("cat"), False),
        (ONE, found("dog", 5), True),
        (ONE, found("dog", confidence=0.3), False),
        (ONE, found("dog", confidence=float(np.float32(0.3))), False),
        (ONE, found("dog", confidence=above(0.3)), True),
        (TWO, found("dog", 2), False),
        (TWO, [*found("dog"), *found("cat")], True),
        (THREE, found("dog", 2), False),
        (THREE, found("dog", 3), True),
        (THREE, found("dog", 4), False),
        (THREE, [*found("dog", 3), *found("dog", confidence=0.9)], True),
        (THREE, [*found("dog", 3), *found("dog", confidence=above(0.9))], False),
        (THREE, [*found("dog", 2), *found("dog", confidence=float(np.float32(0.9)))], False),
        (RED, found("dog", color="blue"), False),
        (RED, [*found("dog", confidence=0.6, color="red"), *found("dog", confidence=0.8, color="blue")], False),
        (RED, [*found("dog", confidence=0.6, color="blue"), *found("dog", confidence=0.8, color="red")], True),
        (TWO_RED, [*found("dog", color="red"), *found("dog", color="pink")], False),
        (TWO_RED, [*found("dog", 2, color="red"), *found("dog", confidence=0.5, color="pink")], True),
        (BOTH, [*found("dog", color="red"), *found("cat", color="blue")], True),
        (BOTH, [*found("dog", color="blue"), *found("cat", color="red")], False),
        (BESIDE, [*found("dog"), Detection("cat", (20, 0, 30, 10), 0.9)], True),
        (BESIDE, [*found("cat"), Detection("dog", (20, 0, 30, 10), 0.9)], False),
        (BESIDE, [Detection("cat", (20, 0, 30, 10), 0.9)], False),
    ],
)
def test_each_task_has_its_rule(rules: ImageRules, detections: Detections, right: bool):
    faults = find_faults(rules, detections)
    assert (not faults) == right, faults
    assert all(fault.strip() for fault in faults)


def test_only_the_sixteen_most_confident_of_a_class_count():
    many = ImageRules("counting", (wants(count=16),), (wants(count=17),))
    assert not find_faults(many, found("dog", 30))


PLACES: list[tuple[Any, set[str]]] = [
    (BOX, set()),
    ((20, 0, 30, 10), {"right of"}),
    ((-20, 0, -10, 10), {"left of"}),
    ((0, 20, 10, 30), {"below"}),
    ((0, -30, 10, -20), {"above"}),
    ((20, 20, 30, 30), {"right of", "below"}),
    ((2, 0, 12, 10), set()),  # the margin: a tenth of both widths
    ((4, 0, 14, 10), set()),  # beyond it by exactly half of the distance
    ((4.01, 0, 14.01, 10), {"right of"}),
    ((3, 3, 13, 13), set()),  # too near for either direction
]


@pytest.mark.parametrize(("box", "relations"), PLACES)
def test_a_direction_is_more_than_half_of_the_way_less_a_margin(box: Any, relations: set[str]):
    assert find_relations(box, BOX) == relations


# runs


def record(tag: str = "single_object", prompt: str = "a photo of a dog", **more: Any) -> dict[str, Any]:
    return {"tag": tag, "include": [{"class": "dog", "count": 1}], "prompt": prompt, **more}


def write(folder: Path, records: Sequence[Mapping[str, Any]], name: str = "evaluation_metadata.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in records))
    return folder


def detecting(choose: Callable[[Any], list[dict[str, Any]]] | None = None) -> Saying:
    """A detector that finds what it is asked for, or what it is told to find by the question."""

    def say(question: Any) -> dict[str, Any]:
        if choose is not None:
            return {"reasoning": "x", "objects": choose(question)}
        names = question.schema["properties"]["objects"]["items"]["properties"]["class"]["enum"]
        return {"reasoning": "x", "objects": [thing(name) for name in names]}

    return Saying(say, "detecting")


def thing(name: str, **more: Any) -> dict[str, Any]:
    return {"class": name, "box": [0, 0, 10, 10], "confidence": 0.95, **more}


class Drawing:
    """A model that paints another image for each seed, and keeps the seeds that it was given."""

    name, version = "drawing", "1"

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def __call__(self, messages: Any, want: str, seed: int) -> Any:
        from PIL import Image as Pil

        self.seeds.append(seed)
        return Pil.new("RGB", (8, 8), (seed % 256, seed // 256 % 256, len(str(messages)) % 256))


def table(run: weft.Run, words: str) -> Table:
    return next(one for one in run.tables() if words in one.title)


def test_each_of_four_images_is_a_draw_of_its_own(tmp_path: Path):
    data = write(tmp_path / "data", [record(), record(prompt="a photo of a big dog")])
    model = Drawing()
    run = weft.evaluate("geneval", data=data, model=model, judge=detecting(), home=tmp_path / "home")
    assert sorted(model.seeds) == sorted([DRAWS_PER_TURN * number for number in range(4)] * 2)
    assert len({turn.reply.images[0].digest for turn in run.turns}) == 8
    assert DRAWS_PER_TRY * MAX_TRIES < DRAWS_PER_TURN, "the tries of one image never meet those of the next"
    again = weft.evaluate("geneval", data=data, model=model, judge=detecting(), home=tmp_path / "home", images=2)
    assert len(again.turns) == 4 and len(model.seeds) == 8, "all of them were cached"


def test_a_task_is_the_share_of_its_images_and_overall_the_mean_of_tasks(tmp_path: Path):
    counting = {"exclude": [{"class": "dog", "count": 2}]}
    data = write(tmp_path / "data", [record(), record(prompt="another dog"), record("counting", "one dog", **counting)])

    def choose(question: Any) -> list[dict[str, Any]]:
        place = (question.turn_ref.sample, question.turn_ref.turn)
        if place[0] == "00002":
            return [thing("dog")] * (1 if place[1] == 0 else 2)
        return [thing("dog")] if place[0] == "00000" else []

    run = weft.evaluate("geneval", data=data, model=Drawing(), judge=detecting(choose), home=tmp_path / "home")
    (row,) = table(run, "by task").run_rows
    assert (row.cells["Single"].value, row.cells["Counting"].value, row.cells["Overall"].value) == (0.5, 0.25, 0.375)
    assert row.cells["Two"].format() == "-"
    (row,) = table(run, "images and prompts").run_rows
    assert row.cells["Images"].value == pytest.approx(5 / 12) and row.cells["Prompts"].value == pytest.approx(2 / 3)
    assert run.gist.value == 0.375
    reasons = {(verdict.sample, verdict.turn): verdict.reason for verdict in run.verdicts}
    assert reasons["00002", 1] == "dog: 2, and fewer than 2 are right" and reasons["00001", 0] == "dog: 0 of 1"


def test_a_box_that_is_none_is_asked_for_again_and_then_unscored(tmp_path: Path):
    data = write(tmp_path / "data", [record()])
    judge = detecting(lambda question: [thing("dog", box=[10, 0, 0, 10])])
    run = weft.evaluate("geneval", data=data, model=Drawing(), judge=judge, home=tmp_path / "home", images=1)
    (verdict,) = run.verdicts
    assert verdict.value is None and "ends before it begins" in verdict.reason and len(judge.asked) == 2


def test_colours_are_asked_for_where_a_prompt_has_one(tmp_path: Path):
    colored = record("colors", include=[{"class": "dog", "count": 1, "color": "red"}])
    data = write(tmp_path / "data", [record(), colored])
    judge = detecting(lambda question: [thing("dog", color="red")] if question.material["colored"] else [thing("dog")])
    run = weft.evaluate("geneval", data=data, model=Drawing(), judge=judge, home=tmp_path / "home", images=1)
    assert all(verdict.value == 1 for verdict in run.verdicts)
    shown = {question.turn_ref.sample: parts for question, parts in zip(judge.asked, judge.shown, strict=True)}
    assert "`color`" not in str(shown["00000"]) and "pink" in str(shown["00001"])
    assert "8 wide and 8 high" in str(shown["00001"])


# the authors' layout


def write_outputs(root: Path, number: int, images: int, prompt: str = "") -> Path:
    folder = root / f"{number:05}"
    for place in range(images):
        paint(folder / "samples" / f"{place:05}.png", "red", mark=4 * number + place)
    paint(folder / "grid.png", "blue")
    if prompt:
        (folder / "metadata.jsonl").write_text(json.dumps(record(prompt=prompt)))
    return folder


def test_outputs_lie_in_the_authors_layout_and_a_missing_image_is_left_out_by_the_script(tmp_path: Path):
    prompts = ["a photo of a dog", "a photo of a cat", "a photo of a cow"]
    data = write(tmp_path / "data", [record(prompt=prompt) for prompt in prompts])
    write_outputs(tmp_path / "outputs", 0, 4)
    write_outputs(tmp_path / "outputs", 1, 2, prompts[1])
    write_outputs(tmp_path / "outputs", 7, 1, prompts[2])  # under another number: its record says what it is of
    options: dict[str, Any] = {"model": f"folder/{tmp_path / 'outputs'}", "judge": detecting(), "home": tmp_path / "h"}
    run = weft.evaluate("geneval", data=data, **options)
    strict, official = table(run, "by task").run_rows
    assert strict.cells["Single"].value == pytest.approx(7 / 12) and official.cells["Single"].value == 1
    assert official.cells["Single"].expected == 7
    own = weft.evaluate("geneval", data=tmp_path / "outputs", **options)
    assert {verdict.sample for verdict in own.verdicts} == {"00001", "00007"}, "its records are the data"


def test_images_of_another_prompt_are_not_judged(tmp_path: Path):
    data = write(tmp_path / "data", [record()])
    write_outputs(tmp_path / "outputs", 0, 4, "a photo of a zebra")
    run = weft.evaluate(
        "geneval", data=data, model=f"folder/{tmp_path / 'outputs'}", judge=detecting(), home=tmp_path / "home"
    )
    assert all(verdict.value is None and "is of another prompt" in verdict.reason for verdict in run.verdicts)


# data and published rows


def test_each_problem_of_a_record_is_named(tmp_path: Path):
    dog = {"class": "dog", "count": 1}
    records = [
        record("odd"),
        record(include=[]),
        record(include=[{"class": "dog"}]),
        record(include=[{**dog, "color": "mauve"}]),
        record(include=[dog, {**dog, "position": ["near", 0]}]),
        record(include=[dog, {**dog, "position": ["above", 1]}]),
        record(prompt=""),
        record(),
    ]
    dataset = load_benchmark("geneval").load(write(tmp_path / "data", records), open_blobs(tmp_path)).load_all()
    assert [sample.id for sample in dataset.samples] == ["00007"]
    fields = [problem.field for problem in dataset.problems]
    assert fields == [
        "tag",
        "include",
        "include.count",
        "include.color",
        "include.position",
        "include.position",
        "prompt",
    ]
    with pytest.raises(UserError, match="no prompts in .*djghosh13/geneval"):
        load_benchmark("geneval").load(paint(tmp_path / "empty" / "a.png", "red").parent, open_blobs(tmp_path))


def test_long_prompts_are_a_benchmark_of_their_own(tmp_path: Path):
    short = write(tmp_path / "short", [record()] * 553)
    long = write(tmp_path / "long", [record(prompt="In a garden, a dog.")] * 553, "evaluation_metadata_long.jsonl")
    blobs = open_blobs(tmp_path)
    assert load_benchmark("geneval").load(short, blobs).name == "geneval"
    assert load_benchmark("geneval-long").load(long, blobs).name == "geneval-long"
    for name, data in (
        ("geneval", long / "evaluation_metadata_long.jsonl"),
        ("geneval-long", short / "evaluation_metadata.jsonl"),
    ):
        with pytest.raises(UserError, match="whose numbers are others: weft run geneval"):
            load_benchmark(name).load(data, blobs)


def test_published_rows_stand_in_two_tables_that_name_the_detector():
    by_task, whole = load_benchmark("geneval").tables([])
    assert by_task.cells("BAGEL")["Overall"].value == 0.82 and whole.cells("Wan-Weaver")["Overall"].value == 0.89
    assert "Bagel" not in {row.name for row in whole.rows}, "its prompts were rewritten"
    (long,) = load_benchmark("geneval-long").tables([])
    assert long.cells("Bagel")["Overall"].value == 0.88
    assert all("mmdet" in one.note for one in (by_task, whole, long))


def test_classes_have_the_names_of_the_prompts():
    assert len(COCO_CLASSES) == len(set(COCO_CLASSES)) == 80
    assert {"tv remote", "computer mouse", "computer keyboard", "hair drier"} <= set(COCO_CLASSES)


# the judge is a program


def test_the_judge_is_the_detector_where_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = write(tmp_path / "data", [record()])
    monkeypatch.setattr("weft.benchmarks.geneval.protocol.DETECTORS", {"transformers": "constant/max"})
    words = ["run", "geneval", "--data", str(data), "--model", "copy", "--home", str(tmp_path / "home")]
    done = CliRunner().invoke(app, words)
    assert "give --judge" not in done.output and done.exit_code == 0, done.output
    run = weft.evaluate("geneval", data=data, model="copy", home=tmp_path / "home")
    assert run.record.manifest.judge["name"] == "constant/max"
    (job,) = build_jobs([SuiteEntry("geneval", "geneval", {"data": str(data)})], ["copy"], "openai/gpt-4.1")
    assert job[2].judge == "constant/max", "the judge of a suite reads; here a program decides"


def test_a_judge_that_says_the_same_of_every_image_finds_the_first_class(tmp_path: Path):
    data = write(tmp_path / "data", [record()])
    run = weft.evaluate("geneval", data=data, model=Drawing(), judge="constant/max", home=tmp_path / "home")
    assert run.verdicts and all(verdict.value is not None for verdict in run.verdicts)


def test_people_are_not_asked_to_list_objects(tmp_path: Path):
    data = write(tmp_path / "data", [record()])
    run = weft.evaluate("geneval", data=data, model=Drawing(), judge=detecting(), home=tmp_path / "home")
    done = CliRunner().invoke(app, ["rate", run.id, "--home", str(tmp_path / "home")])
    assert isinstance(done.exception, UserError)
    assert "its questions are for a program" in str(done.exception) and "\n" not in str(done.exception)


def test_the_tabletop_has_prompts_whose_scores_are_known(tmp_path: Path):
    data = make("tabletop-geneval", tmp_path / "data", samples=12, seed=2)
    values: dict[str, set[float | None]] = {}
    for model in ("tabletop/oracle", "copy"):
        run = weft.evaluate("geneval", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
        row = table(run, "by task").run_rows[0]
        values[model] = {cell.value for cell in row.cells.values()}
    assert values == {"tabletop/oracle": {1.0}, "copy": {0.0}}


def test_the_exact_judge_decides_by_what_it_sees(tmp_path: Path):
    """The prompts' rules against images of other prompts: right only where both ask for the same."""
    data = make("tabletop-geneval", tmp_path / "data", samples=12, seed=2)
    records = [json.loads(line) for line in (data / "evaluation_metadata.jsonl").read_text().splitlines()]
    shifted = [{**one, "prompt": other["prompt"]} for one, other in itertools.pairwise([*records, records[0]])]
    write(data, shifted)
    run = weft.evaluate("geneval", data=data, model="tabletop/oracle", judge="tabletop/exact", home=tmp_path / "home")
    assert run.gist.value is not None and run.gist.value < 0.4
