"""What PlanViz's released scripts make of odd records and odd files: key points with spaces around them, images of another
form under the usual names, files that are no image."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from planviz import evaluate, records, values, write_checkout, written
from server import Provider, Seen, drawn, drawn_as
from weft.benchmarks.official import score_or_none
from weft.benchmarks.planviz.official import OFFICIAL

Serve = Callable[..., Provider]
METRICS = ("correctness", "visual", "efficiency")


def judge(seen: Seen) -> dict[str, Any]:
    """Says the score of the metric that it is asked about."""
    words = "".join(seen.texts)
    keys = {"correctness": 0, "visual edit": 1, "visual gen": 2, "efficiency": 3}
    lines = ("Correctness: 3", "Consistency: 1", "Visual Coherence: 5", "Efficiency: 4")
    return {"role": "assistant", "content": next(lines[at] for key, at in keys.items() if words.startswith(key))}


def score(tmp_path: Path, serve: Serve, images: dict[str, bytes], **more: Any) -> tuple[weft.Run, Provider]:
    """Score a folder with the first image of each list, with the official prompts."""
    folder = tmp_path / "results"
    for name, data in images.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "0.png").write_bytes(data)
    data = more.pop("data", None) or written(tmp_path / "data")
    server = serve(answer=judge)
    more = {"prompts": f"official:{write_checkout(tmp_path / 'checkout')}", "official": True} | more
    return evaluate(data, tmp_path / "home", server, model=f"folder/{folder}", **more), server


def official(run: weft.Run, name: str) -> dict[str, float | None]:
    """The official scores of a list's task, by metric."""
    mine = [one for one in run.verdicts if one.sample.startswith(f"{name}-")]
    return {one.metric: score_or_none(OFFICIAL.score(one)) for one in mine}


def test_official_prompts_have_key_points_as_they_are_written(tmp_path: Path, serve: Serve):
    lists = records()
    lists["ui_gen"][0]["correctness_key_points"] = [" a title ", "a button\n", "a footer"]
    data = written(tmp_path / "data", lists)
    run, server = score(tmp_path, serve, {"ui_gen": drawn("x", 64)}, data=data)
    asked = ["".join(seen.texts) for seen in server.seen]
    assert "correctness gen [Plan ui_gen.|1.  a title  2. a button\n 3. a footer ]" in asked
    assert official(run, "ui_gen")["correctness"] == 1.0


def test_a_task_keeps_its_id_whatever_is_around_its_key_points(tmp_path: Path, serve: Serve):
    plain, _ = score(tmp_path, serve, {"ui_gen": drawn("x", 64)})
    lists = records()
    lists["ui_gen"][0]["correctness_key_points"][0] += " "
    (tmp_path / "other").mkdir()
    padded, _ = score(tmp_path / "other", serve, {"ui_gen": drawn("x", 64)}, data=written(tmp_path / "padded", lists))
    assert {one.sample for one in plain.verdicts} == {one.sample for one in padded.verdicts}


@pytest.mark.parametrize("form", ["BMP", "GIF"])
def test_an_image_of_another_form_is_judged_for_the_official_row(tmp_path: Path, serve: Serve, form: str):
    """Vis of a workflow that is edited is judged beside its page, and there alone."""
    images = {name: drawn_as(form, name, 64) for name in ("ui_gen", "process_plan_edit")}
    run, server = score(tmp_path, serve, images)
    assert official(run, "ui_gen") == {"correctness": 1.0, "visual": 1.0, "efficiency": 0.8}
    assert official(run, "process_plan_edit") == {"correctness": 1.0, "visual": 0.2, "efficiency": 0.8}
    assert [values(run)["ui_gen", metric] for metric in METRICS] == [None] * 3, "strict takes none"
    assert len(server.seen) == 6


def test_nobody_is_asked_without_the_option(tmp_path: Path, serve: Serve):
    run, server = score(tmp_path, serve, {"ui_gen": drawn_as("BMP", "x", 64)}, official=False)
    assert set(official(run, "ui_gen").values()) == {None} and not server.seen


@pytest.mark.parametrize("data", [b"", b"no image", drawn("x", 64)[:60]], ids=["empty", "text", "truncated"])
def test_a_file_that_is_no_image_is_not_sent(tmp_path: Path, serve: Serve, data: bytes):
    run, server = score(tmp_path, serve, {"ui_gen": data, "ui_edit": drawn("y", 64)})
    assert set(official(run, "ui_gen").values()) == {None} and len(server.seen) == 3
    assert [values(run)["ui_gen", metric] for metric in METRICS] == [None] * 3
