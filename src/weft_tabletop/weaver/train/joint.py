"""Training both networks at once from nothing, as a unified model is: words and images in every step, and the
visualizer's gradients go on into the planner. The control for training them apart."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weft_tabletop.tiny.endpoint import digest_files
from weft_tabletop.weaver.files import PLANNER_FILE, VISUALIZER_FILE
from weft_tabletop.weaver.recipes import DRAWN
from weft_tabletop.weaver.train.files import save_net
from weft_tabletop.weaver.train.loop import autocast
from weft_tabletop.weaver.train.measure import FEW_IMAGE_ROWS, IMAGE_ROWS, PLAN_ROWS, measure_plans, measure_visualizer
from weft_tabletop.weaver.train.planner import planner_step
from weft_tabletop.weaver.train.planner_net import Planner
from weft_tabletop.weaver.train.tables import DeviceRows, order_states
from weft_tabletop.weaver.train.visualizer import draw_loss
from weft_tabletop.weaver.train.visualizer_net import Visualizer
from weft_tabletop.weaver.world import TableWorld


class JointLearner:
    def __init__(
        self,
        planner: Planner,
        visualizer: Visualizer,
        kinds: Sequence[str],
        rows: Mapping[str, DeviceRows],
        held_out: Mapping[str, DeviceRows],
        world: TableWorld,
        device: str,
    ) -> None:
        """`kinds` are the mix's sources: a planner's, and a visualizer's with `DRAWN` before their names."""
        self.net: nn.Module = nn.ModuleDict({"planner": planner, "visualizer": visualizer})
        self.device = device
        self._planner = planner
        self._visualizer = visualizer
        self._kinds = kinds
        self._rows = rows
        self._plans = {kind: some for kind, some in held_out.items() if not kind.startswith(DRAWN)}
        self._drawn = {kind.removeprefix(DRAWN): some for kind, some in held_out.items() if kind.startswith(DRAWN)}
        self._world = world
        self._read = planner
        self._draw = visualizer

    def sizes(self) -> list[int]:
        return [len(self._rows[kind]) for kind in self._kinds]

    def take_step(self, drawn: "Sequence[np.ndarray[Any, Any]]", generator: torch.Generator) -> Tensor:
        chosen = [(kind, numbers) for kind, numbers in zip(self._kinds, drawn, strict=True) if len(numbers)]
        plans = [self._rows[kind].batch(numbers, generator) for kind, numbers in chosen if not kind.startswith(DRAWN)]
        total = planner_step(self._read, self._planner, plans, self.device)
        count = sum(len(numbers) for kind, numbers in chosen if kind.startswith(DRAWN))
        for kind, numbers in chosen:
            if not kind.startswith(DRAWN):
                continue
            batch = self._rows[kind].batch(numbers, generator)
            with autocast(self.device):
                states = self._read(batch.tokens, batch.images)
                order = order_states(states, batch.tokens, batch.images.shape[1], len(self._world.cells))
                loss = draw_loss(self._draw, batch.target, batch.images, order, generator) * len(numbers) / count
            loss.backward()
            total = total + loss.detach()
        return total

    def measure(self, *, last: bool) -> dict[str, Any]:
        with autocast(self.device):
            measured = measure_plans(self._planner, self._plans, written=PLAN_ROWS if last else 0)
            images = IMAGE_ROWS if last else FEW_IMAGE_ROWS
            return measured | measure_visualizer(
                self._planner, self._visualizer, self._world, self._drawn, drawn=images
            )

    def save(self, folder: Path) -> None:
        save_net(folder / PLANNER_FILE, self._planner, self._world)
        digest = digest_files([folder / PLANNER_FILE])
        save_net(folder / VISUALIZER_FILE, self._visualizer, self._world, planner=digest)
