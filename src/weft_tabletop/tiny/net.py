"""The two networks, in torch. `infer.py` computes the same in numpy; a test compares them.

Images: a convolutional encoder to 4 x 4 places of 4 numbers, each rounded to one of its levels (finite scalar
quantisation), and a decoder back. One place is one cell of the table. Words and codes: a plain decoder-only
transformer, pre-norm, GELU, learned positions. Each position also gets an embedding of which place inside the image
comes next (0 in text), so that the model need not count.

The names of the modules are those of the tensors in the weight files."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft_tabletop.tiny import vocab

WIDTHS = (64, 96, 128, 160)  # of the image network, from 32 x 32 down to 4 x 4
WIDTH = 256
LAYERS = 8
HEADS = 4
CONTEXT = 512


class ImageNetwork(nn.Module):
    """Images to codes, and back."""

    def __init__(self) -> None:
        super().__init__()
        a, b, c, d = WIDTHS
        down = ((3, a), (a, b), (b, c), (c, d))
        up = ((d, c), (c, b), (b, a), (a, 3))
        self.down = nn.ModuleList([nn.Conv2d(i, o, 3, 2, 1) for i, o in down])
        self.to_code = nn.Conv2d(d, len(vocab.LEVELS), 1)
        self.from_code = nn.Conv2d(len(vocab.LEVELS), d, 1)
        self.middle = nn.Conv2d(d, d, 3, 1, 1)
        self.up = nn.ModuleList([nn.Conv2d(i, 4 * o, 3, 1, 1) for i, o in up])
        self.register_buffer("levels", torch.tensor(vocab.LEVELS, dtype=torch.float32), persistent=False)

    def encode(self, images: Tensor) -> Tensor:
        """Encode (N, 3, 64, 64) in -1..1 as (N, 4, 4, 4): numbers before rounding, by channel and place."""
        x = images
        for layer in self.down:
            x = F.gelu(layer(x), approximate="tanh")
        return self.to_code(x)

    def bound(self, z: Tensor) -> Tensor:
        """Squash each number into its levels: 0 .. level - 1."""
        top = (self.levels - 1).view(1, -1, 1, 1)
        return torch.sigmoid(z) * top

    def decode(self, code: Tensor) -> Tensor:
        """Decode (N, 4, 4, 4), whole numbers 0 .. level - 1, to (N, 3, 64, 64)."""
        top = (self.levels - 1).view(1, -1, 1, 1)
        x = self.from_code(code / top * 2 - 1)
        x = x + F.gelu(self.middle(x), approximate="tanh")
        for layer in self.up[:-1]:
            x = F.gelu(F.pixel_shuffle(layer(x), 2), approximate="tanh")
        return F.pixel_shuffle(self.up[-1](x), 2)

    def forward(self, images: Tensor) -> Tensor:
        z = self.bound(self.encode(images))
        rounded = z + (z.round() - z).detach()  # rounding has no gradient: it is passed by
        return self.decode(rounded)

    def codes(self, images: Tensor) -> Tensor:
        """Return (N, 16) whole numbers below CODES for (N, 3, 64, 64)."""
        digits = self.bound(self.encode(images)).round().long().flatten(2)  # (N, 4, 16)
        code = torch.zeros_like(digits[:, 0])
        for channel, level in enumerate(vocab.LEVELS):
            code = code * level + digits[:, channel]
        return code


class Block(nn.Module):
    """Attention, then a feed-forward layer."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, width)
        rows, time, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(rows, time, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, time, width))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Talker(nn.Module):
    """Words and codes so far to the next one."""

    def __init__(self, width: int = WIDTH, layers: int = LAYERS) -> None:
        super().__init__()
        self.token = nn.Embedding(vocab.size(), width)
        self.position = nn.Embedding(CONTEXT, width)
        self.place = nn.Embedding(vocab.PLACES + 1, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        for embedding in (self.token, self.position, self.place):
            nn.init.normal_(embedding.weight, std=0.02)
        for block in self.blocks:
            for layer in (block.out, block.fc2):
                nn.init.normal_(layer.weight, std=0.02 / (2 * layers) ** 0.5)

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary) for tokens (B, T) and, for each, the place inside an image that comes next
        (0: none)."""
        return self.logits(self.states(tokens, places))

    def states(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Return the last states (B, T, width)."""
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]] + self.place(places)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self.token.weight)
