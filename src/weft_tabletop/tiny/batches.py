"""Batches for the training of the tiny model: scenes as numbers, images drawn on the device, and documents in rows."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from weft_tabletop.tiny import vocab
from weft_tabletop.tiny.corpus import BLANK, TokenizedDialogue, generate_documents
from weft_tabletop.tiny.net import ImageNetwork
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, THINGS, Scene, draw_tile

# Tokens of the two kinds of rows.
SHORT = 144
LONG = 384
OBJECT_CONTRAST = 30  # a pixel that differs more from the background belongs to an object
Batch = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # tokens, loss mask, scenes, where the images start

_NUMBERS = {thing: number for number, thing in enumerate(THINGS, start=1)}


def number_scene(scene: Scene) -> list[int]:
    """A scene as 17 numbers: the background, then the cells. An empty cell is 0, an object its number in THINGS plus
    one."""
    cells = [0 if thing is None else _NUMBERS[thing] for thing in scene.cells]
    return [tuple(BACKGROUNDS).index(scene.background), *cells]


def random_scenes(count: int, device: str, generator: torch.Generator) -> Tensor:
    """Numbers of random scenes (N, 17), from empty to full tables."""
    cells = len(CELLS)
    things = torch.randint(1, len(THINGS) + 1, (count, cells), device=device, generator=generator)
    full_share = torch.rand(count, 1, device=device, generator=generator)
    is_empty = torch.rand(count, cells, device=device, generator=generator) > full_share
    backgrounds = torch.randint(0, len(BACKGROUNDS), (count, 1), device=device, generator=generator)
    return torch.cat([backgrounds, things.masked_fill(is_empty, 0)], dim=1)


class SceneRenderer:
    """Draws the images of scenes on the device."""

    def __init__(self, device: str) -> None:
        tiles = [[draw_tile(name, thing) for thing in (None, *THINGS)] for name in BACKGROUNDS]
        self._tiles = torch.tensor(np.array(tiles), device=device)  # (6, 50, 16, 16, 3)
        empty = self._tiles[:, :1].float()
        self._is_object = (self._tiles.float() - empty).abs().sum(-1, keepdim=True) > OBJECT_CONTRAST

    def __call__(self, scenes: Tensor) -> Tensor:
        """Draw scenes (N, 17) as images (N, 3, 64, 64) in -1..1."""
        return _assemble(self._tiles[scenes[:, :1].long(), scenes[:, 1:].long()].float() / 127.5 - 1)

    def object_mask(self, scenes: Tensor) -> Tensor:
        """1 where the images of scenes (N, 17) have an object, else 0."""
        return _assemble(self._is_object[scenes[:, :1].long(), scenes[:, 1:].long()].float())


def _assemble(tiles: Tensor) -> Tensor:
    """Tiles (N, 16, 16, 16, C) as images (N, C, 64, 64)."""
    count, _, side, _, channels = tiles.shape
    grid = tiles.view(count, 4, 4, side, side, channels).permute(0, 5, 1, 3, 2, 4)
    return grid.reshape(count, channels, 4 * side, 4 * side).contiguous()


class DocumentBatches(torch.utils.data.IterableDataset):
    """Pairs of batches: single turns in short rows, and, unless `single`, dialogues in long rows."""

    def __init__(self, seed: int, long_rows: int, short_rows: int, single: bool) -> None:
        self.seed = seed
        self.long_rows = long_rows
        self.short_rows = short_rows
        self.single = single

    def __iter__(self) -> Iterator[tuple[Batch, Batch | None]]:
        worker = torch.utils.data.get_worker_info()
        worker_seed = self.seed * 1000 + (worker.id if worker else 0)
        short: list[TokenizedDialogue] = []
        long: list[TokenizedDialogue] = []
        for document in generate_documents(worker_seed, single=self.single):
            is_long = document.turns > 1
            if len(document.tokens) <= (LONG if is_long else SHORT):
                (long if is_long else short).append(document)
            if len(short) < self.short_rows or (not self.single and len(long) < self.long_rows):
                continue
            if self.single:
                long_batch = None
            else:
                long_batch = _build_batch(long[: self.long_rows], LONG)
            yield _build_batch(short[: self.short_rows], SHORT), long_batch
            # The kind that comes more often would pile up: at most one more batch of it is kept.
            short = short[self.short_rows : 2 * self.short_rows]
            long = long[self.long_rows : 2 * self.long_rows]


def _build_batch(rows: list[TokenizedDialogue], size: int) -> Batch:
    tokens = np.zeros((len(rows), size), np.int32)
    loss_mask = np.zeros((len(rows), size), bool)
    scenes: list[list[int]] = []
    starts: list[int] = []
    for index, row in enumerate(rows):
        tokens[index, : len(row.tokens)] = row.tokens
        loss_mask[index, : len(row.loss_mask)] = row.loss_mask
        blanks = np.flatnonzero(np.array(row.tokens) == BLANK)[:: vocab.PLACES]
        starts += (index * size + blanks).tolist()
        scenes += [number_scene(scene) for scene in row.scenes]
    return tokens, loss_mask, np.array(scenes, np.int16), np.array(starts, np.int64)


def fill_codes(
    batch: Batch, image_network: ImageNetwork, draw: SceneRenderer, device: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens, places and loss mask, with the images' codes in their blanks."""
    tokens, loss_mask, scenes, starts = (torch.as_tensor(array).to(device, non_blocking=True) for array in batch)
    tokens = tokens.long()
    places = torch.zeros_like(tokens)
    with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
        codes = image_network.codes(draw(scenes)) + len(vocab.words())  # (N, 16)
    at = starts[:, None] + torch.arange(vocab.PLACES, device=device)
    tokens.view(-1)[at] = codes
    places.view(-1)[at - 1] = torch.arange(1, vocab.PLACES + 1, device=device).expand_as(at)
    return tokens, places, loss_mask
