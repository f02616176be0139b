"""Planner and visualizer: numpy computes what torch computes, and weights that were trained are models."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed (the extra train)")

import weft  # noqa: E402
from weft.errors import UserError  # noqa: E402
from weft.models.registry import resolve_endpoint  # noqa: E402
from weft.store.blobs import Blobs  # noqa: E402
from weft.types import Image, Message, Request, Text  # noqa: E402
from weft_tabletop.make import make  # noqa: E402
from weft_tabletop.tiny.endpoint import digest_files  # noqa: E402
from weft_tabletop.weaver import words  # noqa: E402
from weft_tabletop.weaver.files import PLANNER_FILE, VISUALIZER_FILE  # noqa: E402
from weft_tabletop.weaver.infer import NumpyPlanner, NumpyVisualizer  # noqa: E402
from weft_tabletop.weaver.rows import planner_rows, visualizer_rows  # noqa: E402
from weft_tabletop.weaver.train.files import load_planner, load_visualizer, save_net  # noqa: E402
from weft_tabletop.weaver.train.generate import continue_rows  # noqa: E402
from weft_tabletop.weaver.train.measure import read_order  # noqa: E402
from weft_tabletop.weaver.train.planner_net import NetSize, Planner  # noqa: E402
from weft_tabletop.weaver.train.tables import DeviceRows  # noqa: E402
from weft_tabletop.weaver.train.visualizer_net import Visualizer, draw_numbers  # noqa: E402
from weft_tabletop.weaver.world import MICRO  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights that nobody trained, large enough that their numbers differ."""
    path = tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    size = NetSize(64, 2, len(MICRO.cells))
    for name, net in ((PLANNER_FILE, Planner(size)), (VISUALIZER_FILE, Visualizer(size, 64))):
        for part, parameter in net.named_parameters():
            torch.nn.init.normal_(parameter, std=0.02 if part.startswith("head") else 0.2)
        reader = digest_files([path / PLANNER_FILE]) if name == VISUALIZER_FILE else ""
        save_net(path / name, net, MICRO, planner=reader)
    return path


@pytest.mark.parametrize("kind", ["words", "edit", "copy"])
def test_numpy_writes_the_replies_that_torch_writes(folder: Path, kind: str):
    planner = load_planner(folder / PLANNER_FILE, MICRO, "cpu")
    batch = DeviceRows(planner_rows(MICRO, kind, 6, 0), MICRO, "cpu").batch(slice(0, 6))
    found: tuple[Any, Any] = continue_rows(planner, batch)
    tokens, starts = found
    numpy = NumpyPlanner(folder / PLANNER_FILE)
    for row, start in enumerate(starts.tolist()):
        request = tokens[row, :start].tolist()
        written = numpy.reply(request, batch.images[row].numpy())
        expected = tokens[row, start:].tolist()
        assert expected[: len(written)] == written[: len(expected)]
        states = planner.states(batch.tokens[row : row + 1, :start], batch.images[row : row + 1])[0]
        np.testing.assert_allclose(numpy.states(request, batch.images[row].numpy()), states.detach(), atol=1e-3)


@pytest.mark.parametrize("kind", ["draw", "edit", "copy"])
def test_numpy_draws_what_torch_draws(folder: Path, kind: str):
    planner = load_planner(folder / PLANNER_FILE, MICRO, "cpu")
    visualizer = load_visualizer(folder / VISUALIZER_FILE, MICRO, "cpu")
    batch = DeviceRows(visualizer_rows(MICRO, kind, 1, 0), MICRO, "cpu").batch(slice(0, 1))
    noise = torch.randn(1, len(MICRO.cells), 4)
    states, mask = read_order(planner, batch, MICRO)
    drawn = draw_numbers(visualizer, noise, batch.images, (states, mask))[0]
    numpy = NumpyVisualizer(folder / VISUALIZER_FILE)
    mine = numpy.draw(noise[0].numpy(), batch.images[0].numpy(), states[0].detach().numpy())
    np.testing.assert_allclose(mine, drawn, rtol=1e-2, atol=1e-2)


def test_trained_folders_are_models_of_a_composition(folder: Path, tmp_path: Path):
    data = make("tabletop-weaver", tmp_path / "data", samples=6, seed=0)
    model = f"weaver:planner=tabletop/planner@{folder},visualizer=tabletop/visualizer@{folder}"
    run = weft.evaluate("weaverbench", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
    assert len(run.turns) == 6 and all(turn.reply.outcome != "failed" for turn in run.turns)


def test_a_visualizer_draws_an_order_through_its_own_planner_or_another(folder: Path, tmp_path: Path, blobs: Blobs):
    def draw(**options: Any) -> str:
        endpoint = resolve_endpoint(f"tabletop/visualizer@{folder}", blobs, options)
        messages = (Message("user", (Text("Draw a white table with a red star at a1."),)),)
        (image,) = asyncio.run(endpoint.send(messages, Request("image"))).parts
        assert isinstance(image, Image)
        return image.digest

    other = tmp_path / PLANNER_FILE
    torch.manual_seed(1)
    save_net(other, Planner(NetSize(64, 2, len(MICRO.cells))), MICRO)
    assert draw() == draw()
    assert resolve_endpoint(f"tabletop/visualizer@{folder}", blobs).identity != (
        resolve_endpoint(f"tabletop/visualizer@{folder}", blobs, {"planner": other}).identity
    )
    assert draw(planner=str(tmp_path)), "another planner of the same size can read for it"
    save_net(other, Planner(NetSize(32, 1, len(MICRO.cells))), MICRO)
    with pytest.raises(UserError, match="not of the size or the world"):
        draw(planner=str(tmp_path))


def test_a_visualizer_without_its_planner_says_so(folder: Path, tmp_path: Path, blobs: Blobs):
    (tmp_path / VISUALIZER_FILE).write_bytes((folder / VISUALIZER_FILE).read_bytes())
    with pytest.raises(UserError, match="give it: planner=PATH"):
        resolve_endpoint(f"tabletop/visualizer@{tmp_path}", blobs)
    with pytest.raises(UserError, match="there are no weights"):
        resolve_endpoint(f"tabletop/planner@{tmp_path}", blobs)
    with pytest.raises(UserError, match="no weights of a planner"):
        resolve_endpoint(f"tabletop/planner@{folder / VISUALIZER_FILE}", blobs)
    with pytest.raises(UserError, match="folder of weights"):
        resolve_endpoint("tabletop/oracle@here", blobs)


def test_an_order_is_where_it_is_looked_for():
    tokens = words.encode_order("Add a red star at a1 in the table.", 2, 4)
    assert tokens[words.find_order(2, 4)] == words.ORDER
