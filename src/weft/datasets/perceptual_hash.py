"""A perceptual hash of an image: 64 bits that stay nearly the same when it is scaled, recompressed or brightened.

The image is reduced to 32 x 32 grey values; the lowest 8 x 8 frequencies of their cosine transform are compared with
their median, a bit each. Two images look alike if at most `MAX_DISTANCE` bits differ.
"""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.store.images import flatten

if TYPE_CHECKING:
    from PIL import Image as Pil

SIDE = 32  # of the grey values
LOW = 8  # frequencies in each direction that count
PLANE = 64  # pixels to which an image is reduced before it is flattened
MAX_DISTANCE = 4  # bits in which two images that look alike may differ


def perceptual_hash(image: "Pil.Image") -> int:
    """Return the hash of an image as a number of 64 bits. An image without structure has 0."""
    from PIL.Image import Resampling

    if image.mode not in ("RGB", "RGBA", "L", "LA"):
        image = flatten(image)
    small = image.copy() if min(image.size) < PLANE else image.resize((PLANE, PLANE), Resampling.BOX)
    grey = flatten(small).convert("L").resize((SIDE, SIDE), Resampling.BOX)
    values = np.asarray(grey, dtype=np.float64)
    transform = _cosines()
    low = (transform @ values @ transform.T)[:LOW, :LOW].ravel().round(3)
    low[0] = 0.0  # the mean brightness says nothing about structure
    bits: Any = low > np.median(low)
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


@functools.cache
def _cosines() -> "np.ndarray[Any, Any]":
    """Return the matrix of the cosine transform."""
    frequencies = np.arange(SIDE)[:, None]
    places = np.arange(SIDE)[None, :]
    return np.cos(np.pi * frequencies * (2 * places + 1) / (2 * SIDE))
