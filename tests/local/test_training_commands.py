"""The commands of training, in the micro world: stages make models, a kill costs the steps since the last checkpoint, and
bad input is one line."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed (the extra train)")

from typer.testing import CliRunner

import weft
from waiting import until
from weft.cli.app import app
from weft.errors import UserError
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.training.curves import read_curves
from weft_tabletop.make import make
from weft_tabletop.tiny.endpoint import TinyEndpoint

WEFT = Path(sys.executable).parent / "weft"
SMALL = ("--world", "micro", "--device", "cpu")
FEW = (*SMALL, "--steps", "1", "--batch", "4", "--rows", "20")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure on few rows: what is measured is not the point here."""
    from weft_tabletop.weaver.train import joint, measure, planner, recall, visualizer

    for module, name in (
        (measure, "ANSWER_ROWS"),
        (measure, "PLAN_ROWS"),
        (measure, "LOSS_ROWS"),
        (joint, "PLAN_ROWS"),
        (joint, "IMAGE_ROWS"),
        (joint, "FEW_IMAGE_ROWS"),
        (planner, "PLAN_ROWS"),
        (planner, "FEW_PLAN_ROWS"),
        (visualizer, "IMAGE_ROWS"),
        (visualizer, "FEW_IMAGE_ROWS"),
        (recall, "TEST_ROWS"),
    ):
        monkeypatch.setattr(module, name, 2)


def train(*words: Any) -> str:
    result = CliRunner().invoke(app, ["train", *map(str, words)])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == 0, result.exception
    return result.output


def test_a_planner_and_a_visualizer_of_one_folder_are_a_model(tmp_path: Path):
    before = tmp_path / "before"
    out = tmp_path / "W"
    assert "tabletop/planner@" in train("tiny-weaver", "--stage", "planner", "--mix", "und", *FEW, "--out", before)
    train("tiny-weaver", "--stage", "planner", "--mix", "5g1u", "--start", before, *FEW, "--out", out)
    said = train("tiny-weaver", "--stage", "visualizer", *FEW, "--out", out)
    assert said.splitlines()[-1] == (
        f"as a model: weaver:planner=tabletop/planner@{out},visualizer=tabletop/visualizer@{out}"
    )
    assert [curve.name for curve in read_curves(out)] == ["planner", "visualizer"]
    data = make("tabletop-weaver-micro", tmp_path / "data", samples=4, seed=0)
    model = f"weaver:planner=tabletop/planner@{out},visualizer=tabletop/visualizer@{out}"
    run = weft.evaluate("weaverbench", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
    assert len(run.turns) == 4 and all(turn.reply.outcome != "failed" for turn in run.turns)
    with pytest.raises(UserError, match="holds another training run: its seed is 0, not 1; give another --out"):
        train("tiny-weaver", "--stage", "visualizer", *FEW, "--seed", "1", "--out", out)


def test_both_networks_at_once_are_a_model_too(tmp_path: Path):
    train("tiny-weaver", "--stage", "joint", *FEW, "--out", tmp_path)
    assert {path.name for path in (tmp_path / "joint").iterdir()} == {
        *("losses.jsonl", "planner.safetensors", "training.json", "visualizer.safetensors")
    }


def test_a_model_that_learnt_from_a_mix_of_views_runs_and_other_weights_are_another_model(tmp_path: Path):
    data = make("tabletop-weave-micro", tmp_path / "data", samples=2, seed=0)
    keys: set[str] = set()
    for name, words in {"mix": ("--mix", "dialogues=.25"), "view": ("--view", "single-turn")}.items():
        said = train("tiny", *words, *SMALL, "--steps", "1", "--out", tmp_path / name)
        assert f"tabletop/tiny@{tmp_path / name}" in said
        model = f"tabletop/tiny@{tmp_path / name}"
        run = weft.evaluate("weave", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
        assert run.turns and all(turn.reply.outcome != "failed" for turn in run.turns)
        keys |= {key for turn in run.turns for key in turn.reply.keys}
    assert len(keys) == 2 * len(run.turns), "no answer of one is used for the other"
    (mix,) = read_curves(tmp_path / "mix")
    assert set(mix.seen) == {"dialogue", "single-turn"}


def test_weights_that_were_trained_on_in_one_program_are_read_anew(tmp_path: Path, blobs: Blobs):
    words = ("tiny", "--view", "single-turn", *SMALL, "--steps", "1")
    out = tmp_path / "W"
    train(*words, "--out", out)
    first = resolve_endpoint(f"tabletop/tiny@{out}", blobs)
    train(*words, "--seed", "1", "--out", tmp_path / "other")
    shutil.copy(tmp_path / "other" / "talker.safetensors", out / "talker.safetensors")
    second = resolve_endpoint(f"tabletop/tiny@{out}", blobs)
    assert first.identity != second.identity
    assert isinstance(first, TinyEndpoint) and isinstance(second, TinyEndpoint)
    assert first._tiny is not second._tiny  # pyright: ignore[reportPrivateUsage]


def test_a_model_learns_from_a_dataset(tmp_path: Path):
    data = make("tabletop-weave-micro", tmp_path / "data", samples=5, seed=0)
    words = ("tiny", "--mix", "dialogues=.5", *SMALL, "--steps", "1", "--out", tmp_path / "W")
    train(*words, "--data", data)
    (curve,) = read_curves(tmp_path / "W")
    assert len(curve.manifest["data"]) == 64 and "rows" not in curve.manifest
    assert set(curve.seen) == {"dialogue", "single-turn"}
    with pytest.raises(UserError, match="its data is"):
        train(*words, "--data", make("tabletop-weave-micro", tmp_path / "more", samples=6, seed=0))


def test_the_number_of_threads_changes_no_weights(tmp_path: Path):
    import torch

    threads = torch.get_num_threads()
    digests: set[bytes] = set()
    for count in (1, 2):
        torch.set_num_threads(count)
        train(
            "tiny-weaver", "--stage", "planner", *SMALL, "--steps", "3", "--rows", "400", "--out", tmp_path / f"{count}"
        )
        assert torch.get_num_threads() == count
        digests.add((tmp_path / f"{count}" / "planner" / "planner.safetensors").read_bytes())
    torch.set_num_threads(threads)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("tiny-weaver", "--stage", "visualizer", *FEW), "there are no weights; `weft train tiny-weaver` makes them"),
        (("tiny-weaver", "--stage", "planner", *FEW, "--start", "nowhere"), "nowhere: there are no weights"),
        (("tiny-weaver", "--stage", "planner", *FEW, "--planner", "x"), "only a visualizer reads orders"),
        (("tiny-weaver", "--stage", "joint", *FEW, "--watch", "x"), "watched while its planner is tuned"),
        (("tiny-weaver", "--stage", "planner", *FEW, "--device", "tpu"), "there is cpu and cuda"),
        (("tiny", "--world", "micro"), "belong to training with --mix or --view"),
        (("tiny", "--data", "x"), "belong to training with --mix or --view"),
        (("tiny", "--view", "plain", "--data", "nowhere", *SMALL), "there is no test.json in nowhere"),
        (("tiny", "--view", "plain", "--data", "x", "--faults", ".1"), "the dataset decides which images are wrong"),
        (("tiny", "--mix", "dialogues=x"), "'x' is no weight"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, words: tuple[str, ...], why: str):
    with pytest.raises(UserError) as raised:
        train(*words, "--out", tmp_path / "W")
    assert why in str(raised.value) and "\n" not in str(raised.value)


def test_a_state_that_something_else_wrote_is_one_line(tmp_path: Path):
    words = ("tiny-weaver", "--stage", "planner", *FEW, "--out", tmp_path)
    train(*words)
    manifest = tmp_path / "planner" / "training.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "done": False}))
    (tmp_path / "planner" / "state.pt").write_bytes(b"no state")
    with pytest.raises(UserError, match="training cannot go on from this.*remove it to begin again"):
        train(*words)


@pytest.mark.parametrize("stage", ["adapters", "visualizer", "joint", "memory"])
def test_every_stage_that_was_stopped_ends_in_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
):
    from weft_tabletop.weaver.train import loop

    class Stopped(BaseException):
        pass

    write = loop.write_checkpoint
    written: list[int] = []

    def write_and_stop(checkpoint: Any) -> None:
        write(checkpoint)
        written.append(checkpoint.step)
        if len(written) == 3:
            raise Stopped

    few = (*SMALL, "--steps", "4", "--batch", "8", "--rows", "40")
    planner = tmp_path / "planner"
    if stage in ("adapters", "visualizer"):
        train("tiny-weaver", "--stage", "planner", *FEW, "--out", planner)
    words: tuple[Any, ...] = {
        "adapters": ("tiny-weaver", "--stage", "planner", "--mix", "5g1u", "--start", planner, "--rank", "2", *few),
        "visualizer": ("tiny-weaver", "--stage", "visualizer", "--planner", planner, *few),
        "joint": ("tiny-weaver", "--stage", "joint", *few),
        "memory": ("tiny", "--mix", "dialogues=.5", "--own", ".5", *SMALL, "--steps", "4", "--data", tmp_path / "data"),
    }[stage]
    if stage == "memory":
        make("tabletop-weave-micro", tmp_path / "data", samples=5, seed=0)
    train(*words, "--out", tmp_path / "whole")
    with monkeypatch.context() as stopping, pytest.raises(Stopped):
        stopping.setattr(loop, "write_checkpoint", write_and_stop)
        train(*words, "--out", tmp_path / "W")
    assert written == [0, 1, 2]
    train(*words, "--out", tmp_path / "W")
    weights = sorted(path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*.safetensors"))
    assert weights
    for path in weights:
        assert (tmp_path / "whole" / path).read_bytes() == (tmp_path / "W" / path).read_bytes()


def test_training_that_was_killed_ends_in_the_same_weights(tmp_path: Path):
    words = ("tiny-weaver", "--stage", "planner", *SMALL, "--steps", "30", "--batch", "4", "--rows", "20")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name, is_killed in (("whole", False), ("killed", True)):
        command = [WEFT, "train", *words, "--out", tmp_path / name]
        if is_killed:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
            state = tmp_path / name / "planner" / "state.pt"
            until("a checkpoint", state.exists, process)
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert not json.loads((tmp_path / name / "planner" / "training.json").read_text())["done"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    whole, killed = (tmp_path / name / "planner" for name in ("whole", "killed"))
    assert (whole / "planner.safetensors").read_bytes() == (killed / "planner.safetensors").read_bytes()
    first, second = read_curves(whole)[0], read_curves(killed)[0]
    assert first.seen == second.seen
    assert [{**line, "seconds": 0} for line in first.lines] == [{**line, "seconds": 0} for line in second.lines]
