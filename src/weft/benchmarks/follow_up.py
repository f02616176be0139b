"""Asking a model again in the same turn if its reply does not answer yet: `Benchmark.follow_up`."""

from collections.abc import Sequence
from typing import ClassVar

from weft.types import Message, Reply, Turn


class FollowUp:
    """The rule by which a benchmark asks again."""

    max_tries: ClassVar[int] = 2
    """How often a turn may be asked in all; a dry run prints it."""

    def next_messages(
        self, turn: Turn, messages: tuple[Message, ...], reply: Reply, tries: int
    ) -> tuple[Message, ...] | None:
        """Return the messages to send after `tries` replies, of which `reply` is the last. None: do not ask again."""
        raise TypeError(f"{type(self).__name__} has no next_messages")

    def pick_reply(self, turn: Turn, replies: Sequence[Reply]) -> Reply:
        """Return the reply that counts: by default the last. It is stored with the calls of all replies."""
        return replies[-1]
