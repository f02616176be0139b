"""What is measured of planners and visualizers on held-out rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft_tabletop.tiny.endpoint import SHIPPED, load
from weft_tabletop.weaver import words
from weft_tabletop.weaver.latents import decode_cells
from weft_tabletop.weaver.tasks import UNDERSTANDING
from weft_tabletop.weaver.train.generate import continue_rows
from weft_tabletop.weaver.train.planner_net import Planner
from weft_tabletop.weaver.train.tables import Batch, DeviceRows, order_states
from weft_tabletop.weaver.train.visualizer_net import Visualizer, draw_numbers
from weft_tabletop.weaver.world import TableWorld
from weft_tabletop.world.scenes import read

FIXED_NOISE = 7  # the seed of the noise at which losses are measured
PLAN_ROWS = 96  # of each kind, at the end
FEW_PLAN_ROWS = 24  # before that
ANSWER_ROWS = 256
LOSS_ROWS = 512
IMAGE_ROWS = 64
FEW_IMAGE_ROWS = 8


def measure_plans(planner: Planner, rows: Mapping[str, DeviceRows], *, written: int) -> dict[str, Any]:
    """By kind: the share of replies that are word for word the expected ones. `understanding` is the mean over
    questions. So many replies of each kind are also `written`, which takes longer: the share with the expected number
    of orders, with none, exactly one, at least one; and the mean number."""
    measured: dict[str, Any] = {}
    for kind, device_rows in rows.items():
        count = ANSWER_ROWS if kind in UNDERSTANDING else PLAN_ROWS
        measured[f"{kind} exact"] = share_exact(planner, device_rows.batch(slice(0, count)))
        if written:
            measured |= measure_orders(planner, kind, device_rows.batch(slice(0, written)))
    questions = [measured[f"{kind} exact"] for kind in UNDERSTANDING if kind in rows]
    measured["understanding"] = round(sum(questions) / len(questions), 4)
    return measured


@torch.no_grad()
def share_exact(planner: Planner, batch: Batch) -> float:
    """The share of replies that the planner would write as expected: in each, every word is the most likely one after
    those before it."""
    mask = batch.learn[:, 1:]
    logits = planner.logits(planner.states(batch.tokens[:, :-1], batch.images)[mask])
    wrong = torch.zeros_like(mask)
    wrong[mask] = logits.argmax(dim=-1) != batch.tokens[:, 1:][mask]
    return _mean(~wrong.any(dim=1))


def measure_orders(planner: Planner, kind: str, batch: Batch) -> dict[str, float]:
    tokens, starts = continue_rows(planner, batch)
    reply = torch.arange(tokens.shape[1], device=tokens.device) >= starts[:, None]
    orders = ((tokens == words.ORDER) & reply).sum(dim=1)
    expected = ((batch.tokens == words.ORDER) & batch.learn).sum(dim=1)
    return {
        f"{kind} count": _mean(orders == expected),
        f"{kind} none": _mean(orders == 0),
        f"{kind} one": _mean(orders == 1),
        f"{kind} some": _mean(orders >= 1),
        f"{kind} orders": _mean(orders),
    }


def _mean(values: Tensor) -> float:
    return round(values.float().mean().item(), 4)


@torch.no_grad()
def measure_visualizer(
    planner: Planner, visualizer: Visualizer, world: TableWorld, rows: Mapping[str, DeviceRows], *, drawn: int
) -> dict[str, Any]:
    """The loss at fixed noise on held-out rows, by kind and on the whole. Of each kind so many images are
    `drawn`: the share that is exactly right, and the share of right cells."""
    measured: dict[str, Any] = {}
    losses: list[float] = []
    for kind, device_rows in rows.items():
        generator = torch.Generator(device=device_rows.device).manual_seed(FIXED_NOISE)
        batch = device_rows.batch(slice(0, LOSS_ROWS))
        assert batch.target is not None
        order = read_order(planner, batch, world)
        noise = torch.randn(batch.target.shape, device=device_rows.device, generator=generator)
        time = torch.rand(len(noise), device=device_rows.device, generator=generator)
        moment = time[:, None, None]
        direction = visualizer((1 - moment) * noise + moment * batch.target, time, batch.images, *order)
        losses.append((direction.float() - (batch.target - noise)).square().mean().item())
        measured[f"{kind} loss"] = round(losses[-1], 5)
        if drawn:
            few = device_rows.batch(slice(0, drawn))
            numbers = draw_numbers(visualizer, noise[:drawn], few.images, read_order(planner, few, world))
            images, cells = compare_images(world, numbers.cpu().numpy(), device_rows.scenes(drawn))
            measured[f"{kind} images"] = images
            measured[f"{kind} cells"] = cells
    measured["visual loss"] = round(sum(losses) / len(losses), 5)
    if drawn:
        measured["images"] = round(sum(measured[f"{kind} images"] for kind in rows) / len(rows), 4)
    return measured


def read_order(planner: Planner, batch: Batch, world: TableWorld) -> tuple[Tensor, Tensor]:
    states = planner.states(batch.tokens, batch.images)
    return order_states(states, batch.tokens, batch.images.shape[1], len(world.cells))


def compare_images(world: TableWorld, numbers: "np.ndarray[Any, Any]", scenes: list[list[int]]) -> tuple[float, float]:
    """Decode and read images; return the share that show exactly their scene, and the share of right cells."""
    tiny = load(SHIPPED, "talker")
    right = 0
    right_cells = 0
    for one, scene_numbers in zip(numbers, scenes, strict=True):
        expected = world.scene_of(scene_numbers)
        reading = read(decode_cells(tiny, world, one))
        right += reading.is_sure and reading.scene == expected
        right_cells += sum(reading.scene.at(cell) == expected.at(cell) for cell in world.cells)
    return round(right / len(scenes), 4), round(right_cells / len(scenes) / len(world.cells), 4)
