import pytest

from server import drawn, drawn_as, png_header
from weft.errors import ImageError
from weft.store.blobs import Blobs


def test_bytes_in_are_bytes_kept_once(blobs: Blobs):
    data = drawn("a")
    first, second = blobs.put(data), blobs.put(data)
    assert first == second
    assert blobs.read(first) == data
    assert len([path for path in blobs.root.rglob("*") if path.is_file()]) == 1
    assert (first.media_type, first.width, first.height, first.size) == ("image/png", 24, 24, len(data))


def test_the_media_type_comes_from_the_bytes(blobs: Blobs):
    from io import BytesIO

    from PIL import Image

    for format, expected in (
        ("JPEG", "image/jpeg"),
        ("WEBP", "image/webp"),
        ("GIF", "image/gif"),
        ("PNG", "image/png"),
    ):
        out = BytesIO()
        Image.new("RGB", (5, 4), "red").save(out, format)
        assert blobs.put(out.getvalue()).media_type == expected


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"hello, I am a text", "not a PNG"),
        (drawn("a")[:60], "corrupt|cannot be read"),
        (png_header(50_000, 50_000), "50000 x 50000|more pixels"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a PNG"),
    ],
)
def test_what_is_no_usable_picture_is_refused_and_leaves_nothing_behind(blobs: Blobs, data: bytes, why: str):
    with pytest.raises(ImageError, match=why):
        blobs.put(data)
    assert not [path for path in blobs.root.rglob("*") if path.is_file()]


def test_a_picture_cut_in_the_middle_of_its_pixels_is_corrupt(blobs: Blobs):
    data = drawn("a", 200)
    with pytest.raises(ImageError, match="corrupt"):
        blobs.put(data[: len(data) - 60])


@pytest.mark.parametrize("form", ["BMP", "TIFF", "GIF", "cut"])
def test_what_released_scripts_see_in_a_file_is_stored_as_one_still_png(blobs: Blobs, form: str):
    data = drawn_as(form, "a")
    with pytest.raises(ImageError):
        blobs.put(data)
    image = blobs.put_converted(data)
    assert (image.media_type, image.width, image.height) == ("image/png", 24, 24)
    first, plain = (blobs.decode(one).convert("RGB").tobytes() for one in (image, blobs.put(drawn("a"))))
    assert first == plain


@pytest.mark.parametrize("data", [b"", b"hello", drawn("a")[:60], png_header(50_000, 50_000), b"%!PS-Adobe-3.0 EPSF\n"])
def test_what_they_cannot_open_or_must_not_is_not_converted(blobs: Blobs, data: bytes):
    with pytest.raises(ImageError):
        blobs.put_converted(data)
    assert not blobs.root.exists()
