"""Where a reply's thinking stands: between tags in its text, in a part of its own, or in the words before its picture; and its words, where
pictures stand between them."""

import re

from weft.models.thinking import parted
from weft.types import Image, Reply, Text

WHOLE = re.compile(r"<(/?)think>")


def thinking_of(reply: Reply) -> str:
    """What it thought, as far as it shows it: what it was asked to put between tags; where there is nothing between tags, what came as
    thoughts; else, where there is a picture, what it says before it, or at all. Words without a picture and without tags are no thinking:
    an excuse is none."""
    meant, rest = parted(words_of(reply))
    if meant or reply.thoughts or not reply.images:
        return meant or reply.thoughts
    return parted(before_picture(reply))[1] or rest


def words_of(reply: Reply) -> str:
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


def before_picture(reply: Reply) -> str:
    at = next((at for at, part in enumerate(reply.parts) if isinstance(part, Image)), len(reply.parts))
    return "".join(part.text for part in reply.parts[:at] if isinstance(part, Text)).strip()


def after_picture(reply: Reply) -> str:
    """What it says after its last picture."""
    places = [at for at, part in enumerate(reply.parts) if isinstance(part, Image)]
    return "".join(part.text for part in reply.parts[places[-1] + 1 :] if isinstance(part, Text)).strip() if places else ""


def as_saved(reply: Reply) -> str:
    """What the released scripts keep: what stands between whole tags, and nothing else."""
    kept: list[str] = []
    start = -1
    for match in WHOLE.finditer(reply.words):
        if not match.group(1):
            start = match.end() if start < 0 else start
        elif start >= 0:
            kept.append(reply.words[start : match.start()])
            start = -1
    return "\n".join(kept).strip()
