"""Whether an edited picture is nearly its source: the source again, though it may have been encoded anew, made larger or smaller, or a
shade lighter. PlanScore gives such a picture no point.

Both are brought to one size, of at most 1024 pixels a side, and smoothed, hue more than brightness, as encoders do; an even shift is taken
out. If then no block
of 8 x 8 pixels (4 x 4 in small pictures) differs by more than 12 of 255 on average, nobody would see an edit. A line of two pixels, a digit
in small print or a switch that moved is far above that (tests/benchmarks/test_planviz_unchanged.py). What is above it is left to the judge:
the rule spares a judge the obvious, and never decides a doubtful case.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as Pil

    Pixels = NDArray[np.float32]

LIMIT = 12.0  # of 255
SIDE, BLOCK = 1024, 8
SMALL, SMALL_BLOCK = 256, 4  # pictures up to this side
FORMAT = 0.03  # by which the ratio of width to height may differ


def is_unchanged(source: "Pil.Image", made: "Pil.Image") -> bool:
    return change(source, made) <= LIMIT


def change(source: "Pil.Image", made: "Pil.Image") -> float:
    """How much the block that differs most does, 0 to 255."""
    import numpy as np

    if abs(source.width / source.height / (made.width / made.height) - 1) > FORMAT:
        return 255.0
    scale = min(1.0, SIDE / max(source.size))
    block = BLOCK if max(source.size) > SMALL else SMALL_BLOCK
    size = (max(block, round(source.width * scale)), max(block, round(source.height * scale)))
    apart = _smooth(source, size) - _smooth(made, size)
    shift = np.median(apart.reshape(-1, 3), axis=0)
    if float(np.abs(shift).max()) > LIMIT:
        return 255.0
    most = np.abs(apart - shift).max(axis=2)
    height, width = (length // block * block for length in most.shape)
    blocks = most[:height, :width].reshape(height // block, block, width // block, block)
    return float(blocks.mean(axis=(1, 3)).max())


def _smooth(picture: "Pil.Image", size: tuple[int, int]) -> "Pixels":
    """Brightness and hue."""
    import numpy as np
    from PIL import Image as Pil
    from PIL import ImageFilter

    rgb = picture.convert("RGB")
    rgb = rgb if rgb.size == size else rgb.resize(size, Pil.Resampling.LANCZOS)
    bands = zip(rgb.convert("YCbCr").split(), (1.0, 2.0, 2.0), strict=True)
    return np.stack([np.asarray(band.filter(ImageFilter.GaussianBlur(by)), dtype=np.float32) for band, by in bands], axis=2)
