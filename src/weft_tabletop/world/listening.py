"""How a tabletop model reads its messages: the last request as one sentence, and the images by the numbers that the
request uses."""

import re
from collections.abc import Sequence

from weft.types import Image, Message, Part, Text, build_caption
from weft_tabletop.world.choices import parse_choice
from weft_tabletop.world.language import parse
from weft_tabletop.world.wordings import SHOW, THINK

TASK = "\n\nTask: "  # between the instruction how to answer and what is asked
GO_ON = "Go on from your picture"  # how a message begins that has a reply continued after its image
CAPTION = re.compile(r"Image #(\d+):?\s*$")


def shorten_request(text: str) -> str:
    """Replace the instruction how to answer, if there is one, by the tabletop's own short one."""
    style, task = split_request(text)
    return f"{style} {task}".strip()


def split_request(text: str) -> tuple[str, str]:
    """Split a request into how to answer it (`THINK`, `SHOW` or the empty string) and what it asks."""
    before, mark, task = text.partition(TASK)
    if not mark:
        return "", text
    instruction = " ".join(before.split())
    if "<think>" in instruction:
        return THINK, task
    if "Final Answer" in instruction and "picture first" in instruction:
        return SHOW, task
    return "", task


def split_begun_reply(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Part, ...]]:
    """Split a dialogue that ends with a request to go on: into the messages before the reply, and what the reply
    begins with. Without such a request the reply begins with nothing."""
    if len(messages) < 3 or messages[-2].role != "assistant":
        return messages, ()
    texts = [part.text for part in messages[-1].parts if isinstance(part, Text)]
    if not texts or not texts[-1].startswith(GO_ON):
        return messages, ()
    return messages[:-2], messages[-2].parts


def answer_style(messages: tuple[Message, ...]) -> str:
    """How the last message is to be answered: `THINK`, `SHOW` or the empty string."""
    for part in messages[-1].parts:
        if isinstance(part, Text):
            style, _ = split_request(part.text)
            if style:
                return style
    return ""


def read_request(messages: tuple[Message, ...]) -> tuple[str, dict[int, Image]]:
    """Return the last request as one sentence, and the images by number.

    Numbers come from captions and from mentions right before images. Without any, the images are numbered by their
    order: in the whole dialogue if the sentence is complete without them, else in the last message. An image in the
    middle of the last message is then replaced by its number.
    """
    messages = tuple(Message(message.role, tuple(map(_remove_instruction, message.parts))) for message in messages)
    parts = messages[-1].parts
    images = _find_captioned_images(messages)
    captions = {build_caption(number) for number in images}
    sentence = "".join(part.text for part in parts if isinstance(part, Text) and part not in captions)
    if images:
        return sentence, images
    if parse(sentence) or parse_choice(sentence):
        return sentence, _number_images([part for message in messages for part in message.parts])
    numbered = _number_images(parts)
    are_first = all(isinstance(part, Image) for part in parts[: len(numbered)])
    if are_first:
        return sentence, numbered
    numbers = iter(numbered)
    words = [part.text if isinstance(part, Text) else f"Image #{next(numbers)}" for part in parts]
    return "".join(words), numbered


def _find_captioned_images(messages: Sequence[Message]) -> dict[int, Image]:
    """The images that follow a caption or a mention, by its number. A later image replaces an earlier one."""
    images: dict[int, Image] = {}
    for message in messages:
        previous: Part | None = None
        for part in message.parts:
            if isinstance(part, Image) and isinstance(previous, Text):
                match = CAPTION.search(previous.text)
                if match is not None:
                    images[int(match.group(1))] = part
            previous = part
    return images


def _number_images(parts: Sequence[Part]) -> dict[int, Image]:
    return dict(enumerate((part for part in parts if isinstance(part, Image)), start=1))


def _remove_instruction(part: Part) -> Part:
    """Remove the instruction how to answer."""
    if isinstance(part, Text) and TASK in part.text:
        return Text(split_request(part.text)[1])
    return part
