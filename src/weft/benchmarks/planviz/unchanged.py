"""Whether an edited image is visibly its source again. PlanScore gives such an image no point.

The edited image is resized to the source. It is unchanged if no window of it differs from the source by more than
rounding and the gentlest encoding cause: on average by 5 of 255 in 5 x 5 pixels, 3 in 17 x 17, 2 in 65 x 65, in
brightness and in hue. A digit in small print, a hairline, a label in another colour, a row or a page that is a shade
darker are edits, whatever the size of the image (tests/benchmarks/test_planviz_unchanged.py). Transparent images are
compared on white and on black.

The rule is narrow on purpose. Small edits of a page are no larger than what JPEG does to coloured print: what may be
either is left to the judge, who can say that it is the source again. The rule never decides a doubtful case.
"""

from typing import TYPE_CHECKING, Any

from weft.store.images import flatten

if TYPE_CHECKING:
    from PIL import Image as Pil

WINDOWS = ((2, 5.0), (8, 3.0), (32, 2.0))  # radius in pixels, and the mean difference allowed there, of 255
THUMBNAIL_SIDE = 512  # in pixels
THUMBNAIL_DIFFERENCE = 48  # of 255; more than this in a thumbnail is more than any window allows
MAX_ASPECT_DIFFERENCE = 0.03  # of width / height, relative
BACKGROUNDS = ("white", "black")
CHANGED = 255.0  # far above 1


def is_unchanged(source: "Pil.Image", image: "Pil.Image") -> bool:
    return measure_change(source, image) <= 1.0


def measure_change(source: "Pil.Image", image: "Pil.Image") -> float:
    """Return the difference of the window that differs most, as a multiple of the difference allowed there."""
    if source.has_transparency_data or image.has_transparency_data:
        return max(_measure_on(background, source, image) for background in BACKGROUNDS)
    return _measure_on(BACKGROUNDS[0], source, image)


def _measure_on(background: str, source: "Pil.Image", image: "Pil.Image") -> float:
    from PIL import Image as Pil
    from PIL import ImageChops, ImageFilter

    first = flatten(source, background)
    second = flatten(image, background)
    aspects = first.width / first.height / (second.width / second.height)
    if abs(aspects - 1) > MAX_ASPECT_DIFFERENCE or _differs_in_thumbnail(first, second):
        return CHANGED
    if first.size != second.size:
        second = second.resize(first.size, Pil.Resampling.LANCZOS)
    largest = 0.0
    for channel in ImageChops.difference(first.convert("YCbCr"), second.convert("YCbCr")).split():
        for radius, allowed in WINDOWS:
            inner_radius = min(radius, max(0, (min(channel.size) - 1) // 2))
            extrema: Any = channel.filter(ImageFilter.BoxBlur(inner_radius)).getextrema()
            largest = max(largest, extrema[1] / allowed)
    return largest


def _differs_in_thumbnail(first: "Pil.Image", second: "Pil.Image") -> bool:
    """Whether a large image was changed so much that it shows in a thumbnail: a mean difference there occurs in some
    window of the large one at least as much."""
    from PIL import Image as Pil
    from PIL import ImageChops

    factor = max(first.size) // THUMBNAIL_SIDE
    if factor < 4:
        return False
    small = first.reduce(factor)
    if second.size == first.size:
        other = second.reduce(factor)
    else:
        other = second.resize(small.size, Pil.Resampling.BOX)
    difference = ImageChops.difference(small.convert("YCbCr"), other.convert("YCbCr"))
    extrema: Any = difference.getextrema()
    return any(high > THUMBNAIL_DIFFERENCE for _, high in extrema)
