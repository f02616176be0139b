"""Scenes read from stored images, each image once: its digest identifies its content."""

import functools
from collections import OrderedDict

from weft.store.blobs import Blobs
from weft.types import Image
from weft_tabletop.world.scenes import SceneReading, read

MAX_CACHED = 20_000


@functools.cache
def _cache() -> "OrderedDict[str, SceneReading]":
    return OrderedDict()


def read_image(image: Image, blobs: Blobs) -> SceneReading:
    """The scene in an image, from the cache if it was read before."""
    cache = _cache()
    reading = cache.get(image.digest)
    if reading is None:
        reading = read(blobs.decode(image))
        cache[image.digest] = reading
        if len(cache) > MAX_CACHED:
            cache.popitem(last=False)
    return reading
