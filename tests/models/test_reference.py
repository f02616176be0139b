"""The model `reference`: without a reference there is no reply and no score; a check of the data has stand-ins."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.app import app
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
