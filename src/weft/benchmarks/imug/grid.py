"""The cubes tasks, read from pixels: a 3 x 3 lattice of thin dashed lines, occupied cells with a thick black outline, some red or green.

numpy alone: the picture is brought to one size, cropped to its ink, and a cell is occupied if all four of its edges are dark all along.
(The released scorer finds the same cells with OpenCV's contours, in windows of so many pixels.)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image as Pil

Grid = tuple[tuple[str, ...], ...]  # "0" empty, "1" occupied, "r" red, "g" green
SIDE, CELL, BAND = 300, 100, 7
INKS = (205, 225, 243)
DARK, ALONG, FILLED = 150, 0.8, 0.3


def read_grid(picture: "Pil.Image") -> Grid | None:
    """The nine cells, or None where there is no lattice to be seen."""
    import numpy as np
    from PIL import Image as Pil

    rgb = picture.convert("RGB")
    scale = SIDE / max(rgb.size)
    pixels = np.asarray(rgb.resize((max(1, round(rgb.width * scale)), max(1, round(rgb.height * scale))), Pil.Resampling.BOX))
    crops = [crop for ink in INKS if (crop := _cropped(pixels, ink)) is not None]
    if not crops:
        return None
    best = max(crops, key=_lattice)
    grey, hsv = np.asarray(best.convert("L")), np.asarray(best.convert("HSV"))
    return tuple(tuple(_cell(grey, hsv, row, column) for column in range(3)) for row in range(3))


def _cropped(pixels: Any, ink: int) -> "Pil.Image | None":
    """The picture cropped to what is darker than `ink`: faint dashes need a high one, JPEG's noise a low one."""
    import numpy as np
    from PIL import Image as Pil

    dark: Any = pixels.min(axis=2) < ink
    rows, columns = np.flatnonzero(dark.sum(axis=1) > 8), np.flatnonzero(dark.sum(axis=0) > 8)
    if any(not len(found) or found[-1] - found[0] < SIDE // 4 for found in (rows, columns)):
        return None
    box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    if not 0.75 < (box[2] - box[0]) / (box[3] - box[1]) < 1.33:  # a lattice is square: this is a part of one
        return None
    return Pil.fromarray(pixels).crop(box).resize((SIDE, SIDE), Pil.Resampling.BICUBIC)


def _lattice(crop: "Pil.Image") -> float:
    """How dark the faintest line is where the lattice's lines must be."""
    import numpy as np

    grey: Any = np.asarray(crop.convert("L"))
    lines = [slice(max(0, line - 2), line + 3) for line in range(0, SIDE + 1, CELL)]
    return float(min(min((255 - grey[line].min(axis=0)).mean(), (255 - grey[:, line].min(axis=1)).mean()) for line in lines))


def _cell(grey: Any, hsv: Any, row: int, column: int) -> str:
    top, left = row * CELL, column * CELL
    across, down = slice(left + BAND, left + CELL - BAND), slice(top + BAND, top + CELL - BAND)
    edges = [_near(grey[:, across], line, 0) for line in (top, top + CELL)] + [_near(grey[down], line, 1) for line in (left, left + CELL)]
    if any((edge < DARK).mean() < ALONG for edge in edges):
        return "0"
    inner = hsv[top + 20 : top + 80, left + 20 : left + 80].reshape(-1, 3).astype(int)
    vivid = (inner[:, 1] >= 70) & (inner[:, 2] >= 40)
    hue = inner[:, 0] * 360 / 255
    if (vivid & ((hue <= 20) | (hue >= 320))).mean() > FILLED:
        return "r"
    return "g" if (vivid & (hue >= 70) & (hue <= 190)).mean() > FILLED else "1"


def _near(grey: Any, line: int, axis: int) -> Any:
    """The darkest value within a band around a line, at each place along it."""
    low, high = max(0, line - BAND), min(SIDE, line + BAND)
    return (grey[low:high] if axis == 0 else grey[:, low:high]).min(axis=axis)


def points(found: Grid | None, due: Grid, count: int) -> list[int]:
    """The released logic: a grid at all; the right cells, without which nothing more counts; the right red ones; the right green ones."""
    made = [0] * count
    if found is None:
        return made
    made[0] = 5
    if count < 2 or _which(found, "1rg") != _which(due, "1rg"):
        return made
    made[1] = 5
    for at, colour in ((2, "r"), (3, "g")):
        if count > at and _which(found, colour) == _which(due, colour):
            made[at] = 5
    return made


def _which(grid: Grid, kinds: str) -> set[tuple[int, int]]:
    return {(row, column) for row in range(3) for column in range(3) if grid[row][column] in kinds}
