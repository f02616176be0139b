"""How a planner orders pictures: words, and blocks between them, each of which is one picture.

    First the lemons are cut.
    <imagine size="1024x768" uses="1">Half a lemon, cut face up, on the same worn oak board as before, ...</imagine>

`size` is in pixels; `aspect` (`16:9`) may stand instead. `uses` names earlier pictures of the document that this one
must agree with, by their number from 1; `none` for none; without it all of them are meant. Pictures that do not use one
another are drawn at the same time.

Planners are models, so what they write is taken as it was meant where that is plain, and every such case is told: a
block that is not closed ends where the next one begins, or with the text; a closing tag without a block is dropped; a
block without words is no picture; numbers of pictures that are not there yet are left out; sizes beyond measure are
none."""

import re
from collections.abc import Sequence

from msgspec import Struct

LONGEST = 400  # characters of a tag
TAG = re.compile(rf"<\s{{0,4}}(/?)\s{{0,4}}imagine\b([^<>]{{0,{LONGEST}}})>", re.IGNORECASE)
# a tag that the end cut off
CUT = re.compile(r"<\s{0,4}/?\s{0,4}i(?:m(?:a(?:g(?:i(?:n(?:e\b[^<>]*)?)?)?)?)?)?$", re.IGNORECASE)
ATTRIBUTE = re.compile(r"(\w{1,20})\s{0,4}=\s{0,4}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
# pixels of a side
MIN_SIDE = 64
MAX_SIDE = 4096
AREA = 1024 * 1024
STEP = 16
MAX_IMAGES = 64  # of one document
MOST_NOTES = 8


class ImageOrder(Struct, frozen=True):
    """A picture to be drawn. `uses` are the numbers of earlier ones, from 1; None: all of them."""

    prompt: str
    size: tuple[int, int] | None = None
    uses: tuple[int, ...] | None = None


class DocumentPlan(Struct, frozen=True):
    """A document to be: words and pictures in their order, and what had to be made of what was written."""

    parts: tuple[str | ImageOrder, ...]
    notes: tuple[str, ...] = ()

    @property
    def images(self) -> list[ImageOrder]:
        return [part for part in self.parts if isinstance(part, ImageOrder)]


def parse_plan(text: str) -> DocumentPlan:
    parts: list[str | ImageOrder] = []
    notes: list[str] = []
    opened: re.Match[str] | None = None
    end = count = 0

    def take(until: int, why: str = "") -> None:
        """What stands between the last tag and here: words, or the block that is open."""
        nonlocal count
        said = text[end:until]
        if opened is None:
            parts.append(said)
            return
        if not said.strip():
            notes.append(f"block {count + 1} has no words, and is no picture")
            return
        count += 1
        if why:
            notes.append(f"picture {count} {why}")
        parts.append(_imagine(said.strip(), opened[2], count, notes))

    for tag in TAG.finditer(text):
        closes = bool(tag[1])
        if closes and opened is None:
            notes.append("a closing tag without a block was dropped")
        take(tag.start(), "was not closed before the next" if opened is not None and not closes else "")
        if closes:
            opened = None
        else:
            opened = tag
        end = tag.end()
    cut = CUT.search(text, max(end, len(text) - LONGEST))
    if cut is not None:
        notes.append("the text ends within a tag")
        take(cut.start(), "was not closed")
    else:
        take(len(text), "was not closed")
    kept = _without_too_many(parts, notes)
    told = (
        *notes[:MOST_NOTES],
        *([f"and {len(notes) - MOST_NOTES} more of this kind"] if len(notes) > MOST_NOTES else []),
    )
    return DocumentPlan(tuple(part for part in kept if isinstance(part, ImageOrder) or part.strip()), told)


def _without_too_many(parts: Sequence[str | ImageOrder], notes: list[str]) -> list[str | ImageOrder]:
    count = sum(isinstance(part, ImageOrder) for part in parts)
    if count <= MAX_IMAGES:
        return list(parts)
    notes.append(f"{count} pictures are planned; those after the first {MAX_IMAGES} are left out")
    kept: list[str | ImageOrder] = []
    seen = 0
    for part in parts:
        seen += isinstance(part, ImageOrder)
        if not isinstance(part, ImageOrder) or seen <= MAX_IMAGES:
            kept.append(part)
    return kept


def _imagine(prompt: str, attributes: str, number: int, notes: list[str]) -> ImageOrder:
    said = {
        match[1].lower(): (match[2] or match[3] or match[4] or "").strip() for match in ATTRIBUTE.finditer(attributes)
    }
    size = _size(said.get("size", "") or said.get("aspect", "") or said.get("aspect_ratio", ""))
    if size is None and {"size", "aspect", "aspect_ratio"} & set(said):
        notes.append(f"picture {number}: its size could not be used")
    return ImageOrder(prompt, size, _uses(said.get("uses"), number, notes))


def _size(said: str) -> tuple[int, int] | None:
    """Pixels, or a ratio of sides at about a megapixel, in steps of 16."""
    said = said[:40]
    pixels = re.fullmatch(r"(\d{1,5})\s*[x×*]\s*(\d{1,5})", said.lower())
    if pixels:
        wide = int(pixels[1])
        high = int(pixels[2])
        if min(wide, high) >= MIN_SIDE and max(wide, high) <= MAX_SIDE:
            return (wide, high)
        return None
    sides = re.fullmatch(r"(\d{1,3}(?:\.\d{1,3})?)\s*[:/]\s*(\d{1,3}(?:\.\d{1,3})?)", said)
    wide, high = (float(sides[1]), float(sides[2])) if sides else (0.0, 0.0)
    if not wide or not high or not 0.1 <= wide / high <= 10:
        return None
    share = (AREA * wide / high) ** 0.5
    return round(share / STEP) * STEP, round(AREA / share / STEP) * STEP


def _uses(said: str | None, number: int, notes: list[str]) -> tuple[int, ...] | None:
    if said is None or said.lower() in ("all", ""):
        return None
    if said.lower() in ("none", "0", "no", "-"):
        return ()
    found = sorted({int(one) for one in re.findall(r"\d{1,4}", said)})[: 2 * MAX_IMAGES]
    known = tuple(one for one in found if 0 < one < number)
    if len(known) < len(found) or not found:
        notes.append(f"picture {number}: {said[:40]!r} names pictures that are not there yet")
    return known
