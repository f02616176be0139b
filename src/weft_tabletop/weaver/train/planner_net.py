"""The planner, in torch: a decoder-only transformer that reads words and images and writes words and orders for images.

An image is as many positions as it has cells; each gets its four numbers through one linear layer. `infer.py` computes
the same in numpy; a test compares them. The names of the modules are those of the tensors in the weight files."""

import torch.nn.functional as F
from msgspec import Struct
from torch import Tensor, nn

from weft_tabletop.weaver import words
from weft_tabletop.weaver.latents import NUMBERS
from weft_tabletop.weaver.sizes import CONTEXT, HEAD, MAX_IMAGES


class NetSize(Struct, frozen=True):
    width: int
    layers: int
    cells: int  # of an image


class PlannerBlock(nn.Module):
    """Attention to what came before, then a feed-forward layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // HEAD
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, width)
        q, k, v = self.project(x)
        return self.finish(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, each (B, heads, T, HEAD)."""
        rows, time, _ = x.shape
        return self.qkv(self.norm1(x)).view(rows, time, 3, self.heads, HEAD).permute(2, 0, 3, 1, 4).unbind(0)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Planner(nn.Module):
    def __init__(self, size: NetSize) -> None:
        super().__init__()
        width = size.width
        self.size = size
        self.token = nn.Embedding(words.SIZE, width)
        self.position = nn.Embedding(CONTEXT, width)
        self.place = nn.Embedding(MAX_IMAGES * size.cells, width)  # a cell of the first image, or of the second
        self.latent = nn.Linear(NUMBERS, width)
        self.blocks = nn.ModuleList([PlannerBlock(width) for _ in range(size.layers)])
        self.norm = nn.LayerNorm(width)
        for embedding in (self.token, self.position, self.place):
            nn.init.normal_(embedding.weight, std=0.02)
        for block in self.blocks:
            for layer in (block.out, block.fc2):
                nn.init.normal_(layer.weight, std=0.02 / (2 * size.layers) ** 0.5)

    def states(self, tokens: Tensor, images: Tensor) -> Tensor:
        """Return the last states (B, T, width) for tokens (B, T) and the numbers of their images (B, images, cells, 4).

        The images stand at the start, one after the other: that is where `words.encode_request` puts them.
        """
        x = self.embed(tokens, images)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def embed(self, tokens: Tensor, images: Tensor) -> Tensor:
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        cells = self.size.cells
        shown = images.shape[1]
        if shown:
            places = self.place.weight[: shown * cells].view(shown, cells, -1)
            seen = F.pad(self.latent(images) + places, (0, 0, 1, 1))  # the marks around each image
            seen = seen.reshape(len(tokens), shown * (cells + 2), -1)
            rest = tokens.shape[1] - words.HEADER - seen.shape[1]
            x = x + F.pad(seen, (0, 0, words.HEADER, rest))
        return x

    def logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self.token.weight)

    def forward(self, tokens: Tensor, images: Tensor) -> Tensor:
        return self.states(tokens, images)


def planner_loss(states: Tensor, planner: Planner, tokens: Tensor, learn: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of the losses over what is learnt, and how many tokens that is. `states` are those of all but the
    last token."""
    mask = learn[:, 1:]
    logits = planner.logits(states[mask])
    loss = F.cross_entropy(logits.float(), tokens[:, 1:][mask], reduction="sum")
    return loss, mask.sum()
