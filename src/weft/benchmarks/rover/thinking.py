"""Where a reply's thinking stands: between tags in its text, in a part of its own, or in the words before its picture."""

import re

from weft.types import Image, Reply, Text

TAGS = re.compile(r"<think(?:ing)?>(.*?)</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
OPENED, CLOSED = re.compile(r"<think(?:ing)?>", re.IGNORECASE), re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def thinking_of(reply: Reply) -> str:
    """What it thought, as far as it shows it: what it was asked to put between tags; where there is nothing between tags, what came as
    thoughts; else what it says before its picture, or at all."""
    return tagged(reply.words) or reply.thoughts or _before_picture(reply) or _untagged(reply.words)


def tagged(text: str) -> str:
    """What stands between tags. A tag that is never closed, cut off by the picture or by the end, reaches to the end; one that closes what
    was never opened, because the model's own template opened it, begins at the beginning."""
    found = [inside.strip() for inside in TAGS.findall(text)]
    rest = TAGS.sub("\n", text)
    opened, closed = OPENED.search(rest), CLOSED.search(rest)
    if closed is not None and (opened is None or closed.start() < opened.start()):
        found.insert(0, rest[: closed.start()].strip())
        opened = OPENED.search(rest, closed.end())
    if opened is not None:
        found.append(rest[opened.end() :].strip())
    return "\n".join(inside for inside in found if inside).strip()


def _before_picture(reply: Reply) -> str:
    said: list[str] = []
    for part in reply.parts:
        if isinstance(part, Image):
            return _untagged("".join(said))
        if isinstance(part, Text):
            said.append(part.text)
    return ""


def _untagged(text: str) -> str:
    return CLOSED.sub("", OPENED.sub("", text)).strip()


def as_saved(reply: Reply) -> str:
    """What the released scripts keep: what stands between whole tags, and nothing else."""
    return "\n".join(re.findall(r"<think>(.*?)</think>", reply.words, re.DOTALL)).strip()
