"""The tabletop drawn larger, as a camera would see it: how a judge rates images of 64 pixels says little about how it
rates images of 1024.

Guarantee: `read(draw_photograph(scene, side, seed)).scene == scene` for every scene and side. Even lighting and a
sensor's noise do not make an image read as less clean."""

from typing import TYPE_CHECKING

from weft_tabletop.world.scenes import SIDE, Scene, draw_tile, join_tiles

if TYPE_CHECKING:
    from PIL import Image as Pil

SIDES = tuple(SIDE * scale for scale in range(1, 33))  # pixels at which a table can be drawn
NOISE_PER_SCALE = 0.4  # standard deviation of a pixel's noise, for each time that the side is larger than 64
MAX_NOISE = 4.0
UNEVEN_LIGHT = 0.004  # how much brighter one corner is than the middle, as a share


def draw_large(scene: Scene, side: int) -> "Pil.Image":
    """Draw a scene at `side` x `side` pixels, anti-aliased, without noise."""
    return join_tiles([draw_tile(scene.background, thing, side // SIDE) for thing in scene.cells])


def add_camera_noise(image: "Pil.Image", seed: int) -> "Pil.Image":
    """Add the light and the noise of a photograph. An image of 64 pixels is returned as it is."""
    import numpy as np
    from PIL import Image as Pil

    side = image.width
    if side <= SIDE:
        return image
    rng = np.random.default_rng(seed)
    pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    across, down = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, image.height))
    light = np.asarray(1 + UNEVEN_LIGHT * (np.cos(angle) * across + np.sin(angle) * down), dtype=np.float32)
    deviation = min(MAX_NOISE, NOISE_PER_SCALE * side / SIDE)
    # Noise of brightness alone, as most of a sensor's noise is.
    noise = rng.standard_normal((image.height, side), dtype=np.float32) * deviation
    return Pil.fromarray(np.clip(pixels * light[..., None] + noise[..., None], 0, 255).astype(np.uint8))


def draw_photograph(scene: Scene, side: int, seed: int) -> "Pil.Image":
    """Draw a scene at `side` x `side` pixels, with the light and the noise of a photograph."""
    return add_camera_noise(draw_large(scene, side), seed)
