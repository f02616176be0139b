"""Reshape messages to what a model can take.

Nothing is reshaped silently: the messages that were really sent are journalled, and a reshaped image has a new digest.

    thoughts            are left out
    own_images=user     the model's earlier images move to the head of the next user message, under their captions
    images=list         one message: all images, then the text, with `[image k]` where an image stood
    images=strip        the same with one image: a row of all images, each with its number drawn on it; a note before a
                        dialogue says so
    images=none         text alone, with `[picture not shown]`
    max_images=N        of more than N images the first are joined into one numbered row, as in a strip; the text says
                        which they are
    max_side=N          images with a longer side than N pixels are shrunk to it

The strip's geometry is WEAVE's: height of the tallest image, 5 white pixels between, number at (10, 10) in H // 12
points, white or black by the brightness under it, at most 8192 pixels long. The notes and captions are part of prompts,
and so of cache keys: their words must not change.
"""

import asyncio
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from weft.errors import ImageError
from weft.store.blobs import Blobs
from weft.store.images import MAX_PIXELS, PIXEL_BUDGET, exif_orientation, make_upright
from weft.types import Image, Message, Part, Takes, Text, Thought, build_caption

if TYPE_CHECKING:
    from PIL import Image as Pil

EVERYTHING = Takes()
GAP = 5  # pixels between two images of a row
LABEL_OFFSET = 10  # pixels from an image's corner to its number
MAX_STRIP_SIDE = 8192  # pixels
STRIP_NOTE = (
    "The picture above is a row of the {count} pictures of the dialogue below, in their order, "
    "each with its number in its corner; "
    "[image 2] stands for the one with number 2. A picture that you make is one picture, not a row."
)
ROW_NOTE = (
    "The first picture above is a row of {row}, each with its number in its corner{rest}. "
    "[image 2] stands for the one with number 2. "
    "A picture that you make is one picture, not a row."
)


def adapt_messages(messages: tuple[Message, ...], takes: Takes, blobs: Blobs) -> tuple[Message, ...]:
    """Return the messages as the model can take them. Image labels are used up by this and dropped."""
    if _has_thoughts(messages):
        messages = _without_thoughts(messages)
    elif takes == EVERYTHING and all(image.label is None for image in images_in(messages)):
        return messages
    if takes.own_images == "user":
        messages = move_own_images(messages)
    if takes.images != "interleaved" or _has_too_many_images(messages, takes):
        messages = _flatten(messages, takes, blobs)
    adapted: list[Message] = []
    for message in messages:
        parts = tuple(_adapt_part(part, takes.max_side, blobs) for part in message.parts)
        adapted.append(Message(message.role, parts))
    return tuple(adapted)


async def adapt_messages_async(messages: tuple[Message, ...], takes: Takes, blobs: Blobs) -> tuple[Message, ...]:
    """Run `adapt_messages`, in a thread if it decodes images. Raises ImageError, also if there is too little memory."""
    try:
        if takes.images == "strip" or takes.max_side is not None or takes.max_images is not None:
            return await asyncio.to_thread(adapt_messages, messages, takes, blobs)
        return adapt_messages(messages, takes, blobs)
    except MemoryError:
        raise ImageError("there is no memory left for it") from None


def store_as_jpeg(image: Image, blobs: Blobs) -> Image:
    """Store the image upright, without its transparency, as the JPEG that released scripts make of it."""
    with blobs.decode_within_memory(image) as opened:
        return blobs.put_jpeg(make_upright(opened))


def shrink_image(part: Image, max_side: int, blobs: Blobs) -> Image:
    """Return the image with no side longer than `max_side` pixels."""
    longest = max(part.width, part.height)
    if longest <= max_side:
        return part
    width = max(1, part.width * max_side // longest)
    height = max(1, part.height * max_side // longest)
    with blobs.decode_within_memory(part) as opened:
        upright = make_upright(opened)
        if upright.size != (part.width, part.height):  # turned by EXIF
            width, height = height, width
        small = upright.resize((width, height), _lanczos())
    return blobs.put_pil(small)


def move_own_images(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Move images of the model's own turns to the head of the next user message."""
    adapted: list[Message] = []
    waiting: list[Part] = []
    for message in messages:
        if message.role == "assistant":
            parts, moved = _split_own_images(message.parts)
            waiting += moved
        elif message.role == "user":
            parts = (*waiting, *message.parts)
            waiting = []
        else:
            parts = message.parts
        adapted.append(Message(message.role, tuple(parts)))
    return tuple(adapted)


def _split_own_images(parts: Sequence[Part]) -> tuple[Sequence[Part], list[Part]]:
    """Return an assistant message without its images, and the images with captions for the next message."""
    remaining: list[Part] = []
    moved: list[Part] = []
    for part in parts:
        if not isinstance(part, Image):
            remaining.append(part)
        elif part.label is None:
            remaining.append(Text("[my picture, shown in the next message]"))
            moved.append(part)
        else:
            if remaining and remaining[-1] == build_caption(part.label):
                remaining[-1] = Text(f"Image #{part.label}")
            elif not _ends_with_name(remaining, part.label):
                remaining.append(Text(f"[Image #{part.label}, shown in the next message]"))
            moved += [build_caption(part.label), part]
    return remaining, moved


def _ends_with_name(parts: Sequence[Part], label: int) -> bool:
    """Return whether the text before an image ends with the image's name."""
    if not parts:
        return False
    last = parts[-1]
    return isinstance(last, Text) and last.text.rstrip().endswith(f"Image #{label}")


def _has_thoughts(messages: Sequence[Message]) -> bool:
    return any(isinstance(part, Thought) for message in messages for part in message.parts)


def _without_thoughts(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Drop thoughts, except those that their provider wants back with their state: the caller decides on these."""
    adapted: list[Message] = []
    for message in messages:
        parts = tuple(part for part in message.parts if not isinstance(part, Thought) or part.state)
        if parts:
            adapted.append(Message(message.role, parts))
    return tuple(adapted)


def _adapt_part(part: Part, max_side: int | None, blobs: Blobs) -> Part:
    if not isinstance(part, Image):
        return part
    unlabelled = replace(part, label=None)
    if max_side is None:
        return unlabelled
    return shrink_image(unlabelled, max_side, blobs)


def images_in(messages: Sequence[Message]) -> list[Image]:
    """Return all images of some messages, in order."""
    return [part for message in messages for part in message.parts if isinstance(part, Image)]


def _has_too_many_images(messages: Sequence[Message], takes: Takes) -> bool:
    if takes.max_images is None or takes.images not in ("interleaved", "list"):
        return False
    return len(images_in(messages)) > takes.max_images


# one message of images and text


def _flatten(messages: tuple[Message, ...], takes: Takes, blobs: Blobs) -> tuple[Message, ...]:
    """Return one user message: the images first, then the text, in which several messages keep their roles."""
    images = images_in(messages)
    numbers = number_images(images)
    too_many = _has_too_many_images(messages, takes)
    text = _flatten_text(messages, takes, numbers, takes.images == "strip" or too_many)
    if takes.images == "none" or not images:
        return (Message("user", (Text(text),)),)
    if takes.images == "strip" and len(images) > 1:
        if len(messages) > 1:
            text = f"{STRIP_NOTE.format(count=len(images))}\n{text}"
        strip = blobs.put_pil(build_stored_strip(images, numbers, blobs))
        return (Message("user", (strip, Text(text))),)
    if too_many and takes.max_images is not None:
        joined = len(images) - takes.max_images + 1
        row = blobs.put_pil(build_stored_strip(images[:joined], numbers[:joined], blobs))
        rest = ""
        if joined < len(images):
            rest = f"; the pictures after it are {_list_images(numbers[joined:])}"
        note = ROW_NOTE.format(row=_list_images(numbers[:joined]), rest=rest)
        return (Message("user", (row, *images[joined:], Text(f"{note}\n{text}"))),)
    return (Message("user", (*images, Text(text))),)


def number_images(images: Sequence[Image]) -> list[int]:
    """Return each image's number in a row: its label, or a number above all labels if it has none."""
    labels = [image.label for image in images if image.label is not None]
    unused = itertools.count(max(labels, default=0) + 1)
    return [next(unused) if image.label is None else image.label for image in images]


def _list_images(numbers: Sequence[int]) -> str:
    """Return `image 1, image 2 and image 5`."""
    names = [f"image {number}" for number in numbers]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _flatten_text(messages: Sequence[Message], takes: Takes, numbers: Sequence[int], numbered: bool) -> str:
    """Return all texts, one line a message, with `[image k]` where an image stood.

    `numbered`: k is the number drawn on the image; else its position among all images.
    """
    is_dialogue = len(messages) > 1
    lines: list[str] = []
    position = 0  # of the next image among all
    for message in messages:
        parts = message.parts
        if takes.images != "none" and not is_dialogue:
            # images before the text of a single message need no name in it
            leading = _count_leading_images(parts)
            position += leading
            parts = parts[leading:]
        words: list[str] = []
        for part in parts:
            if isinstance(part, Text):
                words.append(part.text)
            elif isinstance(part, Image):
                name = f"[image {numbers[position] if numbered else position + 1}]"
                position += 1
                _add_image_name(words, part, name, takes, numbered, is_dialogue)
        text = words[0] if len(words) == 1 else " ".join(word.strip() for word in words if word.strip())
        if is_dialogue:
            text = f"{message.role.capitalize()}: {text}"
        lines.append(text)
    return "\n".join(line for line in lines if line)


def _count_leading_images(parts: Sequence[Part]) -> int:
    for count, part in enumerate(parts):
        if not isinstance(part, Image):
            return count
    return len(parts)


def _add_image_name(words: list[str], image: Image, name: str, takes: Takes, numbered: bool, is_dialogue: bool) -> None:
    """Append what stands for an image in the text; the number drawn on an image replaces its caption."""
    if takes.images == "none":
        words.append("[picture not shown]")
        return
    has_caption = image.label is not None and bool(words) and words[-1] == build_caption(image.label).text
    if has_caption and numbered:
        words.pop()
        if not is_dialogue:
            return
    words.append(name)


# strips


def build_stored_strip(images: Sequence[Image], labels: Sequence[int], blobs: Blobs) -> "Pil.Image":
    """Return one row of stored images with their numbers: decoded together if there is memory, else one at a time."""
    pixels = sum(image.width * image.height for image in images)
    if pixels <= MAX_PIXELS:
        with PIXEL_BUDGET.reserve(pixels):
            return build_strip([blobs.decode(image) for image in images], labels)
    sizes: list[tuple[int, int]] = []
    for image in images:
        with blobs.decode_within_memory(image) as opened:
            if exif_orientation(opened) < 5:
                sizes.append((image.width, image.height))
            else:
                sizes.append((image.height, image.width))
    height = _strip_height(sizes)
    scaled: list[Pil.Image] = []
    for image in images:
        with blobs.decode_within_memory(image) as opened:
            scaled.append(_scale(opened, height))
    return _paste_row(scaled, labels, height)


def build_strip(images: Sequence["Pil.Image"], labels: Sequence[int]) -> "Pil.Image":
    """Return one row of all images, each with its number."""
    upright = [make_upright(image) for image in images]
    height = _strip_height([image.size for image in upright])
    return _paste_row([_scale(image, height) for image in upright], labels, height)


def _strip_height(sizes: Sequence[tuple[int, int]]) -> int:
    """Return the height of the tallest image. Raises ImageError if the row would be too large."""
    height = max(size[1] for size in sizes)
    length = sum(size[0] * height / size[1] for size in sizes)
    if length * height > MAX_PIXELS:
        raise ImageError(
            f"strip of {len(sizes)} would be {length:.0f} x {height}, more pixels than the limit of {MAX_PIXELS:,}"
        )
    return height


def _scale(image: "Pil.Image", height: int) -> "Pil.Image":
    upright = make_upright(image)
    width = max(1, int(upright.width * (height / upright.height)))
    return _on_white(upright).resize((width, height), _lanczos())


def _paste_row(scaled: Sequence["Pil.Image"], labels: Sequence[int], height: int) -> "Pil.Image":
    from PIL import Image as Pil
    from PIL import ImageDraw, ImageFont

    width = sum(image.width for image in scaled) + GAP * (len(scaled) - 1)
    row = Pil.new("RGB", (width, height), "white")
    font_size = max(1, height // 12)
    font = ImageFont.load_default(size=font_size)
    draw = ImageDraw.Draw(row)
    left = 0
    offsets: list[int] = []
    for image in scaled:
        row.paste(image, (left, 0))
        offsets.append(left)
        left += image.width + GAP
    for offset, label in zip(offsets, labels, strict=True):
        corner = (offset + LABEL_OFFSET, LABEL_OFFSET)
        draw.text(corner, str(label), fill=_contrast(row, corner, font_size), font=font)
    longest = max(row.size)
    if longest > MAX_STRIP_SIDE:
        scale = MAX_STRIP_SIDE / longest
        row = row.resize((int(row.width * scale), int(row.height * scale)), _lanczos())
    return row


def _contrast(row: "Pil.Image", corner: tuple[int, int], size: int) -> str:
    from PIL import ImageStat

    red, green, blue = ImageStat.Stat(row.crop((*corner, corner[0] + size, corner[1] + size))).mean[:3]
    if math.sqrt(0.299 * red**2 + 0.587 * green**2 + 0.114 * blue**2) < 128:
        return "white"
    return "black"


def _on_white(image: "Pil.Image") -> "Pil.Image":
    from PIL import Image as Pil

    if "A" not in image.getbands() and "transparency" not in image.info:
        return image.convert("RGB")
    clear = image.convert("RGBA")
    white = Pil.new("RGBA", clear.size, "white")
    white.alpha_composite(clear)
    return white.convert("RGB")


def _lanczos():
    from PIL import Image as Pil

    return Pil.Resampling.LANCZOS
