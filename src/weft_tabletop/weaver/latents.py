"""Images as the numbers that planner and visualizer work with: the tiny model's image network gives four numbers for
each cell, each rounded to one of its levels and shown as -1 to 1.

While training no image is drawn. A cell's numbers come from a table: what the network gives for this thing on this
background in this cell, with nothing around it. In a full image about 6% of the numbers differ from the table, by one
level; so training moves some of the numbers of the images that it shows. Images decoded from the table are read back
exactly."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_tabletop.tiny import vocab
from weft_tabletop.weaver.world import TableWorld
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, THINGS, Scene, draw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weft_tabletop.tiny.infer import Tiny

FILE = Path(__file__).parent / "data" / "digits.npy"
NUMBERS = len(vocab.LEVELS)
CHANGED = 0.06  # how many numbers differ by one level in a full image


@functools.cache
def load_digits() -> "NDArray[np.uint8]":
    """The table (backgrounds, 1 + things, 16 cells, 4) of whole numbers."""
    import numpy as np

    return np.load(FILE, allow_pickle=False)


def compute_digits(tiny: "Tiny") -> "NDArray[np.uint8]":
    """Compute the table from the image network. Each image holds a thing in every second cell of every second row, so
    that nothing is around it."""
    import numpy as np

    table = np.zeros((len(BACKGROUNDS), 1 + len(THINGS), len(CELLS), NUMBERS), np.uint8)
    for b, background in enumerate(BACKGROUNDS):
        for t, thing in enumerate((None, *THINGS)):
            for row in (0, 1):
                for column in (0, 1):
                    places = [4 * r + c for r in (row, row + 2) for c in (column, column + 2)]
                    scene = Scene(background).put({CELLS[place]: thing for place in places})
                    table[b, t, places] = split_codes(tiny.encode_image(draw(scene)))[places]
    return table


def split_codes(codes: Sequence[int]) -> "NDArray[np.int64]":
    """Codes as digits (cells, 4)."""
    import numpy as np

    rest: Any = np.array(codes, dtype=np.int64)
    digits: list[Any] = []
    for level in reversed(vocab.LEVELS):
        digits.append(rest % level)
        rest = rest // level
    return np.stack(digits[::-1], axis=-1)


def join_digits(digits: "NDArray[np.integer]") -> list[int]:
    """Digits (cells, 4) as codes."""
    codes = [0] * len(digits)
    for channel, level in enumerate(vocab.LEVELS):
        codes = [code * level + int(digit) for code, digit in zip(codes, digits[:, channel], strict=True)]
    return codes


def to_numbers(digits: "NDArray[np.integer]") -> "NDArray[np.float32]":
    """Digits as numbers from -1 to 1."""
    import numpy as np

    top = np.array(vocab.LEVELS, np.float32) - 1
    return (digits / top * 2 - 1).astype(np.float32)


def to_digits(numbers: "NDArray[np.floating]") -> "NDArray[np.int64]":
    """Numbers rounded to their nearest levels."""
    import numpy as np

    top = np.array(vocab.LEVELS, np.float32) - 1
    return np.clip(np.round((numbers + 1) / 2 * top), 0, top).astype(np.int64)


def decode_cells(tiny: "Tiny", world: TableWorld, numbers: "NDArray[np.floating]") -> Any:
    """The image (PIL) of a world's numbers (cells, 4)."""
    return tiny.decode_image(join_digits(_complete_digits(world, to_digits(numbers))))


def complete_codes(world: TableWorld, codes: Sequence[int]) -> list[int]:
    """The codes of all sixteen cells, from those of a world's."""
    return join_digits(_complete_digits(world, split_codes(codes)))


def _complete_digits(world: TableWorld, digits: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Cells that are not part of the world are empty, on the background that most of the others suggest."""
    import numpy as np

    places = world.places()
    if len(places) == len(CELLS):
        return digits
    table = load_digits()[:, :, places].astype(np.int64)  # (backgrounds, things, cells, 4)
    distances = np.abs(table - digits).sum(-1).min(1).sum(-1)
    whole = load_digits()[int(distances.argmin()), 0].astype(np.int64)
    whole[places] = digits
    return whole
