"""The cubes tasks, read from pixels: a 3 x 3 lattice of thin dashed lines, occupied cells with a thick black outline,
some red or green.

numpy alone. The lattice is found first (`grid_lattice`). Then each of its twenty-four edges is weighed (how thick it is
times how dark), the thick ones are told from the thin, and a cell is occupied if its four edges are thick all along.
(What the released scorer would find, with OpenCV's contours, is repeated in `grid_official`.)"""

from typing import TYPE_CHECKING, Any

from weft.benchmarks.imug.grid_lattice import Lattice, find_lattice

if TYPE_CHECKING:
    from PIL import Image as Pil

Grid = tuple[tuple[str, ...], ...]  # "0" empty, "1" occupied, "r" red, "g" green
# the picture is brought to this size and gets this margin
LONGEST = 900
MARGIN = 40
# pixels: the lattice is measured with cells of this size
CELL = 80
BAND = 9
CORE_BAND = 3
ENDS = 10
INNER = 16
# an edge weighs what it weighs at its thinner places; the dashes are smoothed away
SMOOTH = 13
ALONG = 0.2
DIM = 60  # a cell darker than this does not tell how light the paper is
# darkness that may be noise; darkness as good as black
SPECK = 0.15
BLACK = 0.75
# the weight where thick edges usually begin, and how usual that is (as a logarithm)
THICK = 0.043
THICK_SPREAD = 0.9
LEAST_WEIGHT = 0.006
# what a cut is worth: one with nothing beyond it, the widest gap, an edge left over (less)
ONE_SIDED = 0.3
WIDEST_GAP = 1.2
ORPHAN = 0.2
FILLED = 0.3


def read_grid(picture: "Pil.Image") -> Grid | None:
    """The nine cells, or None where there is no lattice to be seen."""
    prepared = _prepared(picture)
    lattice = find_lattice(prepared)
    if lattice is None:
        return None
    pixels, across, down = _normal(prepared, lattice)
    occupied = _occupied(*_weights(pixels.max(axis=2), across, down))
    return tuple(
        tuple(
            _colour(pixels[_inside(down, row), _inside(across, column)]) if occupied[row, column] else "0"
            for column in range(3)
        )
        for row in range(3)
    )


def _prepared(picture: "Pil.Image") -> "Pil.Image":
    """The picture on white, at one size, with a margin of its commonest colour; a very large one is made smaller before
    anything else."""
    import numpy as np
    from PIL import Image as Pil

    if picture.mode.startswith("I"):  # sixteen bits
        picture = picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if picture.mode not in ("L", "LA", "RGB", "RGBA"):
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    picture = picture.reduce(max(1, max(picture.size) // (2 * LONGEST)))
    if picture.mode in ("LA", "RGBA"):
        picture = Pil.alpha_composite(Pil.new("RGBA", picture.size, "white"), picture.convert("RGBA"))
    scale = LONGEST / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    picture = picture.convert("RGB").resize(size, Pil.Resampling.BILINEAR)
    colours: Any = np.median(np.asarray(picture)[::4, ::4].reshape(-1, 3), axis=0)
    framed = Pil.new("RGB", (size[0] + 2 * MARGIN, size[1] + 2 * MARGIN), tuple(int(colour) for colour in colours))
    framed.paste(picture, (MARGIN, MARGIN))
    return framed


def _normal(picture: "Pil.Image", lattice: Lattice) -> tuple[Any, Any, Any]:
    """The lattice upright with cells of one size and a quarter of a cell around it, and where its lines now are."""
    import numpy as np
    from PIL import Image as Pil

    upright = picture.rotate(lattice.degrees, Pil.Resampling.BICUBIC)
    side = round(3.5 * CELL)
    left, right, across = _spread(lattice.across, upright.width, side)
    top, bottom, down = _spread(lattice.down, upright.height, side)
    return (
        np.asarray(upright.resize((side, side), Pil.Resampling.BILINEAR, box=(left, top, right, bottom))),
        across,
        down,
    )


def _spread(lines: Any, limit: int, side: int) -> tuple[float, float, Any]:
    """From a quarter of a cell before four lines to a quarter behind them, and where the lines are when that is made
    `side` long."""
    quarter = (lines[3] - lines[0]) / 12
    low = max(0.0, float(lines[0] - quarter))
    high = min(float(limit), float(lines[3] + quarter))
    return low, high, (lines - low) * side / (high - low)


def _inside(lines: Any, at: int) -> slice:
    """The inner part of a row or column of cells."""
    return slice(round(lines[at]) + INNER, round(lines[at + 1]) - INNER)


def _weights(light: Any, across: Any, down: Any) -> tuple[Any, Any]:
    """For each edge its thickness times its darkness, as a part of a cell's side: [4 lines, 3 edges], vertical ones,
    horizontal ones."""
    return _weights_down(light, across, down), _weights_down(light.T, down, across)


def _weights_down(light: Any, lines: Any, ends: Any) -> Any:
    """Those of the vertical edges. How dark a place is, is measured by the cell beside it, or by the strip outside the
    lattice."""
    import numpy as np

    before = slice(0, max(1, round(lines[0]) - BAND))
    after = slice(min(round(lines[3]) + BAND, light.shape[1] - 1), None)
    strips = [before, *(_inside(lines, column) for column in range(3)), after]
    paper: Any = np.array([[np.median(light[_inside(ends, row), strip]) for strip in strips] for row in range(3)])
    paper[paper < DIM] = max(DIM, float(np.quantile(light, 0.75)))
    weights: Any = np.zeros((4, 3))
    for line, row in np.ndindex(4, 3):
        low: int = round(lines[line]) - BAND
        columns = np.arange(low, low + 2 * BAND + 1)
        band = light[round(ends[row]) + ENDS : round(ends[row + 1]) - ENDS].take(columns, axis=1, mode="clip")
        beside = paper[row, line + (columns >= lines[line])]
        dark = np.clip((1 - band / beside) / BLACK, 0, 1)
        weights[line, row] = _weight(np.where(dark < SPECK, 0, dark))
    return weights


def _weight(dark: Any) -> float:
    """How much ink an edge has across it, at its thinner places; what begins beyond the line (a frame, a letter) is not
    the line's."""
    import numpy as np

    total: Any = np.cumsum(np.pad(dark, ((1, 0), (0, 0))), axis=0)
    smooth = (total[SMOOTH:] - total[:-SMOOTH]) / SMOOTH
    middle = BAND - CORE_BAND + int(np.argmax(smooth.mean(axis=0)[BAND - CORE_BAND : BAND + CORE_BAND + 1]))
    right = np.minimum.accumulate(smooth[:, middle + CORE_BAND :], axis=1)[:, 1:].sum(axis=1)
    left = np.minimum.accumulate(smooth[:, middle - CORE_BAND :: -1], axis=1)[:, 1:].sum(axis=1)
    across = smooth[:, middle - CORE_BAND : middle + CORE_BAND + 1].sum(axis=1) + left + right
    return float(np.quantile(across, ALONG)) / CELL


def _occupied(vertical: Any, horizontal: Any) -> Any:
    """Which cells have four thick edges, at the weight that tells thick from thin best.

    Weights differ from picture to picture (thin lines may be solid, thick ones doubled between two cells), so each way
    of cutting them into two is judged: by the gap at the cut, by how near the cut is to a usual one, and by thick edges
    that are on no occupied cell."""
    import numpy as np

    sizes: Any = np.maximum(np.sort(np.concatenate([vertical, horizontal], axis=None)), LEAST_WEIGHT)
    best = -np.inf
    cells = None
    for thin in range(len(sizes) + 1):
        if thin:
            low = sizes[thin - 1]
        else:
            low = 0.0
        if thin < len(sizes):
            high = sizes[thin]
        else:
            high = np.inf
        one_sided = not thin or thin == len(sizes)
        if one_sided:
            near = ONE_SIDED / 2
        else:
            near = np.log(high / low) / 3
        cut = float(np.clip(THICK, low * np.exp(near), high * np.exp(-near)))
        occupied, orphans = _cells(vertical > cut, horizontal > cut)
        if one_sided:
            judged = ONE_SIDED
        else:
            judged = min(float(np.log(high / low)), WIDEST_GAP)
        judged -= (np.log(cut / THICK) / THICK_SPREAD) ** 2 + ORPHAN * orphans
        if judged > best:
            best = judged
            cells = occupied
    return cells


def _cells(vertical: Any, horizontal: Any) -> tuple[Any, int]:
    """The cells with four thick edges, and how many thick edges are left over."""
    import numpy as np

    occupied = vertical[:3].T & vertical[1:].T & horizontal[:3] & horizontal[1:]
    used_vertical = np.zeros_like(vertical)
    used_horizontal = np.zeros_like(horizontal)
    for side in (slice(0, 3), slice(1, 4)):
        used_vertical[side] |= occupied.T
        used_horizontal[side] |= occupied
    return occupied, int((vertical & ~used_vertical).sum() + (horizontal & ~used_horizontal).sum())


def _colour(inner: Any) -> str:
    """Red, green or neither, of the inside of an occupied cell."""
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


def score_grid(found: Grid | None, due: Grid, count: int) -> list[int]:
    """The released logic: a grid at all; the right cells, without which nothing more counts; the right red ones; the
    right green ones."""
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
