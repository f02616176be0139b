"""Planner and visualizer in numpy alone, on one core; `train/planner_net.py` and `train/visualizer_net.py` compute the
same in torch, and say what the networks are."""

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UserError
from weft_tabletop.tiny import vocab
from weft_tabletop.tiny.infer import KeyValueCache
from weft_tabletop.tiny.layers import gelu, normalise
from weft_tabletop.tiny.weights import load
from weft_tabletop.weaver import words
from weft_tabletop.weaver.latents import NUMBERS
from weft_tabletop.weaver.sizes import CONTEXT, HEAD, MODULATIONS, STEPS, TIME_FREQUENCIES
from weft_tabletop.weaver.world import WORLDS, TableWorld

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]

MAX_NEW_TOKENS = 200


class TensorFile:
    """Tensors by name, and the world that their model was trained in."""

    def __init__(self, path: Path, model: str) -> None:
        self.tensors, self.facts = load(path)
        world = WORLDS.get(self.facts.get("world", ""))
        if self.facts.get("model") != f"weft tabletop {model}" or world is None:
            raise UserError(f"{path}: these are no weights of a {model}; `weft train tiny-weaver` makes them")
        if self.facts.get("vocabulary") != str(words.SIZE):
            raise UserError(f"{path} was trained with another vocabulary; train it again with this weft")
        self.world: TableWorld = world
        self.path = path
        self.layers = 1 + max(int(name.split(".")[1]) for name in self.tensors if name.startswith("blocks."))

    def __getitem__(self, name: str) -> "Array":
        return self.tensors[name]

    def apply(self, name: str, x: "Array") -> "Array":
        """A linear layer, with its bias if it has one."""
        y = x @ self.tensors[f"{name}.weight"].T
        bias = self.tensors.get(f"{name}.bias")
        return y if bias is None else y + bias

    def normalise(self, name: str, x: "Array") -> "Array":
        return normalise(x, self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])  # type: ignore[arg-type]


class NumpyPlanner:
    """Reads words and images, and writes words and orders."""

    def __init__(self, path: Path) -> None:
        """Load weights, and try them. Raises UserError for a file that is not of this model."""
        import numpy as np

        self._weights = _load(path, "planner")
        self.world = self._weights.world
        self.width = self._weights["token.weight"].shape[1]
        cells = len(self.world.cells)
        with _report_bad_tensors(path):
            self.states(words.encode_order("Draw", 1, cells), np.zeros((1, cells, NUMBERS), np.float32))

    def states(self, tokens: Sequence[int], images: "Array", cache: KeyValueCache | None = None) -> "Array":
        """Return the last states (T, width) for tokens and the numbers of their images (images, cells, 4). With a cache
        the tokens come after those in it."""
        import numpy as np

        cache = cache or KeyValueCache(self._weights.layers)
        start = cache.length
        end = start + len(tokens)
        if end > CONTEXT:
            raise UserError(f"the request has {end} tokens; a planner holds {CONTEXT}")
        x = self._weights["token.weight"][np.array(tokens)] + self._weights["position.weight"][start:end]
        if not start:
            self._show_images(x, images)
        mask = np.triu(np.full((len(tokens), len(tokens)), -1e9, np.float32), 1)
        for layer in range(self._weights.layers):
            x = self._block(layer, x, mask, cache)
        cache.length = end
        return self._weights.normalise("norm", x)

    def _show_images(self, x: "Array", images: "Array") -> None:
        """Add the images to the states of their positions, which are the first ones."""
        cells = len(self.world.cells)
        for number, image in enumerate(images):
            begin = words.HEADER + number * (cells + 2) + 1
            places = self._weights["place.weight"][number * cells : (number + 1) * cells]
            x[begin : begin + cells] += self._weights.apply("latent", image) + places

    def _block(self, layer: int, x: "Array", mask: "Array", cache: KeyValueCache) -> "Array":
        name = f"blocks.{layer}."
        q, k, v = _split_heads(self._weights.apply(name + "qkv", self._weights.normalise(name + "norm1", x)), 3)
        k, v = cache.extend(layer, k, v)  # type: ignore[arg-type]
        attended = _attend(q, k, v, mask if len(x) > 1 else None)
        x = x + self._weights.apply(name + "out", attended)
        h = gelu(self._weights.apply(name + "fc1", self._weights.normalise(name + "norm2", x)))  # type: ignore[arg-type]
        return x + self._weights.apply(name + "fc2", h)

    def reply(self, tokens: Sequence[int], images: "Array") -> list[int]:
        """Return the tokens of the reply, the most likely one at a time, without the mark of its end."""
        import numpy as np

        embedding = self._weights["token.weight"]
        forbidden = np.array([words.is_unused(token) for token in range(words.SIZE)])
        cache = KeyValueCache(self._weights.layers)
        state = self.states(tokens, images, cache)[-1]
        written: list[int] = []
        while len(written) < MAX_NEW_TOKENS and cache.length < CONTEXT:
            token = int(np.where(forbidden, -np.inf, embedding @ state).argmax())
            if token == vocab.END:
                break
            written.append(token)
            state = self.states([token], images, cache)[-1]
        return written


class NumpyVisualizer:
    """Draws the image of an order, from the planner's states within it and the images that it sees."""

    def __init__(self, path: Path) -> None:
        """Load weights, and try them. Raises UserError for a file that is not of this model."""
        import numpy as np

        self._weights = _load(path, "visualizer")
        self.world = self._weights.world
        self.planner_digest = self._weights.facts.get("planner", "")
        cells = len(self.world.cells)
        with _report_bad_tensors(path):
            self.planner_width = self._weights["order.weight"].shape[1]
            noise = np.zeros((cells, NUMBERS), np.float32)
            self._direction(noise, 0.5, noise[None], self._read_order(np.zeros((2, self.planner_width), np.float32)))

    def draw(self, noise: "Array", images: "Array", states: "Array") -> "Array":
        """Return the numbers of an image (cells, 4), from noise of that shape. `images` are (images, cells, 4),
        `states` (T, width) the planner's within the order."""
        keys = self._read_order(states)
        x = noise
        for step in range(STEPS):
            x = x + self._direction(x, step / STEPS, images, keys) / STEPS
        return x

    def _read_order(self, states: "Array") -> "list[tuple[Array, Array]]":
        """The keys and values of each layer: they are the same at every step."""
        order = self._weights.apply("order", states)
        pairs: list[tuple[Array, Array]] = []
        for layer in range(self._weights.layers):
            k, v = _split_heads(self._weights.apply(f"blocks.{layer}.tell", order), 2)
            pairs.append((k, v))
        return pairs

    def _direction(self, noisy: "Array", time: float, images: "Array", order: "list[tuple[Array, Array]]") -> "Array":
        import numpy as np

        cells = len(noisy)
        x = self._weights.apply("noisy", noisy)
        if len(images):
            shown = self._weights.apply("shown", images.reshape(-1, images.shape[-1]))
            x = np.concatenate([x, shown])
        x = x + self._weights["place.weight"][: len(x)]
        moment = self._weights.apply("time2", _silu(self._weights.apply("time1", _embed_time(time))))
        for layer, (k, v) in enumerate(order):
            x = self._block(layer, x, k, v, _silu(moment))
        return self._weights.apply("head", self._weights.normalise("norm", x[:cells]))

    def _block(self, layer: int, x: "Array", k: "Array", v: "Array", moment: "Array") -> "Array":
        import numpy as np

        name = f"blocks.{layer}."
        parts = np.split(self._weights.apply(name + "modulation", moment), MODULATIONS)
        shift1, scale1, gate1, shift2, scale2, gate2 = parts
        h = _normalise_plainly(x) * (1 + scale1) + shift1
        attended = _attend(*_split_heads(self._weights.apply(name + "qkv", h), 3))
        x = x + (1 + gate1) * self._weights.apply(name + "out", attended)
        (q,) = _split_heads(self._weights.apply(name + "ask", self._weights.normalise(name + "norm", x)), 1)
        x = x + self._weights.apply(name + "told", _attend(q, k, v))
        h = _normalise_plainly(x) * (1 + scale2) + shift2
        h = gelu(self._weights.apply(name + "fc1", h))  # type: ignore[arg-type]
        return x + (1 + gate2) * self._weights.apply(name + "fc2", h)


def _load(path: Path, model: str) -> TensorFile:
    with _report_bad_tensors(path):
        return TensorFile(path, model)


@contextmanager
def _report_bad_tensors(path: Path) -> Generator[None]:
    """Turn what missing or misshapen tensors raise into one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path}: these weights are not of this model: {type(error).__name__}: {error}") from None


def _split_heads(x: "Array", parts: int) -> "Array":
    """(T, parts x width) as (parts, heads, T, HEAD)."""
    return x.reshape(len(x), parts, -1, HEAD).transpose(1, 2, 0, 3)


def _attend(q: "Array", k: "Array", v: "Array", mask: "Array | None" = None) -> "Array":
    """Attention of (heads, T, HEAD) to (heads, S, HEAD); returns (T, width)."""
    import numpy as np

    scores = q @ k.transpose(0, 2, 1) / math.sqrt(HEAD)
    if mask is not None:
        scores[:, :, -mask.shape[1] :] += mask
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attended = (scores / scores.sum(axis=-1, keepdims=True)) @ v
    return attended.transpose(1, 0, 2).reshape(attended.shape[1], -1)


def _normalise_plainly(x: "Array") -> "Array":
    import numpy as np

    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def _silu(x: "Array") -> "Array":
    import numpy as np

    return x / (1 + np.exp(-x))


def _embed_time(time: float) -> "Array":
    import numpy as np

    steps = np.arange(TIME_FREQUENCIES, dtype=np.float32)
    angles = time * np.exp(steps / (TIME_FREQUENCIES - 1) * math.log(1000.0))
    return np.concatenate([np.sin(angles), np.cos(angles)]).astype(np.float32)
