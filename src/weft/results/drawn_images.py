"""What each image of a document costs, and whether it has the size that was asked for.

A composition such as `weaver` draws the images of a document one by one, and shows each the images before it: what it
sends grows with every image. Both tables are computed from the calls behind the replies, whoever made them.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from weft.store.journal import Journal
from weft.store.records import CallRecord, TurnRecord
from weft.types import Cell, Row, Table
from weft.untrusted import dict_or_empty, parse_json

MAX_NUMBERS = 12  # images of a document with a row of their own; later ones have one together
CHUNK = 100  # replies whose calls are read at once
BYTES_PER_PIXEL = 3  # of a decoded image
SAME_RATIO = 0.03  # relative difference of width / height that counts as none
REFERENCE = "reference"  # a model that draws nothing: its images cost nothing
COST_COLUMNS = ("images", "images in", "MB of images in", "tokens in", "tokens out", "seconds", "USD")
SIZE_COLUMNS = ("images", "ratio asked", "ratio made", "same ratio, %", "same size, %")
COST_NOTE = (
    "Means over the calls that drew these images of documents with several: the images that the model was shown, their "
    "pixels as megabytes of memory, tokens, and seconds of the call (its last try, without waiting for a slot). What a "
    "server's weights and activations need is not known here."
)
SIZE_NOTE = (
    "Images that were asked for at a size: width / height as asked and as made, on average; images whose ratio is the "
    "one asked for within 3%, and those of exactly that size in pixels."
)


class DrawnImage(Struct, frozen=True):
    """An image of a reply, and the call that drew it."""

    number: int  # of the image in its document, from 1
    of: int  # images of the document
    images_in: int
    pixels_in: int
    tokens_in: int
    tokens_out: int
    seconds: float
    cost: float | None  # in USD
    made: tuple[int, int]  # width, height
    asked: tuple[int, int] | None


def find_drawn_images(turns: Sequence[TurnRecord], journal: Journal) -> list[DrawnImage]:
    """Return the images of replies that several calls are behind, in the order of the replies."""
    composed = [turn for turn in turns if len(turn.reply.keys) > 1 and turn.reply.images]
    drawn: list[DrawnImage] = []
    for start in range(0, len(composed), CHUNK):
        chunk = composed[start : start + CHUNK]
        calls = journal.calls(list(dict.fromkeys(key for turn in chunk for key in turn.reply.keys)))
        for turn in chunk:
            drawn += _match_images(turn, [calls[key] for key in turn.reply.keys if key in calls])
    return drawn


def _match_images(turn: TurnRecord, calls: Sequence[CallRecord]) -> Iterator[DrawnImage]:
    """Yield the images of a reply that one of the calls has drawn."""
    by_digest: dict[str, CallRecord] = {}
    for call in calls:
        reply = dict_or_empty(parse_json(call.reply.encode(), "a stored reply"))
        images = _images_of(reply.get("parts"))
        if images and call.model != REFERENCE:
            by_digest.setdefault(str(images[-1].get("digest")), call)
    for number, image in enumerate(turn.reply.images, start=1):
        call = by_digest.get(image.digest)
        if call is None:
            continue
        request = dict_or_empty(parse_json(call.request.encode(), "a stored request"))
        shown: list[dict[str, Any]] = []
        for message in _list_of(request.get("messages")):
            shown += _images_of(dict_or_empty(message).get("parts"))
        yield DrawnImage(
            number,
            len(turn.reply.images),
            len(shown),
            sum(_number(one, "width") * _number(one, "height") for one in shown),
            call.tokens_in,
            call.tokens_out,
            call.latency,
            call.cost,
            (image.width, image.height),
            _read_size(request.get("size")),
        )


def _list_of(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _images_of(parts: Any) -> list[dict[str, Any]]:
    entries = map(dict_or_empty, _list_of(parts))
    return [entry for entry in entries if entry.get("type") == "image"]


def _number(entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name)
    return value if isinstance(value, int) else 0


def _read_size(value: Any) -> tuple[int, int] | None:
    sides = _list_of(value)
    if len(sides) == 2 and all(isinstance(side, int) and side > 0 for side in sides):
        return sides[0], sides[1]
    return None


def build_image_tables(runs: Mapping[str, Sequence[DrawnImage]]) -> Iterator[Table]:
    """Yield the table of costs by image number, and that of sizes; none where there is nothing to show."""
    cost_rows: list[Row] = []
    size_rows: list[Row] = []
    for name, drawn in runs.items():
        prefix = f"{name}: " if len(runs) > 1 else ""
        documents = [image for image in drawn if image.of > 1]
        cost_rows += [Row(prefix + label, _cost_cells(images), kind="part") for label, images in _by_number(documents)]
        sized = [image for image in drawn if image.asked is not None]
        size_rows += [Row(prefix + label, _size_cells(images), kind="part") for label, images in _by_ratio(sized)]
    if cost_rows:
        yield Table("What each image of a document costs", COST_COLUMNS, tuple(cost_rows), COST_NOTE, 2, "mixed")
    if size_rows:
        yield Table("Sizes of images, asked and made", SIZE_COLUMNS, tuple(size_rows), SIZE_NOTE, 2, "mixed")


def _by_number(images: Sequence[DrawnImage]) -> Iterator[tuple[str, list[DrawnImage]]]:
    ordered = sorted(images, key=lambda image: image.number)
    for number, group in itertools.groupby(ordered, key=lambda image: min(image.number, MAX_NUMBERS + 1)):
        yield (f"image {number}" if number <= MAX_NUMBERS else f"image {number} and later"), list(group)


def _by_ratio(images: Sequence[DrawnImage]) -> Iterator[tuple[str, list[DrawnImage]]]:
    """Yield all images, and then those of each ratio, where there are several ratios."""
    if images:
        yield "all", list(images)
    ordered = sorted(images, key=_asked_ratio)
    groups = [(ratio, list(group)) for ratio, group in itertools.groupby(ordered, key=_asked_ratio)]
    for ratio, group in groups if 1 < len(groups) <= MAX_NUMBERS else ():
        yield f"asked {ratio:.2f}", group


def _asked_ratio(image: DrawnImage) -> float:
    width, height = image.asked or image.made
    return round(width / height, 2)


def _cost_cells(images: Sequence[DrawnImage]) -> dict[str, Cell]:
    costs = [image.cost for image in images if image.cost is not None]
    megabytes = [image.pixels_in * BYTES_PER_PIXEL / 1e6 for image in images]
    cost = _mean(costs, 4) if len(costs) == len(images) else Cell(None)
    return {
        "images": Cell(len(images), count=True),
        "images in": _mean([image.images_in for image in images]),
        "MB of images in": _mean(megabytes),
        "tokens in": _mean([image.tokens_in for image in images], 0),
        "tokens out": _mean([image.tokens_out for image in images], 0),
        "seconds": _mean([image.seconds for image in images]),
        "USD": cost,
    }


def _size_cells(images: Sequence[DrawnImage]) -> dict[str, Cell]:
    asked = [_ratio(image.asked or image.made) for image in images]
    made = [_ratio(image.made) for image in images]
    same = [abs(own / other - 1) <= SAME_RATIO for own, other in zip(made, asked, strict=True)]
    exact = [image.asked == image.made for image in images]
    return {
        "images": Cell(len(images), count=True),
        "ratio asked": _mean(asked),
        "ratio made": _mean(made),
        "same ratio, %": _mean([100.0 * one for one in same], 1),
        "same size, %": _mean([100.0 * one for one in exact], 1),
    }


def _ratio(size: tuple[int, int]) -> float:
    return size[0] / max(1, size[1])


def _mean(values: Sequence[float], digits: int = 2) -> Cell:
    if not values:
        return Cell(None)
    return Cell(sum(values) / len(values), len(values), len(values), digits=digits)
