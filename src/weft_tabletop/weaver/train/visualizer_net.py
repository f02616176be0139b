"""The visualizer, in torch: flow matching on the numbers of an image, conditioned on the planner's last states within
an order, with the images that the order names as extra tokens.

A noisy image is x = (1 - t) noise + t image; the network learns image - noise at every t from 0 to 1. To draw, it
follows that direction from noise in equal steps. `infer.py` computes the same in numpy."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft_tabletop.weaver.latents import NUMBERS
from weft_tabletop.weaver.sizes import HEAD, MAX_IMAGES, MODULATIONS, STEPS, TIME_FREQUENCIES
from weft_tabletop.weaver.train.planner_net import NetSize


class VisualizerBlock(nn.Module):
    """Attention among the cells of all images, attention to the order, and a feed-forward layer; the time shifts and
    scales them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // HEAD
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.ask = nn.Linear(width, width, bias=False)
        self.tell = nn.Linear(width, 2 * width, bias=False)
        self.told = nn.Linear(width, width, bias=False)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)
        self.modulation = nn.Linear(width, MODULATIONS * width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, order: Tensor, mask: Tensor, time: Tensor) -> Tensor:
        rows, cells, width = x.shape
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(time).unsqueeze(1).chunk(MODULATIONS, dim=-1)
        h = F.layer_norm(x, (width,)) * (1 + scale1) + shift1
        q, k, v = self.qkv(h).view(rows, cells, 3, self.heads, HEAD).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v)
        x = x + (1 + gate1) * self.out(attended.transpose(1, 2).reshape(rows, cells, width))
        q = self.ask(self.norm(x)).view(rows, cells, self.heads, HEAD).transpose(1, 2)
        k, v = self.tell(order).view(rows, -1, 2, self.heads, HEAD).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.told(attended.transpose(1, 2).reshape(rows, cells, width))
        h = F.layer_norm(x, (width,)) * (1 + scale2) + shift2
        return x + (1 + gate2) * self.fc2(F.gelu(self.fc1(h), approximate="tanh"))


class Visualizer(nn.Module):
    def __init__(self, size: NetSize, planner_width: int) -> None:
        super().__init__()
        width = size.width
        self.size = size
        self.noisy = nn.Linear(NUMBERS, width)
        self.shown = nn.Linear(NUMBERS, width)
        self.place = nn.Embedding((1 + MAX_IMAGES) * size.cells, width)  # of the image to draw, then of those shown
        self.order = nn.Linear(planner_width, width)
        self.time1 = nn.Linear(2 * TIME_FREQUENCIES, width)
        self.time2 = nn.Linear(width, width)
        self.blocks = nn.ModuleList([VisualizerBlock(width) for _ in range(size.layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, NUMBERS)
        nn.init.normal_(self.place.weight, std=0.02)
        nn.init.zeros_(self.head.weight)

    def forward(self, noisy: Tensor, time: Tensor, images: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Return the direction (B, cells, 4) from noise to image at `noisy` (B, cells, 4) and `time` (B,).

        `images` (B, images, cells, 4) are those that the order names, `states` (B, T, width) the planner's within the
        order, and `mask` (B, T) where these are words.
        """
        cells = self.size.cells
        x = self.noisy(noisy)
        if images.shape[1]:
            x = torch.cat([x, self.shown(images).flatten(1, 2)], dim=1)
        x = x + self.place.weight[: x.shape[1]]
        moment = self.time2(F.silu(self.time1(embed_time(time))))
        order = self.order(states)
        allowed = mask[:, None, None, :]
        for block in self.blocks:
            x = block(x, order, allowed, F.silu(moment))
        return self.head(self.norm(x[:, :cells]))


def embed_time(time: Tensor) -> Tensor:
    """Sines and cosines of the time, from slow to fast."""
    steps = torch.arange(TIME_FREQUENCIES, device=time.device, dtype=torch.float32)
    frequencies = torch.exp(steps / (TIME_FREQUENCIES - 1) * math.log(1000.0))
    angles = time.float()[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def flow_loss(
    visualizer: Any, target: Tensor, noise: Tensor, time: Tensor, images: Tensor, order: tuple[Tensor, Tensor]
) -> Tensor:
    """The mean square error of the direction."""
    moment = time[:, None, None]
    direction = visualizer((1 - moment) * noise + moment * target, time, images, *order)
    return (direction.float() - (target - noise)).square().mean()


@torch.no_grad()
def draw_numbers(visualizer: Visualizer, noise: Tensor, images: Tensor, order: tuple[Tensor, Tensor]) -> Tensor:
    """Follow the direction from noise (B, cells, 4) to images."""
    x = noise
    for step in range(STEPS):
        time = torch.full((len(x),), step / STEPS, device=x.device)
        x = x + visualizer(x, time, images, *order).float() / STEPS
    return x
