"""Which turns of outputs made elsewhere IMUG-Bench's released scripts score, and which they lose: broken files, odd names,
and replies of the judge that only one side can read."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from test_imug import Serve, evaluate, image, judge, lines, records, text, write
from test_imug_official import APPAREL, COOKING, DRAWN, SAID, answering, outputs, write_checkout

import weft
from server import Seen, drawn, drawn_as
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.official import score_or_none
from weft.types import Verdict

NO_IMAGES: dict[str, list[int]] = {COOKING: [], APPAREL: [1]}


def score(tmp_path: Path, serve: Serve, folder: Path, **more: Any) -> weft.Run:
    """Score a folder with the official prompts, and what they ask about missing images."""
    checkout = write_checkout(tmp_path / "repo")
    data = more.pop("data", None) or write(tmp_path / "imug", records())
    provider = serve(answer=more.pop("answer", answering()))
    more = {"prompts": f"official:{checkout}", "official": True} | more
    return evaluate(data, tmp_path / "home", provider, model=f"folder/{folder}", **more)


def of_cooking(run: weft.Run) -> dict[int, Verdict]:
    """The verdicts of the dialogue about a pan, by turn from 1."""
    return {one.turn + 1: one for one in run.verdicts if one.sample.startswith("Cooking")}


def official(verdict: Verdict) -> float | None:
    return score_or_none(OFFICIAL.score(verdict))


def test_a_broken_result_loses_the_image_turns_that_look_there(tmp_path: Path, serve: Serve):
    """Turn 1 has its image; turn 3 has none, so that the scripts open the file. In strict both stay as they were."""
    folder = outputs(tmp_path / "out", SAID, {COOKING: [1], APPAREL: [1]})
    (folder / COOKING / "question_1" / "result.json").write_text('{"tasks": [')
    found = of_cooking(score(tmp_path, serve, folder))
    assert official(found[1]) == 80.0
    assert (found[3].value, official(found[3])) == (None, None)


def test_so_does_an_image_that_is_judged_against_one_of_them(tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "out", SAID, {COOKING: [3], APPAREL: [1]})
    (folder / COOKING / "question_1" / "result.json").write_text('{"tasks": [')
    found = of_cooking(score(tmp_path, serve, folder))
    assert (official(found[1]), official(found[3])) == (None, None)


def test_a_missing_result_loses_none(tmp_path: Path, serve: Serve):
    run = score(tmp_path, serve, outputs(tmp_path / "out", {APPAREL: {2: "B"}}, {COOKING: [1], APPAREL: [1]}))
    assert (of_cooking(run)[3].value, official(of_cooking(run)[3])) == (None, 80.0)


@pytest.mark.parametrize("name", [None, "", 5])
def test_so_does_a_name_that_is_none(tmp_path: Path, serve: Serve, name: Any):
    """In strict a missing image is the model's fault, and what is no text is unscored, as ever."""
    folder = outputs(tmp_path / "out", SAID, NO_IMAGES)
    tasks = [{"turn": 1, "model_response": name}, {"turn": 3, "model_response": "gone.png"}]
    (folder / COOKING / "question_1" / "result.json").write_text(json.dumps({"tasks": tasks}))
    run = score(tmp_path, serve, folder)
    found = of_cooking(run)
    assert found[1].value == (None if name else 0.0)
    assert (official(found[1]), official(found[3])) == (None, None)
    cells = run.table().cells(f"{run.name} (official)")
    assert cells["Avg"].value is not None, "the turns that are lost leave the others their number"


def test_an_unreadable_image_is_not_replaced_by_the_images_around_it(tmp_path: Path, serve: Serve):
    """The scripts send what is there to the judge, who can see nothing in it; weft asks nothing."""
    folder = outputs(tmp_path / "out", SAID, DRAWN)
    (folder / COOKING / "question_1" / "turn_3_output.png").write_bytes(drawn("x")[:40])
    run = score(tmp_path, serve, folder)
    assert (of_cooking(run)[3].value, official(of_cooking(run)[3])) == (None, None)


@pytest.mark.parametrize("form", ["BMP", "GIF"])
def test_an_image_of_another_form_is_judged_for_the_official_row(tmp_path: Path, serve: Serve, form: str):
    """Also where another image is judged against it. In strict both stay unscored."""
    folder = outputs(tmp_path / "out", SAID, DRAWN)
    (folder / COOKING / "question_1" / "turn_1_output.png").write_bytes(drawn_as(form, "a"))
    found = of_cooking(score(tmp_path, serve, folder))
    assert [(found[turn].value, official(found[turn])) for turn in (1, 2, 3)] == [
        (None, 80.0),
        (None, 100.0),
        (None, 80.0),
    ]


def test_so_is_a_grid_which_no_judge_is_asked_about(tmp_path: Path, serve: Serve):
    rows = [
        {
            "sample_id": "1",
            "domain": "Geometric_Coloring",
            "subdomain": "cubes_coloring",
            "tasks": [image(1, "Draw.", ["a grid", "the cells"])],
        }
    ]
    data = write(tmp_path / "cubes", rows, references=False)
    (data / "grid_gt").mkdir()
    grid = {"turn": 1, "grid": [["0", "0", "0"]] * 3}
    (data / "grid_gt" / "Geometric_Coloring__cubes_coloring__1.jsonl").write_text(json.dumps(grid))
    place = tmp_path / "out" / "Geometric_Coloring" / "cubes_coloring" / "question_1"
    place.mkdir(parents=True)
    lattice = Image.new("RGB", (90, 90), "white")
    for at in (0, 29, 59, 88):
        lattice.paste("black", (at, 0, at + 1, 89))
        lattice.paste("black", (0, at, 89, at + 1))
    lattice.save(place / "turn_1_output.png", "BMP")
    run = score(tmp_path, serve, tmp_path / "out", data=data)
    assert [(one.value, official(one)) for one in run.verdicts] == [(None, 100.0)]


def test_an_image_may_be_where_its_name_says(tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "out", SAID, DRAWN)
    place = folder / COOKING / "question_1"
    (place / "images").mkdir()
    (place / "turn_3_output.png").rename(place / "images" / "red.png")
    tasks = [
        {"turn": 3, "model_response": "none.png"},
        {"turn": 3, "model_response": "images/red.png"},
    ]
    (place / "result.json").write_text(json.dumps({"tasks": tasks}))
    run = score(tmp_path, serve, folder)
    assert (of_cooking(run)[3].value, official(of_cooking(run)[3])) == (0.8, 80.0)


def test_an_image_outside_of_the_outputs_is_not_opened(tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "out", SAID, {COOKING: [1], APPAREL: [1]})
    (tmp_path / "other.png").write_bytes(drawn("other"))
    tasks = [{"turn": 3, "model_response": "../../../../other.png"}]
    (folder / COOKING / "question_1" / "result.json").write_text(json.dumps({"tasks": tasks}))
    run = score(tmp_path, serve, folder)
    assert of_cooking(run)[3].value is None and "leads out of" in of_cooking(run)[3].reason


@pytest.mark.parametrize("said", [None, 0, False, [], {}])
def test_an_empty_answer_of_any_type_is_zero(tmp_path: Path, serve: Serve, said: Any):
    folder = outputs(tmp_path / "out", SAID, DRAWN)
    tasks = [{"turn": 4.0, "model_response": said}, {"turn": 2.0, "model_response": "B"}]
    (folder / COOKING / "question_1" / "result.json").write_text(json.dumps({"tasks": tasks}))
    found = of_cooking(score(tmp_path, serve, folder))
    assert (found[4].value, official(found[4])) == (0.0, 0.0)
    assert (found[2].value, official(found[2])) == (1.0, 100.0), "2.0 is turn 2"


@pytest.mark.parametrize("said", ["B", ""])
def test_a_key_that_is_no_option_is_zero_in_the_scripts(tmp_path: Path, serve: Serve, said: str):
    rows = records()
    rows[0]["tasks"][3]["output"]["answer"] = "H"
    folder = outputs(tmp_path / "out", {**SAID, COOKING: {2: "B", 4: said}}, DRAWN)
    found = of_cooking(score(tmp_path, serve, folder, data=write(tmp_path / "odd", rows)))
    assert (found[4].value, official(found[4])) == (None, 0.0)


def test_a_sample_may_be_called_0(tmp_path: Path, serve: Serve):
    rows = [{"sample_id": 0, "domain": "Cooking", "subdomain": "x", "tasks": [text(1, "Which?", "B")]}]
    (tmp_path / "zero" / "images").mkdir(parents=True)
    (tmp_path / "zero" / "benchmark.jsonl").write_text(lines(rows))
    run = evaluate(tmp_path / "zero", tmp_path / "home", serve(answer=judge()))
    assert [(one.sample, one.value) for one in run.verdicts] == [("Cooking/x/0", 1.0)]


@pytest.mark.parametrize("sample_id", [False, [], "", None])
def test_but_not_by_what_is_no_name(tmp_path: Path, serve: Serve, sample_id: Any):
    rows = [{"sample_id": sample_id, "domain": "Cooking", "subdomain": "x", "tasks": [image(1, "Draw.", ["drawn"])]}]
    rows += [{"sample_id": "1", "domain": "Cooking", "subdomain": "x", "tasks": [text(1, "Which?", "B")]}]
    (tmp_path / "odd" / "images").mkdir(parents=True)
    (tmp_path / "odd" / "benchmark.jsonl").write_text(lines(rows))
    run = evaluate(tmp_path / "odd", tmp_path / "home", serve(answer=judge()))
    assert [one.sample for one in run.verdicts] == ["Cooking/x/1"]


def test_a_first_reply_without_points_counts(tmp_path: Path, serve: Serve):
    """The scripts store it, and its turn is in no mean; weft asks again, for strict alone."""
    folder = outputs(tmp_path / "out", SAID, DRAWN)
    points = [{"point_id": at, "score": 4, "reason": "x"} for at in (1, 2)]

    def answer(seen: Seen) -> dict[str, Any]:
        is_first = len(seen.body["messages"]) == 2
        return {"role": "assistant", "content": json.dumps({"evaluation_results": [] if is_first else points})}

    found = of_cooking(score(tmp_path, serve, folder, answer=answer))
    assert (found[1].value, official(found[1])) == (0.8, None)


def test_a_reply_that_weft_alone_can_read_is_in_no_official_mean(tmp_path: Path, serve: Serve):
    """The scripts take everything from the first brace to the last."""
    folder = outputs(tmp_path / "out", SAID, DRAWN)
    results = [{"point_id": at, "score": 4, "reason": "x"} for at in (1, 2)]
    said = f"{{so}} {json.dumps({'evaluation_results': results})}"
    found = of_cooking(score(tmp_path, serve, folder, answer=answering(points=said)))
    assert (found[1].value, official(found[1])) == (0.8, None)
