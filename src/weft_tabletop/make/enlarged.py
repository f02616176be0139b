"""A tabletop dataset drawn larger: every picture of its folder again, at another size and with a photograph's noise.
Its truth stays."""

import hashlib
from pathlib import Path

from PIL import Image as Pil

from weft.errors import UserError
from weft.store.images import encode_png
from weft_tabletop.world.large import SIDES, photograph
from weft_tabletop.world.scenes import SIDE, read


def enlarge(folder: Path, side: int) -> None:
    check_side(side)
    for file in sorted(folder.rglob("*.png")) if side != SIDE else ():
        with Pil.open(file) as picture:
            scene = read(picture).scene
        seed = int.from_bytes(hashlib.sha256(file.name.encode()).digest()[:4], "big")
        file.write_bytes(encode_png(photograph(scene, side, seed)))


def check_side(side: int) -> int:
    if side not in SIDES:
        raise UserError(f"pictures of {side} pixels cannot be drawn: give a multiple of {SIDE}, at most {SIDES[-1]}")
    return side
