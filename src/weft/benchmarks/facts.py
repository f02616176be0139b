"""A benchmark's own struct in `Verdict.detail`, `Score.detail` and `Question.detail`.

    class ChoiceFacts(Struct, frozen=True, omit_defaults=True):
        key: str = ""
        dynamic: bool = False

    read_facts(verdict.detail, ChoiceFacts).dynamic

A verdict from the journal has the struct as decoded JSON; only `read_facts` turns it into the struct again.
"""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

Facts = TypeVar("Facts", bound=Struct)


def read_facts(detail: Any, kind: type[Facts]) -> Facts:
    """Return a `detail` as the struct `kind`: with its defaults if there is none, as when a benchmark's code failed."""
    if isinstance(detail, kind):
        return detail
    if not isinstance(detail, dict):
        detail = {}
    return msgspec.convert(detail, kind)
