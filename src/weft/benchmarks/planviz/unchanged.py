"""Whether an edited picture is nearly its source: the source again, though it may have been encoded anew, or made larger and back.
PlanScore gives such a picture no point.

The made picture is brought to the source's size; an even shift of colour is taken out. It is unchanged if no window of it differs from the
source by more than an encoder's noise: on average by 24 of 255 in 5 x 5 pixels, 12 in 17 x 17, 6 in 65 x 65; hue, of which encoders keep
less, by 48, 18 and 8. So an edit must be strong or large, and a digit in small print, a two-pixel line, a tick, a row that is a shade
darker are edits, whatever the size of the picture (tests/benchmarks/test_planviz_unchanged.py). Transparent pictures are looked at on white
and on black. What is above is left to the judge: the rule spares a judge the obvious, and never decides a doubtful case.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image as Pil

BRIGHTNESS = ((2, 24.0), (8, 12.0), (32, 6.0))  # pixels around one, and what may differ there on average, of 255
HUE = ((2, 48.0), (8, 18.0), (32, 8.0))
THUMBNAIL, PLAIN = 512, 96  # a side in pixels, and what must differ there to be more than any window may, an even shift included
EVEN = 12  # the most that an even shift may be
FORMAT = 0.03  # by which the ratio of width to height may differ
GROUNDS = ("white", "black")


def is_unchanged(source: "Pil.Image", made: "Pil.Image") -> bool:
    return change(source, made) <= 1.0


def change(source: "Pil.Image", made: "Pil.Image") -> float:
    """By how much the window that differs most does, in parts of what may differ there."""
    if abs(source.width / source.height / (made.width / made.height) - 1) > FORMAT:
        return 255.0
    clear = any(picture.has_transparency_data for picture in (source, made))
    return max(_on(ground, source, made) for ground in (GROUNDS if clear else GROUNDS[:1]))


def _on(ground: str, source: "Pil.Image", made: "Pil.Image") -> float:
    from PIL import Image as Pil
    from PIL import ImageFilter

    first, second = _flat(source, ground), _flat(made, ground)
    if _is_plain(first, second):
        return 255.0
    if first.size != second.size:
        second = second.resize(first.size, Pil.Resampling.LANCZOS)
    most = 0.0
    for windows, apart in zip((BRIGHTNESS, HUE, HUE), _differences(first, second), strict=True):
        for radius, may in windows:
            reach = min(radius, max(0, (min(apart.size) - 1) // 2))
            most = max(most, apart.filter(ImageFilter.BoxBlur(reach)).getextrema()[1] / may)  # pyright: ignore
    return most


def _is_plain(first: "Pil.Image", second: "Pil.Image") -> bool:
    """Whether a large picture was changed so much that it shows in a small one: what differs there on average differs at least as much in
    some window of the large one."""
    from PIL import Image as Pil
    from PIL import ImageChops

    by = max(first.size) // THUMBNAIL
    if by < 4:
        return False
    small = first.reduce(by)
    other = second.reduce(by) if second.size == first.size else second.resize(small.size, Pil.Resampling.BOX)
    return any(high > PLAIN for _, high in ImageChops.difference(small.convert("YCbCr"), other.convert("YCbCr")).getextrema())  # pyright: ignore


def _flat(picture: "Pil.Image", ground: str) -> "Pil.Image":
    """Eight bits a colour, nothing transparent."""
    from PIL import Image as Pil

    if picture.mode.startswith("I"):  # 16 bits, which would be cut off at 255
        picture = picture.convert("I").point(lambda value: value / 257).convert("L")
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    flat = Pil.new("RGBA", clear.size, ground)
    flat.alpha_composite(clear)
    return flat.convert("RGB")


def _differences(first: "Pil.Image", second: "Pil.Image") -> "Iterator[Pil.Image]":
    """Of brightness, then of the two hues; without what differs evenly."""
    from PIL import ImageChops

    for a, b in zip(first.convert("YCbCr").split(), second.convert("YCbCr").split(), strict=True):
        shift = _median(a) - _median(b)
        even = b.point([max(0, min(255, value + shift)) for value in range(256)]) if abs(shift) <= EVEN else b
        yield ImageChops.difference(a, even)


def _median(band: "Pil.Image") -> int:
    counts, seen = band.histogram(), 0
    for value, count in enumerate(counts):
        seen += count
        if 2 * seen >= sum(counts):
            return value
    return 255
