"""Pictures for generated inputs, and their digests: four blocks of one of 64 colours each.

A digest has the size and the colour in the middle of each block, to the nearest of the 64. It survives JPEG, resizing
and other versions of Pillow, and tells which picture was shown, which way up."""

import hashlib
import io

from PIL import ExifTags, Image

STEP = 64
SIDE = 32  # pixels; blocks end where JPEG's do
CORNERS = ((0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75))


def paint(seed: str, size: tuple[int, int] = (SIDE, SIDE)) -> Image.Image:
    """A picture that only its seed decides."""
    levels = [STEP // 2 + STEP * (byte % 4) for byte in hashlib.sha256(seed.encode()).digest()[:12]]
    picture = Image.new("RGB", size)
    for at, (x, y) in enumerate(CORNERS):
        left, top = round((x - 0.25) * size[0]), round((y - 0.25) * size[1])
        picture.paste(tuple(levels[3 * at : 3 * at + 3]), (left, top, size[0], size[1]))
    return picture


def painted(seed: str, form: str = "PNG", size: tuple[int, int] = (SIDE, SIDE)) -> bytes:
    """The same as a file. `form`: PNG, JPEG, palette, clear (half transparent), or turned (a JPEG that is to be turned
    when it is shown)."""
    picture, out, exif = paint(seed, size), io.BytesIO(), Image.Exif()
    if form == "palette":
        picture = picture.convert("P", palette=Image.Palette.ADAPTIVE)
    elif form == "clear":
        picture = picture.convert("RGBA")
        picture.putalpha(128)
    elif form == "turned":
        exif[ExifTags.Base.Orientation] = 6
    picture.save(out, "JPEG" if form in ("JPEG", "turned") else "PNG", exif=exif)
    return out.getvalue()


def digest_of(picture: Image.Image) -> str:
    rgb = picture.convert("RGB")
    codes = ""
    for x, y in CORNERS:
        pixel = rgb.getpixel((int(x * rgb.width), int(y * rgb.height)))
        assert isinstance(pixel, tuple)
        codes += "".join(str(min(3, level // STEP)) for level in pixel)
    return f"pixels:{rgb.width}x{rgb.height}:{int(codes, 4):06x}"
