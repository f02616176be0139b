"""Rows on the device that trains: tokens, and the numbers of images, looked up from their scenes."""

from typing import Any

import numpy as np
import torch
from msgspec import Struct
from torch import Tensor

from weft_tabletop.tiny import vocab
from weft_tabletop.weaver import words
from weft_tabletop.weaver.latents import CHANGED, load_digits
from weft_tabletop.weaver.rows import Rows
from weft_tabletop.weaver.world import TableWorld


class Batch(Struct, frozen=True):
    tokens: Tensor  # (B, T)
    learn: Tensor  # (B, T)
    images: Tensor  # (B, images, cells, 4), of the images shown
    target: Tensor | None  # (B, cells, 4)


class DeviceRows:
    """The rows of one kind."""

    def __init__(self, rows: Rows, world: TableWorld, device: str) -> None:
        self._tokens = torch.as_tensor(rows.tokens, device=device)
        self._learn = torch.as_tensor(rows.learn, device=device)
        self._scenes = torch.as_tensor(rows.scenes, device=device)
        self._targets = None if rows.targets is None else torch.as_tensor(rows.targets, device=device)
        self._digits = torch.as_tensor(load_digits()[:, :, world.places()].astype(np.float32), device=device)
        self._top = torch.tensor(vocab.LEVELS, dtype=torch.float32, device=device) - 1
        self._cells = torch.arange(len(world.cells), device=device)
        self.device = device

    def __len__(self) -> int:
        return len(self._tokens)

    def batch(self, numbers: "np.ndarray[Any, Any] | slice", generator: torch.Generator | None = None) -> Batch:
        """These rows. With a generator some numbers of the images shown are moved by one level, as they are in full
        images."""
        chosen = numbers if isinstance(numbers, slice) else torch.as_tensor(numbers, device=self.device)
        target = None
        if self._targets is not None:
            target = self._numbers(self._targets[chosen], None)
        images = self._numbers(self._scenes[chosen], generator)
        return Batch(self._tokens[chosen].long(), self._learn[chosen], images, target)

    def scenes(self, count: int) -> list[list[int]]:
        """The scenes to draw of the first rows, as numbers."""
        assert self._targets is not None
        return self._targets[:count].tolist()

    def _numbers(self, scenes: Tensor, generator: torch.Generator | None) -> Tensor:
        """Scenes (..., 1 + cells) as numbers (..., cells, 4) from -1 to 1."""
        scenes = scenes.long()
        digits = self._digits[scenes[..., :1], scenes[..., 1:], self._cells]
        if generator is not None:
            chance = torch.rand(digits.shape, device=self.device, generator=generator)
            moved = digits + (chance < CHANGED / 2).float() - (chance > 1 - CHANGED / 2).float()
            digits = torch.minimum(moved.clamp(min=0), self._top)
        return digits / self._top * 2 - 1


def order_states(states: Tensor, tokens: Tensor, images: int, cells: int) -> tuple[Tensor, Tensor]:
    """The planner's states within an order, and where these are words."""
    start = words.find_order(images, cells)
    return states[:, start:], tokens[:, start:] != vocab.PAD
