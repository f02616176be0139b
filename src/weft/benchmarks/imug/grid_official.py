"""The cubes images as the benchmark's released scorer reads them, step by step, without OpenCV.

The released scorer thresholds against a local mean, erodes, fills the outer contours that are large enough, divides the
box of all ink into nine cells, and measures how much of each is filled and how red or green it is. numpy repeats this
with OpenCV's own arithmetic (its integer grey, hue and bilinear weights), so that our scores can be compared with
published ones. Our own reader is `grid.read_grid`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image as Pil

Grid = tuple[tuple[str, ...], ...]  # "0" empty, "1" occupied, "r" red, "g" green
SIDE = 300  # pixels of the resized lattice
CELL = 100  # pixels of a cell
BLOCK = 15  # pixels of the local mean's window
SIGMA = 2.6  # of the local mean: OpenCV's 0.3 * ((15 - 1) / 2 - 1) + 0.8
BELOW = 10  # how far below the local mean ink must be
STRIPE = 512  # rows taken at a time, so that a large image needs little memory
MAX_PIXELS = 25_000_000  # a larger image would not fit in memory, and a reduced one would be read differently
LEAST_AREA = 50  # pixels of a part that is large enough
OCCUPANCY_MARGIN = 10  # pixels of a cell's rim that do not count for its occupancy
COLOUR_MARGIN = 20  # pixels of a cell's rim that do not count for its colour
LEAST_OCCUPANCY = 15  # the mean of a mask of 0 and 255
LEAST_COLOUR = 30  # the mean of a mask of 0 and 255
GREY_WEIGHTS = (9798, 19235, 3735)  # of red, green and blue
GREY_BITS = 15  # the fixed-point precision of the grey weights
HUE_BITS = 12  # the fixed-point precision of hue and saturation
WEIGHT_BITS = 11  # the fixed-point precision of bilinear weights


def read_grid_as_released(image: "Pil.Image") -> Grid | None:
    """Read the nine cells as the released scorer does, or return None if nothing is darker than its surroundings."""
    import numpy as np

    pixels = _read_pixels(image)
    ink = _ink(_grey(pixels))
    rows = np.flatnonzero(ink.any(axis=1))
    columns = np.flatnonzero(ink.any(axis=0))
    if not len(rows):
        return None
    box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    solid = _select_large(_fill_holes(_erode(ink)))
    mask = _resize(solid[box].astype(np.uint8)[..., None] * np.uint8(255))[..., 0]
    hue, saturation, value = _hue_saturation_value(_resize(pixels[box]))
    vivid = (saturation >= 70) & (value >= 40)
    red = vivid & ((hue <= 10) | (hue >= 160))
    green = vivid & (hue >= 35) & (hue <= 95)
    cells = [_read_cell(mask, red, green, row, column) for row, column in np.ndindex(3, 3)]
    return (tuple(cells[:3]), tuple(cells[3:6]), tuple(cells[6:]))


def _read_cell(mask: Any, red: Any, green: Any, row: int, column: int) -> str:
    if mask[_inner(row, column, OCCUPANCY_MARGIN)].mean() < LEAST_OCCUPANCY:
        return "0"
    inner = _inner(row, column, COLOUR_MARGIN)
    if red[inner].mean() * 255 > LEAST_COLOUR:
        return "r"
    if green[inner].mean() * 255 > LEAST_COLOUR:
        return "g"
    return "1"


def _inner(row: int, column: int, margin: int) -> tuple[slice, slice]:
    """Return a cell of the resized lattice without its rim."""
    return (
        slice(row * CELL + margin, (row + 1) * CELL - margin),
        slice(column * CELL + margin, (column + 1) * CELL - margin),
    )


def _read_pixels(image: "Pil.Image") -> Any:
    """Return red, green and blue as OpenCV's file reader does.

    The image is upright, alpha is dropped rather than composed, and of 16 bits the high byte counts.
    """
    import numpy as np
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I"):
        high: Any = np.clip(np.asarray(upright).astype(np.int64) >> 8, 0, 255).astype(np.uint8)
        return np.repeat(high[..., None], 3, axis=2)
    return np.asarray(upright.convert("RGB"))


def _grey(pixels: Any) -> Any:
    """Return OpenCV's integer grey."""
    import numpy as np

    grey: Any = np.empty(pixels.shape[:2], np.uint8)
    for top in range(0, len(pixels), STRIPE):
        part = pixels[top : top + STRIPE].astype(np.int32)
        weighted = sum(part[..., channel] * weight for channel, weight in enumerate(GREY_WEIGHTS))
        grey[top : top + STRIPE] = (weighted + (1 << GREY_BITS - 1)) >> GREY_BITS
    return grey


def _ink(grey: Any) -> Any:
    """Return where the grey is well below its Gaussian mean. The border is replicated."""
    import numpy as np

    distance = np.arange(BLOCK) - BLOCK // 2
    weights: Any = np.exp(-(distance**2) / (2 * SIGMA**2))
    weights = (weights / weights.sum()).astype(np.float32)
    padded: Any = np.pad(grey, BLOCK // 2, mode="edge")
    ink: Any = np.empty(grey.shape, bool)
    for top in range(0, len(grey), STRIPE):
        part = grey[top : top + STRIPE]
        source: Any = padded[top : top + len(part) + BLOCK - 1].astype(np.float32)
        mean = np.rint(_weighted_sum(_weighted_sum(source, weights, 1), weights, 0))
        ink[top : top + STRIPE] = part.astype(np.int16) - mean.astype(np.int16) <= -BELOW
    return ink


def _weighted_sum(source: Any, weights: Any, axis: int) -> Any:
    """Return the weighted sum of neighbours along one axis, wherever the window fits.

    As in OpenCV, the two sides of the symmetric window are added first.
    """
    half = BLOCK // 2
    length = source.shape[axis] - BLOCK + 1

    def shifted(by: int) -> Any:
        if axis == 1:
            return source[:, by : by + length]
        return source[by : by + length]

    total = shifted(half) * weights[half]
    for step in range(1, half + 1):
        both = shifted(half - step) + shifted(half + step)
        both *= weights[half + step]
        total += both
    return total


def _erode(mask: Any) -> Any:
    """Return the pixels that are on with all eight neighbours. Pixels beyond the border count as on."""
    import numpy as np

    padded: Any = np.pad(mask, 1, constant_values=True)
    across = padded[:, :-2] & padded[:, 1:-1] & padded[:, 2:]
    return across[:-2] & across[1:-1] & across[2:]


def _fill_holes(mask: Any) -> Any:
    """Fill every hole of a mask: what cannot be reached from outside in steps along rows and columns."""
    import numpy as np

    row, start, end, label = _find_parts(~np.pad(mask, 1), touching=0)
    outside = label == label[0]
    return ~_draw_runs(row[outside], start[outside], end[outside], (mask.shape[0] + 2, mask.shape[1] + 2))[1:-1, 1:-1]


def _select_large(mask: Any) -> Any:
    """Return the parts whose outline through the pixels' centres encloses more than `LEAST_AREA`.

    Pixels that touch at a corner are connected. In a part without holes, four neighbouring centres that are all on
    enclose one unit of area, three of them a half, fewer none.
    """
    import numpy as np

    row, start, end, label = _find_parts(mask, touching=1)
    if not len(row):
        return mask
    padded: Any = np.pad(mask, ((0, 1), (0, 1))).astype(np.uint8)
    four = padded[:-1, :-1] + padded[:-1, 1:] + padded[1:, :-1] + padded[1:, 1:]
    halves: Any = np.maximum(four.astype(np.int8) - 2, 0)
    # Each square of four is counted for the run that its upper left, else upper right, else lower left pixel is in.
    top, left = np.nonzero(halves)
    from_above = padded[top, left] | padded[top, left + 1]
    pixel_row = np.where(from_above, top, top + 1)
    pixel_column = np.where(padded[top, left] | (1 - from_above), left, left + 1)
    width = mask.shape[1] + 1
    run = (row * width + start).searchsorted(pixel_row * width + pixel_column, side="right") - 1
    area = np.bincount(label[run], weights=halves[top, left], minlength=len(row)) / 2
    keep = area[label] > LEAST_AREA
    return _draw_runs(row[keep], start[keep], end[keep], mask.shape)


def _find_parts(mask: Any, touching: int) -> tuple[Any, Any, Any, Any]:
    """Return the mask's runs along its rows (row, start, end), and for each the label of its connected part.

    `touching` is 1 if pixels that touch at a corner are connected, else 0. Runs, not pixels, are joined, all at once.
    """
    import numpy as np

    padded: Any = np.pad(mask, ((0, 0), (1, 1)))
    row, change = np.nonzero(padded[:, 1:] != padded[:, :-1])
    row = row[::2]
    start = change[::2]
    end = change[1::2]
    width = mask.shape[1] + 3
    # A run touches those of the row above that end after its start and start before its end.
    first = (row * width + end).searchsorted((row - 1) * width + start - touching, side="right")
    last = (row * width + start).searchsorted((row - 1) * width + end + touching, side="left")
    touched = np.maximum(last - first, 0)
    below = np.repeat(np.arange(len(row)), touched)
    above = np.arange(int(touched.sum())) - np.repeat(np.cumsum(touched) - touched, touched) + np.repeat(first, touched)
    return row, start, end, _connect(len(row), below, above)


def _connect(count: int, left: Any, right: Any) -> Any:
    """Return for each of `count` nodes the least node it is connected with; left[k] and right[k] are connected."""
    import numpy as np

    label = np.arange(count)
    while len(left):
        low = np.minimum(label[left], label[right])
        high = np.maximum(label[left], label[right])
        np.minimum.at(label, high, low)
        shorter = label[label]
        while not np.array_equal(label, shorter):
            label = shorter
            shorter = label[label]
        apart = label[left] != label[right]
        left = left[apart]
        right = right[apart]
    return label


def _draw_runs(row: Any, start: Any, end: Any, shape: tuple[int, int]) -> Any:
    """Return the mask that consists of these runs."""
    import numpy as np

    change: Any = np.zeros((shape[0], shape[1] + 1), np.int8)
    change[row, start] += 1
    change[row, end] -= 1
    return np.cumsum(change, axis=1, dtype=np.int8)[:, :-1] > 0


def _resize(pixels: Any) -> Any:
    """Resize to 300 by 300 by OpenCV's bilinear rule: the four nearest pixels, with weights of eleven bits."""
    import numpy as np

    if pixels.shape[:2] == (SIDE, SIDE):
        return pixels
    top, below, above_weight, below_weight = _sources(pixels.shape[0])
    left, right, left_weight, right_weight = _sources(pixels.shape[1])
    upper_row = pixels[top].astype(np.int64)
    lower_row = pixels[below].astype(np.int64)
    upper = upper_row[:, left] * left_weight[:, None] + upper_row[:, right] * right_weight[:, None]
    lower = lower_row[:, left] * left_weight[:, None] + lower_row[:, right] * right_weight[:, None]
    # The bits are dropped where OpenCV drops them.
    mixed = ((upper >> 4) * above_weight[:, None, None] >> 16) + ((lower >> 4) * below_weight[:, None, None] >> 16)
    return ((mixed + 2) >> 2).astype(np.uint8)


def _sources(length: int) -> tuple[Any, Any, Any, Any]:
    """Return for each of the 300 positions the pixels before and after it, and their separately rounded weights."""
    import numpy as np

    position: Any = ((np.arange(SIDE) + 0.5) * (length / SIDE) - 0.5).astype(np.float32)
    before = np.floor(position)
    after: Any = (position - before).astype(np.float32)
    first = np.clip(before, 0, length - 1).astype(int)
    second = np.clip(before + 1, 0, length - 1).astype(int)
    first_weight = np.rint((1 - after) * (1 << WEIGHT_BITS)).astype(np.int64)
    second_weight = np.rint(after * (1 << WEIGHT_BITS)).astype(np.int64)
    return first, second, first_weight, second_weight


def _hue_saturation_value(pixels: Any) -> tuple[Any, Any, Any]:
    """Return OpenCV's integer hue (0 to 180), saturation and value."""
    import numpy as np

    red, green, blue = (pixels[..., channel].astype(np.int64) for channel in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    half = 1 << HUE_BITS - 1
    saturation = (spread * np.rint((255 << HUE_BITS) / np.maximum(value, 1)).astype(np.int64) + half) >> HUE_BITS
    turn = np.select([value == red, value == green], [green - blue, blue - red + 2 * spread], red - green + 4 * spread)
    hue = (turn * np.rint((30 << HUE_BITS) / np.maximum(spread, 1)).astype(np.int64) + half) >> HUE_BITS
    return hue % 180, saturation, value
