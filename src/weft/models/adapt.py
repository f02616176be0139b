"""What a model cannot take is reshaped, visibly: the messages it was really sent are journalled, and a reshaped picture
is a new digest.

    thoughts            are left out
    own_images=user     the model's earlier pictures move to the head of the next user message, under their captions
    images=list         one message: all pictures, then the text, with `[image k]` where a picture stood
    images=strip        the same with one picture: a row of all of them, each with its number drawn on it; before a
    dialogue, a note says so
    images=none         text alone, with `[picture not shown]`
    most=N              of more pictures than N the first are put in one row, numbered, as in a strip; the text says
    which they are
    max_side=N          pictures with a longer side than N pixels are shrunk to it

The strip's geometry is WEAVE's: height of the tallest, 5 white pixels between, number at (10, 10) in H // 12 points,
white or black by the brightness under it, at most 8192 pixels long."""

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
GAP = 5
LABEL_AT = 10
LONGEST = 8192
NOTE = (
    "The picture above is a row of the {count} pictures of the dialogue below, in their order, each with its number in its corner; "
    "[image 2] stands for the one with number 2. A picture that you make is one picture, not a row."
)

ROW = (
    "The first picture above is a row of {row}, each with its number in its corner{rest}. [image 2] stands for the one with number 2. "
    "A picture that you make is one picture, not a row."
)


def adapt_messages(messages: tuple[Message, ...], takes: Takes, blobs: Blobs) -> tuple[Message, ...]:
    """The messages as the model can take them. Labels have done their work after this and are dropped."""
    parts = [part for message in messages for part in message.parts]
    if any(isinstance(part, Thought) for part in parts):
        messages = _without_thoughts(messages)
    elif takes == EVERYTHING and all(
        isinstance(part, Text) or part.label is None for part in parts if not isinstance(part, Thought)
    ):
        return messages
    if takes.own_images == "user":
        messages = move_own_images(messages)
    if takes.images != "interleaved" or _is_crowded(messages, takes):
        messages = _flatten(messages, takes, blobs)
    return tuple(
        Message(message.role, tuple(_fitted(part, takes.max_side, blobs) for part in message.parts))
        for message in messages
    )


async def adapt_messages_async(messages: tuple[Message, ...], takes: Takes, blobs: Blobs) -> tuple[Message, ...]:
    """`fit`, in a thread where it decodes pictures. Raises PictureError, also where there is no memory for a
    picture."""
    try:
        if takes.images == "strip" or takes.max_side is not None or takes.max_images is not None:
            return await asyncio.to_thread(adapt_messages, messages, takes, blobs)
        return adapt_messages(messages, takes, blobs)
    except MemoryError:
        raise ImageError("there is no memory left for it") from None


def store_as_jpeg(image: Image, blobs: Blobs) -> Image:
    """The picture upright, without its transparency, as the JPEG that released scripts make of it."""
    with blobs.decode_within_memory(image) as opened:
        return blobs.put_jpeg(make_upright(opened))


def _without_thoughts(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """A model's thoughts are of no history; only those that its provider wants back with their state stay, for the
    caller to decide."""
    kept: list[Message] = []
    for message in messages:
        parts = tuple(part for part in message.parts if not isinstance(part, Thought) or part.state)
        kept.append(Message(message.role, parts))
    return tuple(message for message in kept if message.parts)


def _fitted(part: Part, max_side: int | None, blobs: Blobs) -> Part:
    if not isinstance(part, Image):
        return part
    if max_side is None:
        return replace(part, label=None)
    return shrink_image(replace(part, label=None), max_side, blobs)


def shrink_image(part: Image, max_side: int, blobs: Blobs) -> Image:
    """The picture with no side longer than that."""
    longest = max(part.width, part.height)
    if longest <= max_side:
        return part
    size = (max(1, part.width * max_side // longest), max(1, part.height * max_side // longest))
    with blobs.decode_within_memory(part) as opened:
        picture = make_upright(opened)
        if picture.size != (part.width, part.height):  # EXIF turned it
            size = (size[1], size[0])
        small = picture.resize(size, _lanczos())
    return blobs.put_pil(small)


def move_own_images(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Pictures of the model's own turns at the head of the user's next."""
    moved: list[Message] = []
    waiting: list[Part] = []
    for message in messages:
        if message.role != "assistant":
            if message.role == "user":
                parts = (*waiting, *message.parts)
            else:
                parts = message.parts
            waiting = [] if message.role == "user" else waiting
            moved.append(Message(message.role, parts))
            continue
        kept: list[Part] = []
        for part in message.parts:
            if isinstance(part, Image) and part.label is not None:
                if kept and kept[-1] == build_caption(part.label):
                    kept[-1] = Text(f"Image #{part.label}")
                elif not _names(kept, part.label):
                    kept.append(Text(f"[Image #{part.label}, shown in the next message]"))
                waiting += [build_caption(part.label), part]
            elif isinstance(part, Image):
                kept.append(Text("[my picture, shown in the next message]"))
                waiting.append(part)
            else:
                kept.append(part)
        moved.append(Message("assistant", tuple(kept)))
    return tuple(moved)


def _names(parts: Sequence[Part], label: int) -> bool:
    """Whether the words before a picture end with its name."""
    if parts:
        last = parts[-1]
    else:
        last = None
    return isinstance(last, Text) and last.text.rstrip().endswith(f"Image #{label}")


def _is_crowded(messages: Sequence[Message], takes: Takes) -> bool:
    """Whether there are more pictures than it takes."""
    count = sum(isinstance(part, Image) for message in messages for part in message.parts)
    return takes.max_images is not None and takes.images in ("interleaved", "list") and count > takes.max_images


def _listed(numbers: Sequence[int]) -> str:
    """`image 1, image 2 and image 5`."""
    told = [f"image {number}" for number in numbers]
    return " and ".join([*([", ".join(told[:-1])] if told[:-1] else []), told[-1]])


def _numbers(images: Sequence[Image]) -> list[int]:
    """What each is called in a row: its own number; those without one come after the highest of them, or are counted
    where none has any."""
    taken = [image.label for image in images if image.label is not None]
    free = itertools.count(max(taken, default=0) + 1)
    return [image.label if image.label is not None else next(free) for image in images]


def _flatten(messages: tuple[Message, ...], takes: Takes, blobs: Blobs) -> tuple[Message, ...]:
    """All in one user message, pictures first. Several messages keep their roles as words."""
    images: list[Image] = []
    lines: list[str] = []
    crowded = _is_crowded(messages, takes)
    numbered = takes.images == "strip" or crowded
    called = _numbers([part for message in messages for part in message.parts if isinstance(part, Image)])
    for message in messages:
        parts = message.parts
        # pictures before the text of a single message need no name in it; in a dialogue each message says which are its
        # own
        leading = 0
        if takes.images != "none" and len(messages) == 1:
            leading = next((at for at, part in enumerate(parts) if not isinstance(part, Image)), len(parts))
        images += [part for part in parts[:leading] if isinstance(part, Image)]
        words: list[str] = []
        for part in parts[leading:]:
            if not isinstance(part, Image):
                words += [part.text] if isinstance(part, Text) else []
                continue
            images.append(part)
            captioned = part.label is not None and bool(words) and words[-1] == build_caption(part.label).text
            if takes.images == "none":
                words.append("[picture not shown]")
            elif captioned and numbered:
                words.pop()
                words += [f"[image {called[len(images) - 1]}]"] if len(messages) > 1 else []
            else:
                words.append(f"[image {called[len(images) - 1] if numbered else len(images)}]")
        if len(words) == 1:
            text = words[0]
        else:
            text = " ".join(word.strip() for word in words if word.strip())
        lines.append(text if len(messages) == 1 else f"{message.role.capitalize()}: {text}")
    text = Text("\n".join(line for line in lines if line))
    if takes.images == "none" or not images:
        return (Message("user", (text,)),)
    if takes.images == "strip" and len(images) > 1:
        if len(messages) > 1:
            text = Text(f"{NOTE.format(count=len(images))}\n{text.text}")
        return (Message("user", (blobs.put_pil(build_stored_strip(images, called, blobs)), text)),)
    if crowded and takes.max_images is not None:
        joined = len(images) - takes.max_images + 1
        row = blobs.put_pil(build_stored_strip(images[:joined], called[:joined], blobs))
        if joined < len(images):
            rest = f"; the pictures after it are {_listed(called[joined:])}"
        else:
            rest = ""
        told = ROW.format(row=_listed(called[:joined]), rest=rest)
        return (Message("user", (row, *images[joined:], Text(f"{told}\n{text.text}"))),)
    return (Message("user", (*images, text)),)


def build_stored_strip(images: Sequence[Image], labels: Sequence[int], blobs: Blobs) -> "Pil.Image":
    """The same of pictures in the store: all at once where there is room for them, else one at a time."""
    pixels = sum(image.width * image.height for image in images)
    if pixels <= MAX_PIXELS:
        with PIXEL_BUDGET.reserve(pixels):
            return build_strip([blobs.decode(image) for image in images], labels)
    sizes: list[tuple[int, int]] = []
    for image in images:
        with blobs.decode_within_memory(image) as picture:
            sizes.append((image.width, image.height) if exif_orientation(picture) < 5 else (image.height, image.width))
    height = _height(sizes)
    scaled: list[Pil.Image] = []
    for image in images:
        with blobs.decode_within_memory(image) as picture:
            scaled.append(_scaled(picture, height))
    return _row(scaled, labels, height)


def build_strip(pictures: Sequence["Pil.Image"], labels: Sequence[int]) -> "Pil.Image":
    """One row of all pictures, each with its number."""
    turned = [make_upright(picture) for picture in pictures]
    height = _height([picture.size for picture in turned])
    return _row([_scaled(picture, height) for picture in turned], labels, height)


def _height(sizes: Sequence[tuple[int, int]]) -> int:
    """That of the tallest. Raises PictureError if the row would be too large."""
    height = max(size[1] for size in sizes)
    long = sum(size[0] * height / size[1] for size in sizes)
    if long * height > MAX_PIXELS:
        raise ImageError(
            f"strip of {len(sizes)} would be {long:.0f} x {height}, more pixels than the limit of {MAX_PIXELS:,}"
        )
    return height


def _scaled(picture: "Pil.Image", height: int) -> "Pil.Image":
    picture = make_upright(picture)
    width = max(1, int(picture.width * (height / picture.height)))
    return _on_white(picture).resize((width, height), _lanczos())


def _row(scaled: Sequence["Pil.Image"], labels: Sequence[int], height: int) -> "Pil.Image":
    from PIL import Image as Pil
    from PIL import ImageDraw, ImageFont

    row = Pil.new("RGB", (sum(picture.width for picture in scaled) + GAP * (len(scaled) - 1), height), "white")
    size = max(1, height // 12)
    font = ImageFont.load_default(size=size)
    draw = ImageDraw.Draw(row)
    left = 0
    places: list[int] = []
    for picture in scaled:
        row.paste(picture, (left, 0))
        places.append(left)
        left += picture.width + GAP
    for place, label in zip(places, labels, strict=True):
        corner = (place + LABEL_AT, LABEL_AT)
        draw.text(corner, str(label), fill=_contrast(row, corner, size), font=font)
    longest = max(row.size)
    if longest > LONGEST:
        scale = LONGEST / longest
        row = row.resize((int(row.width * scale), int(row.height * scale)), _lanczos())
    return row


def _contrast(row: "Pil.Image", corner: tuple[int, int], size: int) -> str:
    from PIL import ImageStat

    red, green, blue = ImageStat.Stat(row.crop((*corner, corner[0] + size, corner[1] + size))).mean[:3]
    if math.sqrt(0.299 * red**2 + 0.587 * green**2 + 0.114 * blue**2) < 128:
        return "white"
    return "black"


def _on_white(picture: "Pil.Image") -> "Pil.Image":
    from PIL import Image as Pil

    if "A" not in picture.getbands() and "transparency" not in picture.info:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    white = Pil.new("RGBA", clear.size, "white")
    white.alpha_composite(clear)
    return white.convert("RGB")


def _lanczos():
    from PIL import Image as Pil

    return Pil.Resampling.LANCZOS
