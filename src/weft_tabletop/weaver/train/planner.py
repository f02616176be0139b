"""Training the planner: on understanding alone, then on a mix of questions, single images and documents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from weft_tabletop.weaver.files import PLANNER_FILE
from weft_tabletop.weaver.train.files import save_net
from weft_tabletop.weaver.train.loop import autocast
from weft_tabletop.weaver.train.measure import FEW_PLAN_ROWS, IMAGE_ROWS, PLAN_ROWS, measure_plans, measure_visualizer
from weft_tabletop.weaver.train.planner_net import Planner, planner_loss
from weft_tabletop.weaver.train.tables import Batch, DeviceRows
from weft_tabletop.weaver.train.visualizer_net import Visualizer
from weft_tabletop.weaver.world import TableWorld

LAYERS_WITH_ADAPTERS = ("qkv", "out", "fc1", "fc2")


class LowRank(nn.Module):
    """A matrix plus a product of two thin ones, of which the first starts at zero (LoRA)."""

    def __init__(self, rows: int, columns: int, rank: int) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.zeros(rows, rank))
        self.down = nn.Parameter(torch.randn(rank, columns) / rank)

    def forward(self, matrix: Tensor) -> Tensor:
        return matrix + self.up @ self.down


def add_adapters(planner: Planner, rank: int) -> None:
    """Train thin additions to the matrices of all blocks, and nothing else."""
    for parameter in planner.parameters():
        parameter.requires_grad_(False)
    for block in planner.blocks:
        for name in LAYERS_WITH_ADAPTERS:
            layer = getattr(block, name)
            adapter = LowRank(*layer.weight.shape, rank).to(layer.weight.device)
            parametrize.register_parametrization(layer, "weight", adapter)


class PlannerLearner:
    def __init__(
        self,
        planner: Planner,
        kinds: Sequence[str],
        rows: Mapping[str, DeviceRows],
        held_out: Mapping[str, DeviceRows],
        world: TableWorld,
        device: str,
        *,
        visualizer: Visualizer | None = None,
        visualizer_rows: Mapping[str, DeviceRows] | None = None,
    ) -> None:
        """`kinds` are the mix's sources. With a `visualizer`, its loss under the tuned planner is measured as well."""
        self.net: nn.Module = planner
        self.device = device
        self._planner = planner
        self._kinds = kinds
        self._rows = rows
        self._held_out = held_out
        self._world = world
        self._visualizer = visualizer
        self._visualizer_rows = visualizer_rows or {}
        self._forward = planner

    def sizes(self) -> list[int]:
        return [len(self._rows[kind]) for kind in self._kinds]

    def take_step(self, drawn: "Sequence[np.ndarray[Any, Any]]", generator: torch.Generator) -> Tensor:
        batches = [
            self._rows[kind].batch(numbers, generator)
            for kind, numbers in zip(self._kinds, drawn, strict=True)
            if len(numbers)
        ]
        return planner_step(self._forward, self._planner, batches, self.device)

    def measure(self, *, last: bool) -> dict[str, Any]:
        with autocast(self.device):
            written = PLAN_ROWS if last else FEW_PLAN_ROWS * (len(self._kinds) > 2)
            measured = measure_plans(self._planner, self._held_out, written=written)
            if self._visualizer is not None:
                measured |= measure_visualizer(
                    self._planner, self._visualizer, self._world, self._visualizer_rows, drawn=IMAGE_ROWS if last else 0
                )
        return measured

    def save(self, folder: Path) -> None:
        save_net(folder / PLANNER_FILE, self._planner, self._world, merge_adapters(self._planner))


def merge_adapters(planner: Planner) -> dict[str, Tensor]:
    """The planner's tensors, with each adapter added to its matrix."""
    tensors = {name: tensor for name, tensor in planner.state_dict().items() if ".parametrizations." not in name}
    for name, module in planner.named_modules():
        if isinstance(module, nn.Linear) and parametrize.is_parametrized(module, "weight"):
            tensors[f"{name}.weight"] = module.weight
    return tensors


def planner_step(forward: Any, planner: Planner, batches: Sequence[Batch], device: str) -> Tensor:
    """The mean loss over all tokens that these batches learn; its gradients are added."""
    learnt = sum(batch.learn[:, 1:].sum() for batch in batches)
    total = torch.zeros((), device=device)
    for batch in batches:
        with autocast(device):
            states = forward(batch.tokens[:, :-1], batch.images)
            loss, _ = planner_loss(states, planner, batch.tokens, batch.learn)
        loss = loss / learnt
        loss.backward()
        total = total + loss.detach()
    return total
