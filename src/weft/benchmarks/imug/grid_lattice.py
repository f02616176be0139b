"""Finding the 3 x 3 lattice of a cubes picture, wherever it is and however large, turned by a few degrees or not.

Four and four equally spaced lines are looked for whose twenty-four unit edges all have ink, thick or faint, and whose
cells have no lines inside. Sums over rows and columns propose lines in each direction; every edge's own ink decides.
numpy alone."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from PIL import Image as Pil

# the search is done at half the size; how light the paper is, is taken from blocks of so many pixels of that
SHRINK = 2
BLOCK = 16
# degrees
STEEPEST = 4.5
TURN = 0.5
# pixels of the small picture; so many pitches are searched together
LEAST_PITCH = 22.0
PITCH_STEP = 1.025
PITCHES = 16
# for each pitch; for pitches searched together; for both directions
STARTS_KEPT = 12
FITS_KEPT = 5
PAIRS_KEPT = 4
# half a line's width, then a gap, then what is beside it: parts of the pitch
CORE = 0.04
GAP = 0.02
FLANK = 0.06
# the two pitches differ by no more than this; fits this near one another (parts of the pitch) are one
SQUARE = 1.2
ALIKE = 0.12
CORNER = 0.12  # the part of an edge at each end that is left out, for the lines that cross there
SHIFTS = tuple(step / 100 for step in range(-6, 7))  # by how much of the pitch a single line may be off
INSIDE = tuple(step / 25 for step in range(3, 23))  # where lines inside the cells would be: parts of the pitch
# darkness below which a line is as good as none, above which it is as good as any
FAINT = 0.003
SOLID = 0.08
# what sharp lines bring, and what ink inside the cells and uneven lines cost
SHARP = 0.5
WITHIN = 0.3
UNEVEN = 3.0
# a lattice's faintest edges: so dark, and so dark compared with the lines one could see inside the cells
LEAST_EDGE = 0.006
CLEAR = 0.8


class Lattice(NamedTuple):
    """Where the lines are once the picture is turned by `degrees`, and how well they fit."""

    fit: float
    degrees: float
    across: Any  # the four vertical lines' places, in pixels of the picture
    down: Any  # the four horizontal lines' places
    faintest: float  # the ridge along the faintest edges
    within: float  # the ridge along what is most like a line inside a cell


def find_lattice(picture: "Pil.Image") -> Lattice | None:
    """The best lattice over the turns at which the picture's lines are sharpest, or None where even that is none."""
    import numpy as np
    from PIL import Image as Pil

    dark = _darkness(picture)
    steps = round(STEEPEST / TURN)
    turned = {step * TURN: dark.rotate(step * TURN, Pil.Resampling.BILINEAR) for step in range(-steps, steps + 1)}
    sharp = max(turned, key=lambda degrees: _sharpness(np.asarray(turned[degrees])))
    tries = {0.0, sharp - TURN / 2, sharp, sharp + TURN / 2}
    fits = [
        _fitted(np.asarray(dark.rotate(degrees, Pil.Resampling.BILINEAR)) / 255.0, degrees) for degrees in sorted(tries)
    ]
    best = max((fit for fit in fits if fit is not None), key=lambda lattice: lattice.fit, default=None)
    if best is not None and best.faintest > max(LEAST_EDGE, CLEAR * best.within):
        return best
    return None


def _darkness(picture: "Pil.Image") -> "Pil.Image":
    """How much darker than the paper around it each place is (0 to 255), at the size for the search.

    The lightest channel is taken, in which red and green cells are light. The paper's lightness is the lightest of the
    blocks around."""
    import numpy as np
    from PIL import Image as Pil
    from PIL import ImageFilter

    light: Any = np.asarray(picture.reduce(SHRINK)).max(axis=2)
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
    """How steep the sums over rows and over columns are: steepest where lines lie along them."""
    import numpy as np

    total = 0.0
    for axis in (0, 1):
        profile: Any = np.convolve(dark.sum(axis=axis, dtype=np.float64), np.ones(3), "valid")
        total += float((np.diff(profile) ** 2).sum())
    return total


def _fitted(dark: Any, degrees: float) -> Lattice | None:
    """The best lattice at one turn: fits of four lines in each direction, put together, then each line moved to where
    its ink is."""
    import numpy as np

    total: Any = np.pad(np.cumsum(np.cumsum(dark, axis=0), axis=1), ((1, 0), (1, 0)))
    across = _four_lines(dark.sum(axis=0))
    down = _four_lines(dark.sum(axis=1))
    pairs = [
        (one, other)
        for one in across
        for other in down
        if 1 / SQUARE < (one[1] - one[0]) / (other[1] - other[0]) < SQUARE
    ]
    if not pairs:
        return None
    vertical = np.array([one for one, _ in pairs]).T
    horizontal = np.array([other for _, other in pairs]).T
    best = np.argsort(-_inked(_edges(total, vertical, horizontal)[..., 0], axis=(0, 1, 2)))[:PAIRS_KEPT]
    vertical, horizontal = vertical[:, best], horizontal[:, best]
    vertical, horizontal = _moved(total, vertical, horizontal), _moved(total.T, horizontal, vertical)
    edges = _edges(total, vertical, horizontal)[..., 0]
    within = _edges(total, vertical, horizontal, INSIDE)[:, :3].max(axis=-1)
    uneven = sum(
        np.abs(np.diff(lines, 2, axis=0)).max(axis=0) / (lines[3] - lines[0]) for lines in (vertical, horizontal)
    )
    fit = (
        _inked(edges, axis=(0, 1, 2))
        + SHARP * edges.mean(axis=(0, 1, 2))
        - WITHIN * _inked(within, axis=(0, 1, 2))
        - UNEVEN * uneven
    )
    at = int(np.argmax(fit))
    faintest = np.sort(edges[..., at], axis=None)[1]
    clearest = np.median(within[..., at])
    return Lattice(
        float(fit[at]), degrees, vertical[:, at] * SHRINK, horizontal[:, at] * SHRINK, float(faintest), float(clearest)
    )


def _four_lines(profile: Any) -> list[Any]:
    """The places of four equally spaced lines, in several ways, best first, from the sums along one direction."""
    import numpy as np

    length = len(profile)
    ink: Any = np.concatenate([[0.0], np.cumsum(profile)])[None]
    steps = math.ceil(math.log(length / 3 / LEAST_PITCH, PITCH_STEP))
    if steps <= 0:
        return []
    pitch = LEAST_PITCH * PITCH_STEP ** np.arange(steps)[:, None]
    places: Any = np.arange(length + 1.0)[None]

    def amount(low: Any, high: Any) -> Any:
        return _between(ink, high) - _between(ink, low)

    ridge: Any = np.clip(_ridge(amount, places, pitch) / (3 * pitch), 0, SOLID) + FAINT
    fit = np.prod([_between(ridge, places + line * pitch) for line in range(4)], axis=0) * (
        places + 3 * pitch <= length
    )
    start = np.argpartition(-fit, STARTS_KEPT, axis=1)[:, :STARTS_KEPT]
    found = np.stack([np.take_along_axis(fit, start, axis=1), start, start + 3 * pitch], axis=-1)
    # Small pitches find ink more easily (a line of text will do), so the large ones are heard by themselves.
    return [fit for band in range(0, steps, PITCHES) for fit in _distinct(found[band : band + PITCHES].reshape(-1, 3))]


def _distinct(found: Any) -> list[Any]:
    """The four lines of the best fits (fit, first line, last line) that are not nearly one another."""
    import numpy as np

    left = found[np.argsort(-found[:, 0])]
    kept = list[Any]()
    while len(left) and len(kept) < FITS_KEPT:
        _, first, last = left[0]
        kept.append(np.linspace(first, last, 4))
        left = left[np.abs(left[:, 1:] - left[0, 1:]).max(axis=1) > ALIKE * (last - first) / 3]
    return kept


def _between(values: Any, at: Any) -> Any:
    """Each row's value at places that need not be whole."""
    import numpy as np

    at = np.clip(at, 0, values.shape[1] - 1)
    before = np.minimum(at.astype(int), values.shape[1] - 2)
    rows = np.arange(len(values))[:, None]
    low = values[rows, before]
    high = values[rows, before + 1]
    return low + (high - low) * (at - before)


def _ridge(amount: Callable[[Any, Any], Any], at: Any, pitch: Any) -> Any:
    """How much darker a line is than what is on its two sides; `amount(low, high)` is the ink between two places."""
    import numpy as np

    core = np.maximum(CORE * pitch, 1)
    gap = GAP * pitch
    flank = FLANK * pitch
    beside = amount(at - core - gap - flank, at - core - gap) + amount(at + core + gap, at + core + gap + flank)
    return amount(at - core, at + core) / (2 * core) - beside / (2 * flank)


def _edges(total: Any, vertical: Any, horizontal: Any, asides: tuple[float, ...] = (0.0,)) -> Any:
    """The ridges along the edges [2 directions, 4 lines, 3 edges, many lattices, asides], or along lines aside of them,
    in pitches."""
    import numpy as np

    return np.stack(
        [_edges_down(total, vertical, horizontal, asides), _edges_down(total.T, horizontal, vertical, asides)]
    )


def _edges_down(total: Any, lines: Any, ends: Any, asides: tuple[float, ...]) -> Any:
    """The ridges along the edges of vertical lines, from the picture's sums; lines and ends are places [4, many]."""
    import numpy as np

    pitch = (lines[3] - lines[0])[:, None] / 3
    length = (ends[3] - ends[0]) / 3
    at = (lines[..., None] + pitch * np.array(asides))[:, None]
    top = (ends[:3] + CORNER * length)[None, ..., None]
    bottom = (ends[1:] - CORNER * length)[None, ..., None]

    def amount(low: Any, high: Any) -> Any:
        return _amount(total, top, bottom, low, high) / (bottom - top)

    return _ridge(amount, at, pitch)


def _amount(total: Any, top: Any, bottom: Any, left: Any, right: Any) -> Any:
    """The ink in a box; its sides need not be at whole pixels."""
    return (
        _corner(total, bottom, right)
        - _corner(total, top, right)
        - _corner(total, bottom, left)
        + _corner(total, top, left)
    )


def _corner(total: Any, row: Any, column: Any) -> Any:
    import numpy as np

    row, column = np.clip(row, 0, total.shape[0] - 1), np.clip(column, 0, total.shape[1] - 1)
    top = np.minimum(row.astype(int), total.shape[0] - 2)
    left = np.minimum(column.astype(int), total.shape[1] - 2)
    down = row - top
    along = column - left
    upper = total[top, left] * (1 - along) + total[top, left + 1] * along
    return upper * (1 - down) + (total[top + 1, left] * (1 - along) + total[top + 1, left + 1] * along) * down


def _inked(ridges: Any, axis: Any) -> Any:
    """How much ink there is along all of some edges: one without any costs more than another's thick ink can bring."""
    import numpy as np

    return np.log(FAINT + np.clip(ridges, 0, SOLID)).mean(axis=axis)


def _moved(total: Any, lines: Any, ends: Any) -> Any:
    """The vertical lines of many lattices, each moved a little, to where its three edges have most ink."""
    import numpy as np

    ink = _inked(_edges_down(total, lines, ends, SHIFTS), axis=1) - np.square(SHIFTS)
    return lines + np.array(SHIFTS)[np.argmax(ink, axis=-1)] * (lines[3] - lines[0]) / 3
