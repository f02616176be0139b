"""Images for pages: small ones unchanged, large ones downscaled once (WebP) and cached in the home folder.

A `Gallery` returns an image's address on the page: a file in the report's folder, a data URL, or a path of `weft view`.
An image that is missing from the store has no address; the page says so."""

import base64
import functools
import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from weft.errors import ImageError
from weft.store.blobs import Blobs, write_file
from weft.store.image_metadata import remove_metadata
from weft.store.images import apply_orientation, downscale, encode_png, exif_orientation
from weft.types import Image
from weft.workspace import open_blobs

MAX_SIDE = 640  # pixels of the longer side of an image on a page
MAX_UNCHANGED_BYTES = 120_000  # an image up to this size and MAX_SIDE is shown unchanged
EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
MEDIA_TYPES = {"png": "png", "jpg": "jpeg", "webp": "webp", "gif": "gif"}  # by file ending


class Gallery(Protocol):
    """Gives images their addresses."""

    def href(self, image: Image) -> str | None: ...


class Thumbnails:
    """Images at the size of a page. A downscaled image is cached in `HOME/shown`."""

    def __init__(self, home: Path, side: int = MAX_SIDE, blobs: Blobs | None = None) -> None:
        """`blobs`: where the images are, if not in the home's own store."""
        self.blobs = open_blobs(home) if blobs is None else blobs
        self._folder = home / "shown"
        self.side = side

    def name(self, image: Image) -> str:
        """Return the image's file name. The same bytes at the same size have the same name."""
        if self._is_unchanged(image):
            return f"{image.digest}{EXTENSIONS[image.media_type]}"
        return f"{image.digest}-{self.side}.webp"

    def data(self, image: Image) -> bytes | None:
        """Return the image's bytes; None if it cannot be read."""
        try:
            if self._is_unchanged(image):
                return remove_metadata(self.blobs.read(image))
            return self._read_downscaled(image)
        except (ImageError, OSError):
            return None

    def _read_downscaled(self, image: Image) -> bytes:
        path = self._folder / self.name(image)
        if path.is_file():
            return path.read_bytes()
        data = self._downscale(image)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_file(path, data)
        except OSError:  # the home folder is read-only
            return data
        return path.read_bytes()

    def _is_unchanged(self, image: Image) -> bool:
        is_small = max(image.width, image.height) <= self.side and image.size <= MAX_UNCHANGED_BYTES
        return is_small and image.media_type in EXTENSIONS

    def _downscale(self, image: Image) -> bytes:
        with self.blobs.decode_within_memory(image) as opened:
            orientation = exif_orientation(opened)
            small = apply_orientation(downscale(opened, self.side), orientation)
        mode = "RGBA" if "A" in small.getbands() else "RGB"
        out = io.BytesIO()
        small.convert(mode).save(out, "WEBP", quality=85)
        return remove_metadata(out.getvalue())


@functools.cache
def damaged_placeholder() -> bytes:
    """Return the image that stands in for one whose file is damaged."""
    from PIL import Image as Pil
    from PIL import ImageDraw

    placeholder = Pil.new("RGB", (192, 64), "#eee")
    ImageDraw.Draw(placeholder).text((8, 24), "this image's file is damaged", fill="#900")
    return encode_png(placeholder)


class ImageFiles:
    """Images in a folder, next to the folder of dialogues. `weft view` serves them on request."""

    def __init__(self, thumbnails: Thumbnails, folder: str = "img") -> None:
        self._thumbnails = thumbnails
        self._folder = folder
        self.images: dict[str, Image] = {}  # by file name, those that a page shows

    def href(self, image: Image) -> str | None:
        if not self._thumbnails.blobs.has(image):
            return None
        name = self._thumbnails.name(image)
        self.images[name] = image
        return f"../{self._folder}/{name}"

    def data(self, name: str) -> bytes | None:
        """Return the bytes of an image that a page shows; None for any other name."""
        if name not in self.images:
            return None
        return self._thumbnails.data(self.images[name]) or damaged_placeholder()

    def write(self, folder: Path) -> None:
        """Write every image that a page shows to a file."""
        folder.mkdir(parents=True, exist_ok=True)

        def write_image(name: str) -> None:
            (folder / name).write_bytes(self.data(name) or b"")

        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            list(pool.map(write_image, self.images))


class InlineImages:
    """Images for a report in one file: each once, as a data URL that the page's script puts in place."""

    def __init__(self, thumbnails: Thumbnails) -> None:
        self._thumbnails = thumbnails
        self.data_urls: dict[str, str] = {}  # by file name

    def href(self, image: Image) -> str | None:
        name = self._thumbnails.name(image)
        if name not in self.data_urls:
            data = self._thumbnails.data(image)
            if data is None:
                return None
            media_type = MEDIA_TYPES[name.rpartition(".")[2]]
            self.data_urls[name] = f"data:image/{media_type};base64,{base64.b64encode(data).decode()}"
        return f"#{name}"
