"""Finding the 3 x 3 lattice of a cubes image, wherever it is and however large, turned by a few degrees or not.

Four and four equally spaced lines are looked for whose twenty-four unit edges all have ink, thick or faint, and whose
cells have no lines inside. Sums over rows and columns propose lines in each direction; every edge's own ink decides.
numpy alone."""

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from PIL import Image as Pil

SHRINK = 2  # the search is done at half the size
BLOCK = 16  # pixels, after shrinking, of the blocks that show how light the paper is
STEEPEST = 4.5  # degrees by which a lattice may be rotated
TURN = 0.5  # degrees between two rotations that are tried
LEAST_PITCH = 22.0  # pixels, after shrinking, between two lines
PITCH_STEP = 1.025  # the ratio of one pitch that is tried to the one before
PITCHES = 16  # pitches that are compared with one another
STARTS_KEPT = 12  # candidates for each pitch
FITS_KEPT = 5  # candidates for each group of pitches
PAIRS_KEPT = 4  # candidates for both directions together
CORE = 0.04  # half a line's width, in pitches
GAP = 0.02  # between a line and its flank, in pitches
FLANK = 0.06  # the strip on either side that a line is compared with, in pitches
SQUARE = 1.2  # the largest ratio of the two directions' pitches
ALIKE = 0.12  # fits closer than this, in pitches, are the same
CORNER = 0.12  # the part of an edge at each end that is left out, for the lines that cross there
SHIFTS = tuple(step / 100 for step in range(-6, 7))  # by how much of the pitch a single line may be off
INSIDE = tuple(step / 25 for step in range(3, 23))  # where lines inside the cells would be, in pitches
FAINT = 0.003  # darkness below which a line counts as none
SOLID = 0.08  # darkness above which a line gets no better
SHARP = 0.5  # what sharp lines add to a fit
WITHIN = 0.3  # what ink inside the cells costs
UNEVEN = 3.0  # what uneven lines cost
LEAST_EDGE = 0.006  # how dark a lattice's faintest edges must be
CLEAR = 0.8  # how dark they must be relative to the clearest line inside the cells


class Lattice(NamedTuple):
    """A lattice in an image that is rotated by `degrees`."""

    fit: float  # how well it fits; higher is better
    degrees: float
    across: Any  # the four vertical lines' positions, in pixels of the image
    down: Any  # the four horizontal lines' positions
    faintest: float  # the ridge along the faintest edges
    within: float  # the ridge along what is most like a line inside a cell


def find_lattice(image: "Pil.Image") -> Lattice | None:
    """Return the best lattice at the rotations at which the image's lines are sharpest, or None if there is none."""
    import numpy as np
    from PIL import Image as Pil

    dark = _darkness(image)
    steps = round(STEEPEST / TURN)
    sharpness: dict[float, float] = {}
    for step in range(-steps, steps + 1):
        sharpness[step * TURN] = _sharpness(np.asarray(dark.rotate(step * TURN, Pil.Resampling.BILINEAR)))
    sharpest = max(sharpness, key=sharpness.__getitem__)
    best: Lattice | None = None
    for degrees in sorted({0.0, sharpest - TURN / 2, sharpest, sharpest + TURN / 2}):
        lattice = _fit_lattice(np.asarray(dark.rotate(degrees, Pil.Resampling.BILINEAR)) / 255.0, degrees)
        if lattice is not None and (best is None or lattice.fit > best.fit):
            best = lattice
    if best is not None and best.faintest > max(LEAST_EDGE, CLEAR * best.within):
        return best
    return None


def _darkness(image: "Pil.Image") -> "Pil.Image":
    """Return how much darker than the paper each pixel is (0 to 255), at the size for the search.

    The lightest channel is taken, in which red and green cells are light. The paper is as light as the lightest block
    nearby.
    """
    import numpy as np
    from PIL import Image as Pil
    from PIL import ImageFilter

    light: Any = np.asarray(image.reduce(SHRINK)).max(axis=2)
    soft: Any = np.asarray(Pil.fromarray(light).filter(ImageFilter.BoxBlur(1)))
    rows = -(-light.shape[0] // BLOCK)
    columns = -(-light.shape[1] // BLOCK)
    soft = np.pad(soft, ((0, rows * BLOCK - light.shape[0]), (0, columns * BLOCK - light.shape[1])), mode="edge")
    blocks = Pil.fromarray(soft.reshape(rows, BLOCK, columns, BLOCK).max(axis=(1, 3))).filter(ImageFilter.MaxFilter(3))
    paper: Any = np.asarray(blocks.resize((columns * BLOCK, rows * BLOCK), Pil.Resampling.BILINEAR))[
        : light.shape[0], : light.shape[1]
    ]
    dark = np.clip(1 - light / np.maximum(paper, 1).astype(np.float32), 0, 1)
    return Pil.fromarray((dark * 255).astype(np.uint8))


def _sharpness(dark: Any) -> float:
    """Return how steep the sums over rows and over columns are: steepest if lines lie along them."""
    import numpy as np

    total = 0.0
    for axis in (0, 1):
        profile: Any = np.convolve(dark.sum(axis=axis, dtype=np.float64), np.ones(3), "valid")
        total += float((np.diff(profile) ** 2).sum())
    return total


def _fit_lattice(dark: Any, degrees: float) -> Lattice | None:
    """Return the best lattice at one rotation.

    Fits of four lines in each direction are combined, then each line is moved to where its ink is.
    """
    import numpy as np

    total: Any = np.pad(np.cumsum(np.cumsum(dark, axis=0), axis=1), ((1, 0), (1, 0)))
    across_fits: list[Any] = []
    down_fits: list[Any] = []
    candidates = itertools.product(_find_four_lines(dark.sum(axis=0)), _find_four_lines(dark.sum(axis=1)))
    for across, down in candidates:
        if 1 / SQUARE < (across[1] - across[0]) / (down[1] - down[0]) < SQUARE:
            across_fits.append(across)
            down_fits.append(down)
    if not across_fits:
        return None
    vertical = np.array(across_fits).T
    horizontal = np.array(down_fits).T
    best = np.argsort(-_log_ink(_edges(total, vertical, horizontal)[..., 0], axis=(0, 1, 2)))[:PAIRS_KEPT]
    first_vertical = vertical[:, best]
    first_horizontal = horizontal[:, best]
    vertical = _shift_lines(total, first_vertical, first_horizontal)
    horizontal = _shift_lines(total.T, first_horizontal, first_vertical)
    edges = _edges(total, vertical, horizontal)[..., 0]
    within = _edges(total, vertical, horizontal, INSIDE)[:, :3].max(axis=-1)
    uneven = _unevenness(vertical) + _unevenness(horizontal)
    fit = (
        _log_ink(edges, axis=(0, 1, 2))
        + SHARP * edges.mean(axis=(0, 1, 2))
        - WITHIN * _log_ink(within, axis=(0, 1, 2))
        - UNEVEN * uneven
    )
    index = int(np.argmax(fit))
    return Lattice(
        fit=float(fit[index]),
        degrees=degrees,
        across=vertical[:, index] * SHRINK,
        down=horizontal[:, index] * SHRINK,
        faintest=float(np.sort(edges[..., index], axis=None)[1]),
        within=float(np.median(within[..., index])),
    )


def _unevenness(lines: Any) -> Any:
    """Return by how much the gaps between the four lines of each lattice differ."""
    import numpy as np

    return np.abs(np.diff(lines, 2, axis=0)).max(axis=0) / (lines[3] - lines[0])


def _find_four_lines(profile: Any) -> list[Any]:
    """Return candidates for four equally spaced lines, best first, from the sums along one direction."""
    import numpy as np

    length = len(profile)
    ink: Any = np.concatenate([[0.0], np.cumsum(profile)])[None]
    steps = math.ceil(math.log(length / 3 / LEAST_PITCH, PITCH_STEP))
    if steps <= 0:
        return []
    pitch = LEAST_PITCH * PITCH_STEP ** np.arange(steps)[:, None]
    positions: Any = np.arange(length + 1.0)[None]

    def amount(low: Any, high: Any) -> Any:
        return _interpolate(ink, high) - _interpolate(ink, low)

    ridge: Any = np.clip(_ridge(amount, positions, pitch) / (3 * pitch), 0, SOLID) + FAINT
    fit = np.prod([_interpolate(ridge, positions + line * pitch) for line in range(4)], axis=0) * (
        positions + 3 * pitch <= length
    )
    start = np.argpartition(-fit, STARTS_KEPT, axis=1)[:, :STARTS_KEPT]
    fits = np.stack([np.take_along_axis(fit, start, axis=1), start, start + 3 * pitch], axis=-1)
    # Small pitches find ink more easily (a line of text will do), so large ones compete among themselves.
    lines: list[Any] = []
    for band in range(0, steps, PITCHES):
        lines += _select_distinct(fits[band : band + PITCHES].reshape(-1, 3))
    return lines


def _select_distinct(fits: Any) -> list[Any]:
    """Return the four lines of the best fits (fit, first line, last line) that are not nearly the same."""
    import numpy as np

    remaining = fits[np.argsort(-fits[:, 0])]
    selected: list[Any] = []
    while len(remaining) and len(selected) < FITS_KEPT:
        _, first, last = remaining[0]
        selected.append(np.linspace(first, last, 4))
        is_other = np.abs(remaining[:, 1:] - remaining[0, 1:]).max(axis=1) > ALIKE * (last - first) / 3
        remaining = remaining[is_other]
    return selected


def _interpolate(values: Any, position: Any) -> Any:
    """Return each row's value at positions that need not be whole."""
    import numpy as np

    position = np.clip(position, 0, values.shape[1] - 1)
    before = np.minimum(position.astype(int), values.shape[1] - 2)
    rows = np.arange(len(values))[:, None]
    low = values[rows, before]
    high = values[rows, before + 1]
    return low + (high - low) * (position - before)


def _ridge(amount: Callable[[Any, Any], Any], position: Any, pitch: Any) -> Any:
    """Return how much darker a line is than its two sides; `amount(low, high)` is the ink between two positions."""
    import numpy as np

    core = np.maximum(CORE * pitch, 1)
    gap = GAP * pitch
    flank = FLANK * pitch
    before = amount(position - core - gap - flank, position - core - gap)
    after = amount(position + core + gap, position + core + gap + flank)
    return amount(position - core, position + core) / (2 * core) - (before + after) / (2 * flank)


def _edges(total: Any, vertical: Any, horizontal: Any, offsets: tuple[float, ...] = (0.0,)) -> Any:
    """Return the ridges along the edges, as [2 directions, 4 lines, 3 edges, lattices, offsets].

    `offsets`, in pitches, are those of parallel lines that are measured instead of the edges themselves.
    """
    import numpy as np

    return np.stack(
        [_vertical_edges(total, vertical, horizontal, offsets), _vertical_edges(total.T, horizontal, vertical, offsets)]
    )


def _vertical_edges(total: Any, lines: Any, ends: Any, offsets: tuple[float, ...]) -> Any:
    """Return the ridges along the edges of vertical lines; lines and ends are positions [4, lattices]."""
    import numpy as np

    pitch = (lines[3] - lines[0])[:, None] / 3
    length = (ends[3] - ends[0]) / 3
    position = (lines[..., None] + pitch * np.array(offsets))[:, None]
    top = (ends[:3] + CORNER * length)[None, ..., None]
    bottom = (ends[1:] - CORNER * length)[None, ..., None]

    def amount(low: Any, high: Any) -> Any:
        return _ink_in_box(total, top, bottom, low, high) / (bottom - top)

    return _ridge(amount, position, pitch)


def _ink_in_box(total: Any, top: Any, bottom: Any, left: Any, right: Any) -> Any:
    """Return the ink in a box, whose sides need not be at whole pixels."""
    return (
        _ink_to_corner(total, bottom, right)
        - _ink_to_corner(total, top, right)
        - _ink_to_corner(total, bottom, left)
        + _ink_to_corner(total, top, left)
    )


def _ink_to_corner(total: Any, row: Any, column: Any) -> Any:
    """Return the ink above and left of a corner, interpolated."""
    import numpy as np

    row = np.clip(row, 0, total.shape[0] - 1)
    column = np.clip(column, 0, total.shape[1] - 1)
    top = np.minimum(row.astype(int), total.shape[0] - 2)
    left = np.minimum(column.astype(int), total.shape[1] - 2)
    down = row - top
    along = column - left
    upper = total[top, left] * (1 - along) + total[top, left + 1] * along
    return upper * (1 - down) + (total[top + 1, left] * (1 - along) + total[top + 1, left + 1] * along) * down


def _log_ink(ridges: Any, axis: Any) -> Any:
    """Return the mean logarithm of edges' ink: an edge without ink costs more than a thick one can gain."""
    import numpy as np

    return np.log(FAINT + np.clip(ridges, 0, SOLID)).mean(axis=axis)


def _shift_lines(total: Any, lines: Any, ends: Any) -> Any:
    """Move each vertical line of many lattices a little, to where its three edges have most ink."""
    import numpy as np

    ink = _log_ink(_vertical_edges(total, lines, ends, SHIFTS), axis=1) - np.square(SHIFTS)
    return lines + np.array(SHIFTS)[np.argmax(ink, axis=-1)] * (lines[3] - lines[0]) / 3
