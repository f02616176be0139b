"""A dialogue as one sequence: roles, words and images in order.

    <user> paint ... <image> 16 codes </image> ... <assistant> <image> 16 codes </image> image # 2 : <end> <user> ...

In the model's own messages the caption of an image comes after it: a reply starts with what the model says, and it does
not say the caption. Images that follow the words of a request come before them: a question is easier once one has seen
what it is about."""

from collections.abc import Iterator, Sequence

from weft.types import Image, Message, Part, Text, build_caption
from weft_tabletop.tiny import vocab
from weft_tabletop.world.listening import shorten_request, split_begun_reply

TEMPLATE = 3  # counts changes of how messages become a sequence; part of the model's identity, since replies change
MAX_LABEL = 99
ROLES = {"system": vocab.SYSTEM, "user": vocab.USER, "assistant": vocab.ASSISTANT}
Item = tuple[int | Image, bool]  # a token or an image, and whether a model learns to say it


def build_sequence(messages: tuple[Message, ...]) -> Iterator[Item]:
    """Yield all messages. A model learns to say the parts of assistant messages."""
    for message in messages:
        yield ROLES[message.role], False
        if message.role == "assistant":
            yield from _own_items(message.parts)
        else:
            yield from _other_items(message.parts)


def _other_items(parts: Sequence[Part]) -> Iterator[Item]:
    if len(parts) > 1 and isinstance(parts[0], Text) and all(isinstance(part, Image) for part in parts[1:]):
        parts = [*parts[1:], parts[0]]
    for part in parts:
        if isinstance(part, Image):
            yield part, False
        else:
            yield from ((token, False) for token in vocab.encode(part.text))


def _own_items(parts: Sequence[Part]) -> Iterator[Item]:
    """The model's own parts, with each caption after its image."""
    for index, part in enumerate(parts):
        if isinstance(part, Image):
            yield part, True
            if index and _is_caption(parts[index - 1], part):
                yield from ((token, False) for token in vocab.encode(build_caption(part.label or 0).text))
        elif index + 1 == len(parts) or not _is_caption(part, parts[index + 1]):
            yield from ((token, True) for token in vocab.encode(part.text))
    # One image at the end ends a reply by itself, so that nothing is learnt after it.
    images = sum(isinstance(part, Image) for part in parts)
    yield vocab.END, images != 1 or not isinstance(parts[-1], Image)


def _is_caption(part: Part, image: Part) -> bool:
    return isinstance(image, Image) and image.label is not None and part == build_caption(image.label)


def build_prompt(messages: tuple[Message, ...]) -> list[int | Image]:
    """Build the sequence up to where the reply begins, or goes on after an image that stands for the model's own."""
    messages, begun = split_begun_reply(messages)
    sequence = build_sequence(_add_labels(simplify_messages(messages)))
    images = [part for part in begun if isinstance(part, Image)]
    return [*(item for item, _ in sequence), vocab.ASSISTANT, *images]


def simplify_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages as the model was trained on them: without system messages, and with instructions how to
    answer in its own short words."""
    simple: list[Message] = []
    for message in messages:
        if message.role != "system":
            parts = [Text(shorten_request(part.text)) if isinstance(part, Text) else part for part in message.parts]
            simple.append(Message(message.role, tuple(parts)))
    return tuple(simple)


def unknown_words(messages: tuple[Message, ...]) -> list[str]:
    """The words of the messages that the model does not know, each once."""
    unknown: dict[str, None] = {}
    messages, _ = split_begun_reply(messages)
    for message in simplify_messages(messages):
        for part in message.parts:
            if isinstance(part, Text):
                unknown.update(dict.fromkeys(vocab.unknown_words(part.text)))
    return list(unknown)


def _add_labels(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Labels are lost on the way to a model. Restore those of its own images from the captions before them."""
    labelled: list[Message] = []
    for message in messages:
        if message.role != "assistant":
            labelled.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if parts and isinstance(part, Image) and isinstance(parts[-1], Text):
                part = _set_label(part, _parse_caption(parts[-1]))
            parts.append(part)
        labelled.append(Message(message.role, tuple(parts)))
    return tuple(labelled)


def _parse_caption(text: Text) -> int | None:
    for label in range(1, MAX_LABEL + 1):
        if text == build_caption(label):
            return label
    return None


def _set_label(image: Image, label: int | None) -> Image:
    return Image(image.digest, image.media_type, image.width, image.height, image.size, label)
