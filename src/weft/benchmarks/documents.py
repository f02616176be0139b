"""Whole documents before a judge: sections of words and pictures in their order, every picture between numbered tags.

The count runs through all sections. What a dataset or a model wrote is fenced off, and tags in it are made harmless.
Where there are more pictures than a judge may be shown, several that follow one another stand on one sheet, each with
its number in its corner: the sheet is shown where the first of them stands, and the places of the others say so.
Nothing is left out."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from weft.benchmarks.prompts import fence, join_texts
from weft.models.adapt import build_strip
from weft.store.blobs import Blobs
from weft.store.images import flatten
from weft.types import Image, Part, Text

if TYPE_CHECKING:
    from PIL import Image as Pil

TAG = re.compile(r"<(\s{0,4}/?\s{0,4})(IMG_)", re.IGNORECASE)
MAX_IMAGES = 20  # pictures that a judge is shown, sheets being one each
SIDE = 1024  # of a picture on a sheet
MaxImages = Annotated[
    int,
    Meta(
        description="Most pictures that the judge is shown at once; of more, several stand on one sheet.", ge=3, le=500
    ),
]
SHEETS_NOTE = (
    "There are many of them: several stand on one sheet, each with its number in its corner; the sheet is shown at the first of them, and "
    "the tags of the others say where it is. A sheet is no collage of the model's. "
)


class DocumentSection(Struct, frozen=True):
    """`title` stands before it; `what` is what the fence calls it."""

    title: str
    description: str
    parts: tuple[Part, ...]

    @property
    def images(self) -> list[Image]:
        return [part for part in self.parts if isinstance(part, Image)]


class Sheet(Struct, frozen=True):
    image: Image
    numbers: tuple[int, ...]


def count_images(sections: Sequence[DocumentSection]) -> int:
    return sum(len(section.images) for section in sections)


def format_sections(sections: Sequence[DocumentSection], sheets: Sequence[Sheet] = ()) -> list[Part]:
    """All of them in their order, numbered from 0."""
    made: list[Part] = []
    number = 0
    for section in sections:
        inside: list[Part] = []
        for part in join_texts(section.parts):
            if isinstance(part, Image):
                inside += [Text(f"\n<IMG_{number}>"), *_shown(part, number, sheets), Text(f"</IMG_{number}>\n")]
                number += 1
            elif isinstance(part, Text):
                inside.append(Text(escape_tags(part.text)))
        made += [Text(f"{section.title}\n"), *fence(inside or [Text("(nothing)")], section.description)]
    return list(join_texts(made))


def escape_tags(text: str) -> str:
    """A text that cannot be taken for a place of a picture."""
    return TAG.sub("\u2039\\1\\2", text)


def _shown(image: Image, number: int, sheets: Sequence[Sheet]) -> list[Part]:
    sheet = next((one for one in sheets if number in one.numbers), None)
    if sheet is None:
        return [image]
    if number == sheet.numbers[0]:
        return [Text(f" sheet of IMG_{sheet.numbers[0]} to IMG_{sheet.numbers[-1]}: "), sheet.image]
    return [Text(f" on the sheet that is shown at IMG_{sheet.numbers[0]} ")]


def build_sheets(sections: Sequence[DocumentSection], most: int, blobs: Blobs) -> list[Sheet]:
    """Sheets of pictures that follow one another in a section, as small as they can be for all to come to at most
    `most`."""
    counts = [len(section.images) for section in sections]
    if sum(counts) <= most:
        return []
    each = next(
        size
        for size in range(2, sum(counts) + 1)
        if sum(-(-count // size) for count in counts) <= max(most, len(sections))
    )
    made: list[Sheet] = []
    first = 0
    for section in sections:
        for at in range(0, len(section.images), each):
            some = section.images[at : at + each]
            numbers = tuple(range(first + at, first + at + len(some)))
            if len(some) > 1:
                made.append(Sheet(blobs.put_pil(build_strip(_tiles(some, blobs), numbers)), numbers))
        first += len(section.images)
    return made


def _tiles(images: Sequence[Image], blobs: Blobs) -> "list[Pil.Image]":
    """Each whole, none larger than a tile, on white of one size: whatever their shapes, a sheet of them can be made."""
    from PIL import Image as Pil

    small: list[Pil.Image] = []
    for image in images:
        with blobs.decode_within_memory(image) as opened:
            picture = flatten(opened, "white")
        picture.thumbnail((SIDE, SIDE))
        small.append(picture)
    size = max(picture.width for picture in small), max(picture.height for picture in small)
    tiles: list[Pil.Image] = []
    for picture in small:
        tile = Pil.new("RGB", size, "white")
        tile.paste(picture, ((size[0] - picture.width) // 2, (size[1] - picture.height) // 2))
        tiles.append(tile)
    return tiles
