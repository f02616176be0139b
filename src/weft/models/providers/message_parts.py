"""Collect parts over all messages of a request, for protocols that do not take them message by message."""

from collections.abc import Iterable, Sequence

from weft.types import Image, Message, Text


def list_system_texts(messages: Sequence[Message]) -> list[str]:
    """Return the texts of all system messages, in order."""
    return list_texts(message for message in messages if message.role == "system")


def list_texts(messages: Iterable[Message]) -> list[str]:
    """Return all texts, in order. Thoughts are not texts."""
    texts: list[str] = []
    for message in messages:
        texts += [part.text for part in message.parts if isinstance(part, Text)]
    return texts


def list_images(messages: Iterable[Message]) -> list[Image]:
    """Return all images, in order."""
    images: list[Image] = []
    for message in messages:
        images += [part for part in message.parts if isinstance(part, Image)]
    return images


def flatten_messages(messages: Sequence[Message]) -> tuple[str, list[Image]]:
    """Return all texts joined to one prompt, and all images, each in order."""
    return "\n".join(list_texts(messages)).strip(), list_images(messages)
