"""Images of every format that weft accepts, with texts wherever a format has a place for them, and spoilt: what can be
used shows the same without its metadata, and says nothing."""

import io
import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image as Pil
from PIL import ImageCms, PngImagePlugin

from fuzz import Broken
from fuzz.spoil import spoil_bytes
from weft.errors import ImageError
from weft.store.blobs import Blobs
from weft.store.image_metadata import remove_metadata
from weft.store.images import FORMATS, decode, make_upright, verify_image

SAID = b"words-that-nobody-needs-to-see"
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def _exif(chance: random.Random) -> bytes:
    tags = Pil.Exif()
    tags[0x0112] = chance.choice([1, 3, 6, 8, 99])
    tags[0x010E] = SAID.decode()
    return tags.tobytes()


def _png(chance: random.Random) -> dict[str, Any]:
    texts = PngImagePlugin.PngInfo()
    for number in range(chance.randrange(4)):
        texts.add_text(chance.choice(["parameters", "prompt", f"x{number}"]), SAID.decode(), zip=False)
    texts.add_itxt("wide", SAID.decode())
    return {"pnginfo": texts, "exif": _exif(chance), "icc_profile": chance.choice([PROFILE, None])}


def _jpeg(chance: random.Random) -> dict[str, Any]:
    more = {"progressive": chance.random() < 0.5, "icc_profile": chance.choice([PROFILE, None])}
    return {"exif": _exif(chance), "comment": SAID, "xmp": b"<x>" + SAID, "quality": chance.choice([5, 75, 95]), **more}


def _webp(chance: random.Random) -> dict[str, Any]:
    return {"exif": _exif(chance), "xmp": SAID, "lossless": chance.random() < 0.5, "icc_profile": PROFILE}


def _gif(chance: random.Random) -> dict[str, Any]:
    return {"comment": SAID}


OPTIONS: dict[str, Callable[[random.Random], dict[str, Any]]] = {"PNG": _png, "JPEG": _jpeg, "WEBP": _webp, "GIF": _gif}
MODES = {
    "PNG": ("RGB", "RGBA", "L", "P", "1", "LA"),
    "JPEG": ("RGB", "L", "CMYK"),
    "WEBP": ("RGB", "RGBA"),
    "GIF": ("P", "L"),
}


def image(format: str, chance: random.Random) -> bytes:
    """An image that says something, whole."""
    size = (chance.randrange(1, 60), chance.randrange(1, 60))
    out = io.BytesIO()
    painted = Pil.frombytes("RGB", size, chance.randbytes(size[0] * size[1] * 3))
    painted.convert(chance.choice(MODES[format])).save(out, format, **OPTIONS[format](chance))
    return out.getvalue() + chance.choice([b"", SAID + b";"])  # a GIF must end so


def shown(data: bytes) -> Any:
    upright = make_upright(decode(data))
    return upright.size, upright.convert("RGBA").tobytes()


def check(data: bytes, blobs: Blobs) -> str:
    """What became of an image. Raises Broken where it shows something else, or says something."""
    try:
        verify_image(data)
    except ImageError:
        try:
            blobs.put(data)
        except ImageError:
            return "refused"
        raise Broken(f"what is no image was stored: {data[:60]!r}") from None
    stored = blobs.read(blobs.put(data))
    if shown(stored) != shown(data):
        raise Broken(f"another image was stored than was sent: {data!r}")
    if remove_metadata(stored) != stored:
        raise Broken(f"something is left to remove: {stored!r}")
    if blobs.read(blobs.put(data, unchanged=True)) != data:
        raise Broken("a dataset's image was changed")
    return "unchanged" if stored is data else "stored"


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    for format in FORMATS:
        if format not in OPTIONS:
            raise Broken(f"nobody says how to make an image of the format {format} that says something")
        blobs = Blobs(folder / format)
        for number in range(count):
            data = image(format, chance)
            if number % 4 == 0:
                if SAID in remove_metadata(data):
                    raise Broken(f"{format}: the words are still there: {data!r}")
            elif format == "PNG" and number % 4 == 1:
                name = bytes(chance.choice(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(4))
                chunk = struct.pack(">I", len(SAID)) + name + SAID + struct.pack(">I", zlib.crc32(name + SAID))
                data = data[:33] + chunk + data[33:]
            else:
                data = spoil_bytes(data, chance)
            done[f"{format}: {check(data, blobs)}"] += 1
    return done
