"""WEAVE's history modes exactly as the released scripts build them, defects included, so that published numbers can be met.

What differs from `history.py` (facts in docs/errata.md): pictures come in order of mention with repeats while the text is renumbered
ascending; `full` puts the record's LAST picture first and falls back to the true output where the model has none yet; a question gets
pictures and earlier answers from the dataset whatever the model said, in `none` no picture at all, at `first` only the
first mention of each message, and earlier text answers are left out. Where the scripts crash (`full` without a mention), no
picture is sent.
"""

from typing import TYPE_CHECKING

from weft.benchmarks.weave.history import renumber
from weft.errors import UserError
from weft.types import MENTION, Dialogue, Image, Message, Part, Sample, Text, Turn, caption, mentions

if TYPE_CHECKING:
    from weft.benchmarks.weave.protocol import WeaveOptions


def see(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> tuple[Message, ...]:
    if options.history == "dialogue":
        raise UserError("--history dialogue is weft's own; the released scripts have none, partial and full")
    if turn.want == "text":
        return _question(sample, turn, options)
    return (_instruction(sample, turn, dialogue, options),)


def _instruction(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Message:
    found = mentions(turn.words)
    numbers = found
    if options.history == "full":
        numbers = [len(sample.pictures), *range(1, max(found) + 1)] if found else []
    images = [_saved_or_dataset(sample, number, dialogue, options) for number in numbers]
    text = turn.words if options.history == "full" else renumber(turn.words, sorted(set(found)))
    return Message("user", (*images, Text(text)))


def _saved_or_dataset(sample: Sample, number: int, dialogue: Dialogue, options: "WeaveOptions") -> Image:
    maker = sample.maker_of(number)
    reply = dialogue.get(maker.number) if maker is not None and options.history != "none" else None
    return (reply.picture if reply is not None else None) or sample.pictures[number - 1]


def _question(sample: Sample, turn: Turn, options: "WeaveOptions") -> tuple[Message, ...]:
    if options.history != "full":
        return (Message("user", (Text(turn.words),)),)
    texts: list[tuple[str, str]] = []
    for earlier in sample.turns[: turn.number]:
        texts.append(("user", earlier.words))
        if earlier.makes is not None:
            texts.append(("assistant", f"Image #{earlier.makes}"))
    texts.append(("user", turn.words))
    messages: list[Message] = []
    if options.placement == "front":
        numbers = sorted({number for _, text in texts for number in mentions(text) if number <= len(sample.pictures)})
        front = [part for number in numbers for part in (caption(number), sample.pictures[number - 1])]
        for position, (role, text) in enumerate(texts):
            parts: tuple[Part, ...] = (*front, Text(text)) if position == 0 else (Text(text),)
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
            image = sample.pictures[int(first.group(1)) - 1]
            rest = (Text(text[first.end() :]),) if text[first.end() :] else ()
            messages.append(Message("user", (Text(text[: first.end()]), image, *rest)))
    return tuple(messages)
