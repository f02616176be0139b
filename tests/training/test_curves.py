"""Curves of training runs are read from folders and packed files, and shown as a table and plots."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.errors import UserError
from weft.training.checkpoint import LOG_FILE, MANIFEST_FILE, Checkpoint, open_checkpoint, write_checkpoint
from weft.training.curves import list_measures, pack_runs, read_curves
from weft.training.log import TrainingLog, read_log


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs in one folder, the second not at its end."""
    for number, name in enumerate(("planner", "visualizer")):
        folder = tmp_path / "W" / name
        write_checkpoint(Checkpoint(folder, 20, {"stage": name, "seed": number}, {"words": 40}, done=not number))
        log = TrainingLog(folder / LOG_FILE)
        for step in (0, 10, 20):
            log.add(step, loss=2.0 - step / 20, understanding=step / 40 + number / 10)
    return tmp_path / "W"


def test_every_run_of_a_folder_is_read_and_packs_into_one_file(runs: Path, tmp_path: Path):
    curves = read_curves(runs)
    assert [(one.name, one.done, one.last["step"]) for one in curves] == [
        ("planner", True, 20),
        ("visualizer", False, 20),
    ]
    packed = tmp_path / "runs.jsonl"
    packed.write_text(pack_runs(curves))
    assert read_curves(packed) == curves
    assert list_measures(curves) == ["loss", "understanding"]


def test_the_command_writes_a_table_and_a_plot_of_each_measure(runs: Path, tmp_path: Path):
    done = CliRunner().invoke(app, ["train", "curve", str(runs), "--out", str(tmp_path / "r")], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "visualizer" in done.output and "1.500" in done.output
    assert (tmp_path / "r" / "training.csv").read_text().splitlines()[:2] == [
        "run,step,loss,understanding",
        "planner,0,2.0,0.0",
    ]
    assert (tmp_path / "r" / "training-loss.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_no_run_and_what_was_not_measured_are_one_line(runs: Path, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    for words, why in (
        (["curve", str(tmp_path / "empty")], "there is no training run"),
        (["curve", str(tmp_path / "nowhere")], "there is no training run"),
        (["curve", str(runs), "-m", "beauty"], "these runs have loss, understanding"),
    ):
        result = CliRunner().invoke(app, ["train", *words])
        assert isinstance(result.exception, UserError) and why in str(result.exception)
    (runs / "planner" / MANIFEST_FILE).write_text("[]")
    with pytest.raises(UserError, match="no training manifest"):
        read_curves(runs)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"name": 3}\n')
    with pytest.raises(UserError, match="line 1"):
        read_curves(broken)


def test_a_folder_never_takes_another_run(runs: Path):
    assert open_checkpoint(runs / "planner", {"stage": "planner", "seed": 0}).step == 20
    with pytest.raises(UserError, match="its seed is 0, not 1; give another --out"):
        open_checkpoint(runs / "planner", {"stage": "planner", "seed": 1})


def test_a_log_that_goes_on_drops_what_came_after_its_checkpoint_and_a_line_cut_off(tmp_path: Path):
    path = tmp_path / LOG_FILE
    log = TrainingLog(path)
    for step in (0, 10, 20):
        log.add(step, loss=1.0)
    path.write_text(path.read_text() + '{"step": 30, "lo')
    again = TrainingLog(path, 10)
    again.add(20, loss=0.5)
    assert [(line["step"], line["loss"]) for line in read_log(path)] == [(0, 1.0), (10, 1.0), (20, 0.5)]
