"""Asking a model again in the same turn, where its reply does not answer yet: `Benchmark.follow_up`."""

from collections.abc import Sequence
from typing import ClassVar

from weft.types import Message, Reply, Turn


class FollowUp:
    max_tries: ClassVar[int] = 2
    """The number of times a turn may be asked in all; a dry run prints it."""

    def next_messages(
        self, turn: Turn, messages: tuple[Message, ...], reply: Reply, tries: int
    ) -> tuple[Message, ...] | None:
        """The messages to send next, after `tries` replies the last of which is `reply`. None: do not ask again."""
        raise TypeError(f"{type(self).__name__} has no next_messages")

    def pick_reply(self, turn: Turn, replies: Sequence[Reply]) -> Reply:
        """Which of several replies counts: by default the last. It is stored with the calls of all of them."""
        return replies[-1]
