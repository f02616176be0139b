"""What an instance holds: its attributes and slots, and whether there is memory that only a library in C can read."""

import contextlib
import gc
import sys
from types import MemberDescriptorType, ModuleType
from typing import Any, cast

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


def is_named(value: Any, name: str) -> bool:
    """Return whether a module has a value under a name, so that the name stands for it."""
    modules: list[Any] = list(sys.modules.values())  # which may hold anything
    return any(isinstance(module, ModuleType) and vars(module).get(name) is value for module in modules)


def without_hashes(value: Any) -> dict[str, Any]:
    """Return the state of a library's object without hashes that it stores: Python's are others in each process."""
    state = state_of(value)
    return {name: part for name, part in state.items() if not (name.endswith("_hash") and type(part) is int)}


def results_of(cached: Any) -> list[Any]:
    """Return what an lru_cache holds; the links of its list are named with their results."""
    results: list[Any] = []
    for value in gc.get_referents(cached):
        results += cast("dict[Any, Any]", value).values() if isinstance(value, dict) else [value]
    return [result for result in results if type(result).__name__ != "_lru_list_elem"]
