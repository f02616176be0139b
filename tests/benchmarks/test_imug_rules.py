"""IMUG-Bench's rules without a judge, in whole runs: the cubes grid read from pixels, and what a lost reply takes with
it."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil
from PIL import ImageDraw

import weft
from weft.benchmarks.imug.facts import read_choice_facts, read_points_facts
from weft.models.endpoint import NO_RETRY, CallError, Endpoint, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, OfficialReading, Request, Text

OPTIONS = "\nA. one\nB. two\nC. three\nD. four"
GRID = [["0", "1", "r"], ["0", "g", "0"], ["0", "0", "0"]]


def lattice(grid: list[list[str]], cell: int = 60) -> Pil.Image:
    """The cubes tasks' picture: thin grey lines, a thick black outline around occupied cells, some filled."""
    picture = Pil.new("RGB", (3 * cell + 40, 3 * cell + 40), "white")
    draw = ImageDraw.Draw(picture)
    for at in range(4):
        place = 20 + at * cell
        for start in range(20, 20 + 3 * cell, 8):
            draw.line((start, place, start + 4, place), fill=(150, 150, 150))
            draw.line((place, start, place, start + 4), fill=(150, 150, 150))
    for row, cells in enumerate(grid):
        for column, kind in enumerate(cells):
            if kind != "0":
                box = (20 + column * cell, 20 + row * cell, 20 + (column + 1) * cell, 20 + (row + 1) * cell)
                draw.rectangle(
                    box, fill={"r": (230, 40, 40), "g": (40, 170, 60)}.get(kind, "white"), outline="black", width=4
                )
    return picture


def record(tasks: list[dict[str, Any]], domain: str = "Cooking", task: str = "cooking_workflow") -> dict[str, Any]:
    return {"sample_id": "1", "domain": domain, "subdomain": task, "tasks": tasks}


def image(turn: int, points: int = 1) -> dict[str, Any]:
    wanted = [f"point {number}" for number in range(points)]
    return {
        "turn": turn,
        "modality": "image",
        "input": [{"text": f"Draw {turn}."}],
        "output": {"evaluation_points": wanted},
    }


def text(turn: int, answer: str) -> dict[str, Any]:
    return {
        "turn": turn,
        "modality": "text",
        "input": [{"text": f"Which {turn}?{OPTIONS}"}],
        "output": {"answer": answer},
    }


def write(folder: Path, rows: list[dict[str, Any]], **files: list[dict[str, Any]]) -> Path:
    (folder / "images").mkdir(parents=True)
    for name, lines in {"benchmark": rows, **files}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def grid_data(folder: Path) -> Path:
    tasks = [image(1, points=4)]
    write(folder, [record(tasks, "Geometric_Coloring", "cubes_coloring")], image_references=[], dynamic_references=[])
    (folder / "grid_gt").mkdir()
    (folder / "grid_gt" / "Geometric_Coloring__cubes_coloring__1.jsonl").write_text(
        json.dumps({"turn": 1, "grid": GRID}) + "\n"
    )
    return folder


@pytest.mark.parametrize(
    ("drawn", "points"),
    [
        (GRID, [5, 5, 5, 5]),
        ([["0", "1", "g"], ["0", "r", "0"], ["0", "0", "0"]], [5, 5, 0, 0]),
        ([["1", "1", "r"], ["0", "g", "0"], ["0", "0", "0"]], [5, 0, 0, 0]),
        (None, [0, 0, 0, 0]),
    ],
    ids=["right", "colours swapped", "a cube too many", "no lattice"],
)
def test_a_grid_is_read_from_pixels_and_no_judge_is_asked(tmp_path: Path, drawn: Any, points: list[int]):
    def painter(messages: Any, want: str) -> Any:
        return lattice(drawn) if drawn else Pil.new("RGB", (200, 200), "white")

    painter.version = str(points)  # type: ignore[attr-defined]
    run = weft.evaluate(
        "imug", data=grid_data(tmp_path / "data"), model=painter, judge="constant/max", home=tmp_path / "home"
    )
    (verdict,) = run.verdicts
    assert (verdict.by, read_points_facts(verdict).points, verdict.score) == ("rule", tuple(points), sum(points))
    assert verdict.reading == OfficialReading(sum(points) / 4)
    assert verdict.value == sum(points) / 20
    assert "is right" in verdict.reason and not verdict.keys


def test_a_grid_whose_picture_is_gone_from_the_store_is_unscored(tmp_path: Path):
    class Vanishing(Endpoint):
        def __init__(self, blobs: Blobs) -> None:
            super().__init__("vanishing")
            self._blobs = blobs

        async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
            made = self._blobs.put_pil(lattice(GRID))
            self._blobs.path(made.digest).unlink()
            return EndpointReply((made,), "answered")

    run = weft.evaluate(
        "imug", data=grid_data(tmp_path / "data"), model=Vanishing, judge="constant/max", home=tmp_path / "home"
    )
    (verdict,) = run.verdicts
    assert (
        verdict.value is None
        and "is not in the store" in verdict.reason
        and read_points_facts(verdict).points == (0, 0, 0, 0)
    )


def dialogue(folder: Path) -> Path:
    """A picture; a question about it; a picture judged beside the first."""
    key = {"domain": "Cooking", "subdomain": "cooking_workflow", "sample_id": "1"}
    links = [{**key, "reference_links": [{"turn_idx": 3, "refs": [{"ref_turn": 1, "ref_type": "output"}]}]}]
    dynamic = [{**key, "turn_idx": 2, "ref_turn_idxs": [1]}]
    rows = [record([image(1), text(2, "<DYNAMIC>"), image(3)])]
    return write(folder, rows, image_references=links, dynamic_references=dynamic)


class Painter(Endpoint):
    def __init__(self, blobs: Blobs, first: str) -> None:
        super().__init__("painter", first=first)
        self._blobs, self._first = blobs, first

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        if want.turn_ref.turn == 0 and self._first == "lost":
            raise CallError("the cable was cut", NO_RETRY)
        if want.turn_ref.turn == 0:
            return EndpointReply((), "refused", "no eggs")
        if want.modality == "text":
            return EndpointReply((Text("A"),), "answered")
        return EndpointReply((self._blobs.put_pil(Pil.new("RGB", (8, 8), "red")),), "answered")


def test_what_depends_on_a_reply_that_we_lost_is_unscored(tmp_path: Path):
    settings = {"judge": "constant/max", "home": tmp_path / "home"}
    lost = weft.evaluate(
        "imug", data=dialogue(tmp_path / "data"), model=Painter, model_options={"first": "lost"}, **settings
    )
    first, question, beside = lost.verdicts
    assert [v.value for v in lost.verdicts] == [None] * 3 and "the cable was cut" in first.reason
    assert "its right answer depends on turn 1, which has no reply through no fault of the model" in question.reason
    assert "it is judged against the image of turn 1, which has no reply through no fault of the model" in beside.reason
    assert read_choice_facts(question).dynamic and read_points_facts(beside).points == (0,)


def test_what_depends_on_a_reply_that_the_model_refused_is_judged_without_it(tmp_path: Path):
    settings = {"judge": "constant/max", "home": tmp_path / "home"}
    refused = weft.evaluate(
        "imug", data=dialogue(tmp_path / "data"), model=Painter, model_options={"first": "refused"}, **settings
    )
    first, question, beside = refused.verdicts
    assert (
        (first.value, first.by) == (0.0, "failure")
        and question.by == "judge"
        and (beside.value, beside.by) == (1.0, "judge")
    )


def test_a_dry_run_counts_the_judge_though_the_data_has_no_true_pictures(tmp_path: Path):
    import subprocess
    import sys

    words = [
        "run",
        "imug",
        "--data",
        str(dialogue(tmp_path / "data")),
        "--model",
        "copy",
        "--judge",
        "constant/max",
        "--dry-run",
    ]
    done = subprocess.run([sys.executable, "-m", "weft", *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "copy answers here, 3 times" in done.stdout and "constant/max answers here, 3 times" in done.stdout
