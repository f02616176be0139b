"""What each image of a document costs, and its size: the calls of a composition, by the image's number."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from server import Provider, Seen, drawn
from weaver import evaluate, picture, prompt, written
from weft.results.drawn_images import DrawnImage, build_image_tables

Serve = Callable[..., Provider]
PLAN = (
    "<imagine size='640x320'>a cup</imagine><imagine size='320x320'>the cup, fuller</imagine>"
    "<imagine uses='1'>the cup, empty</imagine>"
)


def answers(seen: Seen) -> dict[str, Any]:
    """A planner, and a visualizer that draws squares whatever it is asked for."""
    if seen.body["model"] == "plans":
        return {"role": "assistant", "content": PLAN}
    return {"role": "assistant", "content": [picture(seen.texts[-1], 320)]}


def compose(provider: Provider) -> str:
    return f"weaver:planner=openai-chat/plans@{provider.url},visualizer=openai-chat/paints@{provider.url}"


@pytest.fixture
def run(tmp_path: Path, serve: Serve) -> weft.Run:
    provider = serve(answer=answers)
    data = written(
        tmp_path / "data", [prompt("a", "x", 3, input=[{"text": "x"}, {"image": "x.png"}])], {"x.png": drawn("x")}
    )
    return evaluate(provider, data, tmp_path / "home", model=compose(provider), judge="constant/max")


def test_what_a_model_is_shown_grows_with_each_image_that_is_used(run: weft.Run):
    table = next(table for table in run.tables() if table.title.startswith("What each image"))
    shown = [table.cells(f"image {number}")["images in"].value for number in (1, 2, 3)]
    assert shown == [1, 2, 2], "the request's image; the first; of the two before it only the one that it uses"
    memory = [table.cells(f"image {number}")["MB of images in"].value for number in (1, 2, 3)]
    assert memory[1] == memory[2] == pytest.approx((memory[0] or 0) + 320 * 320 * 3 / 1e6)
    assert all((table.cells(f"image {number}")["seconds"].value or 0) > 0 for number in (1, 2, 3))


def test_sizes_that_were_asked_for_stand_beside_those_that_were_made(run: weft.Run):
    table = next(table for table in run.tables() if table.title.startswith("Sizes of images"))
    assert table.cells("asked 2.00")["ratio made"].value == 1.0
    found = {name: cell.value for name, cell in table.cells("all").items()}
    assert found == {"images": 2, "ratio asked": 1.5, "ratio made": 1.0, "same ratio, %": 50.0, "same size, %": 50.0}


def test_a_model_that_answers_by_itself_has_no_such_table(tmp_path: Path, serve: Serve):
    def answer(seen: Seen) -> dict[str, Any]:
        return {"role": "assistant", "content": [picture("a"), picture("b")]}

    provider = serve(answer=answer)
    data = written(tmp_path / "data", [prompt("a", "x", 2)])
    run = evaluate(provider, data, tmp_path / "home", judge="constant/max")
    assert not any("image of a document" in table.title or "Sizes" in table.title for table in run.tables())


def test_later_images_share_a_row_and_an_unknown_price_is_no_number():
    many = [DrawnImage(number, 20, number, 100, 5, 1, 0.5, None, (10, 10), None) for number in range(1, 21)]
    (table,) = build_image_tables({"run": many})
    assert [row.name for row in table.rows][-2:] == ["image 12", "image 13 and later"]
    assert table.rows[-1].cells["images"].value == 8 and table.rows[-1].cells["USD"].value is None
