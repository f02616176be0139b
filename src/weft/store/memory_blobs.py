"""An image store in memory, for a server that passes images on: an image is there as long as a request that brought or
generated it."""

import hashlib
import io
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import BinaryIO

from weft.errors import ImageError
from weft.store.blobs import Blobs
from weft.store.image_metadata import without_metadata
from weft.store.images import measure, verify_image
from weft.types import Image

REQUEST_DIGESTS: "ContextVar[list[str] | None]" = ContextVar("REQUEST_DIGESTS", default=None)


@dataclass(frozen=True)
class MemoryBlobs(Blobs):
    """Images by digest, each with the number of requests that hold it. Nothing is written to `root`."""

    _images: dict[str, tuple[bytes, int]] = field(default_factory=dict[str, tuple[bytes, int]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def hold(self) -> Generator[None]:
        """Keep every image that is put inside, also by threads started inside, until the end."""
        digests: list[str] = []
        token = REQUEST_DIGESTS.set(digests)
        try:
            yield
        finally:
            REQUEST_DIGESTS.reset(token)
            with self._lock:
                for digest in digests:
                    self._release(digest)

    def _release(self, digest: str) -> None:
        data, holders = self._images[digest]
        if holders > 1:
            self._images[digest] = (data, holders - 1)
        else:
            del self._images[digest]

    def put(self, data: bytes, *, durable: bool = True, verified: bool = False, unchanged: bool = False) -> Image:
        """Store an image in memory. Raises ImageError for bytes that are not a usable image."""
        if not verified and not unchanged:
            data, verified = without_metadata(data)
        digest = hashlib.sha256(data).hexdigest()
        if verified or digest in self._images:
            media_type, width, height = measure(data)
        else:
            media_type, width, height = verify_image(data)
        digests = REQUEST_DIGESTS.get()
        with self._lock:
            _, holders = self._images.get(digest, (data, 0))
            self._images[digest] = (data, holders + 1)
            if digests is not None:
                digests.append(digest)
        return Image(digest, media_type, width, height, len(data))

    def has(self, image: Image) -> bool:
        """Return whether an image is stored."""
        return image.digest in self._images

    def open_file(self, image: Image) -> BinaryIO:
        """Return an image's bytes as a file."""
        return io.BytesIO(self.read(image))

    def read(self, image: Image) -> bytes:
        """Return an image's bytes. Raises ImageError if no request holds it any more."""
        stored = self._images.get(image.digest)
        if stored is None:
            raise ImageError(f"{image.digest[:12]} is not in memory any more: its request has ended")
        return stored[0]

    def __len__(self) -> int:
        return len(self._images)

    def __bool__(self) -> bool:
        return True
