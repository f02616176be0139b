"""The tabletop: a 4x4 table on a coloured background, a cell empty or with one object. `draw` makes its image, `read`
gets the scene back from a image, a model's blurred or noisy one included, and says how sure it is.

Guarantee: `read(draw(scene)).scene == scene` for every scene. A reading is `sure` only if every cell is close to its
best template and far closer than to any other; cells that are not are listed as `unknown`."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as Pil

    Array = NDArray[np.float32]

ROWS = "abcd"
COLUMNS = "1234"
CELLS = tuple(row + column for row in ROWS for column in COLUMNS)
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "dot")
COLOURS: Mapping[str, tuple[int, int, int]] = {
    "red": (214, 30, 38),
    "orange": (246, 130, 18),
    "yellow": (228, 196, 0),
    "green": (20, 148, 58),
    "blue": (28, 82, 206),
    "purple": (136, 44, 168),
    "black": (24, 24, 28),
}
BACKGROUNDS: Mapping[str, tuple[int, int, int]] = {
    "white": (252, 252, 252),
    "grey": (176, 178, 182),
    "cream": (250, 232, 196),
    "pink": (252, 196, 208),
    "mint": (186, 240, 208),
    "sky": (178, 218, 252),
}
SIDE = 64
CELL = 16
FINE = 8  # outlines are drawn so much larger, then made small
# how images come back: as drawn, blurred by so many pixels, or (below zero) with blurred colour
LOOKS = (0.0, 0.7, 1.1, 1.6, -1.2)
FAR = 45.0  # the most a cell may differ from its best template, on average over its pixels
SURE = 0.08  # the least confidence at which a cell counts as read


class Thing(Struct, frozen=True, order=True):
    """An object on the table."""

    colour: str
    shape: str

    def __str__(self) -> str:
        return f"{self.colour} {self.shape}"


THINGS = tuple(Thing(colour, shape) for colour in COLOURS for shape in SHAPES)
OBJECTS = tuple(thing for thing in THINGS if thing.shape != "dot")  # dots are what routes are drawn with


class Scene(Struct, frozen=True):
    """A background and sixteen cells, row by row."""

    background: str
    cells: tuple[Thing | None, ...] = (None,) * 16

    def at(self, cell: str) -> Thing | None:
        return self.cells[CELLS.index(cell)]

    def put(self, changes: Mapping[str, Thing | None], background: str | None = None) -> "Scene":
        cells = tuple(changes.get(name, thing) for name, thing in zip(CELLS, self.cells, strict=True))
        return Scene(background or self.background, cells)

    def things(self) -> dict[str, Thing]:
        return {name: thing for name, thing in zip(CELLS, self.cells, strict=True) if thing is not None}

    def changed_cells(self, other: "Scene") -> list[str]:
        """Cells that are not the same in both."""
        return [name for name, a, b in zip(CELLS, self.cells, other.cells, strict=True) if a != b]

    def __str__(self) -> str:
        return f"{self.background}: " + (
            ", ".join(f"{thing} at {cell}" for cell, thing in self.things().items()) or "nothing"
        )


class SceneReading(Struct, frozen=True):
    """What a image shows. `confidence` is that of the least certain cell, 0 to 1; `residual` the mean
    distance (0 to 255) from a clean drawing of the same scene."""

    scene: Scene
    confidence: float
    residual: float
    unknown: tuple[str, ...] = ()

    @property
    def is_sure(self) -> bool:
        return not self.unknown


def draw(scene: Scene) -> "Pil.Image":
    """64 x 64 pixels, anti-aliased; the same scene gives the same pixels."""
    import numpy as np
    from PIL import Image as Pil

    rows = [
        np.concatenate([tile_pixels(scene.background, scene.cells[4 * row + column]) for column in range(4)], axis=1)
        for row in range(4)
    ]
    return Pil.fromarray(np.concatenate(rows, axis=0))


def read(image: "Pil.Image") -> SceneReading:
    """The scene whose image is nearest, whatever the image's size."""
    import numpy as np
    from PIL import Image as Pil

    rgb = image.convert("RGB")
    if rgb.size != (SIDE, SIDE):
        rgb = rgb.resize((SIDE, SIDE), Pil.Resampling.BOX if min(rgb.size) >= SIDE else Pil.Resampling.BICUBIC)
    pixels = np.asarray(rgb, dtype=np.float32)
    tiles = pixels.reshape(4, CELL, 4, CELL, 3).transpose(0, 2, 1, 3, 4).reshape(16, -1)
    # (looks, 1 + things, pixels): every background as drawn, blurred and as JPEG leaves it
    templates, squares = _templates()
    products = (tiles @ templates.reshape(-1, templates.shape[2]).T).reshape(16, *templates.shape[:2])
    distances = np.maximum((tiles**2).sum(1)[:, None, None] - 2 * products + squares, 0.0)
    look = int(distances.min(axis=2).sum(axis=0).argmin())
    table = distances[:, look]
    order = np.argsort(table, axis=1)
    best = np.take_along_axis(table, order[:, :1], axis=1)[:, 0]
    second = np.take_along_axis(table, order[:, 1:2], axis=1)[:, 0]
    confidence = (second - best) / (second + 1.0)
    things: tuple[Thing | None, ...] = (None, *THINGS)
    scene = Scene(tuple(BACKGROUNDS)[look // len(LOOKS)], tuple(things[int(at)] for at in order[:, 0]))
    off = np.sqrt(best / tiles.shape[1])
    unknown = tuple(CELLS[at] for at in range(16) if confidence[at] < SURE or off[at] > FAR)
    sharp = np.take_along_axis(distances[:, look - look % len(LOOKS)], order[:, :1], axis=1)
    residual = float(np.sqrt(sharp.mean() / tiles.shape[1]))
    return SceneReading(scene, float(confidence.min()), residual, unknown)


@functools.cache
def _templates() -> "tuple[Array, Array]":
    import numpy as np

    made = [
        [_look(tile_pixels(name, thing), tile_pixels(name, None), look).reshape(-1) for thing in (None, *THINGS)]
        for name in BACKGROUNDS
        for look in LOOKS
    ]
    templates = np.array(made, dtype=np.float32)
    return templates, (templates**2).sum(axis=2)


def _look(tile: "NDArray[np.uint8]", empty: "NDArray[np.uint8]", look: float) -> "NDArray[np.uint8]":
    """A cell among empty ones, blurred by `look` pixels; a negative one blurs the colour alone, as JPEG does."""
    import numpy as np
    from PIL import Image as Pil
    from PIL import ImageFilter

    row = np.concatenate([empty, empty, empty], axis=1)
    around = Pil.fromarray(np.concatenate([row, np.concatenate([empty, tile, empty], axis=1), row], axis=0))
    blurred = around.filter(ImageFilter.GaussianBlur(abs(look)))
    if look < 0:
        light = around.convert("YCbCr").getchannel(0)
        blurred = Pil.merge("YCbCr", (light, *blurred.convert("YCbCr").split()[1:])).convert("RGB")
    return np.asarray(blurred)[CELL : 2 * CELL, CELL : 2 * CELL]


@functools.cache
def tile_pixels(background: str, thing: Thing | None) -> "NDArray[np.uint8]":
    """One cell: background with a fine edge, and the object."""
    import numpy as np
    from PIL import Image as Pil

    ground = BACKGROUNDS[background]
    edge = tuple(value * 9 // 10 for value in ground)
    tile = Pil.new("RGB", (CELL, CELL), edge)
    tile.paste(ground, (0, 0, CELL - 1, CELL - 1))
    if thing is not None:
        mask = Pil.new("L", (CELL * FINE, CELL * FINE), 0)
        outline(mask, thing.shape, FINE)
        tile.paste(COLOURS[thing.colour], (0, 0), mask.resize((CELL, CELL), Pil.Resampling.BOX))
    return np.asarray(tile)


def outline(mask: "Pil.Image", shape: str, scale: int) -> None:
    import math

    from PIL import ImageDraw

    pen = ImageDraw.Draw(mask)
    centre = 7.5 * scale
    radius = 6.0 * scale

    def around(points: int, size: float, turn: float = 0.0) -> list[tuple[float, float]]:
        angles = [2 * math.pi * k / points + turn for k in range(points)]
        return [(centre + size * math.sin(angle), centre - size * math.cos(angle)) for angle in angles]

    def box(size: float) -> tuple[float, float, float, float]:
        return (centre - size, centre - size, centre + size, centre + size)

    if shape == "circle":
        pen.ellipse(box(radius), fill=255)
    elif shape == "square":
        pen.rectangle(box(radius * 0.9), fill=255)
    elif shape == "triangle":
        base = centre + radius * 0.85
        pen.polygon([(centre, centre - radius), (centre + radius, base), (centre - radius, base)], fill=255)
    elif shape == "star":
        outer = around(5, radius * 1.08)
        inner = around(5, radius * 0.42, math.pi / 5)
        pen.polygon([point for pair in zip(outer, inner, strict=True) for point in pair], fill=255)
    elif shape == "cross":
        width = radius * 0.34
        pen.rectangle((centre - width, centre - radius, centre + width, centre + radius), fill=255)
        pen.rectangle((centre - radius, centre - width, centre + radius, centre + width), fill=255)
    elif shape == "ring":
        pen.ellipse(box(radius), fill=255)
        pen.ellipse(box(radius * 0.5), fill=0)
    elif shape == "dot":
        pen.ellipse(box(radius * 0.42), fill=255)
    else:
        raise ValueError(f"no shape {shape!r}")


def scene_from_text(text: str) -> Scene:
    """The scene that `str(scene)` wrote."""
    background, _, rest = text.partition(": ")
    changes: dict[str, Thing | None] = {}
    for item in rest.split(", ") if rest != "nothing" else ():
        thing, _, cell = item.partition(" at ")
        colour, _, shape = thing.partition(" ")
        changes[cell] = Thing(colour, shape)
    return Scene(background).put(changes)
