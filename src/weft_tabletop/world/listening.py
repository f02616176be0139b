"""What a listener on the tabletop makes of its messages: the last request as one sentence, and the pictures by the
number it calls them."""

import re

from weft.types import Image, Message, Part, Text, build_caption
from weft_tabletop.world.choices import parse_choice
from weft_tabletop.world.language import SHOW, THINK, parse

TASK = "\n\nTask: "  # between how to answer and what to do
NAMED = re.compile(r"Image #(\d+):?\s*$")


def shorten_request(text: str) -> str:
    """A request that says in many words how to answer, in few: with thinking first, or with a picture first, or
    plainly."""
    word, task = split_request(text)
    return f"{word} {task}".strip()


def split_request(text: str) -> tuple[str, str]:
    """How a request is to be answered (`THINK`, `SHOW` or plainly), and what it asks."""
    told, mark, task = text.partition(TASK)
    if not mark:
        return "", text
    how = " ".join(told.split())
    return THINK if "<think>" in how else SHOW if "Final Answer" in how and "picture first" in how else "", task


def answer_style(messages: tuple[Message, ...]) -> str:
    """The same of the last message."""
    return next(
        (how for part in messages[-1].parts if isinstance(part, Text) and (how := split_request(part.text)[0])), ""
    )


def read_request(messages: tuple[Message, ...]) -> tuple[str, dict[int, Image]]:
    """The last request as one sentence, and the pictures by the number it calls them: from captions and mentions before
    them; else, where the sentence is whole without them, by their order in the dialogue; else by their order before the
    text, or their place in it."""
    messages = tuple(Message(message.role, tuple(map(_without_style, message.parts))) for message in messages)
    images: dict[int, Image] = {}
    for message in messages:
        for before, part in zip((None, *message.parts), message.parts, strict=False):
            if isinstance(before, Text) and isinstance(part, Image):
                named = NAMED.search(before.text)
            else:
                named = None
            if named and isinstance(part, Image):
                images[int(named.group(1))] = part
    parts = messages[-1].parts
    shown = [part for part in parts if isinstance(part, Image)]
    captions = {build_caption(number) for number in images}
    alone = "".join(part.text for part in parts if isinstance(part, Text) and part not in captions)
    if not images and (parse(alone) or parse_choice(alone)):
        everything = [part for message in messages for part in message.parts if isinstance(part, Image)]
        return alone, dict(enumerate(everything, start=1))
    if images or not shown:
        return alone, images
    numbered = dict(enumerate(shown, start=1))
    if all(isinstance(part, Image) for part in parts[: len(shown)]):
        return "".join(part.text for part in parts if isinstance(part, Text)), numbered
    numbers = iter(numbered)
    return "".join(f"Image #{next(numbers)}" if isinstance(part, Image) else part.text for part in parts), numbered


def _without_style(part: Part) -> Part:
    """Without how it is to be answered."""
    if isinstance(part, Text) and TASK in part.text:
        return Text(split_request(part.text)[1])
    return part
