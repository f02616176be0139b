"""The tiny model in numpy alone: images to codes and back, and replies with a key-value cache. One core, no torch.

`Tiny.reply` takes a prompt of tokens and images and returns a reply of texts and images. Inside an image only codes can
come, outside only words; where an image starts is the model's own choice. Words are always the most likely ones. With a
temperature its images are sampled, and the seed and the prompt decide what is drawn."""

import math
import zlib
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from weft.errors import UserError
from weft_tabletop.tiny import vocab
from weft_tabletop.tiny.layers import apply_1x1, convolve, gelu, normalise, shuffle_pixels
from weft_tabletop.tiny.weights import IMAGE_NETWORK_FILE, load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as Pil

    Array = NDArray[np.float32]

HEADS = 4
MAX_TEXT_TOKENS = 96
MAX_CACHED_PROMPTS = 24
MIN_SHARED_TOKENS = 8  # with fewer, a cached prompt saves nothing
PLACES_OF = {"micro": 4}  # codes of an image, in worlds of fewer cells
Prompt = Sequence[int | Sequence[int]]  # tokens, and the codes of images


class TinyReply(Struct, frozen=True):
    """Texts, and the codes of images, in order. `is_cut` if the context was full."""

    parts: tuple[str | tuple[int, ...], ...]
    is_cut: bool = False
    tokens_in: int = 0
    tokens_out: int = 0  # words, and the codes of images


class Tiny:
    def __init__(self, folder: Path, talker: str = "talker") -> None:
        """Load the weights from a folder, and try them. Raises UserError for weights that are not of this model."""
        import numpy as np

        self._image_weights, _ = load(folder / IMAGE_NETWORK_FILE)
        self._talker_weights, facts = load(folder / f"{talker}.safetensors")
        if facts.get("vocabulary") != str(vocab.size()):
            raise UserError(
                f"{folder / talker}.safetensors was trained with another vocabulary; train it again with this weft"
            )
        self.world = facts.get("world", "full")  # one of `weaver/world.py`: the cells that its images have codes for
        self._places = PLACES_OF.get(self.world, vocab.PLACES)
        self._recent: deque[tuple[list[int], KeyValueCache]] = deque(maxlen=MAX_CACHED_PROMPTS)
        try:
            weights = self._talker_weights
            self._width = weights["token.weight"].shape[1]
            self._layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
            self._context = weights["position.weight"].shape[0]
            with np.errstate(all="ignore"):
                self._try_weights()
        except Exception as error:  # tensors that are missing, or of another shape
            raise UserError(f"{folder}: these weights are not of this model: {type(error).__name__}: {error}") from None

    def _try_weights(self) -> None:
        """Use every tensor once: an image to codes and back, and the first words of a reply to it."""
        import numpy as np
        from PIL import Image as Pil

        codes = self.encode_image(Pil.new("RGB", (vocab.SIDE, vocab.SIDE), "white"))
        if self.decode_image(codes).size != (vocab.SIDE, vocab.SIDE):
            raise ValueError("its images have another size")
        tokens = [vocab.USER, vocab.IMAGE, *(len(vocab.words()) + code for code in codes)]
        places = [0, 0, *range(1, len(codes) + 1)]
        logits = self._forward(np.array(tokens), np.array(places), KeyValueCache(self._layers))
        if logits.shape != (vocab.size(),):
            raise ValueError("it has another vocabulary")

    def encode_image(self, image: "Pil.Image") -> list[int]:
        """Return a 64 x 64 image as 16 codes."""
        import numpy as np

        weights = self._image_weights
        x = np.asarray(image.convert("RGB"), dtype=np.float32).transpose(2, 0, 1) / 127.5 - 1
        for layer in range(4):
            x = gelu(convolve(x, weights[f"down.{layer}.weight"], weights[f"down.{layer}.bias"], stride=2))
        z = apply_1x1(x, weights["to_code.weight"], weights["to_code.bias"])
        codes = [0] * vocab.PLACES
        for channel, level in enumerate(vocab.LEVELS):
            digits = ((level - 1) / (1 + np.exp(-z[channel]))).reshape(-1)
            codes = [code * level + round(float(digit)) for code, digit in zip(codes, digits, strict=True)]
        return codes

    def decode_image(self, codes: Sequence[int]) -> "Pil.Image":
        """Return the image that 16 codes stand for."""
        import numpy as np
        from PIL import Image as Pil

        weights = self._image_weights
        x = apply_1x1(_split_codes(codes), weights["from_code.weight"], weights["from_code.bias"])
        x = x + gelu(convolve(x, weights["middle.weight"], weights["middle.bias"]))
        for layer in range(4):
            x = shuffle_pixels(convolve(x, weights[f"up.{layer}.weight"], weights[f"up.{layer}.bias"]))
            if layer < 3:
                x = gelu(x)
        pixels = np.clip(np.round((x.transpose(1, 2, 0) + 1) * 127.5), 0, 255).astype(np.uint8)
        return Pil.fromarray(pixels)

    def reply(self, prompt: Prompt, *, one_image: bool = True, temperature: float = 0.0, seed: int = 0) -> TinyReply:
        """Return what follows the prompt. With `one_image` the reply ends after its first image.

        Raises UserError if the prompt is longer than the context.
        """
        import numpy as np

        tokens, places = flatten_prompt(prompt)
        if len(tokens) > self._context - self._places - 2:
            raise UserError(f"the dialogue has {len(tokens)} tokens; the tiny model holds {self._context}")
        rng = np.random.default_rng([seed, zlib.crc32(np.array(tokens, np.int32).tobytes())])
        cache = self._find_shared_cache(tokens)
        logits = self._forward(np.array(tokens[cache.length :]), np.array(places[cache.length :]), cache)
        self._recent.append((tokens, cache.truncate(len(tokens))))
        parts: list[str | tuple[int, ...]] = []
        text: list[int] = []
        words = 0
        while cache.length < self._context - 1 and len(text) < MAX_TEXT_TOKENS:
            token = int(logits[: len(vocab.words())].argmax())
            if token == vocab.END:
                break
            if token != vocab.IMAGE:
                text.append(token)
                words += 1
                logits = self._append(token, cache)
                continue
            if text:
                parts.append(vocab.decode(text))
                text = []
            if cache.length + self._places + 2 > self._context:
                return self._count_tokens(parts, len(tokens), words, is_cut=True)
            codes = self._draw_codes(cache, temperature, rng)
            parts.append(tuple(codes))
            if one_image:
                return self._count_tokens(parts, len(tokens), words)
            self._append(len(vocab.words()) + codes[-1], cache)
            logits = self._append(vocab.IMAGE_END, cache)
        if text:
            parts.append(vocab.decode(text))
        return self._count_tokens(parts, len(tokens), words)

    def _append(self, token: int, cache: "KeyValueCache", place: int = 0) -> "Array":
        """Add one token to the cache; return the logits of the next one."""
        import numpy as np

        return self._forward(np.array([token]), np.array([place]), cache)

    def _draw_codes(self, cache: "KeyValueCache", temperature: float, rng: Any) -> list[int]:
        """Draw the codes of one image. The last one is not in the cache yet."""
        words = len(vocab.words())
        token = vocab.IMAGE
        codes: list[int] = []
        for place in range(1, self._places + 1):
            logits = self._append(token, cache, place)
            codes.append(_choose_code(logits[words:], temperature, rng))
            token = words + codes[-1]
        return codes

    def _find_shared_cache(self, tokens: list[int]) -> "KeyValueCache":
        """Return a cache of the longest beginning that a recent prompt shares: turns of one dialogue share nearly all
        of it."""
        longest = 0
        shared_cache = KeyValueCache(self._layers)
        for recent_tokens, cache in list(self._recent):
            shared = _count_shared(recent_tokens, tokens)
            if shared > max(longest, MIN_SHARED_TOKENS):
                longest = shared
                shared_cache = cache
        return shared_cache.truncate(min(longest, len(tokens) - 1))

    def _forward(self, tokens: "NDArray[Any]", places: "NDArray[Any]", cache: "KeyValueCache") -> "Array":
        """Pass new tokens through all layers, after those in the cache; return the logits after the last."""
        import numpy as np

        weights = self._talker_weights
        start = cache.length
        count = len(tokens)
        positions = weights["position.weight"][start : start + count]
        x = weights["token.weight"][tokens] + positions + weights["place.weight"][places]
        head_width = self._width // HEADS
        if count > 1:
            mask = np.triu(np.full((count, count), -1e9, dtype=np.float32), 1)
        else:
            mask = None
        for layer in range(self._layers):
            block = f"blocks.{layer}."
            h = normalise(x, weights[block + "norm1.weight"], weights[block + "norm1.bias"])
            h = h @ weights[block + "qkv.weight"].T
            q, k, v = h.reshape(count, 3, HEADS, head_width).transpose(1, 2, 0, 3)  # each (heads, count, width)
            k, v = cache.extend(layer, k, v)
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(head_width)
            if mask is not None:
                scores[:, :, start:] += mask
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            attended = (scores / scores.sum(axis=-1, keepdims=True)) @ v
            x = x + attended.transpose(1, 0, 2).reshape(count, -1) @ weights[block + "out.weight"].T
            h = normalise(x, weights[block + "norm2.weight"], weights[block + "norm2.bias"])
            h = gelu(h @ weights[block + "fc1.weight"].T + weights[block + "fc1.bias"])
            x = x + h @ weights[block + "fc2.weight"].T + weights[block + "fc2.bias"]
        cache.length += count
        return weights["token.weight"] @ normalise(x[-1], weights["norm.weight"], weights["norm.bias"])

    def _count_tokens(
        self, parts: Sequence[str | tuple[int, ...]], tokens_in: int, words: int, *, is_cut: bool = False
    ) -> TinyReply:
        """Return the reply with its number of tokens."""
        images = sum(1 for part in parts if not isinstance(part, str))
        return TinyReply(tuple(parts), is_cut, tokens_in, words + self._places * images)


class KeyValueCache:
    """Keys and values of each layer so far."""

    def __init__(self, layers: int) -> None:
        self.length = 0
        self._pairs: list[tuple[Array, Array] | None] = [None] * layers

    def truncate(self, length: int) -> "KeyValueCache":
        """The beginning of this cache. The arrays are shared, and never changed."""
        beginning = KeyValueCache(len(self._pairs))
        beginning.length = length
        if length:
            for layer, pair in enumerate(self._pairs):
                if pair is not None:
                    beginning._pairs[layer] = (pair[0][:, :length], pair[1][:, :length])
        return beginning

    def extend(self, layer: int, k: "Array", v: "Array") -> "tuple[Array, Array]":
        """Add the keys and values of new tokens to a layer; return all of them."""
        import numpy as np

        earlier = self._pairs[layer]
        if earlier is not None:
            k = np.concatenate([earlier[0], k], axis=1)
            v = np.concatenate([earlier[1], v], axis=1)
        self._pairs[layer] = (k, v)
        return k, v


def flatten_prompt(prompt: Prompt) -> tuple[list[int], list[int]]:
    """Return the tokens, and for each the place inside an image that comes next (0: none)."""
    tokens: list[int] = []
    places: list[int] = []
    for item in prompt:
        if isinstance(item, int):
            tokens.append(item)
            places.append(0)
        else:
            tokens += [vocab.IMAGE, *(len(vocab.words()) + code for code in item), vocab.IMAGE_END]
            places += [*range(1, len(item) + 1), 0, 0]
    return tokens, places


def _count_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """The length of the beginning that two sequences share."""
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return index
    return min(len(first), len(second))


def _split_codes(codes: Sequence[int]) -> "Array":
    """Codes as (channels, 4, 4) numbers from -1 to 1."""
    import numpy as np

    rest: Any = np.array(codes, dtype=np.int64).reshape(4, 4)
    channels: list[Any] = []
    for level in reversed(vocab.LEVELS):
        channels.append((rest % level).astype(np.float32) / (level - 1) * 2 - 1)
        rest = rest // level
    return np.stack(channels[::-1])


def _choose_code(logits: "Array", temperature: float, rng: Any) -> int:
    import numpy as np

    if temperature <= 0:
        return int(logits.argmax())
    weights = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(weights), p=weights / weights.sum()))
