"""The one place where picture bytes are opened. Bytes are untrusted: the format comes from the bytes, never from a
name; size limits are checked on the header before anything is decoded, so a decompression bomb costs nothing.

What may be a picture is decided here and nowhere else: a whole PNG, JPEG, WebP or GIF of one frame. An SVG is a
program, an animation is many pictures, a truncated file is none. A picture whose EXIF cannot be read is taken as it
stands.

Pictures are large once they are decoded: `ROOM` lets as many be in memory together as have `MAX_PIXELS` between them.
"""

import contextlib
import io
import threading
import warnings
from collections.abc import Generator
from typing import TYPE_CHECKING

from weft.errors import ImageError

if TYPE_CHECKING:
    from PIL import Image as Pil

MAX_BYTES = 64 * 1024 * 1024
MAX_PIXELS = 100_000_000
HUGE = 16_000_000
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
        raise ImageError("is empty (0 bytes)")
    raise ImageError(f"is not a PNG, JPEG, WebP or GIF picture (it starts with {data[:8]!r})")


def measure(data: bytes) -> tuple[str, int, int]:
    """Media type, width and height from the header alone, within the limits."""
    media_type = sniff(data)
    if len(data) > MAX_BYTES:
        raise ImageError(f"has {len(data):,} bytes, more than the limit of {MAX_BYTES:,}")
    picture = _open(data)
    width, height = picture.size
    return media_type, width, height


def decode(data: bytes) -> "Pil.Image":
    """The decoded picture. Raises PictureError for anything cut short or corrupt."""
    media_type = sniff(data)
    picture = _open(data)
    try:
        if getattr(picture, "is_animated", False):
            raise ImageError("is animated: one still picture is due")
        _check_whole(data, media_type)
        picture.load()
    except ImageError:
        raise
    except Exception as error:  # Pillow's decoders raise nearly anything on broken input
        raise ImageError(f"is corrupt: {_first_line(error)}") from None
    return picture


def open_lazily(data: bytes) -> "Pil.Image":
    """A picture from the store that is decoded when somebody looks at it."""
    return _open(data)


def verify_image(data: bytes) -> tuple[str, int, int]:
    """Its measures. Raises PictureError unless it can be used for everything that weft does with pictures: decoded,
    turned, converted."""
    media_type, width, height = measure(data)
    with PIXEL_BUDGET.reserve(width * height):
        picture = decode(data)
        try:
            for mode in ("RGB", "RGBA", "L"):
                apply_orientation(picture.crop((0, 0, 1, 1)), exif_orientation(picture)).convert(mode)
        except Exception as error:  # see decode
            raise ImageError(f"cannot be used: {_first_line(error)}") from None
    return media_type, width, height


class PixelBudget:
    """How many pixels may be in memory together. A picture that is larger than all of it is let in alone."""

    def __init__(self, pixels: int) -> None:
        self._free = self._all = pixels
        self._changed = threading.Condition()
        self._mine = threading.local()

    @contextlib.contextmanager
    def reserve(self, pixels: int) -> Generator[None]:
        """Waits until there is room. A thread that has some gets more at once: if it waited, nobody might ever go
        on."""
        pixels = min(pixels, self._all)
        inside: int = vars(self._mine).get("times", 0)
        with self._changed:
            if not inside:
                self._changed.wait_for(lambda: self._free >= pixels)
            self._free -= pixels
        self._mine.times = inside + 1
        try:
            yield
        finally:
            self._mine.times = inside
            with self._changed:
                self._free += pixels
                self._changed.notify_all()


PIXEL_BUDGET = PixelBudget(MAX_PIXELS)


def exif_orientation(picture: "Pil.Image") -> int:
    """How EXIF says that the picture is to be turned: 1 is as it is, which is what unreadable EXIF means as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of EXIF that cannot be read
        try:
            found = picture.getexif().get(0x0112, 1)
        except Exception:  # see decode
            return 1
    if found in range(1, 9):
        return found
    return 1


def apply_orientation(picture: "Pil.Image", how: int) -> "Pil.Image":
    from PIL import Image as Pil

    way = Pil.Transpose
    ways = {
        2: way.FLIP_LEFT_RIGHT, 3: way.ROTATE_180, 4: way.FLIP_TOP_BOTTOM, 5: way.TRANSPOSE, 6: way.ROTATE_270, 7: way.TRANSVERSE,
        8: way.ROTATE_90,
    }  # fmt: skip
    if how in ways:
        return picture.transpose(ways[how])
    return picture


def make_upright(picture: "Pil.Image") -> "Pil.Image":
    """The picture as people see it."""
    return apply_orientation(picture, exif_orientation(picture))


def flatten(picture: "Pil.Image", ground: str = "white") -> "Pil.Image":
    """Upright, eight bits a colour, nothing transparent: as a person sees it on that ground."""
    from PIL import Image as Pil

    picture = make_upright(picture)
    if picture.mode.startswith("I"):  # 16 bits, which would be cut off at 255
        picture = picture.convert("I").point(lambda value: value / 257).convert("L")
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    made = Pil.new("RGBA", clear.size, ground)
    made.alpha_composite(clear)
    return made.convert("RGB")


def downscale(picture: "Pil.Image", side: int) -> "Pil.Image":
    """The picture with its longer side at most so long. A huge one is first made smaller band by band, without a second
    copy of it."""
    from PIL import Image as Pil

    factor = max(picture.size) // (2 * side)
    if picture.width * picture.height > HUGE and factor > 1 and picture.mode in ("RGB", "RGBA", "L", "LA"):
        size = (-(-picture.width // factor), -(-picture.height // factor))
        reduced = Pil.new(picture.mode, size)
        for top in range(0, picture.height, 64 * factor):
            band = picture.crop((0, top, picture.width, min(picture.height, top + 64 * factor)))
            reduced.paste(band.reduce(factor), (0, top // factor))
        picture = reduced
    picture.thumbnail((side, side))
    return picture


def _check_whole(data: bytes, media_type: str) -> None:
    """That the file has its end. Pillow lets GIFs and PNGs pass without, and anything if somebody's code in this
    process has told it so. A JPEG of which nothing but the mark at its end is missing is whole: cameras make such."""
    from PIL import ImageFile

    if media_type == "image/jpeg":
        whole = b"\xff\xd9" in data[-4096:] or not ImageFile.LOAD_TRUNCATED_IMAGES
    elif media_type == "image/png":
        whole = b"IEND\xaeB`\x82" in data[-4096:]
    elif media_type == "image/gif":
        whole = data.rstrip(b"\0").endswith(b";")
    else:
        whole = len(data) >= 8 + int.from_bytes(data[4:8], "little")
    if not whole:
        raise ImageError("is corrupt: it is truncated")


def encode_png(picture: "Pil.Image") -> bytes:
    """Lossless bytes for a picture that has none of its own. Same pixels, same bytes."""
    if picture.mode not in ("RGB", "RGBA", "L"):
        picture = picture.convert("RGBA" if "A" in picture.getbands() or "transparency" in picture.info else "RGB")
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", compress_level=6)
    return buffer.getvalue()


def encode_jpeg(picture: "Pil.Image") -> bytes:
    """As Pillow does it where nobody says how, which is how released scripts do it. Raises PictureError for what JPEG
    cannot hold."""
    buffer = io.BytesIO()
    try:
        picture.convert("RGB").save(buffer, format="JPEG")
    except (OSError, ValueError, MemoryError) as error:
        raise ImageError(f"cannot be made a JPEG: {_first_line(error)}") from None
    return buffer.getvalue()


def _open(data: bytes) -> "Pil.Image":
    from PIL import Image as Pil

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Pil.DecompressionBombWarning)
        try:
            picture = Pil.open(io.BytesIO(data), formats=tuple(FORMATS))
        except Pil.DecompressionBombError:
            raise ImageError(f"has more pixels than the limit of {MAX_PIXELS:,}") from None
        except Exception as error:  # see decode
            raise ImageError(f"cannot be read as a picture: {_first_line(error)}") from None
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise ImageError(f"is {width} x {height}, more pixels than the limit of {MAX_PIXELS:,}")
    return picture


def _first_line(error: Exception) -> str:
    if str(error):
        text = str(error).splitlines()[0]
    else:
        text = type(error).__name__
    if "BytesIO" in text:
        return "the header is corrupt"
    return text
