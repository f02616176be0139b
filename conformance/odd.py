"""Files that are not what their name says, or hardly: what a model's folder of outputs may contain."""

import io
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from server import drawn

SIDE = 24
ORIENTATION = 0x0112
Make = Callable[[str], bytes]


def picture(seed: str) -> Image.Image:
    return Image.open(io.BytesIO(drawn(seed, SIDE)))


def saved(mode: str, form: str, **options: object) -> Make:
    """A picture in another mode, in another form."""

    def make(seed: str) -> bytes:
        out = io.BytesIO()
        picture(seed).convert(mode).save(out, form, **options)
        return out.getvalue()

    return make


def animated(form: str) -> Make:
    def make(seed: str) -> bytes:
        out = io.BytesIO()
        picture(seed).save(out, form, save_all=True, append_images=[picture(f"{seed} next")])
        return out.getvalue()

    return make


def cut(make: Make, share: float) -> Make:
    """The first part of a file."""
    return lambda seed: make(seed)[: int(len(make(seed)) * share)]


def turned(form: str, value: object = 6) -> Make:
    def make(seed: str) -> bytes:
        out = io.BytesIO()
        exif = Image.Exif()
        exif[ORIENTATION] = value
        wide = picture(seed).resize((SIDE, 2 * SIDE))
        wide.save(out, form, exif=exif)
        return out.getvalue()

    return make


def deep(seed: str) -> bytes:
    """A grey picture of 16 bits."""
    out = io.BytesIO()
    picture(seed).convert("L").convert("I").point(lambda value: value * 257).convert("I;16").save(out, "PNG")
    return out.getvalue()


def clear(seed: str) -> bytes:
    """A palette of which one colour is transparent."""
    out = io.BytesIO()
    picture(seed).convert("P").save(out, "PNG", transparency=0)
    return out.getvalue()


def veiled(seed: str) -> bytes:
    out = io.BytesIO()
    half = picture(seed).convert("RGBA")
    half.putalpha(128)
    half.save(out, "PNG")
    return out.getvalue()


IMAGES: dict[str, Make] = {
    "empty": lambda _: b"",
    "a text": lambda _: b"no picture",
    "an SVG": lambda _: b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    "BMP": saved("RGB", "BMP"),
    "BMP with a palette": saved("P", "BMP"),
    "TIFF": saved("RGB", "TIFF"),
    "PPM": saved("RGB", "PPM"),
    "GIF": saved("P", "GIF"),
    "animated GIF": animated("GIF"),
    "animated PNG": animated("PNG"),
    "animated WebP": animated("WEBP"),
    "WebP": saved("RGB", "WEBP", lossless=True),
    "JPEG": saved("RGB", "JPEG"),
    "JPEG in CMYK": saved("CMYK", "JPEG"),
    "grey JPEG": saved("L", "JPEG"),
    "PNG cut in the middle": cut(saved("RGB", "PNG"), 0.6),
    "PNG without its end": lambda seed: saved("RGB", "PNG")(seed)[:-12],
    "PNG with more after it": lambda seed: saved("RGB", "PNG")(seed) + b"\0" * 9000,
    "JPEG cut in the middle": cut(saved("RGB", "JPEG"), 0.8),
    "JPEG without its end": lambda seed: saved("RGB", "JPEG")(seed)[:-2],
    "GIF without its end": lambda seed: saved("P", "GIF")(seed)[:-1],
    "PNG of one bit": saved("1", "PNG"),
    "grey PNG with transparency": saved("LA", "PNG"),
    "PNG of 16 bits": deep,
    "palette with transparency": clear,
    "half transparent PNG": veiled,
    "turned JPEG": turned("JPEG"),
    "turned PNG": turned("PNG", 3),
    "JPEG turned by 9": turned("JPEG", 9),
}
OUT_OF_BOUNDS = {"JPEG 2000": saved("RGB", "JPEG2000"), "AVIF": saved("RGB", "AVIF"), "ICO": saved("RGB", "ICO")}
TEXTS: dict[str, bytes] = {
    "empty": b"",
    "spaces": b" \n ",
    "Latin-1": "d\xe9j\xe0 vu".encode("latin-1"),
    "UTF-16": "a text".encode("utf-16"),
    "Windows lines": b"one\r\ntwo\rthree\r\n",
    "NUL": b"a\0b",
    "braces": b"{a} {{b}} }{",
    "a marker": b"before <image> after",
    "an address": b"http://127.0.0.1:9/x.png",
    "like a file": b"imgs/a.png",
    "tags": b"<think>a</think> b",
    "wide": "\u2028\u00a0x\u3000".encode(),
    "long": b"word " * 4000,
}
WITH_MARK: dict[str, bytes] = {"a mark before it": b"\xef\xbb\xbfFour.", "a mark alone": b"\xef\xbb\xbf"}


def spoil(path: Path, kind: str, seed: str) -> None:
    """Put an odd file in place of an output; `missing` and `a folder` are kinds as well."""
    path.unlink(missing_ok=True)
    if kind == "a folder":
        path.mkdir()
    elif kind != "missing" and path.suffix == ".txt":
        path.write_bytes({**TEXTS, **WITH_MARK}[kind])
    elif kind != "missing":
        path.write_bytes({**IMAGES, **OUT_OF_BOUNDS}[kind](seed))
