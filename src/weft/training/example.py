"""What a model learns from: messages, and which of their parts it learns to say."""

from msgspec import Struct

from weft.types import Message, Part


class Example(Struct, frozen=True):
    messages: tuple[Message, ...]
    learn: tuple[tuple[int, int], ...]  # (message, part): numbers from 0

    def learnt_parts(self) -> list[Part]:
        return [self.messages[message].parts[part] for message, part in self.learn]


def learn_replies(messages: tuple[Message, ...]) -> Example:
    """An example in which every reply is learnt."""
    learn: list[tuple[int, int]] = []
    for number, message in enumerate(messages):
        if message.role == "assistant":
            learn += [(number, part) for part in range(len(message.parts))]
    return Example(messages, tuple(learn))


def learn_last_reply(messages: tuple[Message, ...]) -> Example:
    """An example in which only the last message is learnt."""
    last = len(messages) - 1
    return Example(messages, tuple((last, part) for part in range(len(messages[last].parts))))
