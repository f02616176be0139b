"""The one place where image bytes are opened. Bytes are untrusted: the format comes from the bytes, never from a name;
size limits are checked on the header before anything is decoded, so a decompression bomb costs nothing.

What counts as an image is decided here and nowhere else: a whole PNG, JPEG, WebP or GIF of one frame. An SVG is a
program, an animation is many images, a truncated file is none. An image whose EXIF cannot be read is taken as stored.

Images are large once they are decoded: `PIXEL_BUDGET` bounds the pixels that are in memory at one time.
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
MAX_WHOLE_RESIZE_PIXELS = 16_000_000  # larger images are downscaled band by band
EXIF_ORIENTATION = 0x0112
FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
CONVERTIBLE_FORMATS = (*FORMATS, "BMP", "DIB", "PPM", "TIFF")  # decoded by Pillow itself, without another program


def sniff(data: bytes) -> str:
    """Return the media type by magic number. Raises ImageError for any other format."""
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
    raise ImageError(f"is not a PNG, JPEG, WebP or GIF image (it starts with {data[:8]!r})")


def measure(data: bytes) -> tuple[str, int, int]:
    """Return media type, width and height from the header alone. Raises ImageError beyond the limits."""
    media_type = sniff(data)
    if len(data) > MAX_BYTES:
        raise ImageError(f"has {len(data):,} bytes, more than the limit of {MAX_BYTES:,}")
    image = _open(data)
    width, height = image.size
    return media_type, width, height


def decode(data: bytes) -> "Pil.Image":
    """Return the decoded image. Raises ImageError if it is animated, truncated or corrupt."""
    media_type = sniff(data)
    image = _open(data)
    try:
        if getattr(image, "is_animated", False):
            raise ImageError("is animated: one still image is expected")
        _check_whole(data, media_type)
        image.load()
    except ImageError:
        raise
    except Exception as error:  # Pillow's decoders raise nearly anything on broken input
        raise ImageError(f"is corrupt: {_first_line(error)}") from None
    return image


def decode_small(data: bytes, side: int) -> "Pil.Image":
    """Return an image that is decoded no further than for a look: a JPEG may come reduced, with both sides at least
    `side` pixels. Raises ImageError as `decode` does."""
    media_type = sniff(data)
    if media_type != "image/jpeg":
        return decode(data)
    image = _open(data)
    try:
        _check_whole(data, media_type)
        image.draft(None, (side, side))
        image.load()
    except ImageError:
        raise
    except Exception as error:  # see decode
        raise ImageError(f"is corrupt: {_first_line(error)}") from None
    return image


def decode_for_conversion(data: bytes) -> "Pil.Image":
    """Return what released scripts see in a file that is no image to weft: the first frame of an animation, a BMP, PPM
    or TIFF under any name, a file without its end whose pixels are all there.

    Raises ImageError for anything else, and beyond the limits.
    """
    if len(data) > MAX_BYTES:
        raise ImageError(f"has {len(data):,} bytes, more than the limit of {MAX_BYTES:,}")
    image = _open(data, CONVERTIBLE_FORMATS)
    with PIXEL_BUDGET.reserve(image.width * image.height):
        try:
            image.load()
            return make_upright(image)
        except Exception as error:  # see decode
            raise ImageError(f"is corrupt: {_first_line(error)}") from None


def open_lazily(data: bytes) -> "Pil.Image":
    """Return an image from the store that is decoded on first access to its pixels."""
    return _open(data)


def verify_image(data: bytes) -> tuple[str, int, int]:
    """Return media type, width and height of an image that can be decoded, rotated and converted.

    Raises ImageError for any other bytes.
    """
    media_type, width, height = measure(data)
    with PIXEL_BUDGET.reserve(width * height):
        image = decode(data)
        try:
            for mode in ("RGB", "RGBA", "L"):
                apply_orientation(image.crop((0, 0, 1, 1)), exif_orientation(image)).convert(mode)
        except Exception as error:  # see decode
            raise ImageError(f"cannot be used: {_first_line(error)}") from None
    return media_type, width, height


class PixelBudget:
    """Bounds the decoded pixels in memory. An image larger than the whole budget is admitted alone."""

    def __init__(self, pixels: int) -> None:
        self._total = pixels
        self._free = pixels
        self._changed = threading.Condition()
        self._thread = threading.local()

    @contextlib.contextmanager
    def reserve(self, pixels: int) -> Generator[None]:
        """Wait until there is room, and hold it.

        A thread that holds some gets more at once: if two such threads waited for each other, neither would go on.
        """
        pixels = min(pixels, self._total)
        depth: int = vars(self._thread).get("depth", 0)
        with self._changed:
            if not depth:
                self._changed.wait_for(lambda: self._free >= pixels)
            self._free -= pixels
        self._thread.depth = depth + 1
        try:
            yield
        finally:
            self._thread.depth = depth
            with self._changed:
                self._free += pixels
                self._changed.notify_all()


PIXEL_BUDGET = PixelBudget(MAX_PIXELS)


def exif_orientation(image: "Pil.Image") -> int:
    """Return the EXIF orientation from 1 to 8; 1, as stored, if the EXIF has none or cannot be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of EXIF that cannot be read
        try:
            orientation = image.getexif().get(EXIF_ORIENTATION, 1)
        except Exception:  # see decode
            return 1
    if orientation in range(1, 9):
        return orientation
    return 1


def apply_orientation(image: "Pil.Image", orientation: int) -> "Pil.Image":
    """Rotate and flip an image as an EXIF orientation says."""
    from PIL.Image import Transpose

    methods = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    if orientation in methods:
        return image.transpose(methods[orientation])
    return image


def make_upright(image: "Pil.Image") -> "Pil.Image":
    """Rotate and flip an image as its own EXIF says."""
    return apply_orientation(image, exif_orientation(image))


def flatten(image: "Pil.Image", background: str = "white") -> "Pil.Image":
    """Return an upright RGB image of 8 bits a channel, with transparent pixels over the background."""
    from PIL import Image as Pil

    image = make_upright(image)
    if image.mode.startswith("I"):  # 16 bits, which a plain conversion would clip at 255
        image = image.convert("I").point(lambda value: value / 257).convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    foreground = image.convert("RGBA")
    canvas = Pil.new("RGBA", foreground.size, background)
    canvas.alpha_composite(foreground)
    return canvas.convert("RGB")


def downscale(image: "Pil.Image", side: int) -> "Pil.Image":
    """Return the image with its longer side at most `side` pixels. A huge one is reduced without a second copy."""
    from PIL import Image as Pil

    factor = max(image.size) // (2 * side)
    is_huge = image.width * image.height > MAX_WHOLE_RESIZE_PIXELS
    if is_huge and factor > 1 and image.mode in ("RGB", "RGBA", "L", "LA"):
        size = (-(-image.width // factor), -(-image.height // factor))
        reduced = Pil.new(image.mode, size)
        for top in range(0, image.height, 64 * factor):
            bottom = min(image.height, top + 64 * factor)
            band = image.crop((0, top, image.width, bottom))
            reduced.paste(band.reduce(factor), (0, top // factor))
        image = reduced
    image.thumbnail((side, side))
    return image


def _check_whole(data: bytes, media_type: str) -> None:
    """Raise ImageError for a file without its end.

    Pillow accepts truncated GIFs and PNGs, and every truncated image if other code in this process sets
    LOAD_TRUNCATED_IMAGES. A JPEG that lacks only its end marker is whole: cameras write such files.
    """
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


def encode_png(image: "Pil.Image") -> bytes:
    """Return an image as PNG. The same pixels give the same bytes."""
    if image.mode not in ("RGB", "RGBA", "L"):
        has_alpha = "A" in image.getbands() or "transparency" in image.info
        image = image.convert("RGBA" if has_alpha else "RGB")
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=6)
    return buffer.getvalue()


def encode_jpeg(image: "Pil.Image") -> bytes:
    """Return an image as JPEG with Pillow's defaults, as released scripts do. Raises ImageError if JPEG cannot."""
    buffer = io.BytesIO()
    try:
        image.convert("RGB").save(buffer, format="JPEG")
    except (OSError, ValueError, MemoryError) as error:
        raise ImageError(f"cannot be encoded as JPEG: {_first_line(error)}") from None
    return buffer.getvalue()


def _open(data: bytes, formats: tuple[str, ...] = tuple(FORMATS)) -> "Pil.Image":
    from PIL import Image as Pil

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of EXIF that cannot be read, of images that are large
        try:
            image = Pil.open(io.BytesIO(data), formats=formats)
        except Pil.DecompressionBombError:
            raise ImageError(f"has more pixels than the limit of {MAX_PIXELS:,}") from None
        except Exception as error:  # see decode
            raise ImageError(f"cannot be read as an image: {_first_line(error)}") from None
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ImageError(f"is {width} x {height}, more pixels than the limit of {MAX_PIXELS:,}")
    return image


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    if not lines:
        return type(error).__name__
    if "BytesIO" in lines[0]:
        return "the header is corrupt"
    return lines[0]
