"""Where a reply's thinking stands: between tags in its text, in a part of its own, or in the words before its picture;
and its words, where pictures stand between them."""

import re

from weft.models.thinking import split_thinking
from weft.types import Image, Reply, Text

WHOLE = re.compile(r"<(/?)think>")


def extract_thinking(reply: Reply) -> str:
    """What it thought, as far as it shows it: what it was asked to put between tags; where there is nothing between
    tags, what came as thoughts; else, where there is a picture, what it says before it, or at all. Words without a
    picture and without tags are no thinking: an excuse is none."""
    meant, rest = split_thinking(extract_text(reply))
    if meant or reply.thoughts or not reply.images:
        return meant or reply.thoughts
    return split_thinking(extract_text_before_image(reply))[1] or rest


def extract_text(reply: Reply) -> str:
    """Its texts, with a line's end where a picture stands between two of them."""
    made: list[str] = []
    apart = False
    for part in reply.parts:
        if isinstance(part, Image):
            apart = bool(made)
        elif isinstance(part, Text):
            made += ["\n"] * apart + [part.text]
            apart = False
    return "".join(made).strip()


def extract_text_before_image(reply: Reply) -> str:
    at = next((at for at, part in enumerate(reply.parts) if isinstance(part, Image)), len(reply.parts))
    return "".join(part.text for part in reply.parts[:at] if isinstance(part, Text)).strip()


def extract_text_after_image(reply: Reply) -> str:
    """What it says after its last picture."""
    places = [at for at, part in enumerate(reply.parts) if isinstance(part, Image)]
    if places:
        return "".join(part.text for part in reply.parts[places[-1] + 1 :] if isinstance(part, Text)).strip()
    return ""


def extract_tagged_thinking(reply: Reply) -> str:
    """What the released scripts keep: what stands between whole tags, and nothing else."""
    kept: list[str] = []
    start = -1
    for match in WHOLE.finditer(reply.raw_text):
        if not match.group(1):
            if start < 0:
                start = match.end()
        elif start >= 0:
            kept.append(reply.raw_text[start : match.start()])
            start = -1
    return "\n".join(kept).strip()
