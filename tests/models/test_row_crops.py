"""Rows of images: an output in the row's shape is cropped to the part that was asked for, and nothing else is."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from weft.errors import UserError
from weft.models.adapt import build_stored_strip
from weft.models.row_crops import crop_reply
from weft.results.titles import format_title
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Reply, Text, build_caption
from weft_tabletop.make import make

SIZES = ((64, 64), (96, 64), (48, 80))  # of the images in a row
COLOURS = ("red", "green", "blue")


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path)


def inputs(blobs: Blobs) -> list[Image]:
    return [blobs.put_pil(Pil.new("RGB", size, colour)) for size, colour in zip(SIZES, COLOURS, strict=True)]


def request(images: list[Image], text: str) -> tuple[Message, ...]:
    parts: list[Part] = [Text(text)]
    for number, image in enumerate(images, start=1):
        parts += [build_caption(number), labelled(image, number)]
    return (Message("user", tuple(parts)),)


def labelled(image: Image, number: int) -> Image:
    return Image(image.digest, image.media_type, image.width, image.height, image.size, number)


def edited_row(images: list[Image], place: int, scale: float, blobs: Blobs, seed: int) -> Image:
    """A row as a model draws it again: a little noise everywhere, and one part in another colour."""
    row = build_stored_strip(images, [1, 2, 3], blobs)
    lefts = [0, 85, 210]
    widths = [80, 120, 48]
    row.paste("white", (lefts[place] + 10, 15, lefts[place] + widths[place] - 10, 60))
    rng = random.Random(seed)
    noise = Pil.frombytes("RGB", row.size, bytes(rng.randrange(12) for _ in range(3 * row.width * row.height)))
    drawn = Pil.blend(row, noise, 0.05).resize((round(row.width * scale), round(row.height * scale)))
    return blobs.put_pil(drawn)


def crop(output: Image, messages: tuple[Message, ...], blobs: Blobs) -> Reply:
    return asyncio.run(crop_reply(Reply("answered", (Text("Here."), output)), messages, blobs))


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("scale", [1.0, 0.5, 3.3])
def test_the_part_that_was_asked_for_comes_back_at_its_size(place: int, scale: float, blobs: Blobs):
    images = inputs(blobs)
    output = edited_row(images, place, scale, blobs, seed=place)
    for text in (
        f"Whiten Image #{place + 1}.",
        "Whiten one of them.",
        "Whiten one of Image #1, Image #2 and Image #3.",
    ):
        reply = crop(output, request(images, text), blobs)
        cropped = reply.last_image
        assert cropped is not None and (cropped.width, cropped.height) == SIZES[place]
        assert reply.reason == f"cropped to image {place + 1} of a row of 3" and reply.text == "Here."
        middle = blobs.decode(cropped).getpixel((cropped.width // 2, cropped.height // 2))
        assert min(middle[:3]) > 200, "the white of the edit"


def test_the_named_part_wins_over_one_that_changed_more(blobs: Blobs):
    images = inputs(blobs)
    reply = crop(edited_row(images, 2, 1.0, blobs, seed=0), request(images, "Whiten Image #1."), blobs)
    assert reply.reason == "cropped to image 1 of a row of 3"


def test_an_output_of_another_shape_or_of_one_input_is_left_alone(blobs: Blobs):
    images = inputs(blobs)
    single = blobs.put_pil(Pil.new("RGB", (64, 64), "white"))
    row = edited_row(images, 0, 1.0, blobs, seed=0)
    for output, messages in ((single, request(images, "Draw.")), (row, request(images[:1], "Draw."))):
        reply = crop(output, messages, blobs)
        assert reply.last_image == output and reply.reason == ""


def test_a_run_with_rows_says_so_in_its_title_and_is_another_run(tmp_path: Path):
    data = make("tabletop-weave", tmp_path / "data", samples=3, seed=0)
    options: dict[str, Any] = {
        "data": data, "model": "tabletop/tiny", "judge": "tabletop/exact", "home": tmp_path / "home", "history": "full"
    }  # fmt: skip
    rows = weft.evaluate("weave", model_options={"images": "strip"}, **options)
    cropped = weft.evaluate("weave", model_options={"images": "strip"}, crop_rows=True, **options)
    assert cropped.id != rows.id and "images strip, rows cropped" in format_title(cropped.record.manifest)
    assert all(turn.reply.outcome == "answered" for turn in rows.turns), "the tiny model reads a row"
    with pytest.raises(UserError, match="--model-opt images=strip"):
        weft.evaluate("weave", crop_rows=True, **options)
