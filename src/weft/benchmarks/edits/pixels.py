"""Images as released scripts resize them before a judge sees them."""

from weft.store.blobs import Blobs
from weft.types import Image


def stretch_image(image: Image, other: Image, blobs: Blobs) -> Image:
    """Return the image at the size of another, whatever its aspect ratio, as the scripts resize it."""
    with blobs.decode_within_memory(other) as opened:
        size = opened.size
    with blobs.decode_within_memory(image) as pixels:
        return blobs.put_pil(pixels.convert("RGB").resize(size))
