"""The cubes pictures as the benchmark's released scorer reads them, step by step, without OpenCV.

The released scorer thresholds against a local mean, erodes, fills the outer contours that are large enough, cuts the
box of all ink into nine, and asks of each ninth how much of it is filled and how red or green it is. numpy repeats this
here with OpenCV's own arithmetic (its integer grey, hue and bilinear weights), so that a score of ours can be laid
beside a published one. Our own reader is `grid.read_grid`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image as Pil

Grid = tuple[tuple[str, ...], ...]  # "0" empty, "1" occupied, "r" red, "g" green
SIDE = 300
CELL = 100
# the local mean: its window, 0.3 * ((15 - 1) / 2 - 1) + 0.8, and how far below it ink must be
BLOCK = 15
SIGMA = 2.6
BELOW = 10
STRIPE = 512  # rows taken at a time, so that a large picture needs little memory
MAX_PIXELS = 25_000_000  # it takes all of a picture into memory at once, since a smaller one would be read otherwise
LEAST_AREA = 50
OCCUPANCY_MARGIN = 10
COLOUR_MARGIN = 20
# mean of a mask of 0 and 255
LEAST_OCCUPANCY = 15
LEAST_COLOUR = 30
# red, green, blue
GREY_WEIGHTS = (9798, 19235, 3735)
GREY_BITS = 15
HUE_BITS = 12
WEIGHT_BITS = 11


def read_grid_as_released(picture: "Pil.Image") -> Grid | None:
    """The nine cells as the released scorer finds them, or None where nothing is darker than what is around it."""
    import numpy as np

    pixels = _eight_bit(picture)
    ink = _ink(_grey(pixels))
    rows = np.flatnonzero(ink.any(axis=1))
    columns = np.flatnonzero(ink.any(axis=0))
    if not len(rows):
        return None
    box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    solid = _large(_filled(_eroded(ink)))
    mask = _resized(solid[box].astype(np.uint8)[..., None] * np.uint8(255))[..., 0]
    hue, saturation, value = _hue_saturation_value(_resized(pixels[box]))
    vivid = (saturation >= 70) & (value >= 40)
    red = vivid & ((hue <= 10) | (hue >= 160))
    green = vivid & (hue >= 35) & (hue <= 95)
    return tuple(tuple(_cell(mask, red, green, row, column) for column in range(3)) for row in range(3))


def _cell(mask: Any, red: Any, green: Any, row: int, column: int) -> str:
    if mask[_inner(row, column, OCCUPANCY_MARGIN)].mean() < LEAST_OCCUPANCY:
        return "0"
    inner = _inner(row, column, COLOUR_MARGIN)
    if red[inner].mean() * 255 > LEAST_COLOUR:
        return "r"
    if green[inner].mean() * 255 > LEAST_COLOUR:
        return "g"
    return "1"


def _inner(row: int, column: int, margin: int) -> tuple[slice, slice]:
    """A cell of the resized picture without its rim."""
    return (
        slice(row * CELL + margin, (row + 1) * CELL - margin),
        slice(column * CELL + margin, (column + 1) * CELL - margin),
    )


def _eight_bit(picture: "Pil.Image") -> Any:
    """Red, green and blue as OpenCV's file reader gives them: upright, alpha dropped rather than composed, the high
    byte of 16 bits."""
    import numpy as np
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(picture)
    if upright.mode.startswith("I"):
        high: Any = np.clip(np.asarray(upright).astype(np.int64) >> 8, 0, 255).astype(np.uint8)
        return np.repeat(high[..., None], 3, axis=2)
    return np.asarray(upright.convert("RGB"))


def _grey(pixels: Any) -> Any:
    """OpenCV's integer grey."""
    import numpy as np

    grey: Any = np.empty(pixels.shape[:2], np.uint8)
    for top in range(0, len(pixels), STRIPE):
        part = pixels[top : top + STRIPE].astype(np.int32)
        weighed = sum(part[..., channel] * weight for channel, weight in enumerate(GREY_WEIGHTS))
        grey[top : top + STRIPE] = (weighed + (1 << GREY_BITS - 1)) >> GREY_BITS
    return grey


def _ink(grey: Any) -> Any:
    """Where the grey is well below its Gaussian mean; beyond the rim the rim goes on."""
    import numpy as np

    away = np.arange(BLOCK) - BLOCK // 2
    weights: Any = np.exp(-(away**2) / (2 * SIGMA**2))
    weights = (weights / weights.sum()).astype(np.float32)
    padded: Any = np.pad(grey, BLOCK // 2, mode="edge")
    ink: Any = np.empty(grey.shape, bool)
    for top in range(0, len(grey), STRIPE):
        part = grey[top : top + STRIPE]
        source: Any = padded[top : top + len(part) + BLOCK - 1].astype(np.float32)
        mean = np.rint(_weighed(_weighed(source, weights, 1), weights, 0))
        ink[top : top + STRIPE] = part.astype(np.int16) - mean.astype(np.int16) <= -BELOW
    return ink


def _weighed(source: Any, weights: Any, axis: int) -> Any:
    """The weighted sum of neighbours along one axis, where the window fits; the two sides of a symmetric window are
    added first."""
    half = BLOCK // 2
    length = source.shape[axis] - BLOCK + 1

    def moved(by: int) -> Any:
        if axis == 1:
            return source[:, by : by + length]
        return source[by : by + length]

    total = moved(half) * weights[half]
    for step in range(1, half + 1):
        both = moved(half - step) + moved(half + step)
        both *= weights[half + step]
        total += both
    return total


def _eroded(mask: Any) -> Any:
    """What is on with all eight neighbours; beyond the rim everything counts as on."""
    import numpy as np

    padded: Any = np.pad(mask, 1, constant_values=True)
    across = padded[:, :-2] & padded[:, 1:-1] & padded[:, 2:]
    return across[:-2] & across[1:-1] & across[2:]


def _filled(mask: Any) -> Any:
    """The mask and every hole in it: what cannot be reached from outside in steps along rows and columns."""
    import numpy as np

    row, start, end, label = _parts(~np.pad(mask, 1), touching=0)
    outside = label == label[0]
    return ~_painted(row[outside], start[outside], end[outside], (mask.shape[0] + 2, mask.shape[1] + 2))[1:-1, 1:-1]


def _large(mask: Any) -> Any:
    """The parts (corners touching count) whose outline through the pixels' centres holds more than `LEAST_AREA`.

    A part without holes: four neighbouring centres, all on, hold one unit of area, three of them a half, fewer none.
    """
    import numpy as np

    row, start, end, label = _parts(mask, touching=1)
    if not len(row):
        return mask
    padded: Any = np.pad(mask, ((0, 1), (0, 1))).astype(np.uint8)
    four = padded[:-1, :-1] + padded[:-1, 1:] + padded[1:, :-1] + padded[1:, 1:]
    halves: Any = np.maximum(four.astype(np.int8) - 2, 0)
    # Each square of four is counted for the run that its upper left, else upper right, else lower left pixel is in.
    top, left = np.nonzero(halves)
    from_above = padded[top, left] | padded[top, left + 1]
    at_row = np.where(from_above, top, top + 1)
    at_column = np.where(padded[top, left] | (1 - from_above), left, left + 1)
    width = mask.shape[1] + 1
    run = (row * width + start).searchsorted(at_row * width + at_column, side="right") - 1
    area = np.bincount(label[run], weights=halves[top, left], minlength=len(row)) / 2
    keep = area[label] > LEAST_AREA
    return _painted(row[keep], start[keep], end[keep], mask.shape)


def _parts(mask: Any, touching: int) -> tuple[Any, Any, Any, Any]:
    """The mask's runs along its rows (row, start, end) and for each the number of the connected part it is in.

    `touching` is 1 where corners that touch connect and 0 where they do not. Runs, not pixels, are joined, all of them
    at once."""
    import numpy as np

    padded: Any = np.pad(mask, ((0, 0), (1, 1)))
    row, change = np.nonzero(padded[:, 1:] != padded[:, :-1])
    row, start, end = row[::2], change[::2], change[1::2]
    width = mask.shape[1] + 3
    # A run meets those of the row above that end after its start and start before its end.
    first = (row * width + end).searchsorted((row - 1) * width + start - touching, side="right")
    last = (row * width + start).searchsorted((row - 1) * width + end + touching, side="left")
    met = np.maximum(last - first, 0)
    below = np.repeat(np.arange(len(row)), met)
    above = np.arange(int(met.sum())) - np.repeat(np.cumsum(met) - met, met) + np.repeat(first, met)
    return row, start, end, _joined(len(row), below, above)


def _joined(count: int, one: Any, other: Any) -> Any:
    """For each of `count` things the least thing it is connected with, where one[k] and other[k] are connected."""
    import numpy as np

    label = np.arange(count)
    while len(one):
        low = np.minimum(label[one], label[other])
        high = np.maximum(label[one], label[other])
        np.minimum.at(label, high, low)
        while not np.array_equal(label, shorter := label[label]):
            label = shorter
        apart = label[one] != label[other]
        one, other = one[apart], other[apart]
    return label


def _painted(row: Any, start: Any, end: Any, shape: tuple[int, int]) -> Any:
    """The mask that has these runs."""
    import numpy as np

    change: Any = np.zeros((shape[0], shape[1] + 1), np.int8)
    change[row, start] += 1
    change[row, end] -= 1
    return np.cumsum(change, axis=1, dtype=np.int8)[:, :-1] > 0


def _resized(pixels: Any) -> Any:
    """300 by 300 by OpenCV's bilinear rule: the four nearest pixels and no more, with weights of eleven bits."""
    import numpy as np

    if pixels.shape[:2] == (SIDE, SIDE):
        return pixels
    top, below, above_weight, below_weight = _sources(pixels.shape[0])
    left, right, left_weight, right_weight = _sources(pixels.shape[1])
    rows = [pixels[at].astype(np.int64) for at in (top, below)]
    upper, lower = (part[:, left] * left_weight[:, None] + part[:, right] * right_weight[:, None] for part in rows)
    # The bits are dropped where OpenCV drops them.
    mixed = ((upper >> 4) * above_weight[:, None, None] >> 16) + ((lower >> 4) * below_weight[:, None, None] >> 16)
    return ((mixed + 2) >> 2).astype(np.uint8)


def _sources(length: int) -> tuple[Any, Any, Any, Any]:
    """For each of the 300 places the pixel before it, the pixel after it, and the weights of the two, each rounded by
    itself."""
    import numpy as np

    place: Any = ((np.arange(SIDE) + 0.5) * (length / SIDE) - 0.5).astype(np.float32)
    before = np.floor(place)
    after: Any = (place - before).astype(np.float32)
    first, second = (np.clip(before + step, 0, length - 1).astype(int) for step in (0, 1))
    return first, second, *(np.rint(part * (1 << WEIGHT_BITS)).astype(np.int64) for part in (1 - after, after))


def _hue_saturation_value(pixels: Any) -> tuple[Any, Any, Any]:
    """OpenCV's integer hue (0 to 180), saturation and value."""
    import numpy as np

    red, green, blue = (pixels[..., channel].astype(np.int64) for channel in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    half = 1 << HUE_BITS - 1
    saturation = (spread * np.rint((255 << HUE_BITS) / np.maximum(value, 1)).astype(np.int64) + half) >> HUE_BITS
    turn = np.select([value == red, value == green], [green - blue, blue - red + 2 * spread], red - green + 4 * spread)
    hue = (turn * np.rint((30 << HUE_BITS) / np.maximum(spread, 1)).astype(np.int64) + half) >> HUE_BITS
    return hue % 180, saturation, value
