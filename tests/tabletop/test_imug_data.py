"""Tabletop dialogues in IMUG-Bench's format: who does everything right scores 100, and dynamic keys follow what the
model drew."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.benchmarks.imug.classes import CLASS_OF
from weft.benchmarks.imug.facts import read_choice_facts
from weft_tabletop.make import make
from weft_tabletop.make.domains import IMUG
from weft_tabletop.make.imug_dialogues import make_chat
from weft_tabletop.world.choices import MULTIPLE, parse_choice
from weft_tabletop.world.language import parse
from weft_tabletop.world.wordings import OPEN


def evaluate(data: Path, home: Path, model: str, **options: Any) -> weft.Run:
    return weft.evaluate("imug", data=data, model=model, judge="tabletop/exact", home=home, **options)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("tabletop-imug", tmp_path_factory.mktemp("imug") / "data", samples=200, seed=0)


def records(data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "benchmark.jsonl").read_text().splitlines()]


def test_same_seed_same_bytes(data: Path, tmp_path: Path):
    again = make("tabletop-imug", tmp_path / "again", samples=200, seed=0)
    files = sorted(path.relative_to(data) for path in data.rglob("*") if path.is_file())
    assert len(files) > 200 and all((data / file).read_bytes() == (again / file).read_bytes() for file in files)


def test_it_has_all_that_the_benchmark_has(data: Path):
    rows = records(data)
    tasks = [task for row in rows for task in row["tasks"]]
    answers = [task["output"]["answer"] for task in tasks if task["modality"] == "text"]
    assert {row["domain"] for row in rows} == set(CLASS_OF) and {len(row["tasks"]) for row in rows} == {2, 3, 4, 5, 6}
    assert any(len(answer) > 1 and "<" not in answer for answer in answers), "static, several right"
    assert answers.count("<DYNAMIC>") > 60
    assert all(task["output"]["evaluation_points"] for task in tasks if task["modality"] == "image")
    assert any("any colour" in task["input"][0]["text"] for task in tasks), "requests that leave a choice to the model"


def test_the_oracle_scores_a_hundred_in_every_cell(data: Path, tmp_path: Path):
    run = evaluate(data, tmp_path / "home", "tabletop/oracle")
    for table in run.tables():
        for row in table.rows if not table.title.endswith(", official") else ():
            if row.arithmetic != "official":
                values = {
                    column: cell.value for column, cell in row.cells.items() if cell.expected and column != "per turn"
                }
                assert set(values.values()) <= {100.0}, (table.title, row.label, values)
    kinds = next(row.cells for row in run.tables()[2].rows if row.arithmetic != "official")
    assert kinds["Dynamic MCQ"].expected >= 60 and kinds["Dynamic MCQ"].value == 100.0


def test_a_model_with_a_known_error_rate_scores_what_it_implies(tmp_path: Path):
    """Text: a wrong letter in a share of turns, and a wrong letter is 0. Dynamic questions are judged by its own spoilt
    pictures, so that their score is the rate's alone; static ones lose also by pictures that are not what they should
    be."""
    data = make("tabletop-imug", tmp_path / "many", samples=400, seed=3)
    run = evaluate(data, tmp_path / "home", "tabletop/oracle", model_options={"error": 0.3, "seed": 1})
    kinds = next(row.cells for row in run.tables()[2].rows if row.arithmetic != "official")
    dynamic, static = kinds["Dynamic MCQ"], kinds["Static MCQ"]
    assert dynamic.low is not None and dynamic.high is not None and dynamic.low <= 70 <= dynamic.high
    assert static.value is not None and dynamic.value is not None and 60 < static.value < 75
    spoilt = [v for v in run.verdicts if v.metric == "points" and v.value is not None and v.value < 1]
    pictures = [v for v in run.verdicts if v.metric == "points"]
    assert len(spoilt) / len(pictures) == pytest.approx(0.3, abs=0.05)


def test_a_wrong_drawing_answered_truthfully_is_right_in_a_dynamic_question_and_wrong_in_a_static_one(tmp_path: Path):
    """Where a spoilt picture changes what is true, against the same dialogue without a mistake, a dynamic key follows
    it."""
    data = make("tabletop-imug", tmp_path / "many", samples=300, seed=7)
    perfect = evaluate(data, tmp_path / "home", "tabletop/oracle")
    spoilt = evaluate(data, tmp_path / "home", "tabletop/oracle", model_options={"error": 0.5, "seed": 4})
    due = {(v.sample, v.turn): read_choice_facts(v).key for v in perfect.verdicts if v.metric == "choice"}
    asked = [v for v in spoilt.verdicts if v.metric == "choice"]
    moved = [v for v in asked if read_choice_facts(v).dynamic and read_choice_facts(v).key != due[v.sample, v.turn]]
    assert len(moved) > 5 and any(v.value == 1.0 for v in moved), "the key is what it drew, and saying so is right"
    assert all(read_choice_facts(v).key == due[v.sample, v.turn] for v in asked if not read_choice_facts(v).dynamic), (
        "a static key never moves"
    )
    assert any(v.value == 0.0 for v in asked if not read_choice_facts(v).dynamic)


@given(st.integers(0, 10**6), st.sampled_from(sorted(IMUG)), st.integers(2, 6))
def test_every_text_is_understood_and_no_open_picture_has_a_static_key(seed: int, key: tuple[str, str], turns: int):
    chat = make_chat(*key, IMUG[key], turns, random.Random(seed))
    assert chat is not None
    chosen: set[int] = set()
    for number, turn in enumerate(chat.dialogue.turns):
        asking = chat.choices.get(number)
        if asking is None:
            asked = parse(turn.text)
            assert asked is not None and turn.image_number is not None
            if turn.kind in OPEN or set(turn.images.values()) & chosen:
                chosen.add(turn.image_number)
            continue
        found = parse_choice(turn.text)
        assert found is not None and found.options == asking.choice.options
        assert asking.dynamic or asking.image_number not in chosen
        assert len(asking.letters) == 1 or asking.choice.request.kind in MULTIPLE
        if asking.dynamic and key != ("Botany", "natural_growth"):
            assert asking.choice.request.kind not in MULTIPLE, (
                "the protocol asks dynamic questions with one right answer everywhere else"
            )
