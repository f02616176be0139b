"""Pictures as files named by the sha256 of their bytes: bytes in are bytes kept.

A blob is written to a temporary name, flushed and renamed, so a file that has its final name is whole. Putting the same
bytes twice stores them once. A picture is decoded fully the first time it is put; what is in the store is known to open.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from weft.errors import PictureError
from weft.store.files import write_file
from weft.store.pictures import decode, encode_png, measure
from weft.types import Image

if TYPE_CHECKING:
    from PIL import Image as Pil


class Blobs:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def path(self, digest: str) -> Path:
        return self.root / digest[:2] / digest

    def put(self, data: bytes, *, durable: bool = True) -> Image:
        """Keep a picture. Raises PictureError for bytes that are no usable picture; nothing is stored then. What can be made again at no
        cost need not be `durable`: it survives the process, but is not waited for until it would survive a power cut."""
        media_type, width, height = measure(data)
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if not path.exists() or path.stat().st_size != len(data):  # a power cut may have left it short
            decode(data)
            path.parent.mkdir(exist_ok=True)
            write_file(path, data, durable=durable)
        return Image(digest, media_type, width, height, len(data))

    def put_picture(self, picture: "Pil.Image", *, durable: bool = True) -> Image:
        return self.put(encode_png(picture), durable=durable)

    def has(self, image: Image) -> bool:
        path = self.path(image.digest)
        return path.exists() and path.stat().st_size == image.size

    def read(self, image: Image) -> bytes:
        try:
            return self.path(image.digest).read_bytes()
        except FileNotFoundError:
            raise PictureError(f"picture {image.digest[:12]} is not in the store (was {self.root} moved or emptied?)") from None

    def open(self, image: Image) -> "Pil.Image":
        return decode(self.read(image))
