"""Whole documents in a judge's prompt: sections of text and images in their order, each image between numbered tags.

The numbers run through all sections. What a dataset or a model wrote is fenced off, and tags in it are escaped. If
there are more images than a judge may be shown, neighbouring images of a section are tiled on a sheet, each with its
number in its corner; the sheet is shown at the place of its first image, and the places of the others refer to it. No
image is left out.
"""

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
MAX_IMAGES = 20  # images that a judge is shown at once; a sheet counts as one
TILE_SIDE = 1024  # pixels; the longest side of an image on a sheet
MaxImages = Annotated[
    int,
    Meta(
        description="The most images that the judge is shown at once; if there are more, several share a sheet.",
        ge=3,
        le=500,
    ),
]
SHEETS_NOTE = (
    "There are many of them: several stand on one sheet, each with its number in its corner; the sheet is shown at "
    "the first of them, and the tags of the others say where it is. A sheet is no collage of the model's. "
)


class DocumentSection(Struct, frozen=True):
    """A part of a document."""

    title: str  # stands before the section
    description: str  # what the fence's warning calls the section
    parts: tuple[Part, ...]

    @property
    def images(self) -> list[Image]:
        return [part for part in self.parts if isinstance(part, Image)]


class Sheet(Struct, frozen=True):
    """An image that shows several images of a document side by side."""

    image: Image
    numbers: tuple[int, ...]  # of the images on it, ascending


def count_images(sections: Sequence[DocumentSection]) -> int:
    """Count the images of all sections."""
    return sum(len(section.images) for section in sections)


def format_sections(
    sections: Sequence[DocumentSection], sheets: Sequence[Sheet] = (), *, fenced: bool = True
) -> list[Part]:
    """Format all sections as the parts of a prompt, with images numbered from 0.

    Without fences a section has its title alone before it, as a paper's own prompt has it.
    """
    parts: list[Part] = []
    number = 0
    for section in sections:
        content: list[Part] = []
        for part in join_texts(section.parts):
            if isinstance(part, Image):
                image = _format_image(part, number, sheets)
                content += [Text(f"\n<IMG_{number}>"), *image, Text(f"</IMG_{number}>\n")]
                number += 1
            elif isinstance(part, Text):
                content.append(Text(escape_tags(part.text)))
        enclosed = fence(content, section.description) if fenced else (*content, Text("\n"))
        parts += [Text(f"{section.title}\n"), *enclosed]
    return list(join_texts(parts))


def escape_tags(text: str) -> str:
    """Escape what looks like an image's tag, so that no text can pass for the place of an image."""
    return TAG.sub("\u2039\\1\\2", text)


def _format_image(image: Image, number: int, sheets: Sequence[Sheet]) -> list[Part]:
    """Return what stands between an image's tags: the image, its sheet, or a reference to its sheet."""
    for sheet in sheets:
        if number not in sheet.numbers:
            continue
        first = sheet.numbers[0]
        if number == first:
            return [Text(f" sheet of IMG_{first} to IMG_{sheet.numbers[-1]}: "), sheet.image]
        return [Text(f" on the sheet that is shown at IMG_{first} ")]
    return [image]


def build_sheets(sections: Sequence[DocumentSection], most: int, blobs: Blobs) -> list[Sheet]:
    """Tile neighbouring images of each section on sheets, so that a judge is shown at most `most` images.

    Sheets are as small as that allows, and there are none if all images can be shown.
    """
    counts = [len(section.images) for section in sections]
    if sum(counts) <= most:
        return []
    size = _sheet_size(counts, most)
    sheets: list[Sheet] = []
    first_number = 0
    for section in sections:
        for start in range(0, len(section.images), size):
            images = section.images[start : start + size]
            if len(images) > 1:
                numbers = tuple(range(first_number + start, first_number + start + len(images)))
                sheets.append(Sheet(blobs.put_pil(build_strip(_build_tiles(images, blobs), numbers)), numbers))
        first_number += len(section.images)
    return sheets


def _sheet_size(counts: Sequence[int], most: int) -> int:
    """Return the fewest images a sheet must hold for all sections to come to at most `most` sheets."""
    limit = max(most, len(counts))  # a section's sheets are its own, so there is at least one each
    size = 2
    while sum(-(-count // size) for count in counts) > limit:
        size += 1
    return size


def _build_tiles(images: Sequence[Image], blobs: Blobs) -> "list[Pil.Image]":
    """Shrink each image to fit a tile and centre it on white. All tiles have one size, so that they can be joined."""
    from PIL import Image as Pil

    thumbnails: list[Pil.Image] = []
    for image in images:
        with blobs.decode_within_memory(image) as decoded:
            thumbnail = flatten(decoded, "white")
        thumbnail.thumbnail((TILE_SIDE, TILE_SIDE))
        thumbnails.append(thumbnail)
    width = max(thumbnail.width for thumbnail in thumbnails)
    height = max(thumbnail.height for thumbnail in thumbnails)
    tiles: list[Pil.Image] = []
    for thumbnail in thumbnails:
        tile = Pil.new("RGB", (width, height), "white")
        tile.paste(thumbnail, ((width - thumbnail.width) // 2, (height - thumbnail.height) // 2))
        tiles.append(tile)
    return tiles
