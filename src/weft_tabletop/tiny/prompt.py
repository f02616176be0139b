"""A dialogue as one sequence: role, words and pictures in order.

    <user> paint ... <image> 16 codes </image> ... <assistant> <image> 16 codes </image> image # 2 : <end> <user> ...

In the model's own messages the caption of a picture comes after it: a reply starts with what the model says, and the
caption is not its doing. Pictures that follow the words of a request are heard before them: a question is easier once
one has seen what it is about."""

from collections.abc import Iterator

from weft.types import Image, Message, Part, Text, build_caption
from weft_tabletop.tiny import vocab
from weft_tabletop.world.listening import shorten_request

TEMPLATE = 3  # how messages become a sequence; part of the model's identity, since it changes replies
ROLES = {"system": vocab.SYSTEM, "user": vocab.USER, "assistant": vocab.ASSISTANT}
Item = tuple[int | Image, bool]  # a token or a picture, and whether a model is to learn to say it


def sequence(messages: tuple[Message, ...]) -> Iterator[Item]:
    """All messages; the parts of assistant messages are what is learnt."""
    for message in messages:
        own = message.role == "assistant"
        yield ROLES[message.role], False
        parts = list(message.parts)
        if (
            not own
            and len(parts) > 1
            and isinstance(parts[0], Text)
            and all(isinstance(part, Image) for part in parts[1:])
        ):
            parts = [*parts[1:], parts[0]]  # TEMPLATE counts changes of this kind
        for at, part in enumerate(parts):
            if isinstance(part, Image):
                yield part, own
                if own and at:
                    before = parts[at - 1]
                else:
                    before = None
                if part.label is not None and before == build_caption(part.label):
                    yield from ((token, False) for token in vocab.encode(build_caption(part.label).text))
                continue
            if own and at + 1 < len(parts):
                after = parts[at + 1]
            else:
                after = None
            if isinstance(after, Image) and after.label is not None and part == build_caption(after.label):
                continue
            yield from ((token, own) for token in vocab.encode(part.text))
        if own:
            pictures = sum(isinstance(part, Image) for part in parts)
            # one picture at the end ends a reply by itself
            yield vocab.END, pictures != 1 or not isinstance(parts[-1], Image)


def prompt(messages: tuple[Message, ...]) -> list[int | Image]:
    """The sequence up to where the reply begins."""
    return [item for item, _ in sequence(_captioned(heard(messages)))] + [vocab.ASSISTANT]


def heard(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What the model listens to: it was trained without system messages, and duties in other words than its own would
    only confuse it."""
    return tuple(
        Message(
            message.role,
            tuple(Text(shorten_request(part.text)) if isinstance(part, Text) else part for part in message.parts),
        )
        for message in messages
        if message.role != "system"
    )


def unknown_words(messages: tuple[Message, ...]) -> list[str]:
    texts = [part.text for message in heard(messages) for part in message.parts if isinstance(part, Text)]
    return list(dict.fromkeys(word for text in texts for word in vocab.unknown(text)))


def _captioned(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Labels are dropped on the way to a model; a caption before an own picture tells them again."""
    made: list[Message] = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if parts:
                before = parts[-1]
            else:
                before = None
            if message.role == "assistant" and isinstance(part, Image) and isinstance(before, Text):
                numbers = [n for n in range(1, 100) if before == build_caption(n)]
                part = Image(
                    part.digest, part.media_type, part.width, part.height, part.size, numbers[0] if numbers else None
                )
            parts.append(part)
        made.append(Message(message.role, tuple(parts)))
    return tuple(made)
