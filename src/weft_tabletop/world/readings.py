"""Scenes read from stored pictures, each once: a picture's digest says all that is in it."""

import functools
from collections import OrderedDict

from weft.store.blobs import Blobs
from weft.types import Image
from weft_tabletop.world.scenes import Reading, read

MOST = 20_000


@functools.cache
def _known() -> "OrderedDict[str, Reading]":
    return OrderedDict()


def reading_of(image: Image, blobs: Blobs) -> Reading:
    known = _known()
    found = known.get(image.digest)
    if found is None:
        found = known[image.digest] = read(blobs.decode(image))
        if len(known) > MOST:
            known.popitem(last=False)
    return found
