"""The cubes tasks, read from pixels: a 3 x 3 lattice of thin dashed lines; occupied cells have a thick black outline,
and some are filled red or green.

Only numpy is needed. The lattice is located first (`grid_lattice`). Then each of its twenty-four edges is weighed (its
thickness times its darkness), thick edges are separated from thin ones, and a cell is occupied if its four edges are
thick all along. `grid_official` repeats what the released scorer finds with OpenCV's contours.
"""

from typing import TYPE_CHECKING, Any

from weft.benchmarks.imug.grid_lattice import Lattice, find_lattice

if TYPE_CHECKING:
    from PIL import Image as Pil

Grid = tuple[tuple[str, ...], ...]  # "0" empty, "1" occupied, "r" red, "g" green
LONGEST = 900  # pixels of the longest side; images are resized to it
MARGIN = 40  # pixels added around the resized image
CELL = 80  # pixels of a cell's side once the lattice is upright
BAND = 9  # pixels on either side of a line in which its ink is measured
CORE_BAND = 3  # pixels on either side of a line's middle that always belong to it
ENDS = 10  # pixels left out at either end of an edge, for the lines that cross there
INNER = 16  # pixels from a line to the inner part of a cell
SMOOTH = 13  # pixels along an edge that are averaged, so that dashes disappear
ALONG = 0.2  # the quantile of an edge's weight along it: an edge weighs what it weighs at its thinner places
DIM = 60  # a cell darker than this does not show how light the paper is
SPECK = 0.15  # darkness that may be noise
BLACK = 0.75  # darkness that counts as black
THICK = 0.043  # the weight at which thick edges usually begin
THICK_SPREAD = 0.9  # how far that usually varies, as a logarithm
LEAST_WEIGHT = 0.006  # edges are not taken to be lighter than this
ONE_SIDED = 0.3  # what a cut between thin and thick is worth if all edges are on one side of it
WIDEST_GAP = 1.2  # the most that the gap at a cut is worth
ORPHAN = 0.2  # what a thick edge that belongs to no occupied cell costs
FILLED = 0.3  # the share of coloured pixels from which a cell has that colour


def read_grid(image: "Pil.Image") -> Grid | None:
    """Read the nine cells of an image, or return None if it shows no lattice."""
    prepared = _prepare(image)
    lattice = find_lattice(prepared)
    if lattice is None:
        return None
    pixels, across, down = _straighten(prepared, lattice)
    occupied = _find_occupied(*_weigh_edges(pixels.max(axis=2), across, down))
    rows: list[tuple[str, ...]] = []
    for row in range(3):
        cells = ["0", "0", "0"]
        for column in range(3):
            if occupied[row, column]:
                cells[column] = _read_colour(pixels[_inside(down, row), _inside(across, column)])
        rows.append(tuple(cells))
    return tuple(rows)


def _prepare(image: "Pil.Image") -> "Pil.Image":
    """Put an image on white, resize it, and add a margin of its median colour. A very large one is reduced first."""
    import numpy as np
    from PIL import Image as Pil

    if image.mode.startswith("I"):  # sixteen bits
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    image = image.reduce(max(1, max(image.size) // (2 * LONGEST)))
    if image.mode in ("LA", "RGBA"):
        image = Pil.alpha_composite(Pil.new("RGBA", image.size, "white"), image.convert("RGBA"))
    scale = LONGEST / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    image = image.convert("RGB").resize(size, Pil.Resampling.BILINEAR)
    colours: Any = np.median(np.asarray(image)[::4, ::4].reshape(-1, 3), axis=0)
    framed = Pil.new("RGB", (size[0] + 2 * MARGIN, size[1] + 2 * MARGIN), tuple(int(colour) for colour in colours))
    framed.paste(image, (MARGIN, MARGIN))
    return framed


def _straighten(image: "Pil.Image", lattice: Lattice) -> tuple[Any, Any, Any]:
    """Return the pixels of the upright lattice with a quarter of a cell around it, and its lines' positions in them."""
    import numpy as np
    from PIL import Image as Pil

    upright = image.rotate(lattice.degrees, Pil.Resampling.BICUBIC)
    side = round(3.5 * CELL)
    left, right, across = _crop(lattice.across, upright.width, side)
    top, bottom, down = _crop(lattice.down, upright.height, side)
    cropped = upright.resize((side, side), Pil.Resampling.BILINEAR, box=(left, top, right, bottom))
    return np.asarray(cropped), across, down


def _crop(lines: Any, limit: int, side: int) -> tuple[float, float, Any]:
    """Return a range from a quarter of a cell before four lines to a quarter behind them.

    Return the lines' positions too, once the range is resized to `side` pixels.
    """
    quarter = (lines[3] - lines[0]) / 12
    low = max(0.0, float(lines[0] - quarter))
    high = min(float(limit), float(lines[3] + quarter))
    return low, high, (lines - low) * side / (high - low)


def _inside(lines: Any, index: int) -> slice:
    """Return the inner part of a row or column of cells."""
    return slice(round(lines[index]) + INNER, round(lines[index + 1]) - INNER)


def _weigh_edges(light: Any, across: Any, down: Any) -> tuple[Any, Any]:
    """Return the weights of the vertical and of the horizontal edges, each as [4 lines, 3 edges].

    A weight is an edge's thickness times its darkness, as a share of a cell's side.
    """
    return _weigh_vertical(light, across, down), _weigh_vertical(light.T, down, across)


def _weigh_vertical(light: Any, lines: Any, ends: Any) -> Any:
    """Weigh the vertical edges. Darkness is relative to the neighbouring cell, or to the strip outside the lattice."""
    import numpy as np

    before = slice(0, max(1, round(lines[0]) - BAND))
    after = slice(min(round(lines[3]) + BAND, light.shape[1] - 1), None)
    strips = [before, *(_inside(lines, column) for column in range(3)), after]
    paper: Any = np.zeros((3, len(strips)))
    for row, column in np.ndindex(*paper.shape):
        paper[row, column] = np.median(light[_inside(ends, row), strips[column]])
    paper[paper < DIM] = max(DIM, float(np.quantile(light, 0.75)))
    weights: Any = np.zeros((4, 3))
    for line, row in np.ndindex(4, 3):
        low: int = round(lines[line]) - BAND
        columns = np.arange(low, low + 2 * BAND + 1)
        band = light[round(ends[row]) + ENDS : round(ends[row + 1]) - ENDS].take(columns, axis=1, mode="clip")
        lightness = paper[row, line + (columns >= lines[line])]
        dark = np.clip((1 - band / lightness) / BLACK, 0, 1)
        weights[line, row] = _weigh_edge(np.where(dark < SPECK, 0, dark))
    return weights


def _weigh_edge(dark: Any) -> float:
    """Return how much ink an edge has across it, at its thinner places.

    Ink that begins beyond the line (a frame, a letter) does not count.
    """
    import numpy as np

    total: Any = np.cumsum(np.pad(dark, ((1, 0), (0, 0))), axis=0)
    smooth = (total[SMOOTH:] - total[:-SMOOTH]) / SMOOTH
    middle = BAND - CORE_BAND + int(np.argmax(smooth.mean(axis=0)[BAND - CORE_BAND : BAND + CORE_BAND + 1]))
    right = np.minimum.accumulate(smooth[:, middle + CORE_BAND :], axis=1)[:, 1:].sum(axis=1)
    left = np.minimum.accumulate(smooth[:, middle - CORE_BAND :: -1], axis=1)[:, 1:].sum(axis=1)
    across = smooth[:, middle - CORE_BAND : middle + CORE_BAND + 1].sum(axis=1) + left + right
    return float(np.quantile(across, ALONG)) / CELL


def _find_occupied(vertical: Any, horizontal: Any) -> Any:
    """Return which cells have four thick edges, at the weight that best separates thick from thin.

    Weights differ between images (thin lines may be solid, thick ones doubled between two cells), so every cut of the
    sorted weights is rated: by the gap at the cut, by its distance from a usual cut, and by thick edges that belong to
    no occupied cell.
    """
    import numpy as np

    sizes: Any = np.maximum(np.sort(np.concatenate([vertical, horizontal], axis=None)), LEAST_WEIGHT)
    best = -np.inf
    cells = None
    for thin in range(len(sizes) + 1):
        low = sizes[thin - 1] if thin else 0.0
        high = sizes[thin] if thin < len(sizes) else np.inf
        distance = ONE_SIDED / 2
        rating = ONE_SIDED
        if 0 < thin < len(sizes):
            distance = np.log(high / low) / 3
            rating = min(float(np.log(high / low)), WIDEST_GAP)
        cut = float(np.clip(THICK, low * np.exp(distance), high * np.exp(-distance)))
        occupied, orphans = _find_closed_cells(vertical > cut, horizontal > cut)
        rating -= (np.log(cut / THICK) / THICK_SPREAD) ** 2 + ORPHAN * orphans
        if rating > best:
            best = rating
            cells = occupied
    return cells


def _find_closed_cells(vertical: Any, horizontal: Any) -> tuple[Any, int]:
    """Return the cells with four thick edges, and the number of thick edges that belong to none."""
    import numpy as np

    occupied = vertical[:3].T & vertical[1:].T & horizontal[:3] & horizontal[1:]
    used_vertical = np.zeros_like(vertical)
    used_horizontal = np.zeros_like(horizontal)
    for side in (slice(0, 3), slice(1, 4)):
        used_vertical[side] |= occupied.T
        used_horizontal[side] |= occupied
    return occupied, int((vertical & ~used_vertical).sum() + (horizontal & ~used_horizontal).sum())


def _read_colour(inner: Any) -> str:
    """Return the colour of an occupied cell from its inner pixels: `r`, `g`, or `1` for neither."""
    import numpy as np
    from PIL import Image as Pil

    hsv: Any = np.asarray(Pil.fromarray(inner).convert("HSV")).reshape(-1, 3).astype(int)
    vivid = (hsv[:, 1] >= 70) & (hsv[:, 2] >= 40)
    hue = hsv[:, 0] * 360 / 255
    if (vivid & ((hue <= 20) | (hue >= 320))).mean() > FILLED:
        return "r"
    if (vivid & (hue >= 70) & (hue <= 190)).mean() > FILLED:
        return "g"
    return "1"


def score_grid(grid: Grid | None, expected: Grid, count: int) -> list[int]:
    """Score a grid on `count` points, 0 or 5 each, as the released scorer does.

    The points are: there is a grid; the right cells are occupied, without which nothing more counts; the right cells
    are red; the right cells are green.
    """
    points = [0] * count
    if grid is None:
        return points
    points[0] = 5
    if count < 2 or _find_cells(grid, "1rg") != _find_cells(expected, "1rg"):
        return points
    points[1] = 5
    for index, colour in ((2, "r"), (3, "g")):
        if count > index and _find_cells(grid, colour) == _find_cells(expected, colour):
            points[index] = 5
    return points


def _find_cells(grid: Grid, kinds: str) -> set[tuple[int, int]]:
    return {(row, column) for row in range(3) for column in range(3) if grid[row][column] in kinds}
