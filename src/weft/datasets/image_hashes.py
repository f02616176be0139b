"""Images of a dataset, each read once: hashed and measured, and stored only where a run needs them.

hashes = ImageHashes()
dataset = data_format.load(folder, MeasuringBlobs(Path(), hashes))     # nothing is written
"""

import hashlib
import threading
from array import array
from dataclasses import dataclass, field

from weft.datasets.perceptual_hash import PLANE, perceptual_hash
from weft.errors import ImageError
from weft.store.blobs import Blobs
from weft.store.images import PIXEL_BUDGET, decode_small, measure
from weft.types import Image

KEY_BYTES = 16  # of a digest; enough to tell a dataset's images apart


@dataclass
class ImageHashes:
    """Perceptual hashes of images by number; 24 bytes an image and a key."""

    hashes: "array[int]" = field(default_factory=lambda: array("Q"))
    _numbers: dict[bytes, int] = field(default_factory=dict[bytes, int])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, digest: str, data: bytes) -> None:
        """Hash an image, unless it is known. Raises ImageError if it cannot be decoded."""
        key = _key(digest)
        if key in self._numbers:
            return
        _, width, height = measure(data)
        with PIXEL_BUDGET.reserve(width * height):
            value = perceptual_hash(decode_small(data, 2 * PLANE))
        with self._lock:
            if key not in self._numbers:
                self._numbers[key] = len(self.hashes)
                self.hashes.append(value)

    def number(self, image: Image) -> int | None:
        """Return the number of an image; None if it was not hashed."""
        return self._numbers.get(_key(image.digest))


def _key(digest: str) -> bytes:
    return bytes.fromhex(digest)[:KEY_BYTES]


@dataclass(frozen=True)
class HashingBlobs(Blobs):
    """An image store that also hashes what is put into it."""

    hashes: ImageHashes = field(default_factory=ImageHashes)

    def put(self, data: bytes, *, durable: bool = True, verified: bool = False, unchanged: bool = False) -> Image:
        image = super().put(data, durable=durable, verified=verified, unchanged=unchanged)
        self.hashes.add(image.digest, data)
        return image


@dataclass(frozen=True)
class MeasuringBlobs(Blobs):
    """Takes images for statistics: it measures and hashes them, and stores none. Nothing is written to `root`."""

    hashes: ImageHashes | None = None  # None: images are only measured

    def put(self, data: bytes, *, durable: bool = True, verified: bool = False, unchanged: bool = False) -> Image:
        media_type, width, height = measure(data)
        digest = hashlib.sha256(data).hexdigest()
        if self.hashes is not None:
            self.hashes.add(digest, data)
        return Image(digest, media_type, width, height, len(data))

    def has(self, image: Image) -> bool:
        return False

    def read(self, image: Image) -> bytes:
        raise ImageError(f"{image.digest[:12]} was measured and not stored")
