"""Whole runs of WEAVE and IMUG with local models, as a user starts them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from waiting import HANGS
from weft.evaluation.config import RunConfig
from weft.evaluation.event_loop import run_in_loop
from weft.evaluation.session import Session, open_run
from weft.results.run import Run

Tiny = Callable[[str], Path]


def run(model: str, data: Path, home: Path, benchmark: str, **options: str) -> tuple[Run, Session]:
    job = RunConfig(benchmark=benchmark, data=data, model=model, judge="constant/max", home=home, model_options=options)

    async def go() -> Session:
        async with open_run(job) as session:
            await session.run()
            return session

    session = run_in_loop(go())
    assert session.halt.reason is None
    return Run.from_home(home, session.run_id, session.plan.benchmark), session


@pytest.mark.parametrize("benchmark", ["weave", "imug"])
@pytest.mark.parametrize(
    ("provider", "name", "options"),
    [
        ("hf", "janus", {"max_tokens": "6"}),
        ("hf", "qwen2_5_vl", {"max_tokens": "6"}),
        ("diffusers", "qwen_image_edit_plus", {"steps": "2"}),
        ("diffusers", "flux_kontext", {"steps": "2", "width": "64", "height": "64"}),
    ],
)
def test_whole_runs(
    tiny: Tiny,
    tables: Path,
    chats: Path,
    tmp_path: Path,
    benchmark: str,
    provider: str,
    name: str,
    options: dict[str, str],
):
    data = tables if benchmark == "weave" else chats
    stored, session = run(f"{provider}/{tiny(name)}", data, tmp_path / "home", benchmark, **options)
    outcomes = {turn.reply.outcome for turn in stored.turns}
    assert "failed" not in outcomes, [turn.reply.reason for turn in stored.turns if turn.reply.outcome == "failed"]
    assert "answered" in outcomes and not [one for one in stored.verdicts if one.value is None]
    drawn = [turn for turn in stored.turns if turn.reply.images]
    said = [turn for turn in stored.turns if turn.reply.text and not turn.reply.images]
    assert bool(drawn) == (name != "qwen2_5_vl") and bool(said) == (provider == "hf")
    if name == "janus":
        assert any("[picture not shown]" in turn.messages_json for turn in drawn)
        assert "batches of" in session.endpoints["model"].status_line
    if provider == "diffusers":
        assert [json.loads(turn.messages_json)[0]["parts"][-1]["type"] for turn in drawn] == ["text"] * len(drawn)


def test_the_command_and_the_same_command_again(tiny: Tiny, tables: Path, tmp_path: Path):
    """No call is made twice, and no weights are loaded for answers that are there."""
    command = [
        sys.executable,
        "-m",
        "weft",
        "run",
        "weave",
        "--data",
        str(tables),
        "--model",
        f"hf/{tiny('janus')}",
        "--judge",
        "constant/max",
    ]
    command += ["--model-opt", "max_tokens=6", "--home", str(tmp_path / "home")]
    first = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=HANGS)
    assert first.returncode == 0, first.stderr
    assert "batches of" in first.stderr and "Loading" not in first.stderr
    again = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=HANGS)
    assert again.returncode == 0 and "batches of" not in again.stderr and again.stdout == first.stdout


def test_a_local_model_can_judge(tiny: Tiny, tables: Path, tmp_path: Path):
    """Random weights judge in nonsense: that is unscored, and nothing else goes wrong."""
    job = RunConfig(
        benchmark="weave",
        data=tables,
        model="copy",
        judge=f"hf/{tiny('qwen2_5_vl')}",
        judge_options={"max_tokens": "8"},
        home=tmp_path / "home",
        limit=1,
    )

    async def go() -> Session:
        async with open_run(job) as session:
            await session.run()
            return session

    session = run_in_loop(go())
    stored = Run.from_home(tmp_path / "home", session.run_id, session.plan.benchmark)
    judged = [verdict for verdict in stored.verdicts if verdict.by == "judge"]
    assert judged and all(verdict.value is None for verdict in judged)


def test_a_painter_cannot_judge(tiny: Tiny, tables: Path, tmp_path: Path):
    job = RunConfig(
        benchmark="weave", data=tables, model="copy", judge=f"diffusers/{tiny('flux')}", home=tmp_path / "home"
    )

    async def go() -> None:
        async with open_run(job):
            pass

    with pytest.raises(Exception, match="cannot judge: it generates images, not text"):
        run_in_loop(go())
