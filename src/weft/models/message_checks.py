"""Checks of messages that other code than weft's wrote: a benchmark, a composition."""

from collections.abc import Sequence
from typing import Any, cast, get_args

from weft.errors import MessagesError
from weft.types import Image, Message, Role, Text, Thought

ROLES: tuple[str, ...] = get_args(Role)


def check_messages(messages: Any, source: str, hint: str = "") -> None:
    """Check the messages that a benchmark wrote, before they are sent. `source` begins the error ("... returned").

    Raises MessagesError for anything but a tuple or list of `Message` with known roles: the benchmark's code is wrong;
    `hint` says how it is right. Raises TypeError for a part that is no Text, Image or Thought: that may be the fault of
    one reply, and costs one turn.
    """
    if hint:
        hint = f". {hint}"
    if not isinstance(messages, tuple | list):
        raise MessagesError(f"{source} {with_article(messages)}; expected a tuple of Message{hint}")
    for position, message in enumerate(cast(Sequence[Any], messages)):
        if not isinstance(message, Message):
            raise MessagesError(f"{source} {with_article(message)} at position {position}; expected Message{hint}")
        _check_parts(message)
    check_roles(cast(Sequence[Message], messages), source)


def _check_parts(message: Message) -> None:
    parts: tuple[Any, ...] = message.parts
    for part in parts:
        if not isinstance(part, Text | Image | Thought):
            raise TypeError(
                f"a part of a message is {with_article(part)}, {str(part)[:60]!r}; parts are Text, Image or Thought"
            )
        if isinstance(part, Image):
            continue
        text: Any = part.text
        if not isinstance(text, str):
            raise TypeError(f"the text of a {type(part).__name__} is {with_article(text)}: it must be a str")


def with_article(value: object) -> str:
    """Return the name of a value's type, as a sentence has it."""
    name = type(value).__name__
    article = "an" if name[0] in "aeiouAEIOU" else "a"
    return f"{article} {name}"


def check_roles(messages: Sequence[Message], source: str) -> None:
    """Raise MessagesError for a message whose role no model knows. `source` begins the error ("... returned")."""
    for position, message in enumerate(messages):
        if message.role not in ROLES:
            raise MessagesError(
                f"{source} a message with the role {str(message.role)[:40]!r} at position {position}; "
                f"a role is {', '.join(ROLES[:-1])} or {ROLES[-1]}"
            )
