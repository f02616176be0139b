"""What a listener on the tabletop makes of its messages: the last request as one sentence, and the pictures by the number it calls them."""

import re

from weft.tabletop.world.choices import parse_choice
from weft.tabletop.world.language import parse
from weft.types import Image, Message, Text, caption

NAMED = re.compile(r"Image #(\d+):?\s*$")


def understand(messages: tuple[Message, ...]) -> tuple[str, dict[int, Image]]:
    """The last request as one sentence, and the pictures by the number it calls them: from captions and mentions before them; else, where
    the sentence is whole without them, by their order in the dialogue; else by their order before the text, or their place in it."""
    images: dict[int, Image] = {}
    for message in messages:
        for before, part in zip((None, *message.parts), message.parts, strict=False):
            named = NAMED.search(before.text) if isinstance(before, Text) and isinstance(part, Image) else None
            if named and isinstance(part, Image):
                images[int(named.group(1))] = part
    parts = messages[-1].parts
    shown = [part for part in parts if isinstance(part, Image)]
    captions = {caption(number) for number in images}
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
