"""Pictures that a dialogue's text calls by number: `Image #3` is the third of the sample's list, 1-based."""

import re

from weft.types import Sample, Text, Turn

MENTION = re.compile(r"Image #(\d{1,6})(?!\d)")


def mentions(text: str) -> list[int]:
    """Picture numbers in order of mention, repeats kept."""
    return [int(number) for number in MENTION.findall(text)]


def caption(number: int) -> Text:
    return Text(f"Image #{number}:")


def maker_of(sample: Sample, number: int) -> Turn | None:
    return next((turn for turn in sample.turns if turn.makes == number), None)


def renumber(text: str, order: list[int]) -> str:
    """Mentions by the position of their number in `order`; a single mention becomes the bare word `image`."""
    found = mentions(text)
    if len(found) == 1:
        return MENTION.sub("image", text)
    return MENTION.sub(lambda match: f"Image #{order.index(int(match.group(1))) + 1}", text)
