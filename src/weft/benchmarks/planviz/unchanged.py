"""Whether an edited picture is its source again, as far as anyone can see. PlanScore gives such a picture no point.

The made picture is brought to the source's size. It is unchanged if no window of it differs from the source by more
than rounding and the gentlest encoding leave: on average by 5 of 255 in 5 x 5 pixels, 3 in 17 x 17, 2 in 65 x 65, in
brightness and in hue. A digit in small print, a hairline, a label in another colour, a row or a page that is a shade
darker are edits, whatever the size of the picture (tests/benchmarks/test_planviz_unchanged.py). Transparent pictures
are looked at on white and on black.

That is narrow on purpose. Small edits of a page are no larger than what JPEG does to coloured print: what may be either
is left to the judge, who can say that it is the source again. The rule spares a judge the obvious, and never decides a
doubtful case."""

from typing import TYPE_CHECKING, Any

from weft.store.images import flatten

if TYPE_CHECKING:
    from PIL import Image as Pil

WINDOWS = ((2, 5.0), (8, 3.0), (32, 2.0))  # pixels around one, and what may differ there on average, of 255
THUMBNAIL, PLAIN = 512, 48  # a side in pixels, and what must differ there to be more than any window may
FORMAT = 0.03  # by which the ratio of width to height may differ
GROUNDS = ("white", "black")


def is_unchanged(source: "Pil.Image", made: "Pil.Image") -> bool:
    return measure_change(source, made) <= 1.0


def measure_change(source: "Pil.Image", made: "Pil.Image") -> float:
    """By how much the window that differs most does, in parts of what may differ there."""
    clear = any(picture.has_transparency_data for picture in (source, made))
    return max(_on(ground, source, made) for ground in (GROUNDS if clear else GROUNDS[:1]))


def _on(ground: str, source: "Pil.Image", made: "Pil.Image") -> float:
    from PIL import Image as Pil
    from PIL import ImageChops, ImageFilter

    first, second = flatten(source, ground), flatten(made, ground)
    if abs(first.width / first.height / (second.width / second.height) - 1) > FORMAT or _is_plain(first, second):
        return 255.0
    if first.size != second.size:
        second = second.resize(first.size, Pil.Resampling.LANCZOS)
    most = 0.0
    for apart in ImageChops.difference(first.convert("YCbCr"), second.convert("YCbCr")).split():
        for radius, may in WINDOWS:
            reach = min(radius, max(0, (min(apart.size) - 1) // 2))
            most = max(most, apart.filter(ImageFilter.BoxBlur(reach)).getextrema()[1] / may)  # pyright: ignore
    return most


def _is_plain(first: "Pil.Image", second: "Pil.Image") -> bool:
    """Whether a large picture was changed so much that it shows in a small one: what differs there on average differs
    at least as much in some window of the large one."""
    from PIL import Image as Pil
    from PIL import ImageChops

    by = max(first.size) // THUMBNAIL
    if by < 4:
        return False
    small = first.reduce(by)
    other = second.reduce(by) if second.size == first.size else second.resize(small.size, Pil.Resampling.BOX)
    difference = ImageChops.difference(small.convert("YCbCr"), other.convert("YCbCr"))
    extrema: Any = difference.getextrema()
    return any(high > PLAIN for _, high in extrema)
