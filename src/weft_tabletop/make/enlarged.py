"""Draw the images of a tabletop dataset again, larger and with a photograph's noise. Its references stay the same."""

import hashlib
from pathlib import Path

from PIL import Image as Pil

from weft.errors import UserError
from weft.store.images import encode_png
from weft_tabletop.world.large import SIDES, draw_photograph
from weft_tabletop.world.scenes import SIDE, read


def enlarge(folder: Path, side: int) -> None:
    """Replace every image in a folder by a larger one of the same scene."""
    check_side(side)
    if side == SIDE:
        return
    for file in sorted(folder.rglob("*.png")):
        with Pil.open(file) as image:
            scene = read(image).scene
        seed = int.from_bytes(hashlib.sha256(file.name.encode()).digest()[:4], "big")
        file.write_bytes(encode_png(draw_photograph(scene, side, seed)))


def check_side(side: int) -> int:
    """Return the side, if images can be drawn at it. Raises UserError."""
    if side not in SIDES:
        raise UserError(f"images of {side} pixels cannot be drawn: give a multiple of {SIDE}, at most {SIDES[-1]}")
    return side
