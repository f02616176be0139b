"""Parts of outputs in a row's shape: what a model makes of a row of images may be a row again, of which one part was
asked for. WEAVE's Appendix B.3 takes that part out, and gives it the size of the image that it is made from.

An output is a row if its shape differs from the input row's by at most a tenth. The part is that of the image which the
request names; of several, or if it names none, that which changed the most. Any other output stays as it is.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from weft.errors import ImageError
from weft.models.adapt import GAP, build_stored_strip, images_in, number_images
from weft.store.blobs import Blobs
from weft.store.images import PIXEL_BUDGET, make_upright
from weft.types import Image, Message, Part, Reply, Text, find_mentions

if TYPE_CHECKING:
    from PIL import Image as Pil

MAX_SHAPE_DIFFERENCE = 0.1  # of the ratio of width to height
SIDE = 48  # pixels at which parts are compared
Box = tuple[float, float]  # left and right edge, as shares of the width


async def crop_reply(reply: Reply, messages: tuple[Message, ...], blobs: Blobs) -> Reply:
    """Return a reply whose images in the shape of the request's row are cropped. `messages`: before they became a row.

    The reason says what was cropped. An image that cannot be decoded stays as it is.
    """
    images = images_in(messages)
    if len(images) < 2 or not reply.images:
        return reply
    try:
        return await asyncio.to_thread(_crop_all, reply, images, _named_images(messages), blobs)
    except (ImageError, MemoryError):
        return reply


def _named_images(messages: Sequence[Message]) -> set[int]:
    """Return the numbers of the images that the last request names."""
    for message in reversed(messages):
        if message.role == "user":
            texts = [part.text for part in message.parts if isinstance(part, Text) and not _is_caption(part.text)]
            return set(find_mentions(" ".join(texts)))
    return set()


def _is_caption(text: str) -> bool:
    """Whether a text only numbers the image after it."""
    return text.startswith("Image #") and text.endswith(":")


def _crop_all(reply: Reply, images: Sequence[Image], named: set[int], blobs: Blobs) -> Reply:
    numbers = number_images(images)
    row = build_stored_strip(images, numbers, blobs)
    boxes = _boxes_of(images)
    parts: list[Part] = []
    notes: list[str] = []
    for part in reply.parts:
        if not isinstance(part, Image) or not _has_shape_of(part, row.size):
            parts.append(part)
            continue
        candidates = [place for place, number in enumerate(numbers) if number in named]
        with PIXEL_BUDGET.reserve(part.width * part.height):
            output = make_upright(blobs.decode(part)).convert("RGB")
            place = _most_changed(row, output, boxes, candidates or range(len(images)))
            cropped = _cut(output, boxes[place]).resize((images[place].width, images[place].height))
            parts.append(blobs.put_pil(cropped))
        notes.append(f"cropped to image {numbers[place]} of a row of {len(images)}")
    if not notes:
        return reply
    reasons = [reason for reason in (reply.reason, *dict.fromkeys(notes)) if reason]
    return replace(reply, parts=tuple(parts), reason="; ".join(reasons))


def _has_shape_of(image: Image, size: tuple[int, int]) -> bool:
    expected = size[0] / size[1]
    return abs(image.width / image.height - expected) <= MAX_SHAPE_DIFFERENCE * expected


def _boxes_of(images: Sequence[Image]) -> list[Box]:
    """Return where each image is in the row."""
    height = max(image.height for image in images)
    widths = [max(1, int(image.width * (height / image.height))) for image in images]
    total = sum(widths) + GAP * (len(widths) - 1)
    boxes: list[Box] = []
    left = 0
    for width in widths:
        boxes.append((left / total, (left + width) / total))
        left += width + GAP
    return boxes


def _most_changed(row: "Pil.Image", output: "Pil.Image", boxes: Sequence[Box], places: Sequence[int]) -> int:
    """Return the place whose part differs most between two rows; of equal ones the last."""
    import numpy as np

    changes: list[tuple[float, int]] = []
    for place in places:
        before = np.asarray(_cut(row, boxes[place]).resize((SIDE, SIDE)), dtype=np.int16)
        after = np.asarray(_cut(output, boxes[place]).resize((SIDE, SIDE)), dtype=np.int16)
        changes.append((float(np.abs(after - before).mean()), place))
    return max(changes)[1]


def _cut(row: "Pil.Image", box: Box) -> "Pil.Image":
    left = round(box[0] * row.width)
    right = max(left + 1, round(box[1] * row.width))
    return row.crop((left, 0, right, row.height))
