"""What is measured of planners and visualizers on held-out rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft_tabletop.tiny import vocab
from weft_tabletop.tiny.endpoint import SHIPPED, load
from weft_tabletop.weaver import words
from weft_tabletop.weaver.latents import decode_cells
from weft_tabletop.weaver.tasks import UNDERSTANDING
from weft_tabletop.weaver.train.planner_net import Planner
from weft_tabletop.weaver.train.tables import Batch, DeviceRows, order_states
from weft_tabletop.weaver.train.visualizer_net import Visualizer, draw_numbers
from weft_tabletop.weaver.world import TableWorld
from weft_tabletop.world.scenes import read

FIXED_NOISE = 7  # the seed of the noise at which losses are measured
PLAN_ROWS = 96
ANSWER_ROWS = 256
LOSS_ROWS = 512
IMAGE_ROWS = 64
SPARE_TOKENS = 12  # a plan may be so much longer than the longest expected one
SPECIAL = torch.tensor([words.is_unused(token) for token in range(words.SIZE)])


@torch.no_grad()
def continue_rows(planner: Planner, batch: Batch) -> tuple[Tensor, Tensor]:
    """Write replies, the most likely word at a time; return the tokens, and where the reply of each row begins."""
    starts = batch.learn.int().argmax(dim=1)
    limit = batch.tokens.shape[1] + SPARE_TOKENS
    tokens = torch.zeros(len(starts), limit, dtype=torch.long, device=batch.tokens.device)
    before = torch.arange(batch.tokens.shape[1], device=tokens.device) < starts[:, None]
    tokens[:, : batch.tokens.shape[1]] = batch.tokens * before
    ends = starts.clone()
    open_rows = torch.ones_like(starts, dtype=torch.bool)
    rows = torch.arange(len(starts), device=tokens.device)
    forbidden = SPECIAL.to(tokens.device)
    while bool(open_rows.any()) and int(ends.max()) < limit:
        used = int(ends.max())
        states = planner.states(tokens[:, :used], batch.images)[rows, ends - 1]
        chosen = planner.logits(states).float().masked_fill(forbidden, -torch.inf).argmax(dim=1)
        tokens[rows[open_rows], ends[open_rows]] = chosen[open_rows]
        ends = ends + open_rows
        open_rows = open_rows & (chosen != vocab.END)
    return tokens, starts


def measure_plans(planner: Planner, rows: Mapping[str, DeviceRows], *, all_kinds: bool) -> dict[str, Any]:
    """By kind: the share of replies that are word for word the expected ones, and with the expected number of orders;
    the share with none, exactly one, at least one; and the mean number. `understanding` is the mean over questions."""
    measured: dict[str, Any] = {}
    for kind, device_rows in rows.items():
        is_question = kind in UNDERSTANDING
        if not is_question and not all_kinds:
            continue
        batch = device_rows.batch(slice(0, ANSWER_ROWS if is_question else PLAN_ROWS))
        tokens, starts = continue_rows(planner, batch)
        expected = torch.nn.functional.pad(batch.tokens, (0, tokens.shape[1] - batch.tokens.shape[1]))
        reply = torch.arange(tokens.shape[1], device=tokens.device) >= starts[:, None]
        orders = ((tokens == words.ORDER) & reply).sum(dim=1)
        due = ((expected == words.ORDER) & reply).sum(dim=1)
        measured[f"{kind} exact"] = _mean((tokens == expected).all(dim=1))
        measured[f"{kind} count"] = _mean(orders == due)
        measured[f"{kind} none"] = _mean(orders == 0)
        measured[f"{kind} one"] = _mean(orders == 1)
        measured[f"{kind} some"] = _mean(orders >= 1)
        measured[f"{kind} orders"] = _mean(orders)
    questions = [measured[f"{kind} exact"] for kind in UNDERSTANDING if kind in rows]
    measured["understanding"] = round(sum(questions) / len(questions), 4)
    return measured


def _mean(values: Tensor) -> float:
    return round(values.float().mean().item(), 4)


@torch.no_grad()
def measure_visualizer(
    planner: Planner, visualizer: Visualizer, world: TableWorld, rows: Mapping[str, DeviceRows], *, draw: bool
) -> dict[str, Any]:
    """The loss at fixed noise on held-out rows, by kind and on the whole; with `draw` also the share of images that are
    exactly right, and of cells."""
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
        if draw:
            few = device_rows.batch(slice(0, IMAGE_ROWS))
            numbers = draw_numbers(visualizer, noise[:IMAGE_ROWS], few.images, read_order(planner, few, world))
            images, cells = compare_images(world, numbers.cpu().numpy(), device_rows.scenes(IMAGE_ROWS))
            measured[f"{kind} images"] = images
            measured[f"{kind} cells"] = cells
    measured["visual loss"] = round(sum(losses) / len(losses), 5)
    if draw:
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
