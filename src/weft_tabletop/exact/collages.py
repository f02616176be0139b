"""Whether an image is a sheet of several tables: then its parts are read better than the whole."""

import statistics

from PIL import Image as Pil

from weft.store.blobs import Blobs
from weft.types import Image
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import SceneReading, read

GRIDS = (2, 3)  # parts in each direction that are tried
MIN_PART = 16  # pixels of a part that can be read
MIN_RESIDUAL = 2.0  # of the whole; below it is a clean drawing, and its parts need no look
MAX_RESIDUAL = 30.0  # of a part that passes for a table; noise has more


def is_collage(image: Image, blobs: Blobs) -> bool:
    """Return whether the image is not square, cannot be read, or is a square grid of tables."""
    reading = read_image(image, blobs)
    if image.width != image.height or len(reading.unknown) >= len(reading.scene.cells) / 2:
        return True
    if reading.residual < MIN_RESIDUAL:
        return False
    return any(_is_grid(blobs.decode(image), reading, count) for count in GRIDS)


def _is_grid(whole: Pil.Image, reading: SceneReading, count: int) -> bool:
    """Return whether the parts of a grid are closer to clean drawings than the whole is."""
    side = whole.width // count
    if side < MIN_PART:
        return False
    residuals: list[float] = []
    for row in range(count):
        for column in range(count):
            part = whole.crop((column * side, row * side, (column + 1) * side, (row + 1) * side))
            residuals.append(read(part).residual)
    return statistics.fmean(residuals) < min(reading.residual, MAX_RESIDUAL)
