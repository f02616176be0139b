"""The tabletop drawn larger, as a camera would see it: a judge that is used on images of 1024 pixels is not known by
what it says of 64.

Guarantee: `read(photograph(scene, side, seed)).scene == scene` for every scene and side, and an even lighting and a
sensor's noise take nothing from how clean the image reads."""

import functools
from typing import TYPE_CHECKING

from weft_tabletop.world.scenes import BACKGROUNDS, CELL, COLOURS, FINE, SIDE, Scene, Thing, draw, outline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as Pil

SIDES = tuple(SIDE * times for times in range(1, 33))  # what it can be drawn at
NOISE = 0.4  # of a pixel, for each time that the side is larger than 64
MOST_NOISE = 4.0
UNEVEN = 0.004  # how much brighter one corner is than another


def draw_large(scene: Scene, side: int) -> "Pil.Image":
    """`side` x `side` pixels, anti-aliased, without noise."""
    import numpy as np
    from PIL import Image as Pil

    if side == SIDE:
        return draw(scene)
    rows = [
        np.concatenate(
            [_tile(scene.background, scene.cells[4 * row + column], side // SIDE) for column in range(4)], axis=1
        )
        for row in range(4)
    ]
    return Pil.fromarray(np.concatenate(rows, axis=0))


def add_camera_noise(image: "Pil.Image", seed: int) -> "Pil.Image":
    """With the light and the noise of a photograph; at 64 pixels as it is."""
    import numpy as np
    from PIL import Image as Pil

    side = image.width
    if side <= SIDE:
        return image
    rng = np.random.default_rng(seed)
    pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    across, down = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, image.height))
    light = np.asarray(1 + UNEVEN * (np.cos(angle) * across + np.sin(angle) * down), dtype=np.float32)
    noise = rng.standard_normal((image.height, side), dtype=np.float32) * min(
        MOST_NOISE, NOISE * side / SIDE
    )  # of brightness alone, as most is
    return Pil.fromarray(np.clip(pixels * light[..., None] + noise[..., None], 0, 255).astype(np.uint8))


def draw_photograph(scene: Scene, side: int, seed: int) -> "Pil.Image":
    return add_camera_noise(draw_large(scene, side), seed)


@functools.cache
def _tile(background: str, thing: Thing | None, times: int) -> "NDArray[np.uint8]":
    """One cell, so many times as large."""
    import numpy as np
    from PIL import Image as Pil

    cell = CELL * times
    ground = BACKGROUNDS[background]
    tile = Pil.new("RGB", (cell, cell), tuple(value * 9 // 10 for value in ground))
    tile.paste(ground, (0, 0, cell - times, cell - times))
    if thing is not None:
        # the same outline at every size, so that it reads as the small one does
        mask = Pil.new("L", (CELL * FINE, CELL * FINE), 0)
        outline(mask, thing.shape, FINE)
        if cell <= CELL * FINE:
            smooth = Pil.Resampling.BOX
        else:
            smooth = Pil.Resampling.BICUBIC
        tile.paste(COLOURS[thing.colour], (0, 0), mask.resize((cell, cell), smooth))
    return np.asarray(tile)
