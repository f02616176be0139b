"""Pictures for pages: small ones as they are, large ones made smaller once (WebP) and kept beside the journal for the
next report.

A `Gallery` gives a picture's address on the page: a file in the report's folder, a data URL, or a path of `weft view`.
A picture that is not in the store has none; the page says so instead."""

import base64
import functools
import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from weft.errors import ImageError
from weft.store.blobs import write_file
from weft.store.images import apply_orientation, downscale, encode_png, exif_orientation
from weft.types import Image
from weft.workspace import open_blobs

SIDE = 640  # the longer side of a picture on a page, in pixels
SMALL = 120_000  # bytes up to which a picture that is no longer than that is shown as it is
EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}


class Gallery(Protocol):
    def href(self, image: Image) -> str | None: ...


class Thumbnails:
    """Pictures at the size of a page, made once."""

    def __init__(self, home: Path, side: int = SIDE) -> None:
        self.blobs = open_blobs(home)
        self._folder = home / "shown"
        self.side = side

    def name(self, image: Image) -> str:
        """What the picture's file is called; the same bytes at the same size have the same name."""
        if self._as_it_is(image):
            return f"{image.digest}{EXTENSIONS[image.media_type]}"
        return f"{image.digest}-{self.side}.webp"

    def data(self, image: Image) -> bytes | None:
        try:
            if self._as_it_is(image):
                return self.blobs.read(image)
            kept = self._folder / self.name(image)
            if not kept.is_file():
                made = self._smaller(image)
                try:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    write_file(kept, made)
                except OSError:  # a home that is only to be read
                    return made
            return kept.read_bytes()
        except (ImageError, OSError):
            return None

    def _as_it_is(self, image: Image) -> bool:
        return max(image.width, image.height) <= self.side and image.size <= SMALL and image.media_type in EXTENSIONS

    def _smaller(self, image: Image) -> bytes:
        with self.blobs.decode_within_memory(image) as opened:
            how = exif_orientation(opened)
            picture = apply_orientation(downscale(opened, self.side), how)
        out = io.BytesIO()
        picture.convert("RGBA" if "A" in picture.getbands() else "RGB").save(out, "WEBP", quality=85)
        return out.getvalue()


@functools.cache
def damaged_placeholder() -> bytes:
    """What stands for a picture whose file is no longer what it was."""
    from PIL import Image as Pil
    from PIL import ImageDraw

    picture = Pil.new("RGB", (192, 64), "#eee")
    ImageDraw.Draw(picture).text((8, 24), "this picture's file is damaged", fill="#900")
    return encode_png(picture)


class ImageFiles:
    """Pictures in `img/` above a dialogue's page, by the names that pages were given. `weft view` serves them as they
    are asked for."""

    def __init__(self, shown: Thumbnails) -> None:
        self._shown = shown
        self.images: dict[str, Image] = {}

    def href(self, image: Image) -> str | None:
        if not self._shown.blobs.has(image):
            return None
        name = self._shown.name(image)
        self.images[name] = image
        return f"../img/{name}"

    def data(self, name: str) -> bytes | None:
        """None for a name that no page has."""
        if name in self.images:
            return self._shown.data(self.images[name]) or damaged_placeholder()
        return None

    def write(self, folder: Path) -> None:
        """Every picture that a page has, as a file."""
        folder.mkdir(parents=True, exist_ok=True)

        def one(name: str) -> None:
            (folder / name).write_bytes(self.data(name) or b"")

        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            list(pool.map(one, self.images))


class InlineImages:
    """For a report in one file: each picture once, as a data URL under its name, for the page's script to put in
    place."""

    def __init__(self, shown: Thumbnails) -> None:
        self._shown = shown
        self.data_urls: dict[str, str] = {}

    def href(self, image: Image) -> str | None:
        name = self._shown.name(image)
        if name not in self.data_urls:
            data = self._shown.data(image)
            if data is None:
                return None
            kind = {"jpg": "jpeg"}.get(name.rpartition(".")[2], name.rpartition(".")[2])
            self.data_urls[name] = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
        return f"#{name}"
