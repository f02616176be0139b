"""What a benchmark keeps in `Verdict.detail`, `Mark.detail` and `Question.detail`: a frozen struct of its own.

    class ChoiceFacts(Struct, frozen=True, omit_defaults=True):
        key: str = ""
        dynamic: bool = False

    facts_of(verdict.detail, ChoiceFacts).dynamic

A verdict that comes from the journal has it as JSON does; this is the one place where it becomes the struct again.
"""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

Facts = TypeVar("Facts", bound=Struct)


def read_facts(detail: Any, kind: type[Facts]) -> Facts:
    """The struct; one of defaults where nothing is known, as of a turn on which a benchmark's own code failed."""
    if isinstance(detail, kind):
        return detail
    return msgspec.convert(detail if isinstance(detail, dict) else {}, kind)
