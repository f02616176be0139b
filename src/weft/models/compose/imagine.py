"""The form in which a planner orders images: text, and blocks between it, each of which is one image.

    First the lemons are cut.
    <imagine size="1024x768" uses="1">Half a lemon, cut face up, on the same worn oak board as before, ...</imagine>

`size` is in pixels; `aspect` (`16:9`) may stand instead. `uses` names earlier images of the document that this one must
agree with, by their number from 1; `none` for none; without it all of them are meant. Images that do not use one
another are drawn at the same time.

Planners are models, so what they write is read as it was meant where that is plain, and each such case is noted: a
block that is not closed ends where the next one begins, or with the text; a closing tag without a block is dropped; a
block without words is no image; numbers of images that do not exist yet are left out; impossible sizes are ignored.
`<img>...</img>` is an order as well, as Wan-Weaver's planner writes it; `<img src="...">` is HTML and none. A tag that
looks like an order, and is none (`<image>`, `<picture>`), stays in the text and is named.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

MAX_TAG_LENGTH = 400  # characters
TAG = re.compile(rf"<\s{{0,4}}(/?)\s{{0,4}}(?:imagine|img)\b([^<>]{{0,{MAX_TAG_LENGTH}}})>", re.IGNORECASE)
CLOSING_TAG = re.compile(r"<\s{0,4}/\s{0,4}(?:imagine|img)\s{0,4}>", re.IGNORECASE)
HTML_IMAGE = re.compile(r"\b(?:src|alt|href)\s{0,4}=|/\s{0,4}$", re.IGNORECASE)  # in a tag: an image that exists
SIMILAR_TAG = re.compile(
    r"<\s{0,4}/?\s{0,4}((?:ima|img|pic|photo|figure|draw|paint|illustrat)[a-z_\d]{0,20})\b[^<>]{0,100}>", re.IGNORECASE
)
# a tag that the end of the text cut off
CUT_TAG = re.compile(
    r"<\s{0,4}/?\s{0,4}i(?:m(?:g\b[^<>]*|a(?:g(?:i(?:n(?:e\b[^<>]*)?)?)?)?)?)?$",
    re.IGNORECASE,
)
ATTRIBUTE = re.compile(r"(\w{1,20})\s{0,4}=\s{0,4}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
MIN_SIDE = 64  # pixels
MAX_SIDE = 4096  # pixels
AREA = 1024 * 1024  # pixels of an image that is ordered by its aspect ratio
STEP = 16  # its sides are multiples of this
MAX_IMAGES = 64  # of one document
MAX_NOTES = 8
SIZE_ATTRIBUTES = ("size", "aspect", "aspect_ratio")


class ImageOrder(Struct, frozen=True):
    """An image to be drawn."""

    prompt: str
    size: tuple[int, int] | None = None
    uses: tuple[int, ...] | None = None  # numbers of earlier images, from 1; None: all of them


class DocumentPlan(Struct, frozen=True):
    """A document to be: texts and image orders in their order, and notes about what was not written as it should be."""

    parts: tuple[str | ImageOrder, ...]
    notes: tuple[str, ...] = ()

    @property
    def images(self) -> list[ImageOrder]:
        return [part for part in self.parts if isinstance(part, ImageOrder)]


def parse_plan(text: str) -> DocumentPlan:
    """Parse what a planner wrote. It never raises: whatever is unclear becomes a note."""
    parser = _PlanParser(text)
    parser.parse()
    parts = _limit_images(parser.parts, parser.notes)
    notes = parser.notes
    if len(notes) > MAX_NOTES:
        notes = [*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} more of this kind"]
    nonempty = tuple(part for part in parts if isinstance(part, ImageOrder) or part.strip())
    return DocumentPlan(nonempty, tuple(notes))


class _PlanParser:
    def __init__(self, text: str) -> None:
        self.parts: list[str | ImageOrder] = []
        self.notes: list[str] = []
        self._text = text
        self._open_tag: re.Match[str] | None = None
        self._position = 0  # behind the last tag
        self._count = 0  # images so far

    def parse(self) -> None:
        for tag in TAG.finditer(self._text):
            if not tag[1] and HTML_IMAGE.search(tag[2]):
                continue
            is_closing = bool(tag[1])
            problem = ""
            if is_closing and self._open_tag is None:
                self.notes.append("a closing tag without a block was dropped")
            if not is_closing and self._open_tag is not None:
                problem = "was not closed before the next"
            self._add_until(tag.start(), problem)
            self._open_tag = None if is_closing else tag
            self._position = tag.end()
        end = len(self._text)
        cut_tag = CUT_TAG.search(self._text, max(self._position, end - MAX_TAG_LENGTH))
        if cut_tag is not None:
            self.notes.append("the text ends within a tag")
            end = cut_tag.start()
        self._add_until(end, "was not closed")

    def _add_until(self, end: int, problem: str) -> None:
        """Add what stands between the last tag and `end`: text, or the open block, whose `problem` is noted."""
        content = self._text[self._position : end]
        if self._open_tag is None:
            self.parts.append(content)
            self._note_similar_tags(content)
            return
        if not content.strip():
            self.notes.append(f"block {self._count + 1} has no words, and is no image")
            return
        self._count += 1
        if problem:
            self.notes.append(f"image {self._count} {problem}")
        self.parts.append(_parse_order(content.strip(), self._open_tag[2], self._count, self.notes))

    def _note_similar_tags(self, text: str) -> None:
        """Note tags in a text that a planner may have meant as orders."""
        for name in dict.fromkeys(tag[1].lower() for tag in SIMILAR_TAG.finditer(text)):
            note = f"<{name}> in the text is no order, which is <imagine>...</imagine> or <img>...</img>"
            if note not in self.notes:
                self.notes.append(note)


def _limit_images(parts: Sequence[str | ImageOrder], notes: list[str]) -> list[str | ImageOrder]:
    """Return the parts without images beyond the limit."""
    limited: list[str | ImageOrder] = []
    count = 0
    for part in parts:
        if isinstance(part, ImageOrder):
            count += 1
            if count > MAX_IMAGES:
                continue
        limited.append(part)
    if count > MAX_IMAGES:
        notes.append(f"{count} images are planned; those after the first {MAX_IMAGES} are left out")
    return limited


def _parse_order(prompt: str, attribute_text: str, number: int, notes: list[str]) -> ImageOrder:
    attributes: dict[str, str] = {}
    for match in ATTRIBUTE.finditer(attribute_text):
        attributes[match[1].lower()] = (match[2] or match[3] or match[4] or "").strip()
    size_text = next((attributes[name] for name in SIZE_ATTRIBUTES if attributes.get(name)), "")
    size = _parse_size(size_text)
    if size is None and any(name in attributes for name in SIZE_ATTRIBUTES):
        notes.append(f"image {number}: its size could not be used")
    return ImageOrder(prompt, size, _parse_uses(attributes.get("uses"), number, notes))


def _parse_size(text: str) -> tuple[int, int] | None:
    """Return a size in pixels; an aspect ratio becomes about a megapixel, in steps of 16. None for anything else."""
    text = text[:40]
    pixels = re.fullmatch(r"(\d{1,5})\s*[x×*]\s*(\d{1,5})", text.lower())
    if pixels:
        size = (int(pixels[1]), int(pixels[2]))
        if min(size) >= MIN_SIDE and max(size) <= MAX_SIDE:
            return size
        return None
    ratio = re.fullmatch(r"(\d{1,3}(?:\.\d{1,3})?)\s*[:/]\s*(\d{1,3}(?:\.\d{1,3})?)", text)
    if ratio is None:
        return None
    width = float(ratio[1])
    height = float(ratio[2])
    if not width or not height or not 0.1 <= width / height <= 10:
        return None
    exact_width = (AREA * width / height) ** 0.5
    return round(exact_width / STEP) * STEP, round(AREA / exact_width / STEP) * STEP


def _parse_uses(text: str | None, number: int, notes: list[str]) -> tuple[int, ...] | None:
    """Return the numbers of earlier images that image `number` uses; None: all of them."""
    if text is None or text.lower() in ("all", ""):
        return None
    if text.lower() in ("none", "0", "no", "-"):
        return ()
    named = sorted({int(digits) for digits in re.findall(r"\d{1,4}", text)})[: 2 * MAX_IMAGES]
    earlier = tuple(used for used in named if 0 < used < number)
    if len(earlier) < len(named) or not named:
        notes.append(f"image {number}: {text[:40]!r} names images that do not exist yet")
    return earlier
