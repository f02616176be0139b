"""WEAVE's history modes exactly as the released scripts build them, defects included, so that published numbers can be
met.

There are two released loops, and they build different inputs for the same turn (facts in docs/errata.md):

    bagel   image and text turns (`case_bagel.py`; `case_step1x.py` is the same for image turns, with `--model-opt
    images=strip`): the
            pictures, then the instruction alone. Those it mentions, in order of mention with repeats, while the text is
            renumbered
            ascending; `full` puts the record's LAST picture first, and the text is unchanged. What the model has not
            made, or not yet,
            is taken from the dataset.
    gpt     text turns alone (`case_gpt.py`), as a chat: pictures and earlier pictures' names from the dataset whatever
    the model said,
            earlier text answers left out; `none` shows no picture at all, `first` only the first mention of each
            message.

Where the scripts crash (`full` without a mention), no picture is sent."""

from typing import TYPE_CHECKING

from weft.benchmarks.weave.history import renumber
from weft.types import MENTION, Dialogue, Image, Message, Part, Sample, Text, Turn, build_caption, find_mentions

if TYPE_CHECKING:
    from weft.benchmarks.weave.protocol import WeaveOptions


def build_messages(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> tuple[Message, ...]:
    if options.loop == "gpt":
        return _question(sample, turn, options)
    return (_instruction(sample, turn, dialogue, options),)


def depends_on(sample: Sample, turn: Turn, options: "WeaveOptions") -> set[int]:
    """Earlier turns whose pictures this turn is shown."""
    if options.loop == "gpt" or options.history == "none":
        return set()
    makers = [sample.turn_of_image(number) for number in _numbers(sample, turn, options)]
    return {
        maker.number for maker in makers if maker is not None and maker.number < turn.number and options.includes(maker)
    }


def _numbers(sample: Sample, turn: Turn, options: "WeaveOptions") -> list[int]:
    found = find_mentions(turn.prompt_text)
    if options.history == "full" and found:
        return [len(sample.images), *range(1, max(found) + 1)]
    return found


def _instruction(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Message:
    images = [_saved_or_dataset(sample, number, dialogue, options) for number in _numbers(sample, turn, options)]
    if options.history == "full":
        text = turn.prompt_text
    else:
        text = renumber(turn.prompt_text, sorted(set(find_mentions(turn.prompt_text))))
    return Message("user", (*images, Text(text)))


def _saved_or_dataset(sample: Sample, number: int, dialogue: Dialogue, options: "WeaveOptions") -> Image:
    maker = sample.turn_of_image(number)
    if maker is not None and options.history != "none":
        reply = dialogue.get(maker.number)
    else:
        reply = None
    return (reply.last_image if reply is not None else None) or sample.images[number - 1]


def _question(sample: Sample, turn: Turn, options: "WeaveOptions") -> tuple[Message, ...]:
    if options.history != "full":
        return (Message("user", (Text(turn.prompt_text),)),)
    texts: list[tuple[str, str]] = []
    for earlier in sample.turns[: turn.number]:
        texts.append(("user", earlier.prompt_text))
        if earlier.image_number is not None:
            texts.append(("assistant", f"Image #{earlier.image_number}"))
    texts.append(("user", turn.prompt_text))
    messages: list[Message] = []
    if options.placement == "all-first":
        numbers = sorted(
            {number for _, text in texts for number in find_mentions(text) if number <= len(sample.images)}
        )
        front = [part for number in numbers for part in (build_caption(number), sample.images[number - 1])]
        for position, (role, text) in enumerate(texts):
            if position == 0:
                parts: tuple[Part, ...] = (*front, Text(text))
            else:
                parts = (Text(text),)
            messages.append(Message("assistant" if role == "assistant" else "user", parts))
        return tuple(messages)
    for role, text in texts:
        first = MENTION.search(text)
        if first is None:
            messages.append(Message("assistant" if role == "assistant" else "user", (Text(text),)))
        elif role == "assistant":
            before = [Text(text[: match.start()]) for match in MENTION.finditer(text) if match.start()]
            messages.append(Message("assistant", (*before, Text(text))))
        else:
            image = sample.images[int(first.group(1)) - 1]
            if text[first.end() :]:
                rest = (Text(text[first.end() :]),)
            else:
                rest = ()
            messages.append(Message("user", (Text(text[: first.end()]), image, *rest)))
    return tuple(messages)
