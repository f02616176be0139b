"""Images inside a drawing: downscaled to the size of print, encoded anew, and embedded, so that the file needs no
other."""

import base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weft.errors import ImageError
from weft.store.blobs import Blobs
from weft.store.images import apply_orientation, downscale, encode_jpeg, encode_png, exif_orientation, flatten
from weft.types import Image

if TYPE_CHECKING:
    from PIL import Image as Pil

TINY = 128  # pixels: images up to this side are enlarged without blur
ENLARGED = 512  # pixels of their longer side then
MAX_SIDE = 1024  # pixels of an embedded image
PIXELS_PER_POINT = 300 / 72  # of print
MAX_PNG_BYTES = 200_000  # a larger image is embedded as JPEG
EmbedImage = Callable[[Image, float], str | None]  # (image, longer side in points) -> data URL


def image_embedder(stores: Sequence[Blobs]) -> EmbedImage:
    """Return a function from an image and its longer side in points to a data URL; None if no store has it. Each image
    is decoded once for each size."""
    urls: dict[tuple[str, int], str | None] = {}

    def embed(image: Image, points: float) -> str | None:
        side = min(MAX_SIDE, max(1, round(points * PIXELS_PER_POINT)))
        key = (image.digest, side)
        if key not in urls:
            urls[key] = next((_encode_url(image, side, blobs) for blobs in stores if blobs.has(image)), None)
        return urls[key]

    return embed


def _encode_url(image: Image, side: int, blobs: Blobs) -> str | None:
    try:
        with blobs.decode_within_memory(image) as opened:
            orientation = exif_orientation(opened)
            shown = flatten(apply_orientation(downscale(opened, side), orientation))
        png = encode_png(_enlarge_tiny(shown))
        if len(png) <= MAX_PNG_BYTES:
            return f"data:image/png;base64,{base64.b64encode(png).decode()}"
        return f"data:image/jpeg;base64,{base64.b64encode(encode_jpeg(shown)).decode()}"
    except (ImageError, OSError):
        return None


def _enlarge_tiny(image: "Pil.Image") -> "Pil.Image":
    """Return a tiny image with each pixel as a square of pixels: viewers would blur it."""
    from PIL import Image as Pil

    longer = max(image.size)
    if longer > TINY:
        return image
    factor = max(1, ENLARGED // longer)
    return image.resize((image.width * factor, image.height * factor), Pil.Resampling.NEAREST)
