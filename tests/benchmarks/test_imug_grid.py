"""The cubes pictures: cells and colours, as drawn and after what models and files do to them."""

import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image as Pil
from PIL import ImageDraw, ImageFilter

from weft.benchmarks.imug.grid import Grid, read_grid, score_grid
from weft.benchmarks.imug.grid_official import read_grid_as_released

SHARED = Path(__file__).parents[3] / "shared" / "data" / "imug" / "images"
SEEN = {  # read by eye
    (1, 1): ("100", "000", "1r0"), (1, 2): ("100", "000", "001"),
    (2, 1): ("00r", "010", "100"), (2, 2): ("110", "100", "100"),
    (3, 1): ("r11", "100", "001"), (3, 2): ("010", "100", "101"),
    (4, 1): ("100", "r00", "100"), (4, 2): ("100", "001", "010"),
}  # fmt: skip


def grid(*rows: str) -> Grid:
    return tuple(tuple(row) for row in rows)


def lattice(*rows: str, side: int = 200, solid: int = 0) -> Pil.Image:
    """A picture in the benchmark's style; `solid`: its thin lines are black, so many pixels wide, and have no gaps."""
    picture = Pil.new("RGB", (side, side), "white")
    pen = ImageDraw.Draw(picture)
    start, cell = side // 16, (side - side // 8) // 3
    for k in range(4):
        for at in range(0, 3 * cell, 6):
            line = start + k * cell
            long, ink, width = (6, (0, 0, 0), solid) if solid else (3, (130, 130, 130), 1)
            pen.line((start + at, line, start + at + long, line), fill=ink, width=width)
            pen.line((line, start + at, line, start + at + long), fill=ink, width=width)
    for r, row in enumerate(rows):
        for c, kind in enumerate(row):
            if kind != "0":
                fill = {"r": (255, 68, 68), "g": (60, 190, 80)}.get(kind)
                pen.rectangle(
                    (start + c * cell, start + r * cell, start + (c + 1) * cell, start + (r + 1) * cell),
                    fill,
                    "black",
                    width=5 if solid else 3,
                )
    return picture


def on_canvas(picture: Pil.Image, left: int, top: int, side: int = 800) -> Pil.Image:
    canvas = Pil.new("RGB", (side, side), "white")
    canvas.paste(picture, (left, top))
    return canvas


def captioned(picture: Pil.Image, above: bool) -> Pil.Image:
    tall = Pil.new("RGB", (picture.width, picture.height + 30), "white")
    tall.paste(picture, (0, 30 if above else 0))
    ImageDraw.Draw(tall).text((12, 8 if above else picture.height + 8), "Figure 3: the next one", fill="black")
    return tall


def turned(degrees: float) -> Callable[[Pil.Image], Pil.Image]:
    return lambda picture: picture.rotate(degrees, Pil.Resampling.BICUBIC, fillcolor="white")


def jpeg(picture: Pil.Image) -> Pil.Image:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=60)
    return Pil.open(io.BytesIO(out.getvalue()))


SPOIL: dict[str, Callable[[Pil.Image], Pil.Image]] = {
    "as drawn": lambda p: p,
    "blurred": lambda p: p.filter(ImageFilter.GaussianBlur(1.0)),
    "at 1024": lambda p: p.resize((1024, 1024), Pil.Resampling.BICUBIC),
    "as JPEG 60": jpeg,
    "turned by 2": turned(2),
    "turned by -2": turned(-2),
    "turned by 3": turned(3),
    "with a caption": lambda p: captioned(p, above=False),
    "under a caption": lambda p: captioned(p, above=True),
    "small on a canvas": lambda p: on_canvas(p, 90, 500),
    "on grey": lambda p: Pil.blend(p, Pil.new("RGB", p.size, (150, 150, 150)), 0.3),
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
@pytest.mark.parametrize(
    "rows", [("1r0", "0g0", "101"), ("000", "010", "000"), ("ggg", "rrr", "111"), ("100", "000", "00g")]
)
def test_pictures_of_our_own_are_read_right(spoil: Callable[[Pil.Image], Pil.Image], rows: tuple[str, ...]):
    assert read_grid(spoil(lattice(*rows))) == grid(*rows)


@pytest.mark.parametrize("solid", [1, 2])
@pytest.mark.parametrize(
    "rows", [("1r0", "0g0", "101"), ("000", "010", "000"), ("ggg", "rrr", "111"), ("100", "000", "00g")]
)
def test_a_lattice_of_solid_black_lines_is_no_outline(solid: int, rows: tuple[str, ...]):
    assert read_grid(lattice(*rows, solid=solid)) == grid(*rows)


def test_what_is_no_grid_is_none():
    assert read_grid(Pil.new("RGB", (200, 200), "white")) is None
    noise = random.Random(3)
    assert read_grid(Pil.frombytes("RGB", (120, 120), noise.randbytes(120 * 120 * 3))) is None
    stripes = Pil.new("RGB", (300, 300), "white")
    for at in range(10, 300, 40):
        ImageDraw.Draw(stripes).line((at, 0, at, 299), fill="black", width=4)
    assert read_grid(stripes) is None


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
    assert score_grid(grid(*found) if found else None, grid("1r0", "000", "00g"), count) == expected


BY_SCRIPT = {  # what the released reader, with OpenCV, makes of the same pictures
    "as drawn": "1r0/0g0/101", "blurred": "1r0/0g0/101", "at 1024": "000/000/101", "as JPEG 60": "1r0/0g0/101", "all of it": "000/000/000",
    "turned by 2": "1r0/0g0/101", "turned by -2": "1r0/0g0/101", "turned by 3": "000/000/000", "with a caption": "1r0/1g1/101",
    "under a caption": "1r0/1r0/101", "small on a canvas": "1r0/0g0/101", "on grey": "1r0/0g0/101",
}  # fmt: skip


@pytest.mark.parametrize("name", SPOIL)
def test_the_released_reader_is_repeated_with_its_faults(name: str):
    found = read_grid_as_released(SPOIL[name](lattice("1r0", "0g0", "101")))
    assert found is not None and "/".join(map("".join, found)) == BY_SCRIPT[name]


def test_the_released_reader_sees_nothing_where_nothing_is_darker_than_what_is_around():
    assert read_grid_as_released(Pil.new("RGB", (200, 200), "white")) is None
    assert read_grid_as_released(Pil.linear_gradient("L")) is None
