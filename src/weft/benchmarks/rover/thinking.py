"""Where a reply's thinking is: between tags in its text, in a part of its own, or in the text before its image."""

import re

from weft.models.thinking import split_thinking
from weft.types import Image, Reply, Text

WHOLE_TAG = re.compile(r"<(/?)think>")


def extract_thinking(reply: Reply) -> str:
    """Return the model's thinking, as far as the reply shows it.

    That is the text between tags; without it, the thoughts that came as parts; else, if there is an image, the text
    before it, or all text. Text without an image and without tags is not thinking: an excuse is none.
    """
    tagged, rest = split_thinking(extract_text(reply))
    if tagged or reply.thoughts or not reply.images:
        return tagged or reply.thoughts
    return split_thinking(extract_text_before_image(reply))[1] or rest


def extract_text(reply: Reply) -> str:
    """Return the reply's texts, with a line break where an image is between two of them."""
    pieces: list[str] = []
    after_image = False
    for part in reply.parts:
        if isinstance(part, Image):
            after_image = bool(pieces)
        elif isinstance(part, Text):
            if after_image:
                pieces.append("\n")
            pieces.append(part.text)
            after_image = False
    return "".join(pieces).strip()


def extract_text_before_image(reply: Reply) -> str:
    pieces: list[str] = []
    for part in reply.parts:
        if isinstance(part, Image):
            break
        if isinstance(part, Text):
            pieces.append(part.text)
    return "".join(pieces).strip()


def extract_text_after_image(reply: Reply) -> str:
    """Return the text after the last image; empty if there is no image."""
    if not reply.images:
        return ""
    pieces: list[str] = []
    for part in reply.parts:
        if isinstance(part, Image):
            pieces.clear()
        elif isinstance(part, Text):
            pieces.append(part.text)
    return "".join(pieces).strip()


def extract_tagged_thinking(reply: Reply) -> str:
    """Return what the released scripts store: the text between whole tags, and nothing else."""
    pieces: list[str] = []
    start = -1
    for match in WHOLE_TAG.finditer(reply.raw_text):
        is_closing = bool(match.group(1))
        if not is_closing and start < 0:
            start = match.end()
        elif is_closing and start >= 0:
            pieces.append(reply.raw_text[start : match.start()])
            start = -1
    return "\n".join(pieces).strip()
