"""The cubes pictures: cells and colours, as drawn and after what models and files do to them."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image as Pil
from PIL import ImageDraw, ImageFilter

from weft.benchmarks.imug.grid import Grid, points, read_grid

SHARED = Path(__file__).parents[3] / "shared" / "data" / "imug" / "images"
SEEN = {  # read by eye
    (1, 1): ("100", "000", "1r0"), (1, 2): ("100", "000", "001"),
    (2, 1): ("00r", "010", "100"), (2, 2): ("110", "100", "100"),
    (3, 1): ("r11", "100", "001"), (3, 2): ("010", "100", "101"),
    (4, 1): ("100", "r00", "100"), (4, 2): ("100", "001", "010"),
}  # fmt: skip


def grid(*rows: str) -> Grid:
    return tuple(tuple(row) for row in rows)


def lattice(*rows: str, side: int = 200) -> Pil.Image:
    """A picture in the benchmark's style."""
    picture = Pil.new("RGB", (side, side), "white")
    pen = ImageDraw.Draw(picture)
    start, cell = side // 16, (side - side // 8) // 3
    for k in range(4):
        for at in range(0, 3 * cell, 6):
            line = start + k * cell
            pen.line((start + at, line, start + at + 3, line), fill=(130, 130, 130))
            pen.line((line, start + at, line, start + at + 3), fill=(130, 130, 130))
    for r, row in enumerate(rows):
        for c, kind in enumerate(row):
            if kind != "0":
                fill = {"r": (255, 68, 68), "g": (60, 190, 80)}.get(kind)
                pen.rectangle((start + c * cell, start + r * cell, start + (c + 1) * cell, start + (r + 1) * cell), fill, "black", width=3)
    return picture


def jpeg(picture: Pil.Image) -> Pil.Image:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=60)
    return Pil.open(io.BytesIO(out.getvalue()))


SPOIL: dict[str, Callable[[Pil.Image], Pil.Image]] = {
    "as drawn": lambda p: p,
    "blurred": lambda p: p.filter(ImageFilter.GaussianBlur(1.0)),
    "at 1024": lambda p: p.resize((1024, 1024), Pil.Resampling.BICUBIC),
    "as JPEG 60": jpeg,
    "all of it": lambda p: jpeg(p.filter(ImageFilter.GaussianBlur(0.8)).resize((1024, 1024), Pil.Resampling.BICUBIC)),
}


@pytest.mark.parametrize("spoil", SPOIL.values(), ids=SPOIL.keys())
def test_the_released_pictures_are_read_right(spoil: Callable[[Pil.Image], Pil.Image]):
    if not SHARED.is_dir():
        pytest.skip(f"IMUG's grid pictures are not here ({SHARED})")
    for (sample, number), rows in SEEN.items():
        picture = Pil.open(SHARED / f"Geometric_Coloring__cubes_coloring__{sample}__img_{number}.png")
        assert read_grid(spoil(picture.convert("RGB"))) == grid(*rows), (sample, number)


@pytest.mark.parametrize("spoil", SPOIL.values(), ids=SPOIL.keys())
@pytest.mark.parametrize("rows", [("1r0", "0g0", "101"), ("000", "010", "000"), ("ggg", "rrr", "111"), ("100", "000", "00g")])
def test_pictures_of_our_own_are_read_right(spoil: Callable[[Pil.Image], Pil.Image], rows: tuple[str, ...]):
    assert read_grid(spoil(lattice(*rows))) == grid(*rows)


def test_what_is_no_grid_is_none():
    assert read_grid(Pil.new("RGB", (200, 200), "white")) is None


@pytest.mark.parametrize(
    ("found", "count", "expected"),
    [
        (None, 4, [0, 0, 0, 0]),
        (("100", "000", "00r"), 4, [5, 0, 0, 0]),
        (("1r0", "000", "00g"), 4, [5, 5, 5, 5]),
        (("rr0", "000", "00g"), 4, [5, 5, 0, 5]),
        (("1g0", "000", "00g"), 4, [5, 5, 0, 0]),
        (("1r0", "000", "00g"), 6, [5, 5, 5, 5, 0, 0]),
        (("1r0", "000", "00g"), 1, [5]),
    ],
)
def test_points_follow_the_released_logic(found: tuple[str, ...] | None, count: int, expected: list[int]):
    assert points(grid(*found) if found else None, grid("1r0", "000", "00g"), count) == expected
