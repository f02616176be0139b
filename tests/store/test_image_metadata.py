"""Images lose what is not needed to show them, and nothing else."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil
from PIL import ImageCms, PngImagePlugin

from weft.errors import ImageError
from weft.secrets import hide
from weft.store.blobs import Blobs
from weft.store.image_metadata import remove_metadata
from weft.store.images import decode, make_upright, verify_image
from weft.store.memory_blobs import MemoryBlobs

KEY = "sk-canary-7d1e5b0c9a3f4826"
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")


def painted(mode: str = "RGB") -> Pil.Image:
    image = Pil.effect_noise((37, 23), 80).convert("RGB")
    image.paste((200, 30, 60), (0, 0, 9, 5))  # so that a turned image is another
    return image.convert(mode)


def exif(orientation: int) -> bytes:
    tags = Pil.Exif()
    tags[0x0112] = orientation
    tags[0x010E] = f"described by {KEY}"
    tags[0x9286] = f"commented by {KEY}"
    return tags.tobytes()


def saved(image: Pil.Image, format: str, **options: Any) -> bytes:
    out = io.BytesIO()
    if format == "WEBP":
        options.setdefault("lossless", True)
    image.save(out, format, **options)
    return out.getvalue()


def spoken(format: str, orientation: int = 1, mode: str = "RGB") -> bytes:
    """An image that has a key in every place where its format has one for texts."""
    image = painted("P" if format == "GIF" else mode)
    options: dict[str, Any] = {}
    if format == "PNG":
        texts = PngImagePlugin.PngInfo()
        texts.add_text("parameters", f"made with {KEY}")
        texts.add_text("zipped", f"made with {KEY}", zip=True)
        texts.add_itxt(f"wide {KEY}", f"made with {KEY}")
        texts.add(b"juNk", KEY.encode())
        texts.add(b"juNk", KEY.encode(), after_idat=True)
        options = {"pnginfo": texts, "exif": exif(orientation), "icc_profile": PROFILE, "dpi": (72, 72)}
    elif format == "JPEG":
        xmp = f"<x:xmpmeta>{KEY}</x:xmpmeta>".encode()
        options = {"exif": exif(orientation), "comment": KEY.encode(), "xmp": xmp, "icc_profile": PROFILE}
    elif format == "WEBP":
        options = {"exif": exif(orientation), "xmp": KEY.encode(), "icc_profile": PROFILE}
    elif format == "GIF":
        options = {"comment": KEY.encode()}
    return saved(image, format, **options) + KEY.encode()


def upright(data: bytes) -> Any:
    image = make_upright(Pil.open(io.BytesIO(data)))
    return image.size, image.convert("RGBA").tobytes()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_what_is_shown_stays_and_what_is_said_goes(format: str, orientation: int):
    data = spoken(format, orientation)
    bare = remove_metadata(data)
    assert KEY.encode() in data and KEY.encode() not in bare
    assert upright(bare) == upright(data)
    assert verify_image(bare)[1:] == (37, 23), "the pixels are as they were, and turned as they were"
    if format != "GIF":
        assert Pil.open(io.BytesIO(bare)).info["icc_profile"] == PROFILE
    assert remove_metadata(bare) is bare
    if format == "PNG":
        texts = dict(Pil.open(io.BytesIO(bare)).text)  # type: ignore[attr-defined]
        assert not texts


@pytest.mark.parametrize("format", FORMATS)
def test_an_image_without_metadata_keeps_its_bytes(format: str):
    modes = {"PNG": ("RGB", "RGBA", "L", "P", "1", "I;16"), "JPEG": ("RGB", "L", "CMYK"), "WEBP": ("RGB", "RGBA")}
    for mode in modes.get(format, ("P", "L")):
        image = painted("L").convert("I;16") if mode == "I;16" else painted().convert(mode)
        for options in ({}, {"progressive": True}, {"optimize": True}, {"lossless": False}, {"icc_profile": PROFILE}):
            if "icc_profile" in options and mode not in ("RGB", "RGBA"):
                continue
            data = saved(image, format, **options)
            assert remove_metadata(data) is data or format == "GIF"
            assert upright(remove_metadata(data)) == upright(data)


def test_a_progressive_jpeg_with_a_comment_between_its_scans():
    data = saved(painted(), "JPEG", progressive=True)
    comment = b"\xff\xfe" + struct.pack(">H", len(KEY) + 2) + KEY.encode()
    scan = data.index(b"\xff\xda")
    table = data.index(b"\xff\xc4", scan)
    bare = remove_metadata(data[:table] + comment + data[table:])
    assert bare == data


def test_a_jpeg_without_its_end_keeps_its_pixels():
    image = painted()
    assert remove_metadata(saved(image, "JPEG", comment=KEY.encode())[:-2]) == saved(image, "JPEG")[:-2]


def chunk(name: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + name + payload + struct.pack(">I", zlib.crc32(name + payload))


@pytest.mark.parametrize(
    "hiding",
    [
        chunk(b"gAMA", struct.pack(">I", 45455) + KEY.encode()),
        chunk(b"cHRM", KEY.encode().ljust(32, b"\0")),
        chunk(b"iCCP", KEY.encode() + b"\0\0" + zlib.compress(PROFILE)),
        chunk(b"iCCP", b"x\0\0" + zlib.compress(PROFILE) + KEY.encode()),
        chunk(b"iCCP", b"x\0\0" + zlib.compress(PROFILE + KEY.encode())),
        chunk(b"iCCP", b"x\0\0" + zlib.compress(PROFILE + KEY.encode("utf-16-be"))),
        chunk(b"acTL", struct.pack(">II", 1, 0)) + chunk(b"fdAT", KEY.encode()),
    ],
)
def test_no_key_hides_in_what_colours_are_described_by(hiding: bytes):
    hide(KEY)
    data = saved(painted(), "PNG")
    bare = remove_metadata(data[:33] + hiding + data[33:])
    assert KEY.encode() not in bare and KEY.encode("utf-16-be") not in bare
    profile = Pil.open(io.BytesIO(bare)).info.get("icc_profile", b"")
    assert KEY.encode() not in profile and KEY.encode("utf-16-be") not in profile
    assert upright(bare) == upright(data)


def test_what_is_no_still_image_is_still_refused(tmp_path: Path):
    frames = [painted(), painted().rotate(90)]
    for format in ("PNG", "GIF", "WEBP"):
        data = saved(frames[0], format, save_all=True, append_images=frames[1:])
        with pytest.raises(ImageError, match="animated"):
            Blobs(tmp_path).put(data)
    for data in (b"", b"hello", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBP"):
        with pytest.raises(ImageError):
            Blobs(tmp_path).put(data)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_followed_is_encoded_anew():
    data = saved(painted(), "GIF")
    odd = data[:13] + data[13:].replace(b"\x2c\0\0\0\0", b"\0\0\x2c\0\0\0\0", 1)  # bytes that decoders skip
    assert upright(odd) == upright(data)
    bare = remove_metadata(odd)
    assert bare.startswith(b"\x89PNG") and upright(bare) == upright(data)


@pytest.mark.parametrize("kind", [Blobs, MemoryBlobs])
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP"])
def test_a_store_keeps_what_models_send_without_and_what_users_give_with_it(kind: Any, format: str, tmp_path: Path):
    data, store = spoken(format, 6), kind(tmp_path / kind.__name__)
    sent, given = store.put(data), store.put(data, unchanged=True)
    assert KEY.encode() not in store.read(sent) and store.read(given) == data
    assert store.put(data) == sent and sent.size == len(store.read(sent))
    assert decode(store.read(sent)).tobytes() == decode(data).tobytes()
