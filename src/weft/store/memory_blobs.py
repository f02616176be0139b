"""A store of pictures in memory, for a server that passes them on: each is there as long as a request that brought or
made it is."""

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
from weft.store.images import measure, verify_image
from weft.types import Image

HELD: "ContextVar[list[str] | None]" = ContextVar("HELD", default=None)


@dataclass(frozen=True)
class MemoryBlobs(Blobs):
    """`root` is where other things of its kind are kept; nothing is written there."""

    _kept: dict[str, tuple[bytes, int]] = field(default_factory=dict[str, tuple[bytes, int]])  # with how many hold it
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def hold(self) -> Generator[None]:
        """What is put within this, and in threads that are begun within it, goes when it ends, unless others hold it as
        well."""
        mine: list[str] = []
        before = HELD.set(mine)
        try:
            yield
        finally:
            HELD.reset(before)
            with self._lock:
                for digest in mine:
                    data, many = self._kept[digest]
                    if many > 1:
                        self._kept[digest] = (data, many - 1)
                    else:
                        del self._kept[digest]

    def put(self, data: bytes, *, durable: bool = True, verified: bool = False) -> Image:
        digest = hashlib.sha256(data).hexdigest()
        media_type, width, height = measure(data) if verified or digest in self._kept else verify_image(data)
        mine = HELD.get()
        with self._lock:
            self._kept[digest] = (data, self._kept.get(digest, (data, 0))[1] + 1)
            if mine is not None:
                mine.append(digest)
        return Image(digest, media_type, width, height, len(data))

    def has(self, image: Image) -> bool:
        return image.digest in self._kept

    def open_file(self, image: Image) -> BinaryIO:
        return io.BytesIO(self.read(image))

    def read(self, image: Image) -> bytes:
        kept = self._kept.get(image.digest)
        if kept is None:
            raise ImageError(f"{image.digest[:12]} is not there any more")
        return kept[0]

    def __len__(self) -> int:
        return len(self._kept)

    def __bool__(self) -> bool:
        return True
