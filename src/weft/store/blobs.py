"""Pictures as files named by the sha256 of their bytes: bytes in are bytes kept. And the one way in which weft writes
what must be whole: under another name first, then renamed.

A blob is written to a temporary name, flushed and renamed, so a file that has its final name is whole. Putting the same
bytes twice stores them once. A picture is proven the first time it is put: what is in the store can be used for
everything. It is checked against its name whenever it is read: a file that was damaged is put aside, so that the next
command makes it anew, and is never used."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from weft.errors import ImageError, StoreError
from weft.store.images import MAX_BYTES, PIXEL_BUDGET, decode, encode_jpeg, encode_png, measure, verify_image
from weft.types import Image, Reply
from weft.untrusted import open_file

if TYPE_CHECKING:
    from PIL import Image as Pil

BLOBS = "blobs"  # their folder in a home
DIGEST = re.compile("[0-9a-f]{64}")


def blobs_folder(home: str | Path) -> Path:
    return Path(home) / BLOBS


@dataclass(frozen=True)
class Blobs:
    """A store in a folder, which is made when something is put into it."""

    root: Path

    def path(self, digest: str) -> Path:
        """Raises PictureError for what is no digest: it may have come with a journal, from anybody."""
        if DIGEST.fullmatch(digest) is None:
            raise ImageError(f"{digest[:12]!r} is no picture's name")
        return self.root / digest[:2] / digest

    def put(self, data: bytes, *, durable: bool = True, verified: bool = False) -> Image:
        """Keep a picture. Raises PictureError for bytes that are no usable picture; nothing is stored then. Raises
        StoreError if it cannot be kept. What can be made again at no cost need not be `durable`: it survives the
        process, but is not waited for until it would survive a power cut. `proven`: we made it ourselves."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        there = _has(path, len(data))  # a power cut may have left it short
        media_type, width, height = measure(data) if there or verified else verify_image(data)
        if not there:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_file(path, data, durable=durable)
            except OSError as error:
                raise StoreError(f"a picture cannot be kept in {self.root}: {error.strerror or error}") from None
        return Image(digest, media_type, width, height, len(data))

    def put_pil(self, picture: "Pil.Image", *, durable: bool = True) -> Image:
        return self.put(encode_png(picture), durable=durable, verified=True)

    def put_jpeg(self, picture: "Pil.Image") -> Image:
        return self.put(encode_jpeg(picture), durable=False, verified=True)

    def has(self, image: Image) -> bool:
        return DIGEST.fullmatch(image.digest) is not None and _has(self.path(image.digest), image.size)

    def open_file(self, image: Image) -> BinaryIO:
        """The picture's file, open: a plain file of ours, never a link to another. Who reads it checks it against its
        name."""
        return open_file(self.path(image.digest), MAX_BYTES, ImageError, follow=False)

    def read(self, image: Image) -> bytes:
        try:
            with self.open_file(image) as file:
                data = file.read()
        except FileNotFoundError:
            raise ImageError(f"{image.digest[:12]} is not in the store (was {self.root} moved or emptied?)") from None
        except OSError as error:
            raise ImageError(f"{image.digest[:12]} cannot be read from the store: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != image.digest:
            raise self.quarantine(image)
        return data

    def quarantine(self, image: Image) -> ImageError:
        """A picture's file is not what it was: it is put aside, and is not in the store any more."""
        path = self.path(image.digest)
        with suppress(OSError):
            path.replace(path.with_name(f".damaged-{image.digest}"))
        return ImageError(
            f"{image.digest[:12]} is damaged in the store: its file was put aside; run the same command again"
        )

    def decode(self, image: Image) -> "Pil.Image":
        """The decoded picture, for small ones; who opens large ones uses `opened`, and lets them go."""
        return decode(self.read(image))

    @contextmanager
    def decode_within_memory(self, image: Image) -> "Generator[Pil.Image]":
        """The decoded picture for a moment, once there is room for it."""
        with PIXEL_BUDGET.reserve(image.width * image.height):
            yield decode(self.read(image))


def find_missing_images(home: Path, replies: Iterable[Reply]) -> list[str]:
    """Pictures that replies have, and the store has not."""
    blobs = Blobs(blobs_folder(home))
    return list(dict.fromkeys(image.digest for reply in replies for image in reply.images if not blobs.has(image)))


def find_damaged_images(home: Path, *, quarantine: bool) -> list[str]:
    """Pictures that are not what their names say; put aside, they are no longer in the store."""
    bad: list[str] = []
    for path in sorted(blobs_folder(home).glob("??/*")):
        if DIGEST.fullmatch(path.name) is None or path.is_symlink():
            continue
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == path.name:
                continue
        bad.append(path.name)
        if quarantine:
            path.replace(path.with_name(f".damaged-{path.name}"))
    return bad


def _has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def write_file(path: Path, data: bytes, *, durable: bool = False, world_readable: bool = False) -> None:
    """`durable` waits until it would survive a power cut. `shown`: others may read it too, as any file that a user
    writes."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if world_readable:
            Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_folder(out: Path, write: Callable[[Path], None]) -> None:
    """A folder that `write` fills under another name. What is at its place goes when the new one is whole: at every
    moment the old one or the new one is there, under a name that tells."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        part.chmod(0o755)
        write(part)
        old = out.with_name(f".{out.name}.old-{part.name}")
        if out.exists():
            out.rename(old)
        part.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
