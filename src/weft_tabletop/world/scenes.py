"""The tabletop: a 4x4 table on a coloured background, where a cell is empty or holds one object. `draw` makes the image
of a scene; `read` returns the scene of an image, even a blurred or noisy one, and says how sure it is.

Guarantee: `read(draw(scene)).scene == scene` for every scene. A reading is sure only if every cell is close to its best
template and far closer to it than to any other. Cells that are not are listed as `unknown`."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as Pil

    Array = NDArray[np.float32]
    Pixels = NDArray[np.uint8]

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
OVERSAMPLING = 8  # outlines are drawn this much larger, then reduced: that is the anti-aliasing
# How images come back from models and files: as drawn, blurred by so many pixels, or, if negative, with blurred colour
# alone, as JPEG leaves it.
BLURS = (0.0, 0.7, 1.1, 1.6, -1.2)
MAX_DISTANCE = 45.0  # of a cell from its best template, on average over its pixels
MIN_CONFIDENCE = 0.08  # below which a cell counts as unknown


class Thing(Struct, frozen=True, order=True):
    """An object on the table."""

    colour: str
    shape: str

    def __str__(self) -> str:
        return f"{self.colour} {self.shape}"


THINGS = tuple(Thing(colour, shape) for colour in COLOURS for shape in SHAPES)
OBJECTS = tuple(thing for thing in THINGS if thing.shape != "dot")  # routes are drawn with dots


def parse_thing(text: str) -> Thing:
    """The object that `str(thing)` wrote."""
    colour, _, shape = text.partition(" ")
    return Thing(colour, shape)


class Scene(Struct, frozen=True):
    """A background and sixteen cells, row by row."""

    background: str
    cells: tuple[Thing | None, ...] = (None,) * 16

    def at(self, cell: str) -> Thing | None:
        return self.cells[CELLS.index(cell)]

    def put(self, changes: Mapping[str, Thing | None], background: str | None = None) -> "Scene":
        """The scene with other objects in these cells; None empties a cell."""
        cells = tuple(changes.get(name, thing) for name, thing in zip(CELLS, self.cells, strict=True))
        return Scene(background or self.background, cells)

    def things(self) -> dict[str, Thing]:
        """The objects by cell, in the order of the cells."""
        return {name: thing for name, thing in zip(CELLS, self.cells, strict=True) if thing is not None}

    def changed_cells(self, other: "Scene") -> list[str]:
        """The cells that differ between the two scenes."""
        return [name for name, a, b in zip(CELLS, self.cells, other.cells, strict=True) if a != b]

    def __str__(self) -> str:
        return f"{self.background}: {list_things(self) or 'nothing'}"


class SceneReading(Struct, frozen=True):
    """What an image shows.

    `confidence` is that of the least certain cell, 0 to 1. `residual` is the mean distance, 0 to 255, from a clean
    drawing of the same scene.
    """

    scene: Scene
    confidence: float
    residual: float
    unknown: tuple[str, ...] = ()

    @property
    def is_sure(self) -> bool:
        return not self.unknown


def list_things(scene: Scene) -> str:
    """The objects with their cells, such as `red star at a1, blue ring at c3`; empty for an empty table."""
    return ", ".join(f"{thing} at {cell}" for cell, thing in scene.things().items())


def scene_from_text(text: str) -> Scene:
    """The scene that `str(scene)` wrote."""
    background, _, contents = text.partition(": ")
    scene = Scene(background)
    if contents == "nothing":
        return scene
    changes: dict[str, Thing | None] = {}
    for item in contents.split(", "):
        thing, _, cell = item.partition(" at ")
        changes[cell] = parse_thing(thing)
    return scene.put(changes)


def draw(scene: Scene) -> "Pil.Image":
    """Draw a scene at 64 x 64 pixels, anti-aliased. The same scene always gives the same pixels."""
    return join_tiles([draw_tile(scene.background, thing) for thing in scene.cells])


def join_tiles(tiles: "list[Pixels]") -> "Pil.Image":
    """Join the tiles of sixteen cells, row by row, to one image."""
    import numpy as np
    from PIL import Image as Pil

    rows = [np.concatenate(tiles[start : start + 4], axis=1) for start in range(0, 16, 4)]
    return Pil.fromarray(np.concatenate(rows, axis=0))


def read(image: "Pil.Image") -> SceneReading:
    """Return the scene whose drawing is nearest to an image of any size.

    Each cell is compared with the templates of all objects, for each background and each kind of blur. The whole image
    has one background and one blur: those with the smallest sum of distances.
    """
    import numpy as np

    tiles = _split_tiles(image)
    templates, squared_norms = _build_templates()
    # four cells and one look at a time: a larger product is shared by threads that wait for each other busily, at many
    # times its cost on a machine that does something else as well
    products = tiles.reshape(4, 1, 4, -1) @ templates.transpose(0, 2, 1)
    products = products.transpose(0, 2, 1, 3).reshape(16, *templates.shape[:2])
    squared_distances = np.maximum((tiles**2).sum(1)[:, None, None] - 2 * products + squared_norms, 0.0)
    look = int(squared_distances.min(axis=2).sum(axis=0).argmin())
    by_object = squared_distances[:, look]
    order = np.argsort(by_object, axis=1)
    best = np.take_along_axis(by_object, order[:, :1], axis=1)[:, 0]
    second = np.take_along_axis(by_object, order[:, 1:2], axis=1)[:, 0]
    confidence = (second - best) / (second + 1.0)
    distance = np.sqrt(best / tiles.shape[1])
    objects: tuple[Thing | None, ...] = (None, *THINGS)
    scene = Scene(tuple(BACKGROUNDS)[look // len(BLURS)], tuple(objects[int(index)] for index in order[:, 0]))
    is_unknown = (confidence < MIN_CONFIDENCE) | (distance > MAX_DISTANCE)
    unknown = tuple(cell for cell, unsure in zip(CELLS, is_unknown, strict=True) if unsure)
    sharp_look = look - look % len(BLURS)
    sharp = np.take_along_axis(squared_distances[:, sharp_look], order[:, :1], axis=1)
    residual = float(np.sqrt(sharp.mean() / tiles.shape[1]))
    return SceneReading(scene, float(confidence.min()), residual, unknown)


def _split_tiles(image: "Pil.Image") -> "Array":
    """The pixels of the sixteen cells, one row of numbers each, at the table's own size."""
    import numpy as np
    from PIL import Image as Pil

    rgb = image.convert("RGB")
    if rgb.size != (SIDE, SIDE):
        is_larger = min(rgb.size) >= SIDE
        rgb = rgb.resize((SIDE, SIDE), Pil.Resampling.BOX if is_larger else Pil.Resampling.BICUBIC)
    pixels = np.asarray(rgb, dtype=np.float32)
    return pixels.reshape(4, CELL, 4, CELL, 3).transpose(0, 2, 1, 3, 4).reshape(16, -1)


@functools.cache
def _build_templates() -> "tuple[Array, Array]":
    """The templates (looks, 1 + objects, pixels) and their squared norms. A look is a background with a blur."""
    import numpy as np

    looks: list[list[Pixels]] = []
    for background in BACKGROUNDS:
        empty = draw_tile(background, None)
        for blur in BLURS:
            row = [_blur_tile(draw_tile(background, thing), empty, blur).reshape(-1) for thing in (None, *THINGS)]
            looks.append(row)
    templates = np.array(looks, dtype=np.float32)
    return templates, (templates**2).sum(axis=2)


def _blur_tile(tile: "Pixels", empty: "Pixels", blur: float) -> "Pixels":
    """A tile among empty ones, blurred by so many pixels; a negative number blurs the colour alone, as JPEG does."""
    import numpy as np
    from PIL import Image as Pil
    from PIL import ImageFilter

    empty_row = np.concatenate([empty, empty, empty], axis=1)
    middle_row = np.concatenate([empty, tile, empty], axis=1)
    neighbourhood = Pil.fromarray(np.concatenate([empty_row, middle_row, empty_row], axis=0))
    blurred = neighbourhood.filter(ImageFilter.GaussianBlur(abs(blur)))
    if blur < 0:
        brightness = neighbourhood.convert("YCbCr").getchannel(0)
        blurred = Pil.merge("YCbCr", (brightness, *blurred.convert("YCbCr").split()[1:])).convert("RGB")
    return np.asarray(blurred)[CELL : 2 * CELL, CELL : 2 * CELL]


@functools.cache
def draw_tile(background: str, thing: Thing | None, scale: int = 1) -> "Pixels":
    """Draw one cell, `scale` times as large: the background with a fine edge, and the object."""
    import numpy as np
    from PIL import Image as Pil

    side = CELL * scale
    fill = BACKGROUNDS[background]
    edge = tuple(value * 9 // 10 for value in fill)
    tile = Pil.new("RGB", (side, side), edge)
    tile.paste(fill, (0, 0, side - scale, side - scale))
    if thing is not None:
        # One outline for all sizes, so that a large object reads as the small one does.
        mask = Pil.new("L", (CELL * OVERSAMPLING, CELL * OVERSAMPLING), 0)
        _draw_outline(mask, thing.shape)
        is_reduced = scale <= OVERSAMPLING
        resampling = Pil.Resampling.BOX if is_reduced else Pil.Resampling.BICUBIC
        tile.paste(COLOURS[thing.colour], (0, 0), mask.resize((side, side), resampling))
    return np.asarray(tile)


def _draw_outline(mask: "Pil.Image", shape: str) -> None:
    """Fill a shape in the mask of one cell."""
    import math

    from PIL import ImageDraw

    pen = ImageDraw.Draw(mask)
    centre = 7.5 * OVERSAMPLING
    radius = 6.0 * OVERSAMPLING

    def polygon(points: int, size: float, turn: float = 0.0) -> list[tuple[float, float]]:
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
        outer = polygon(5, radius * 1.08)
        inner = polygon(5, radius * 0.42, math.pi / 5)
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
