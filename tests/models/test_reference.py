"""The model `reference`: without a reference there is no reply and no score; a check of the data has stand-ins."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.app import app
from weft.errors import UserError
from weft_tabletop.make import make


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """IMUG-Bench's format has reference answers, and no reference images."""
    return make("tabletop-imug", tmp_path / "data", samples=3, seed=0)


def test_a_turn_without_a_reference_stays_unscored(data: Path, tmp_path: Path):
    run = weft.evaluate("imug", data=data, model="reference", judge="constant/max", home=tmp_path / "home")
    images = [verdict for verdict in run.verdicts if verdict.metric == "points"]
    assert images and all(verdict.value is None for verdict in images)
    assert {"no reference image" in verdict.reason for verdict in images} == {True}


def test_the_command_says_in_a_line_what_is_missing(data: Path, tmp_path: Path):
    words = ["run", "imug", "--data", str(data), "--model", "reference", "--judge", "constant/max"]
    done = CliRunner().invoke(app, [*words, "--home", str(tmp_path / "home")])
    assert done.exit_code == 1
    lines = [line for line in done.output.splitlines() if "the dataset has no reference image here" in line]
    assert len(lines) == 1 and lines[0].startswith("unscored (")


def test_a_check_of_the_data_goes_on_with_a_stand_in(data: Path, tmp_path: Path):
    run = weft.validate("imug", data, home=tmp_path / "home")
    assert run.gist.scored == run.gist.expected
    assert any("stand-in" in turn.reply.notes for turn in run.turns)


# as a role of a composition


def test_each_image_of_a_document_is_the_references_own(tmp_path: Path):
    data = make("tabletop-weaver", tmp_path / "data", samples=12, seed=0)
    model = "weaver:planner=tabletop/oracle,visualizer=reference"
    run = weft.evaluate("weaverbench", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
    assert {verdict.value for verdict in run.verdicts} == {1.0}
    documents = [turn for turn in run.turns if len(turn.reply.images) > 1]
    assert documents
    for turn in documents:
        assert len({image.digest for image in turn.reply.images}) == len(turn.reply.images), "each its own"


def test_a_painter_can_be_the_reference_and_its_images_alone_reach_the_reasoner(tmp_path: Path):
    data = make("tabletop-rover", tmp_path / "data", samples=12, seed=0)
    model = "cascade:reasoner=tabletop/oracle,painter=reference"
    run = weft.evaluate("rover-tg", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
    assert run.verdicts and {verdict.value for verdict in run.verdicts} == {1.0}
    assert all(len(turn.reply.images) == 1 for turn in run.turns)


def test_a_role_without_a_reference_leaves_the_turn_unscored(tmp_path: Path):
    data = make("tabletop-planviz", tmp_path / "data", samples=6, seed=0)
    model = "cascade:reasoner=tabletop/oracle,painter=reference"
    run = weft.evaluate("planviz", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
    by_task: dict[str, set[float | None]] = {}
    for verdict in run.verdicts:
        by_task.setdefault(run.groups[verdict.sample]["task"], set()).add(verdict.value)
    assert by_task == {"gen": {None}, "edit": {1.0}}


def test_a_reference_is_no_planner(tmp_path: Path):
    data = make("tabletop-weaver", tmp_path / "data", samples=2, seed=0)
    model = "weaver:planner=reference,visualizer=reference"
    words = ["run", "weaverbench", "--data", str(data), "--model", model, "--judge", "tabletop/exact"]
    done = CliRunner().invoke(app, [*words, "--home", str(tmp_path / "home")])
    assert isinstance(done.exception, UserError) and "has no orders for its images" in str(done.exception)
