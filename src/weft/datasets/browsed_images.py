"""Images of a dataset that is only looked at: those in files stay where they are, and are read when they are shown.

images = BrowsedImages(folder)                     # a temporary one, for images inside records
dataset = data_format.load(data, images)           # only the headers of image files are read
"""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from weft.errors import ImageError
from weft.store.blobs import Blobs
from weft.store.images import MAX_BYTES, measure
from weft.types import Image
from weft.untrusted import open_file, read_file

HEADER_BYTES = 65_536  # of an image file; sizes are nearly always within them


@dataclass(frozen=True)
class BrowsedImages(Blobs):
    """Finds images by their files. Images that have none, those inside records, are written to `root`.

    An image of a file is named by its path, size and time, not by its bytes: a dataset of a terabyte is open at once.
    Nothing is decoded, so damage shows only where an image is shown."""

    _files: dict[str, Path] = field(default_factory=dict[str, Path])  # by digest

    def put_file(self, path: Path) -> Image:
        with open_file(path, MAX_BYTES, ImageError) as file:
            status = os.fstat(file.fileno())
            header = file.read(HEADER_BYTES)
            try:
                media_type, width, height = measure(header)
            except ImageError:
                media_type, width, height = measure(header + file.read())
        name = f"{path}\0{status.st_size}\0{status.st_mtime_ns}"
        digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
        self._files[digest] = path
        return Image(digest, media_type, width, height, status.st_size)

    def put(self, data: bytes, *, durable: bool = True, verified: bool = False, unchanged: bool = False) -> Image:
        return super().put(data, durable=False, verified=True, unchanged=True)

    def has(self, image: Image) -> bool:
        return image.digest in self._files or super().has(image)

    def read(self, image: Image) -> bytes:
        path = self._files.get(image.digest)
        if path is None:
            return super().read(image)
        try:
            return read_file(path, MAX_BYTES, ImageError)
        except OSError as error:
            raise ImageError(f"{path} cannot be read: {error.strerror}") from None
