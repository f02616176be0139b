"""PlanViz on the tabletop: the oracle has everything, any shortest way is right, and what is not asked for costs what
it should."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.benchmarks.planviz.data import load
from weft.store.blobs import Blobs
from weft.types import Question, Text, TurnRef
from weft_tabletop import rewording
from weft_tabletop.exact import planviz
from weft_tabletop.make import make
from weft_tabletop.world.language import parse
from weft_tabletop.world.operations import Operation, shortest_paths
from weft_tabletop.world.scenes import Scene, SceneReading, Thing, scene_from_text

DOT = Thing("blue", "dot")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("tabletop-planviz", tmp_path_factory.mktemp("planviz") / "data", samples=96, seed=0)


def run(data: Path, home: Path, model: str, **options: Any) -> weft.Run:
    return weft.evaluate("planviz", data=data, model=model, judge="tabletop/exact", home=home, **options)


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def seen(scene: Scene) -> SceneReading:
    return SceneReading(scene, 1.0, 0.0)


def test_same_seed_same_bytes(tmp_path: Path, data: Path):
    again = make("tabletop-planviz", tmp_path / "again", samples=96, seed=0)
    other = make("tabletop-planviz", tmp_path / "other", samples=96, seed=1)
    assert digest(again) == digest(data) != digest(other)


def test_every_kind_is_there_open_and_closed(data: Path):
    found = load(data, Blobs(data.parent / "blobs")).load_all()
    assert not found.problems and found.name == "tabletop" and len(found.samples) == 96
    kinds = {(sample.groups["subtask"], sample.groups["task"], sample.groups["ended"]) for sample in found.samples}
    assert {kind[:2] for kind in kinds} == {
        (subtask, task) for subtask in ("route", "workflow", "ui") for task in ("gen", "edit")
    }
    assert {kind for kind in kinds if kind[2] == "open"} == {
        (subtask, task, "open") for subtask in ("route", "ui") for task in ("gen", "edit")
    }


def test_open_routes_have_several_shortest_ways_and_closed_ones_one(data: Path):
    truth = json.loads((data / "tabletop.json").read_text())["samples"]
    found = load(data, Blobs(data.parent / "blobs")).load_all()
    for sample in found.samples:
        turn = truth[sample.id]["turns"][0]
        assert len(turn["checks"]) == len(sample.turns[0].gold.points)
        if turn["kind"] == "draw route":
            table = Operation("draw", turn["args"]).apply(Scene("white"))
            assert (len(shortest_paths(table, turn["args"]["cell"], turn["args"]["to"])) > 1) == (
                sample.groups["ended"] == "open"
            )


def test_the_oracle_has_everything(data: Path, tmp_path: Path):
    found = run(data, tmp_path, "tabletop/oracle")
    assert {verdict.value for verdict in found.verdicts} == {1.0}
    for table in found.tables():
        if "distributed" not in table.title:
            assert {cell.value for row in table.rows for cell in row.cells.values()} - {None} == {1.0}


def test_a_copy_has_no_point_and_is_good_to_look_at(data: Path, tmp_path: Path):
    found = run(data, tmp_path, "copy", where={"task": "edit"})
    cells = {name: cell.value for name, cell in found.table().run_rows[0].cells.items()}
    assert cells == pytest.approx({"Cor": 0.0, "Vis": 1.0, "Ef": 1.0, "Avg": 2 / 3})


def test_a_model_that_errs_so_often_scores_less_everywhere(data: Path, tmp_path: Path):
    found = run(data, tmp_path, "tabletop/oracle", model_options={"error": 0.5})
    for row in found.table().run_rows:
        assert all(0.4 < (row.cells[name].value or 0) < 1.0 for name in ("Cor", "Ef"))


BASE = scene_from_text("white: red circle at a1, green star at c3, black square at b2")
ROUTE = {
    "kind": "route",
    "args": {"cell": "a1", "to": "c3", "colour": "blue"},
    "checks": [
        {"check": "way", "from": "a1", "to": "c3"},
        {"check": "colour", "from": "a1", "to": "c3", "colour": "blue"},
        {"check": "shortest", "from": "a1", "to": "c3"},
    ],
}


def route(cells: str, dot: Thing = DOT, base: Scene = BASE) -> tuple[list[bool], int]:
    made = seen(base.put(dict.fromkeys(cells.split(), dot)))
    met, _ = planviz.check_points(ROUTE, seen(BASE), made)
    return [one for one, _ in met], planviz.score_efficiency(ROUTE, seen(BASE), made)[0]


def test_every_shortest_way_is_right():
    ways = shortest_paths(BASE, "a1", "c3")
    assert len(ways) == 2
    for way in ways:
        assert route(" ".join(way[1:-1])) == ([True, True, True], 5)


@pytest.mark.parametrize(
    ("cells", "dot", "met", "efficient"),
    [
        ("a2 a3", DOT, [False, False, False], 3),  # a gap
        ("a2 a3 b3", Thing("red", "dot"), [True, False, True], 5),
        ("a2 a3 a4 b4 c4", DOT, [True, True, False], 5),  # a detour
        ("a2 a3 b3 d1", DOT, [True, True, True], 4),  # a dot that leads nowhere
        ("a2 b2 b3", DOT, [False, False, False], 2),  # through an object
        ("", DOT, [False, False, False], 5),
    ],
)
def test_ways_that_are_not_right(cells: str, dot: Thing, met: list[bool], efficient: int):
    assert route(cells, dot) == (met, efficient)


def test_a_way_from_an_object_that_is_gone_is_none():
    assert route("a2 a3 b3", base=BASE.put({"a1": None}))[0] == [False, False, False]


def test_what_must_stay_is_vis_and_what_nobody_asked_for_ef():
    moved = seen(BASE.put({"b2": None, "a2": DOT, "a3": DOT, "b3": DOT}))
    assert planviz.score_visual(ROUTE, seen(BASE), moved, alone=False)[0] == 3
    assert planviz.score_visual(ROUTE, seen(BASE), seen(BASE.put({}, "pink")), alone=False)[0] == 3
    assert planviz.score_visual(ROUTE, seen(BASE), seen(BASE), alone=False)[0] == 5
    blurred = SceneReading(BASE, 0.2, 14.0, ("a1",))
    assert planviz.score_visual(ROUTE, None, blurred, alone=True)[0] == 2


def test_steps_that_the_task_does_not_need_are_counted():
    turn = {
        "kind": "draw steps",
        "args": {"background": "white", "row": "b", "things": "red circle, blue star"},
        "checks": [],
    }
    made = seen(scene_from_text("white: red circle at b1, blue star at b2, red star at b3, black ring at d4"))
    assert planviz.check_points(turn, None, made) == ([], 2) and planviz.score_efficiency(turn, None, made)[0] == 3


def test_a_switch_too_many_is_seen():
    base = scene_from_text("white: green square at a1, black square at b1, black square at c1")
    turn = {
        "kind": "switch",
        "args": {"state": "on", "cells": "b1"},
        "checks": [{"check": "switch", "cell": "b1", "state": "on"}, {"check": "others", "cells": "b1"}],
    }
    both = seen(base.put({"b1": Thing("green", "square"), "c1": Thing("green", "square")}))
    assert [one for one, _ in planviz.check_points(turn, seen(base), both)[0]] == [True, False]
    assert (
        planviz.score_visual(turn, seen(base), both, alone=False)[0] == 4
        and planviz.score_efficiency(turn, seen(base), both)[0] == 4
    )


def test_wordings_of_a_request_say_the_same(data: Path):
    found = load(data, Blobs(data.parent / "blobs")).load_all()
    for sample in found.samples:
        text = sample.turns[0].prompt_text
        others = [one for one in rewording.wordings(text) if one != text]
        assert others and len(set(others)) == len(others)
        assert all(rewording.is_same_request(parse(text), parse(one)) for one in others)


def test_what_says_something_else_is_told_apart():
    first = "Draw a white panel with switches at a1, b2, and turn on a1."
    assert rewording.is_same_request(
        parse(first), parse("Make a white panel that has switches at b2, a1, of which a1 are on.")
    )
    assert not rewording.is_same_request(
        parse(first), parse("Make a white panel that has switches at b2, a1, of which b2 are on.")
    )
    steps = "Draw a white table and lay out in row a: a red star, then a blue star."
    assert not rewording.is_same_request(
        parse(steps), parse("Draw a white table and lay out in row a: a blue star, then a red star.")
    )
    question = Question(
        ("kept",), (), {}, TurnRef(), {"task": (Text(first),), "wordings": (Text("Draw a pink panel."), Text(first))}
    )
    assert [bool(one["lost"]) for one in (rewording.answer_rewording(question) or {})["wordings"]] == [True, False]


def test_the_style_study_runs_offline(data: Path, tmp_path: Path):
    found = run(data, tmp_path, "tabletop/oracle", styles=2, sample=12, reword="tabletop/oracle")
    assert {verdict.value for verdict in found.verdicts} == {1.0}
    wordings = {turn.groups["of"] for turn in found.turns if turn.groups["style"] != "as written"}
    assert len(wordings) == 12
    table = next(table for table in found.tables() if table.title.endswith("prompt styles"))
    assert table.rows[0].cells["Cor deviation"].value == 0.0
