"""Images as files named by the sha256 of their bytes; and the one way in which weft writes
a file or a folder that must be whole: under a temporary name first, then renamed.

A file with its final name is therefore whole. The same bytes are stored once. An image is verified when it is first
stored, so everything in the store can be decoded. Its digest is checked whenever it is read: a damaged file is moved
aside, so that the next command makes it anew, and is never used.
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from weft.errors import ImageError, StoreError
from weft.store.image_metadata import without_metadata
from weft.store.images import (
    MAX_BYTES,
    PIXEL_BUDGET,
    decode,
    decode_for_conversion,
    encode_jpeg,
    encode_png,
    measure,
    verify_image,
)
from weft.types import Image, Reply
from weft.untrusted import open_file, read_file

if TYPE_CHECKING:
    from PIL import Image as Pil

BLOBS = "blobs"  # the store's folder in a home
DIGEST = re.compile("[0-9a-f]{64}")


def blobs_folder(home: str | Path) -> Path:
    """Return the folder of a home's image store."""
    return Path(home) / BLOBS


@dataclass(frozen=True)
class Blobs:
    """An image store in a folder, which is created when the first image is put into it."""

    root: Path

    def path(self, digest: str) -> Path:
        """Return the path of an image. Raises ImageError for an invalid digest: a journal may come from anybody."""
        if DIGEST.fullmatch(digest) is None:
            raise ImageError(f"{digest[:12]!r} is not the digest of an image")
        return self.root / digest[:2] / digest

    def put(self, data: bytes, *, durable: bool = True, verified: bool = False, unchanged: bool = False) -> Image:
        """Store an image without its metadata, and return once it is on disk.

        `durable`: it survives a power cut; not needed for what can be made again at no cost. `verified`: weft encoded
        it itself. `unchanged`: the user gave it, and models and released scripts get its bytes as they are. Raises
        ImageError for bytes that are not a usable image, which are not stored, and StoreError if it cannot be written.
        """
        if not verified and not unchanged:
            data, verified = without_metadata(data)
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        is_stored = _has_size(path, len(data))  # a power cut may have left it short
        if is_stored or verified:
            media_type, width, height = measure(data)
        else:
            media_type, width, height = verify_image(data)
        if not is_stored:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.parent.is_symlink():
                    raise OSError(f"{path.parent} is a symbolic link")
                write_file(path, data, durable=durable)
            except OSError as error:
                raise StoreError(f"an image cannot be stored in {self.root}: {error.strerror or error}") from None
        return Image(digest, media_type, width, height, len(data))

    def put_file(self, path: Path) -> Image:
        """Store a dataset's file as it is. Raises ImageError for no usable image, OSError if it cannot be read."""
        return self.put(read_file(path, MAX_BYTES, ImageError), durable=False, unchanged=True)

    def put_pil(self, image: "Pil.Image", *, durable: bool = True) -> Image:
        """Store a Pillow image as PNG."""
        return self.put(encode_png(image), durable=durable, verified=True)

    def put_converted(self, data: bytes) -> Image:
        """Store as PNG what released scripts see in a file that `put` rejects. Raises ImageError as they fail."""
        image = decode_for_conversion(data)
        try:
            return self.put_pil(image, durable=False)
        except (OSError, ValueError, MemoryError) as error:
            raise ImageError(f"cannot be converted: {error}") from None

    def put_jpeg(self, image: "Pil.Image") -> Image:
        """Store a Pillow image as JPEG."""
        return self.put(encode_jpeg(image), durable=False, verified=True)

    def has(self, image: Image) -> bool:
        """Return whether an image is stored, by its name and size."""
        return DIGEST.fullmatch(image.digest) is not None and _has_size(self.path(image.digest), image.size)

    def open_file(self, image: Image) -> BinaryIO:
        """Open an image's file, never a symbolic link. The reader must check the digest."""
        return open_file(self.path(image.digest), MAX_BYTES, ImageError, follow=False)

    def read(self, image: Image) -> bytes:
        """Return an image's bytes. Raises ImageError if they are missing or damaged."""
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
        """Move a damaged file out of the store, and return the error to raise."""
        path = self.path(image.digest)
        with suppress(OSError):
            path.replace(path.with_name(f".damaged-{image.digest}"))
        return ImageError(
            f"{image.digest[:12]} is damaged in the store: its file was put aside; run the same command again"
        )

    def decode(self, image: Image) -> "Pil.Image":
        """Return the decoded image. For large ones use `decode_within_memory`."""
        return decode(self.read(image))

    @contextmanager
    def decode_within_memory(self, image: Image) -> "Generator[Pil.Image]":
        """Yield the decoded image, once the images decoded at this moment leave room for it."""
        with PIXEL_BUDGET.reserve(image.width * image.height):
            yield decode(self.read(image))


def find_missing_images(home: Path, replies: Iterable[Reply]) -> list[str]:
    """Return the digests of images in replies that are not in the store, each once."""
    blobs = Blobs(blobs_folder(home))
    missing: dict[str, None] = {}
    for reply in replies:
        for image in reply.images:
            if not blobs.has(image):
                missing[image.digest] = None
    return list(missing)


def list_images(home: Path) -> list[Path]:
    """Return the stored images of a home: regular files, in folders that are in the home."""
    return [file for file in _stored_files(home) if file.is_file()]


def _stored_files(home: Path) -> list[Path]:
    """Return whatever has the name of an image, sorted, but for links and what is behind them."""
    files: list[Path] = []
    for folder in sorted(blobs_folder(home).glob("??")):
        if not folder.is_symlink():
            files += [file for file in sorted(folder.glob("*")) if DIGEST.fullmatch(file.name)]
    return [file for file in files if not file.is_symlink()]


def find_damaged_images(home: Path, *, quarantine: bool) -> list[str]:
    """Return the names of stored files whose bytes do not match, and move them out of the store if asked to."""
    damaged: list[str] = []
    for path in _stored_files(home):
        if _is_sound(path):
            continue
        damaged.append(path.name)
        if quarantine:
            path.replace(path.with_name(f".damaged-{path.name}"))
    return damaged


def _is_sound(path: Path) -> bool:
    """Return whether a file is a regular one, no larger than an image may be, and has the bytes that its name says."""
    try:
        with open_file(path, MAX_BYTES, ImageError, follow=False) as file:
            return hashlib.sha256(file.read()).hexdigest() == path.name
    except (ImageError, OSError):
        return False


def _has_size(path: Path, size: int) -> bool:
    """Return whether a regular file, not a link to one, has this size."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size


def write_file(path: Path, data: bytes, *, durable: bool = False, world_readable: bool = False) -> None:
    """Write a file so that it is whole or absent. `durable`: wait until it would survive a power cut."""
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
    """Replace a folder by one that `write` fills. At every moment the old one or the new one is there, whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        new.chmod(0o755)
        write(new)
        old = out.with_name(f".{out.name}.old-{new.name}")
        if out.exists():
            out.rename(old)
        new.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
