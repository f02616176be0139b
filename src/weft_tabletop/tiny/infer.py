"""The tiny model in numpy alone: pictures to codes and back, and replies with a key-value cache. One core, no torch.

`Tiny.reply` takes a prompt of tokens and pictures and gives a reply of tokens and pictures. Inside a picture only codes
can come, outside only words; where a picture starts is the model's own choice. It says what it holds most likely; with
a temperature its pictures are sampled, and what is drawn is decided by the seed and the prompt."""

import math
import zlib
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from weft.errors import UserError
from weft_tabletop.tiny import vocab
from weft_tabletop.tiny.weights import load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as Pil

    Array = NDArray[np.float32]

HEADS = 4
LONGEST_TEXT = 96
RECENT = 24


class Said(Struct, frozen=True):
    """A reply: words, or the codes of one picture, or both in order. `cut` if it ran into the end of what the model can
    hold."""

    parts: tuple[str | tuple[int, ...], ...]
    cut: bool = False


class Tiny:
    def __init__(self, folder: Path, talker: str = "talker") -> None:
        import numpy as np

        self._p, _ = load(folder / "pictures.safetensors")
        self._t, facts = load(folder / f"{talker}.safetensors")
        if facts.get("vocabulary") != str(vocab.size()):
            raise UserError(
                f"{folder / talker}.safetensors was trained with another vocabulary; train it again with this weft"
            )
        self._recent: deque[tuple[list[int], _Cache]] = deque(maxlen=RECENT)
        try:
            self._width = self._t["token.weight"].shape[1]
            self._layers = 1 + max(int(name.split(".")[1]) for name in self._t if name.startswith("blocks."))
            self._context = self._t["position.weight"].shape[0]
            with np.errstate(all="ignore"):
                self._try_out()
        except Exception as error:  # tensors that are missing, or of another shape
            raise UserError(f"{folder}: these weights are not of this model: {type(error).__name__}: {error}") from None

    def _try_out(self) -> None:
        """Every tensor is used once: a picture to codes and back, and the first words of a reply to it."""
        import numpy as np
        from PIL import Image as Pil

        codes = self.codes(Pil.new("RGB", (vocab.SIDE, vocab.SIDE), "white"))
        if self.picture(codes).size != (vocab.SIDE, vocab.SIDE):
            raise ValueError("its pictures have another size")
        tokens = [vocab.USER, vocab.IMAGE, *(len(vocab.words()) + code for code in codes)]
        logits = self._forward(np.array(tokens), np.array([0, 0, *range(1, len(codes) + 1)]), _Cache(self._layers))
        if logits.shape != (vocab.size(),):
            raise ValueError("it has another vocabulary")

    # pictures

    def codes(self, picture: "Pil.Image") -> list[int]:
        """A 64 x 64 picture as 16 codes."""
        import numpy as np

        x = np.asarray(picture.convert("RGB"), dtype=np.float32).transpose(2, 0, 1) / 127.5 - 1
        for layer in range(4):
            x = _gelu(_conv(x, self._p[f"down.{layer}.weight"], self._p[f"down.{layer}.bias"], stride=2))
        z = _conv1(x, self._p["to_code.weight"], self._p["to_code.bias"])
        code = [0] * vocab.PLACES
        for channel, level in enumerate(vocab.LEVELS):
            digits = ((level - 1) / (1 + np.exp(-z[channel]))).reshape(-1)
            code = [number * level + round(float(digit)) for number, digit in zip(code, digits, strict=True)]
        return code

    def picture(self, codes: Sequence[int]) -> "Pil.Image":
        import numpy as np
        from PIL import Image as Pil

        code: Any = np.array(codes, dtype=np.int64).reshape(4, 4)
        digits: list[Any] = []
        for level in reversed(vocab.LEVELS):
            digits.append((code % level).astype(np.float32) / (level - 1) * 2 - 1)
            code = code // level
        x = _conv1(np.stack(digits[::-1]), self._p["from_code.weight"], self._p["from_code.bias"])
        x = x + _gelu(_conv(x, self._p["middle.weight"], self._p["middle.bias"]))
        for layer in range(4):
            x = _shuffle(_conv(x, self._p[f"up.{layer}.weight"], self._p[f"up.{layer}.bias"]))
            if layer < 3:
                x = _gelu(x)
        pixels = np.clip(np.round((x.transpose(1, 2, 0) + 1) * 127.5), 0, 255).astype(np.uint8)
        return Pil.fromarray(pixels)

    # replies

    def reply(
        self,
        prompt: "Sequence[int | Sequence[int]]",
        *,
        one_picture: bool = True,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Said:
        """What follows the prompt. With `one_picture` the reply ends after its first picture."""
        import numpy as np

        tokens, places = _flat(prompt)
        if len(tokens) > self._context - vocab.PLACES - 2:
            raise UserError(f"the dialogue has {len(tokens)} tokens; the tiny model holds {self._context}")
        rng = np.random.default_rng([seed, zlib.crc32(np.array(tokens, np.int32).tobytes())])
        cache = self._begun(tokens)
        logits = self._forward(np.array(tokens[cache.length :]), np.array(places[cache.length :]), cache)
        self._remember(tokens, cache)
        parts: list[str | tuple[int, ...]] = []
        said: list[int] = []
        words = len(vocab.words())
        while len(tokens) < self._context - 1 and len(said) < LONGEST_TEXT:
            token = int(logits[:words].argmax())
            if token == vocab.END:
                break
            tokens.append(token)
            if token != vocab.IMAGE:
                said.append(token)
                logits = self._forward(np.array([token]), np.array([0]), cache)
                continue
            if said:
                parts.append(vocab.decode(said))
                said = []
            if len(tokens) + vocab.PLACES + 1 > self._context:
                return Said(tuple(parts), cut=True)
            drawn: list[int] = []
            for place in range(1, vocab.PLACES + 1):
                logits = self._forward(np.array([token]), np.array([place]), cache)
                drawn.append(_pick(logits[words:], temperature, rng))
                token = words + drawn[-1]
                tokens.append(token)
            parts.append(tuple(drawn))
            if one_picture:
                return Said(tuple(parts))
            self._forward(np.array([token]), np.array([0]), cache)
            tokens.append(vocab.IMAGE_END)
            logits = self._forward(np.array([vocab.IMAGE_END]), np.array([0]), cache)
        if said:
            parts.append(vocab.decode(said))
        return Said(tuple(parts))

    def _begun(self, tokens: list[int]) -> "_Cache":
        """A cache of the longest beginning that a recent prompt shares: turns of one dialogue share nearly all of
        it."""
        best = 0
        cache = _Cache(self._layers)
        for known, kept in list(self._recent):
            shared = next(
                (at for at, (a, b) in enumerate(zip(known, tokens, strict=False)) if a != b),
                min(len(known), len(tokens)),
            )
            if shared > best and shared > 8:
                best = shared
                cache = kept
        return cache.upto(min(best, len(tokens) - 1))

    def _remember(self, tokens: list[int], cache: "_Cache") -> None:
        self._recent.append((list(tokens), cache.upto(len(tokens))))

    def _forward(self, tokens: "NDArray[Any]", places: "NDArray[Any]", cache: "_Cache") -> "Array":
        """New tokens through all layers, with what is cached before them; logits after the last."""
        import numpy as np

        w = self._t
        start = cache.length
        count = len(tokens)
        x = w["token.weight"][tokens] + w["position.weight"][start : start + count] + w["place.weight"][places]
        size = self._width // HEADS
        if count > 1:
            mask = np.triu(np.full((count, count), -1e9, dtype=np.float32), 1)
        else:
            mask = None
        for layer in range(self._layers):
            b = f"blocks.{layer}."
            h = _norm(x, w[b + "norm1.weight"], w[b + "norm1.bias"]) @ w[b + "qkv.weight"].T
            q, k, v = h.reshape(count, 3, HEADS, size).transpose(1, 2, 0, 3)  # each (heads, count, size)
            k, v = cache.grow(layer, k, v)
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(size)
            if mask is not None:
                scores[:, :, start:] += mask
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            seen = (scores / scores.sum(axis=-1, keepdims=True)) @ v
            x = x + seen.transpose(1, 0, 2).reshape(count, -1) @ w[b + "out.weight"].T
            h = _norm(x, w[b + "norm2.weight"], w[b + "norm2.bias"]) @ w[b + "fc1.weight"].T + w[b + "fc1.bias"]
            x = x + _gelu(h) @ w[b + "fc2.weight"].T + w[b + "fc2.bias"]
        cache.length += count
        return w["token.weight"] @ _norm(x[-1], w["norm.weight"], w["norm.bias"])


class _Cache:
    """Keys and values of each layer so far."""

    def __init__(self, layers: int) -> None:
        self.length = 0
        self._kept: list[tuple[Array, Array] | None] = [None] * layers

    def upto(self, length: int) -> "_Cache":
        """The beginning of this cache; the arrays are shared, and never changed."""
        made = _Cache(len(self._kept))
        made.length = length
        if length:
            made._kept = [None if kept is None else (kept[0][:, :length], kept[1][:, :length]) for kept in self._kept]
        return made

    def grow(self, layer: int, k: "Array", v: "Array") -> "tuple[Array, Array]":
        import numpy as np

        kept = self._kept[layer]
        if kept is None:
            made = (k, v)
        else:
            made = (np.concatenate([kept[0], k], axis=1), np.concatenate([kept[1], v], axis=1))
        self._kept[layer] = made
        return made


def _flat(prompt: "Sequence[int | Sequence[int]]") -> tuple[list[int], list[int]]:
    """Tokens, and for each the place inside a picture that comes next."""
    tokens: list[int] = []
    places: list[int] = []
    for item in prompt:
        if isinstance(item, int):
            tokens.append(item)
            places.append(0)
        else:
            tokens += [vocab.IMAGE, *(len(vocab.words()) + code for code in item), vocab.IMAGE_END]
            places += [*range(1, vocab.PLACES + 1), 0, 0]
    return tokens, places


def _pick(logits: "Array", temperature: float, rng: Any) -> int:
    import numpy as np

    if temperature <= 0:
        return int(logits.argmax())
    scaled = (logits - logits.max()) / temperature
    likely = np.exp(scaled)
    return int(rng.choice(len(likely), p=likely / likely.sum()))


def _gelu(x: "Array") -> "Array":
    import numpy as np

    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _norm(x: "Array", weight: "Array", bias: "Array") -> "Array":
    import numpy as np

    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * weight + bias


def _conv(x: "Array", weight: "Array", bias: "Array", stride: int = 1) -> "Array":
    """3 x 3, padded by one: (C, H, W) -> (O, H / stride, W / stride)."""
    import numpy as np

    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    # (C, h, w, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    height, width = windows.shape[1:3]
    columns = windows.transpose(0, 3, 4, 1, 2).reshape(-1, height * width)
    return (weight.reshape(weight.shape[0], -1) @ columns + bias[:, None]).reshape(-1, height, width)


def _conv1(x: "Array", weight: "Array", bias: "Array") -> "Array":
    """1 x 1."""
    return (weight[:, :, 0, 0] @ x.reshape(x.shape[0], -1) + bias[:, None]).reshape(-1, *x.shape[1:])


def _shuffle(x: "Array") -> "Array":
    """Pixel shuffle by two: (4 C, H, W) -> (C, 2 H, 2 W)."""
    channels = x.shape[0] // 4
    height = x.shape[1]
    width = x.shape[2]
    return x.reshape(channels, 2, 2, height, width).transpose(0, 3, 1, 4, 2).reshape(channels, 2 * height, 2 * width)
