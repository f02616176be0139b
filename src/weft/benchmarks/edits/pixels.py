"""Images as released scripts resize them before a judge sees them."""

from weft.store.blobs import Blobs
from weft.types import Image


def stretch_image(image: Image, other: Image, blobs: Blobs) -> Image:
    """Return the image at the size of another, whatever its aspect ratio, as the scripts resize it."""
    with blobs.decode_within_memory(other) as opened:
        size = opened.size
    with blobs.decode_within_memory(image) as pixels:
        return blobs.put_pil(pixels.convert("RGB").resize(size))


def shrink_image(image: Image, side: int, blobs: Blobs) -> Image:
    """Return the image with no side longer than `side`, as the scripts make a thumbnail of it."""
    if max(image.width, image.height) <= side:
        return image
    with blobs.decode_within_memory(image) as pixels:
        small = pixels.convert("RGB")
        small.thumbnail((side, side))
        return blobs.put_pil(small)
