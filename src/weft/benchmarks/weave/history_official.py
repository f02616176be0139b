"""WEAVE's history modes exactly as the released scripts build them, defects included, to reproduce published numbers.

There are two released loops, and they build different inputs for the same turn (facts in docs/reference/errata.md):

    bagel   Image and text turns (`case_bagel.py`; `case_step1x.py` is the same for image turns, with
            `--model-opt images=strip`): the images, then the instruction alone. The images are those it mentions, in
            order of mention with repeats, while the text is renumbered ascending; `full` puts the record's LAST image
            first and leaves the text unchanged. What the model has not made (yet) is taken from the dataset.
    gpt     Text turns alone (`case_gpt.py`), as a chat: images, and the names of earlier images, come from the dataset
            whatever the model replied; earlier text answers are left out. `none` shows no image at all; `inline` only
            the first mention of each message.

Where the scripts crash (`full` without a mention), no image is sent.
"""

from typing import TYPE_CHECKING

from weft.benchmarks.weave.history import renumber
from weft.types import MENTION, Dialogue, Image, Message, Part, Role, Sample, Text, Turn, build_caption, find_mentions

if TYPE_CHECKING:
    from weft.benchmarks.weave.protocol import WeaveOptions


def build_messages(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> tuple[Message, ...]:
    """Build the messages for a turn as the released loop `options.loop` does."""
    if options.loop == "gpt":
        return _build_chat(sample, turn, options)
    return (_build_instruction(sample, turn, dialogue, options),)


def depends_on(sample: Sample, turn: Turn, options: "WeaveOptions") -> set[int]:
    """Return the earlier turns whose images this turn is shown."""
    if options.loop == "gpt" or options.history == "none":
        return set()
    turns: set[int] = set()
    for number in _image_numbers(sample, turn, options):
        maker = sample.turn_of_image(number)
        if maker is not None and maker.number < turn.number and options.includes(maker):
            turns.add(maker.number)
    return turns


def _image_numbers(sample: Sample, turn: Turn, options: "WeaveOptions") -> list[int]:
    """Return the numbers of the images that the bagel loop shows, in its order."""
    mentions = find_mentions(turn.prompt_text)
    if options.history == "full" and mentions:
        return [len(sample.images), *range(1, max(mentions) + 1)]
    return mentions


def _build_instruction(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Message:
    images = [_own_or_dataset(sample, number, dialogue, options) for number in _image_numbers(sample, turn, options)]
    text = turn.prompt_text
    if options.history != "full":
        text = renumber(text, sorted(set(find_mentions(text))))
    return Message("user", (*images, Text(text)))


def _own_or_dataset(sample: Sample, number: int, dialogue: Dialogue, options: "WeaveOptions") -> Image:
    """Return the image that the model made under this number, else the dataset's."""
    maker = sample.turn_of_image(number)
    if maker is not None and options.history != "none" and maker.number in dialogue:
        return dialogue[maker.number].last_image or sample.images[number - 1]
    return sample.images[number - 1]


def _build_chat(sample: Sample, turn: Turn, options: "WeaveOptions") -> tuple[Message, ...]:
    """Build the messages of the gpt loop."""
    if options.history != "full":
        return (Message("user", (Text(turn.prompt_text),)),)
    texts: list[tuple[Role, str]] = []
    for earlier in sample.turns[: turn.number]:
        texts.append(("user", earlier.prompt_text))
        if earlier.image_number is not None:
            texts.append(("assistant", f"Image #{earlier.image_number}"))
    texts.append(("user", turn.prompt_text))
    if options.placement == "all-first":
        messages = [Message(role, (Text(text),)) for role, text in texts]
        images = _mentioned_images(sample, [text for _, text in texts])
        messages[0] = Message(messages[0].role, (*images, *messages[0].parts))
        return tuple(messages)
    return tuple(_with_first_mention(sample, role, text) for role, text in texts)


def _mentioned_images(sample: Sample, texts: list[str]) -> list[Part]:
    """Return every mentioned image of the dataset, ascending, each after its caption."""
    numbers: set[int] = set()
    for text in texts:
        numbers.update(find_mentions(text))
    parts: list[Part] = []
    for number in sorted(numbers):
        if number <= len(sample.images):
            parts += [build_caption(number), sample.images[number - 1]]
    return parts


def _with_first_mention(sample: Sample, role: Role, text: str) -> Message:
    """Build a message with the image of its first mention; an assistant's message only repeats its text."""
    first = MENTION.search(text)
    if first is None:
        return Message(role, (Text(text),))
    if role == "assistant":
        before = [Text(text[: match.start()]) for match in MENTION.finditer(text) if match.start()]
        return Message("assistant", (*before, Text(text)))
    parts: list[Part] = [Text(text[: first.end()]), sample.images[int(first.group(1)) - 1]]
    if first.end() < len(text):
        parts.append(Text(text[first.end() :]))
    return Message("user", tuple(parts))
