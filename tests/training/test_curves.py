"""Curves of training runs are read from folders and packed files, and shown as a table and plots."""

import csv
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.cli.wide_table import cut_columns
from weft.errors import UserError
from weft.report import plots
from weft.training.checkpoint import (
    LOG_FILE,
    MANIFEST_FILE,
    Checkpoint,
    hold_folder,
    open_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from weft.training.curves import list_measures, pack_runs, read_curves
from weft.training.log import TrainingLog, read_log
from weft_tabletop.demos.training import show_decoupled


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


def test_a_log_that_goes_on_counts_the_seconds_on(tmp_path: Path):
    log = TrainingLog(tmp_path / LOG_FILE)
    for step in (10, 20):
        log.add(step, seconds=step / 10)
    assert TrainingLog(tmp_path / LOG_FILE, 10).seconds == 1.0
    assert TrainingLog(tmp_path / LOG_FILE).seconds == 0.0


def test_two_processes_never_train_into_one_folder(tmp_path: Path):
    with hold_folder(tmp_path / "W"):
        with pytest.raises(UserError, match="another process is training into it"), hold_folder(tmp_path / "W"):
            pass
        assert not list((tmp_path / "W").iterdir())
    with hold_folder(tmp_path / "W"):
        pass


def test_a_table_wider_than_the_terminal_is_cut_between_columns_and_no_cell_is_cut(runs: Path, tmp_path: Path):
    words = ["train", "curve", str(runs), "--out", str(tmp_path / "r")]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "40"})
    assert done.exit_code == 0, done.output
    shown = [line for line in done.output.splitlines() if line.startswith("│ visualizer")]
    assert len(shown) == 6, "three lines in each of two blocks"
    assert "1.500" in done.output and "0.600" in done.output and "…" not in done.output
    assert cut_columns([10, 4, 8, 8], 33, 1) == [[0, 1, 2], [0, 3]]
    assert cut_columns([10, 90], 33, 1) == [[0, 1]]


@pytest.mark.parametrize("name", ["decoupled", "memory-curve"])
def test_figures_from_the_logs_that_ship_are_whole(name: str, tmp_path: Path):
    done = CliRunner().invoke(app, ["demo", name, "--out", str(tmp_path)], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert "…" not in done.output
    rows = list(csv.DictReader((tmp_path / f"{name}.csv").open(encoding="utf-8")))
    assert {row["seeds"] for row in rows} == {"3"}, "three seeds or no claim"
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_a_chart_has_no_colour_twice():
    series = re.findall(r'"training": ?"([^"]+)"', show_decoupled().chart.to_json())
    assert 2 < len(set(series)) <= 8


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"loss": 1.0}', '{"step": -1}', '{"step": 1e400}', '{"step": true}', "5", '{"step": "1"}']
)
def test_a_line_that_is_no_measurement_is_named(line: str, tmp_path: Path):
    (tmp_path / "log.jsonl").write_text(f"{line}\n" + '{"step": 1}\n')
    with pytest.raises(UserError, match=r"log\.jsonl, line 1: "):
        read_log(tmp_path / "log.jsonl")
    packed = json.dumps({"name": "a", "manifest": {}, "lines": [{"loss": 1.0}]})
    (tmp_path / "packed.jsonl").write_text(packed)
    with pytest.raises(UserError, match=r"packed\.jsonl, line 1: a line of a training log has a step"):
        read_curves(tmp_path / "packed.jsonl")


def test_numbers_that_nobody_can_draw_are_left_out(tmp_path: Path):
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 1e300, "edit": -1e200, "copy": 0.5}\n')
    assert read_log(tmp_path / "log.jsonl") == [{"step": 1, "copy": 0.5}]


@pytest.mark.parametrize("text", ["[" * 100_000, "{}", '{"manifest": 5, "step": 1, "seen": {}, "done": true}', "\xff"])
def test_a_manifest_that_is_none_is_named(text: str, tmp_path: Path):
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(UserError, match=r"training\.json: this is no training manifest"):
        read_checkpoint(tmp_path)


def test_a_measure_names_no_file_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    name = "../../outside"
    lines = [{"step": step, name: 0.5} for step in (1, 2)]
    (tmp_path / "packed.jsonl").write_text(json.dumps({"name": "a", "manifest": {}, "lines": lines}))
    done = CliRunner().invoke(app, ["train", "curve", "packed.jsonl", "-m", name, "--out", "a/b/c"])
    assert done.exit_code == 0, done.output
    assert {path.parent for path in tmp_path.rglob("training*")} == {tmp_path / "a/b/c"}


def test_steps_are_drawn_to_scale():
    rows = [{"run": "a", "step": step, "value": 1.0} for step in (0, 10, 1000)]
    specification = plots.curve_chart(rows, x="step", y="value", series="run", title="Loss").to_dict()
    assert {layer["encoding"]["x"]["type"] for layer in specification["layer"]} == {"quantitative"}
    assert {layer["encoding"]["y"]["title"] for layer in specification["layer"]} == {"Loss"}
