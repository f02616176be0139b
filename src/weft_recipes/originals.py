"""A user's folder of images that dialogues begin with."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

from weft.benchmarks.record_files import digest_dataset
from weft.building.context import Context
from weft.building.recipe import Dropped
from weft.errors import ImageError, UserError
from weft.store.images import MAX_BYTES
from weft.types import Image
from weft.untrusted import read_file

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


def list_originals(folder: Path, option: str = "--originals") -> list[Path]:
    """Return the images of a folder that an option names, sorted. Raises UserError if there is no such folder."""
    if not folder.is_dir():
        raise UserError(f"{option} {folder}: there is no such folder")
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES)


def digest_originals(files: Sequence[Path]) -> str:
    """Return a digest of the files' names, sizes and ends, by which a build knows that they are the same."""
    return digest_dataset([], [(file.name, file) for file in files])[:16]


def digest_lines(lines: Sequence[str]) -> str:
    """Return a short digest of lines; empty if there are none."""
    if not lines:
        return ""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


async def load_original(file: Path, context: Context) -> Image:
    """Store one of the user's images. Raises Dropped for one that cannot be read."""
    try:
        image = await asyncio.to_thread(lambda: context.blobs.put(read_file(file, MAX_BYTES, ImageError)))
    except (ImageError, OSError) as error:
        raise Dropped("an original cannot be read", f"{file}: {error}") from None
    context.origins.add_file(file.name, [image])
    return image
