"""Gates on pixels: was anything changed, is there anything at all, was too much changed.

The largest local change finds images that come back unedited: the colours of an 8 x 8 grid are compared cell by cell,
and the largest difference counts. A global measure cannot tell a small edit from none.
"""

import base64
from typing import TYPE_CHECKING

from msgspec import Struct

from weft.building.context import Context
from weft.building.draft import GateVerdict
from weft.building.features import Feature
from weft.building.orders import Order
from weft.types import Image

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as Pil

    Array = NDArray[np.float32]

GRID_SIDE = 8
GREY_SIDE = 32
BLANK_CONTRAST = 6.0  # standard deviation of an image's grey values, of 255, below which there is nothing to see
SSIM_WINDOW = 4
SSIM_CONSTANTS = ((0.01 * 255) ** 2, (0.03 * 255) ** 2)


def _compute_grid(image: "Pil.Image") -> str:
    """Mean colours of 8 x 8 areas, as bytes in base64."""
    from PIL import Image as Pil

    return _encode(image.convert("RGB").resize((GRID_SIDE, GRID_SIDE), Pil.Resampling.BOX))


def _compute_grey(image: "Pil.Image") -> str:
    """The image in grey at 32 x 32 pixels, as bytes in base64."""
    from PIL import Image as Pil

    return _encode(image.convert("L").resize((GREY_SIDE, GREY_SIDE), Pil.Resampling.BOX))


GRID = Feature("grid", "1", _compute_grid)
GREY = Feature("grey", "1", _compute_grey)


class EditedGate(Struct, frozen=True):
    """Rejects an edit that came back as it was: its largest local change is too small."""

    least: float = 5.0  # of 255
    name: str = "unedited"

    async def check(self, order: Order, image: Image, context: Context) -> GateVerdict:
        if not order.shown:
            return GateVerdict(self.name, passed=True)
        smallest = 255.0
        after = await context.feature(GRID, image)
        for shown in order.shown:
            before = await context.feature(GRID, shown)
            smallest = min(smallest, largest_local_change(before, after))
        return GateVerdict(self.name, smallest >= self.least, round(smallest, 2), "" if smallest else "unchanged")


class BlankGate(Struct, frozen=True):
    """Rejects an image in which there is nothing to see."""

    least: float = BLANK_CONTRAST
    name: str = "blank"

    async def check(self, order: Order, image: Image, context: Context) -> GateVerdict:
        contrast = float(_decode(await context.feature(GREY, image), (GREY_SIDE, GREY_SIDE)).std())
        return GateVerdict(self.name, contrast >= self.least, round(contrast, 2))


class KeptGate(Struct, frozen=True):
    """Rejects an edit after which the image is another one: the structural similarity to the first image is too low."""

    least: float
    name: str = "changed too much"

    async def check(self, order: Order, image: Image, context: Context) -> GateVerdict:
        if order.kind != "edit":
            return GateVerdict(self.name, passed=True)
        similarity = structural_similarity(
            await context.feature(GREY, order.shown[0]), await context.feature(GREY, image)
        )
        return GateVerdict(self.name, similarity >= self.least, round(similarity, 4))


def largest_local_change(before: str, after: str) -> float:
    """Return the largest difference between two grids, of 255: that of the colour that changed most."""
    import numpy as np

    shape = (GRID_SIDE, GRID_SIDE, 3)
    difference = np.abs(_decode(before, shape) - _decode(after, shape))
    return float(difference.max(axis=2).max())


def structural_similarity(first: str, second: str) -> float:
    """Return the mean SSIM of two grey images, in windows of 4 x 4 (Wang et al. 2004, equation 13)."""
    blocks = GREY_SIDE // SSIM_WINDOW
    shape = (blocks, SSIM_WINDOW, blocks, SSIM_WINDOW)
    a = _decode(first, shape)
    b = _decode(second, shape)
    axes = (1, 3)
    mean_a, mean_b = a.mean(axes), b.mean(axes)
    covariance = (a * b).mean(axes) - mean_a * mean_b
    c1, c2 = SSIM_CONSTANTS
    luminance = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
    structure = (2 * covariance + c2) / (a.var(axes) + b.var(axes) + c2)
    similarity: Array = luminance * structure
    return float(similarity.mean())


def _encode(image: "Pil.Image") -> str:
    return base64.b64encode(image.tobytes()).decode()


def _decode(text: str, shape: tuple[int, ...]) -> "Array":
    import numpy as np

    return np.frombuffer(base64.b64decode(text), dtype=np.uint8).astype(np.float32).reshape(shape)
