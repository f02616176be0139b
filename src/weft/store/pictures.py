"""The one place where picture bytes are opened. Bytes are untrusted: the format comes from the bytes, never from a name;
size limits are checked on the header before anything is decoded, so a decompression bomb costs nothing."""

import io
import warnings
from typing import TYPE_CHECKING

from weft.errors import PictureError

if TYPE_CHECKING:
    from PIL import Image as Pil

MAX_BYTES = 64 * 1024 * 1024
MAX_PIXELS = 100_000_000
FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}


def sniff(data: bytes) -> str:
    """Media type by magic number."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if not data:
        raise PictureError("is empty (0 bytes)")
    raise PictureError(f"is not a PNG, JPEG, WebP or GIF picture (it starts with {data[:8]!r})")


def measure(data: bytes) -> tuple[str, int, int]:
    """Media type, width and height from the header alone, within the limits."""
    media_type = sniff(data)
    if len(data) > MAX_BYTES:
        raise PictureError(f"has {len(data):,} bytes, more than the limit of {MAX_BYTES:,}")
    picture = _open(data)
    width, height = picture.size
    return media_type, width, height


def decode(data: bytes) -> "Pil.Image":
    """The decoded picture. Raises PictureError for anything cut short or corrupt."""
    measure(data)
    picture = _open(data)
    try:
        picture.load()
    except Exception as error:  # Pillow's decoders raise nearly anything on broken input
        raise PictureError(f"is corrupt: {error}") from None
    return picture


def encode_png(picture: "Pil.Image") -> bytes:
    """Lossless bytes for a picture that has none of its own. Same pixels, same bytes."""
    if picture.mode not in ("RGB", "RGBA", "L"):
        picture = picture.convert("RGBA" if "A" in picture.getbands() or "transparency" in picture.info else "RGB")
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", compress_level=6)
    return buffer.getvalue()


def _open(data: bytes) -> "Pil.Image":
    from PIL import Image as Pil

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Pil.DecompressionBombWarning)
        try:
            picture = Pil.open(io.BytesIO(data), formats=tuple(FORMATS))
        except Pil.DecompressionBombError:
            raise PictureError(f"has more pixels than the limit of {MAX_PIXELS:,}") from None
        except Exception as error:  # see decode
            raise PictureError(f"cannot be read as a picture: {_first_line(error)}") from None
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise PictureError(f"is {width} x {height}, more pixels than the limit of {MAX_PIXELS:,}")
    return picture


def _first_line(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return "the header is corrupt" if "BytesIO" in text else text
