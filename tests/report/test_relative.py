"""Metrics against a baseline in percent, and a third place in LaTeX tables."""

import json
from pathlib import Path

import pytest

import weft
from toy import more_records, write_weave
from weft.errors import UserError
from weft.report.clip_scores import CLIP_I, CLIP_T, ClipScores
from weft.report.model_scores import collect_scores
from weft.report.ranking import rank_cells
from weft.report.relative import compare_with_baselines, parse_baselines
from weft.report.render import render
from weft.report.select import Choices
from weft.types import Cell, Row, Table


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, weft.Run]:
    place = tmp_path_factory.mktemp("relative")
    data = write_weave(place / "data", more_records(2))
    judges = {"first": "constant/4", "second": "constant/5", "third": "constant/6"}
    return {
        name: weft.evaluate("weave", data=data, model="copy", judge=judge, home=place / "home")
        for name, judge in judges.items()
    }


def test_each_metric_is_so_many_percent_above_the_baseline(runs: dict[str, weft.Run]):
    found = compare_with_baselines(runs, {"second": "first", "third": "first"})
    assert found.table.title.endswith("change against first")
    cells = found.table.cells("second")
    base = found.table.cells("first")["image quality"].value or 0
    own = cells["image quality"].value or 0
    assert cells["image quality %"].value == pytest.approx(100 * (own / base - 1))
    assert "image quality %" not in found.table.cells("first")
    assert found.plot is not None and "+" in found.plot.description and "%)" in found.plot.description


def test_a_change_between_runs_of_other_judges_or_data_says_so(runs: dict[str, weft.Run], tmp_path: Path):
    warning = "The runs have different judges: compare with care."
    assert warning in compare_with_baselines(runs, {"second": "first"}).table.note
    data = write_weave(tmp_path / "data", more_records(3))
    other = weft.evaluate("weave", data=data, model="copy", judge="constant/4", home=tmp_path / "home")
    two = {"first": runs["first"], "other": other}
    assert "The runs have different datasets:" in compare_with_baselines(two, {"other": "first"}).table.note
    alone = compare_with_baselines({"first": runs["first"]}, {}).table.note
    assert "different" not in alone
    assert "different judges and datasets" in collect_scores([runs["second"], other]).note


def test_rows_name_their_baselines_only_where_there_are_several(runs: dict[str, weft.Run]):
    found = compare_with_baselines(runs, {"second": "first", "third": "second"})
    assert [row.name for row in found.table.rows] == ["first", "second (against first)", "third (against second)"]
    assert "change against a baseline" in found.table.title
    heads = render([found.table], [], "latex", Choices()).partition("midrule")[0]
    assert "cmidrule" not in heads, "a metric and its change are no group of columns"


def test_text_says_of_several_runs_once_what_they_share_and_the_rest_in_a_line_each(runs: dict[str, weft.Run]):
    summaries = [run.summary() for run in runs.values()]
    four = render([], [*summaries, summaries[0]], "md").splitlines()
    assert four[0] == "# weave: 4 runs"
    assert sum("dataset" in line for line in four) == 1 and sum("constant/5" in line for line in four) == 1
    assert [line.startswith("- run ") for line in four].count(True) == 4
    latex = render([], summaries, "latex").splitlines()
    assert [line.startswith("% run ") for line in latex].count(True) == 3
    one = render([], summaries[:1], "md").splitlines()
    assert one[0] == f"# {summaries[0].run}" and f"- {summaries[0].lines[0]}" in one


def test_a_single_run_or_an_unknown_text_is_an_error(runs: dict[str, weft.Run]):
    with pytest.raises(UserError, match="name two runs or more"):
        weft.relative([runs["first"]])
    with pytest.raises(UserError, match="--text words: give request or reference"):
        weft.relative([runs["first"], runs["second"]], text="words")


def test_clip_stands_beside_with_changes_over_common_turns(runs: dict[str, weft.Run]):
    turns = [(turn.sample, turn.turn) for turn in runs["first"].turns][:6]
    base = {key: 0.5 + index / 100 for index, key in enumerate(turns)}
    higher = {key: 1.1 * value for key, value in base.items()}
    scores = {
        "first": ClipScores({CLIP_I: base, CLIP_T: base}, {CLIP_I: 8, CLIP_T: 6}),
        "second": ClipScores({CLIP_I: dict(list(higher.items())[:4]), CLIP_T: {}}, {CLIP_I: 8, CLIP_T: 6}, cut=2),
    }
    two = {name: runs[name] for name in scores}
    table = compare_with_baselines(two, {"second": "first"}, scores).table
    cell = table.cells("first")[CLIP_I]
    assert cell.value == pytest.approx(sum(base.values()) / 6) and (cell.scored, cell.expected) == (6, 8)
    own = table.cells("second")
    assert own["CLIP-I %"].value == pytest.approx(10.0) and own["CLIP-I %"].scored == 4
    assert own[CLIP_T].value is None and "CLIP-T %" not in own
    assert "2 texts are longer than CLIP reads" in table.note


def test_baselines_are_named_by_runs(runs: dict[str, weft.Run]):
    assert parse_baselines(runs, []) == {"second": "first", "third": "first"}
    assert parse_baselines(runs, [runs["second"].id]) == {"first": "second", "third": "second"}
    last = runs["third"].id.rpartition("-")[2]
    assert parse_baselines(runs, [f"{last}=second"]) == {"third": "second"}
    with pytest.raises(UserError, match="--baseline x: it is none of the runs"):
        parse_baselines(runs, ["x"])
    with pytest.raises(UserError, match="--baseline weave: it is more than one of the runs"):
        parse_baselines(runs, ["weave"])


def test_from_python(runs: dict[str, weft.Run]):
    chosen = [runs["first"], runs["second"]]
    found = weft.relative(chosen)
    assert len(found.table.rows) == 2 and "against copy" in found.table.title
    with pytest.raises(UserError, match="--text answer: give request or reference"):
        weft.relative(chosen, clip="./nowhere", text="answer")


def test_a_third_place_is_marked_on_request():
    rows = tuple(Row(name, {"Avg": Cell(value, 9, 9)}) for name, value in zip("abcde", (5, 4, 4, 3, 0), strict=True))
    table = Table("Made up", ("Avg",), rows, digits=1)
    assert rank_cells(table, top=3) == {
        ("a", "Avg"): "best", ("b", "Avg"): "second", ("c", "Avg"): "second", ("d", "Avg"): "third",
    }  # fmt: skip
    assert "third" not in rank_cells(table).values() and set(rank_cells(table, top=1).values()) == {"best"}
    text = render([table], [], "latex", Choices(top=3))
    assert r"\textit{3.0}" in text and "third in italics" in text
    assert r"\textit" not in render([table], [], "latex")


def test_a_number_of_places_beyond_three_is_refused(runs: dict[str, weft.Run]):
    with pytest.raises(UserError, match="--top 4: give a number from 1 to 3"):
        runs["first"].report("latex", top=4)
    with pytest.raises(UserError, match="--top is for latex"):
        runs["first"].report("md", top=3)
    assert json.loads(runs["first"].report("json"))
