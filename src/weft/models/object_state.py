"""What an instance holds: its attributes and slots, and whether there is memory that only a library in C can read."""

import contextlib
from types import MemberDescriptorType
from typing import Any

POINTER_BYTES = 8


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes and the slots of an instance, whatever its class does on access."""
    state: dict[str, Any] = {}
    with contextlib.suppress(AttributeError):
        state |= object.__getattribute__(value, "__dict__")
    for base in type(value).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, MemberDescriptorType):
                try:
                    state[name] = member.__get__(value)
                except AttributeError:
                    continue
    return state


def has_hidden_state(kind: type) -> bool:
    """Return whether instances have more than attributes and slots: memory that only a library in C can read."""
    if kind.__itemsize__:
        return True
    visible = object.__basicsize__
    if kind.__dictoffset__ > 0:  # a negative one is outside of the object
        visible += POINTER_BYTES
    if kind.__weakrefoffset__ > 0:
        visible += POINTER_BYTES
    for base in kind.__mro__:
        members = [member for member in vars(base).values() if isinstance(member, MemberDescriptorType)]
        visible += POINTER_BYTES * len(members)
    return kind.__basicsize__ > visible
