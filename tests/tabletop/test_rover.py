"""ROVER on the tabletop: the oracle has everything, others what they deserve, and the picture on the way can be
checked."""

import hashlib
import json
from pathlib import Path

import pytest

import weft
from weft_tabletop.exact import rover
from weft_tabletop.make import make
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, describe_scene, parse
from weft_tabletop.world.listening import shorten_request
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import Scene, SceneReading, scene_from_text


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("tabletop-rover", tmp_path_factory.mktemp("rover") / "data", samples=102, seed=0)


def run(benchmark: str, data: Path, home: Path, model: str, **options: object) -> weft.Run:
    return weft.evaluate(benchmark, data=data, model=model, judge="tabletop/exact", home=home, **options)


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def test_same_seed_same_bytes(tmp_path: Path, data: Path):
    again = make("tabletop-rover", tmp_path / "again", samples=102, seed=0)
    other = make("tabletop-rover", tmp_path / "other", samples=102, seed=1)
    assert digest(again) == digest(data) != digest(other)


def test_every_dimension_and_type_has_tasks(data: Path):
    tasks = [json.loads(line) for line in (data / "ROVER-IG.jsonl").read_text().splitlines()]
    assert len(tasks) == 68 and {task["dimension"] for task in tasks} == {"science", "culture", "common_sense", "logic"}
    kinds = {task["reasoning_type"] for task in tasks}
    assert kinds == {"temporal", "spatial", "causal", "imaginative", "quantitative", "mathematical", "abstract"}
    puzzles = [json.loads(line) for line in (data / "ROVER-TG.jsonl").read_text().splitlines()]
    assert {one["problem_type"] for one in puzzles} == {"jigsaw", "logical", "physical"} and len(puzzles) == 34


def test_the_oracle_has_everything(data: Path, tmp_path: Path):
    for benchmark, options in (("rover-ig", {}), ("rover-tg", {"options": {"mode": "both"}})):
        found = run(benchmark, data, tmp_path, "tabletop/oracle", **options)
        values = [
            cell.value
            for table in found.tables()
            for row in table.rows
            for cell in row.cells.values()
            if cell.value is not None
        ]
        shown = [table for table in found.tables() if "gains" not in table.title and "Pearson" not in table.title]
        assert values and all(
            cell.value == 100.0
            for table in shown
            for row in table.rows
            for cell in row.cells.values()
            if cell.value is not None
        )
        assert {verdict.value for verdict in found.verdicts} == {1.0}


def test_copying_is_worth_what_it_keeps(data: Path, tmp_path: Path):
    found = run("rover-ig", data, tmp_path, "copy")
    cells = found.table().cells(f"{found.name} (strict), micro")
    assert (cells["RP"].value, cells["Align."].value) == (None, None)  # it says nothing
    assert cells["RV"].value == 0.0 and cells["VC"].value == cells["IQ"].value == 100.0
    found = run("rover-tg", data, tmp_path, "copy")
    assert {verdict.value for verdict in found.verdicts if verdict.metric == "interleaved_reasoning"} == {0.0}


def test_an_oracle_that_errs(data: Path, tmp_path: Path):
    found = run("rover-ig", data, tmp_path, "tabletop/oracle", model_options={"error": 0.5})
    means = {name: cell.value for name, cell in found.table().cells(f"{found.name}, micro").items()}
    assert means["RP"] == 100.0  # it knows what is right, and draws something else
    assert means["Align."] < 100.0 and means["VC"] < 100.0 and means["Align. held"] <= means["Align."]


def test_two_that_cannot_do_it_alone(data: Path, tmp_path: Path):
    """A composition of a reasoner and a painter, both of the tabletop: the plan of the one is the picture of the
    other."""
    found = run("rover-ig", data, tmp_path, "cascade:reasoner=tabletop/oracle,painter=tabletop/oracle")
    assert {verdict.value for verdict in found.verdicts} == {1.0}
    assert all(len(turn.reply.keys) == 2 and turn.reply.thoughts for turn in found.turns)
    chats = make("tabletop-weave", tmp_path / "weave", samples=16, seed=0)
    other = weft.evaluate(
        "weave",
        data=chats,
        model="cascade:reasoner=tabletop/oracle,painter=tabletop/oracle",
        judge="tabletop/exact",
        home=tmp_path / "w",
    )
    assert other.record.state == "finished"  # any benchmark


def test_the_tiny_model_takes_part(data: Path, tmp_path: Path):
    found = run("rover-ig", data, tmp_path, "tabletop/tiny", limit=17)
    assert all(turn.reply.text.startswith("<think>") and turn.reply.last_image for turn in found.turns)
    means = {name: cell.value for name, cell in found.table().cells(found.table().rows[0].label).items()}
    assert means["RP"] > 85 and means["RV"] > 85
    found = run("rover-tg", data, tmp_path, "tabletop/tiny", limit=9, options={"mode": "both"})
    assert all(turn.reply.last_image for turn in found.turns if turn.turn == 0) and all(
        turn.reply.text for turn in found.turns
    )
    right = [verdict.value for verdict in found.verdicts if verdict.metric.startswith("accuracy")]
    assert sum(right) / len(right) > 0.8


def read(scene: Scene) -> SceneReading:
    return SceneReading(scene, 1.0, 0.0)


TABLE = scene_from_text("white: red star at a1, blue ring at c3")
FALL = {"kind": "gravity", "args": {}, "type": "causal"}
DUE = Operation("gravity").apply(TABLE)


def test_plans_are_read_by_objects_and_cells():
    said = [
        (f"<think> {describe_scene(DUE)} </think>", 5),
        ("The red star at d1 and the blue ring at d3, on a white table.", 5),
        ("The red star at d1.", 2),  # one of two
        ("red star at d1, blue ring at c3", 2),
        ("red star at d1, blue ring at d3, red dot at a4", 3),
        ("Everything goes down.", 1),
        ("", 1),
    ]
    for plan, score in said:
        assert rover.score_task("reasoning_process", FALL, read(TABLE), read(DUE), plan)[0] == score, plan


def test_alignment_is_to_ones_own_picture_right_or_wrong():
    wrong = scene_from_text("white: red star at b1, blue ring at c3")
    assert rover.score_task("reasoning_alignment", FALL, read(TABLE), read(wrong), describe_scene(wrong))[0] == 5
    assert rover.score_task("reasoning_alignment", FALL, read(TABLE), read(wrong), describe_scene(DUE))[0] == 1


def test_pictures_by_what_had_to_change_and_what_had_to_stay():
    half = TABLE.put({"a1": None, "d1": TABLE.at("a1")})
    assert rover.score_task("reasoning_visual", FALL, read(TABLE), read(DUE), "")[0] == 5
    assert rover.score_task("reasoning_visual", FALL, read(TABLE), read(half), "")[0] == 2
    # at least half
    assert rover.score_task("reasoning_visual", {**FALL, "type": "abstract"}, read(TABLE), read(half), "")[0] == 2
    assert rover.score_task("reasoning_visual", FALL, read(TABLE), read(TABLE), "")[0] == 1
    spoilt = DUE.put({"b2": DUE.at("d1")})
    assert rover.score_task("visual_consistency", FALL, read(TABLE), read(spoilt), "")[0] == 4
    assert rover.score_task("image_quality", FALL, read(TABLE), SceneReading(DUE, 1.0, 30.0), "")[0] == 1


def test_answers_are_held_against_the_picture_on_the_way():
    asked = TableRequest("then", {"done": "Let everything in the table fall down.", "cell": "d1"}, {})
    turn = {"kind": "then", "args": asked.args, "type": "physical", "answer": "a red star"}
    helper = answers.helper_scene(asked, {"image": TABLE})
    assert rover.score_puzzle("interleaved_reasoning", turn, read(TABLE), read(helper), "")[0] == 5
    assert rover.score_puzzle("interleaved_reasoning", turn, read(TABLE), read(TABLE), "")[0] == 1
    align = "reasoning_alignment"
    assert rover.score_puzzle(align, turn, read(TABLE), read(helper), "Final Answer: a red star")[0] == 5
    # wrong, but what its picture shows
    assert rover.score_puzzle(align, turn, read(TABLE), read(TABLE), "Final Answer: nothing")[0] == 5
    assert rover.score_puzzle(align, turn, read(TABLE), read(TABLE), "Final Answer: a red star")[0] == 1
    logical = {**turn, "type": "logical"}
    assert rover.score_puzzle(align, logical, read(TABLE), read(TABLE), "Final Answer: nothing")[0] == 1
    assert (
        rover.score_puzzle(align, {**turn, "type": "jigsaw"}, read(TABLE), read(TABLE), "Final Answer: nothing")[0] == 2
    )


def test_how_to_answer_is_heard_in_short():
    assert (
        shorten_request("Think between <think> and </think>, then draw.\n\nTask: Add a thing.")
        == "Think first. Add a thing."
    )
    assert (
        shorten_request('Make a picture first. End with "Final Answer: x".\n\nTask: How many?')
        == "Show it first. How many?"
    )
    assert shorten_request('Make no picture. End with "Final Answer: x".\n\nTask: How many?') == "How many?"
    assert shorten_request("Add a thing.") == "Add a thing."
    assert parse("Double the red stars in the table.") is not None
