"""Training the visualizer on the states of a planner that stays as it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.training.checkpoint import replace_file
from weft_tabletop.tiny.endpoint import digest_files
from weft_tabletop.weaver.files import READER_FILE, VISUALIZER_FILE
from weft_tabletop.weaver.train.files import save_net
from weft_tabletop.weaver.train.loop import autocast
from weft_tabletop.weaver.train.measure import FEW_IMAGE_ROWS, IMAGE_ROWS, measure_visualizer
from weft_tabletop.weaver.train.planner_net import Planner
from weft_tabletop.weaver.train.tables import DeviceRows, order_states
from weft_tabletop.weaver.train.visualizer_net import Visualizer, flow_loss
from weft_tabletop.weaver.world import TableWorld


class VisualizerLearner:
    def __init__(
        self,
        planner: Planner,
        visualizer: Visualizer,
        kinds: Sequence[str],
        rows: Mapping[str, DeviceRows],
        held_out: Mapping[str, DeviceRows],
        world: TableWorld,
        device: str,
        *,
        planner_file: Path,
    ) -> None:
        """`planner_file` holds the planner's weights; they are copied beside the visualizer's, which name them."""
        self.net: nn.Module = visualizer
        self.device = device
        self._planner = planner.eval().requires_grad_(False)
        self._visualizer = visualizer
        self._kinds = kinds
        self._rows = rows
        self._held_out = held_out
        self._world = world
        self._planner_file = planner_file
        self._read = planner
        self._forward = visualizer

    def sizes(self) -> list[int]:
        return [len(self._rows[kind]) for kind in self._kinds]

    def take_step(self, drawn: "Sequence[np.ndarray[Any, Any]]", generator: torch.Generator) -> Tensor:
        count = sum(len(numbers) for numbers in drawn)
        total = torch.zeros((), device=self.device)
        for kind, numbers in zip(self._kinds, drawn, strict=True):
            if not len(numbers):
                continue
            batch = self._rows[kind].batch(numbers, generator)
            with autocast(self.device):
                with torch.no_grad():
                    states = self._read(batch.tokens, batch.images)
                order = order_states(states, batch.tokens, batch.images.shape[1], len(self._world.cells))
                loss = draw_loss(self._forward, batch.target, batch.images, order, generator) * len(numbers) / count
            loss.backward()
            total = total + loss.detach()
        return total

    def measure(self, *, last: bool) -> dict[str, Any]:
        images = IMAGE_ROWS if last else FEW_IMAGE_ROWS
        with autocast(self.device):
            return measure_visualizer(self._planner, self._visualizer, self._world, self._held_out, drawn=images)

    def save(self, folder: Path) -> None:
        replace_file(folder / READER_FILE, self._planner_file.read_bytes())
        digest = digest_files([folder / READER_FILE])
        save_net(folder / VISUALIZER_FILE, self._visualizer, self._world, planner=digest)


def draw_loss(
    visualizer: Any, target: Tensor | None, images: Tensor, order: tuple[Tensor, Tensor], generator: torch.Generator
) -> Tensor:
    """The loss at a time and a noise of this step."""
    assert target is not None
    noise = torch.randn(target.shape, device=target.device, generator=generator)
    time = torch.rand(len(target), device=target.device, generator=generator)
    return flow_loss(visualizer, target, noise, time, images, order)
