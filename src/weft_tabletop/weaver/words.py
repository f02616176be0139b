"""Planner and visualizer's language: the tiny model's words, and two marks around the order for an image.

    <user> <image> latents </image> add a red star at b2 in the table . <assistant> <order> ... </order> <end>

Images come before the words of their message. An order's words are those between its marks."""

import re
from collections.abc import Sequence

from weft.types import Image, Message, Text
from weft_tabletop.tiny import vocab
from weft_tabletop.world.scenes import SIDE

ORDER = len(vocab.words())
ORDER_END = ORDER + 1
LATENT = ORDER + 2  # stands where a number of an image goes in
SIZE = ORDER + 3  # words, the two marks, and the stand-in
TEMPLATE = 1  # counts changes of how messages become tokens; part of the models' identity
TAG = re.compile(r"(<imagine\b[^<>]{0,200}>|</imagine>)")
NUMBERED = re.compile(r"\bimage # ?(\d)")
SENTENCE_ENDS = (".", "?", ":", "!")
HEADER = 1  # tokens before the first image: the role


def encode_text(text: str) -> list[int]:
    """Words as tokens, with the tags of orders as marks. The table is called `image`, as it is after renumbering."""
    tokens: list[int] = []
    text = text.replace("the table", "image")
    for piece in TAG.split(text):
        if piece == "</imagine>":
            tokens.append(ORDER_END)
        elif TAG.fullmatch(piece):
            tokens.append(ORDER)
        else:
            tokens += vocab.encode(piece)
    return tokens


def decode_plan(tokens: Sequence[int]) -> str:
    """A planner's tokens as its document, with orders as `compose/imagine.py` reads them."""
    lines: list[str] = []
    words: list[int] = []
    for token in [*tokens, vocab.END]:
        if token in (ORDER, ORDER_END, vocab.END):
            text = _capitalise(vocab.decode(words))
            words = []
            if token == ORDER_END:
                lines.append(f'<imagine size="{SIDE}x{SIDE}" uses="none">{text}</imagine>')
            elif text:
                lines.append(text)
        else:
            words.append(token)
    return "\n".join(lines)


def _capitalise(text: str) -> str:
    """A sentence as the tabletop's listeners read it."""
    text = NUMBERED.sub(r"Image #\1", text)
    if text.startswith(("step", "after", "draw", "add", "remove", "move", "change", "paint", "copy")):
        return text[:1].upper() + text[1:]
    return text


def image_tokens(cells: int) -> list[int]:
    return [vocab.IMAGE, *[LATENT] * cells, vocab.IMAGE_END]


def encode_request(messages: Sequence[Message], cells: int) -> tuple[list[int], list[Image]]:
    """The request as tokens up to where the reply begins, and its images in their order."""
    images: list[Image] = []
    text = ""
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, Text):
            text += f" {part.text}"
        elif isinstance(part, Image):
            images.append(part)
            is_within_sentence = text.strip() and not text.rstrip().endswith(SENTENCE_ENDS)
            text += " image" if is_within_sentence else ""
    shown = image_tokens(cells) * len(images)
    return [vocab.USER, *shown, *encode_text(text), vocab.ASSISTANT], images


def encode_order(order: str, images: int, cells: int) -> list[int]:
    """An order as the visualizer's planner reads it: the images that it sees, then its words between their marks."""
    return [vocab.USER, *image_tokens(cells) * images, vocab.ASSISTANT, ORDER, *encode_text(order), ORDER_END]


def find_order(images: int, cells: int) -> int:
    """Where an order begins among those tokens."""
    return HEADER + images * (cells + 2) + 1


def is_unused(token: int) -> bool:
    """Whether a planner never says this: the marks of roles and images."""
    return token in (
        vocab.PAD,
        vocab.UNK,
        vocab.SYSTEM,
        vocab.USER,
        vocab.ASSISTANT,
        vocab.IMAGE,
        vocab.IMAGE_END,
        LATENT,
    )
