"""The layers of the tiny model's networks, in numpy."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


def gelu(x: "Array") -> "Array":
    """The tanh approximation."""
    import numpy as np

    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def normalise(x: "Array", weight: "Array", bias: "Array") -> "Array":
    """Layer normalisation over the last axis."""
    import numpy as np

    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * weight + bias


def convolve(x: "Array", weight: "Array", bias: "Array", stride: int = 1) -> "Array":
    """Convolve 3 x 3, padded by one: (C, H, W) -> (O, H / stride, W / stride)."""
    import numpy as np

    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    height, width = windows.shape[1:3]
    columns = windows.transpose(0, 3, 4, 1, 2).reshape(-1, height * width)
    return (weight.reshape(weight.shape[0], -1) @ columns + bias[:, None]).reshape(-1, height, width)


def apply_1x1(x: "Array", weight: "Array", bias: "Array") -> "Array":
    """Convolve 1 x 1."""
    return (weight[:, :, 0, 0] @ x.reshape(x.shape[0], -1) + bias[:, None]).reshape(-1, *x.shape[1:])


def shuffle_pixels(x: "Array") -> "Array":
    """Shuffle pixels by two: (4 C, H, W) -> (C, 2 H, 2 W)."""
    channels = x.shape[0] // 4
    height, width = x.shape[1:]
    grid = x.reshape(channels, 2, 2, height, width).transpose(0, 3, 1, 4, 2)
    return grid.reshape(channels, 2 * height, 2 * width)
