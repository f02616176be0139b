"""The kinds of values that a digest of a user's object tells apart, and how values are named for people."""

import functools
import inspect
import logging
import re
import threading
from collections import deque
from collections.abc import Sequence
from types import (
    CellType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, cast

from weft.models.code_digest import is_installed_class, is_installed_code
from weft.store.blobs import Blobs

PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
SEQUENCES = (list, tuple, deque, set, frozenset, dict)
# What has a state, but none that changes an answer.
IGNORED_TYPES: tuple[type, ...] = (
    type(threading.Lock()),
    type(threading.RLock()),
    threading.Event,
    threading.Condition,
    threading.Semaphore,
    logging.Logger,
    Blobs,  # where images are stored, not what they show
)
CLASS_STATEMENT_NAMES = frozenset({"__module__", "__qualname__", "__doc__", "__firstlineno__"})  # of every class
# What the class statement and libraries add to a class; its source, or its fields, say the same.
ADDED_NAMES = frozenset(
    {"__annotations__", "__slots__", "__match_args__", "__orig_bases__", "__parameters__", "__abstractmethods__"}
    | {"__static_attributes__", "__dataclass_fields__", "__attrs_attrs__", "__type_params__", "__classdictcell__"}
)
DESCRIPTORS = (
    MethodDescriptorType,
    WrapperDescriptorType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
)
LruCache = type(functools.lru_cache(len))


def builtin_base(value: Any, kinds: tuple[type, ...]) -> Any:
    return next(kind for kind in kinds if isinstance(value, kind))


def is_disguised(value: Any) -> bool:
    """Return whether an object says that it is of a class that it is not of, as proxies do."""
    try:
        claimed: Any = value.__class__
    except Exception:
        return True
    return type(value) is not claimed and not issubclass(type(value), claimed)


def is_users_own(value: Any) -> bool:
    """Return whether a value is a function of the user's, or an instance of a class of his."""
    if isinstance(value, FunctionType):
        return not is_installed_code(value)
    if inspect.isclass(value) or isinstance(value, ModuleType):
        return False
    return not is_installed_class(cast(Any, type(value)))


def is_followed(value: Any) -> bool:
    """Return whether a value in an installed module may be, or hold, what the user put there."""
    return isinstance(value, (FunctionType, type)) or (not is_disguised(value) and is_users_own(value))


def is_library_object(value: Any) -> bool:
    """Return whether a value is an instance of an installed class, and neither code nor a collection."""
    code = (ModuleType, FunctionType, MethodType, CellType, functools.partial, staticmethod, classmethod, property)
    if inspect.isclass(value) or isinstance(value, (*code, *SEQUENCES, LruCache)):
        return False
    return is_installed_class(cast(Any, type(value)))


def type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def item_name(name: str, key: Any) -> str:
    if isinstance(key, (str, int)):
        return f"{name}[{key!r}]"
    return name


def attribute_path(name: str) -> str:
    """Return the way to a value as a user would write it: `client.pool` for `self['client'].pool`."""
    path = re.sub(r"\['(\w+)'\]", r".\1", name).removeprefix(".")
    return path.removeprefix("self.")


def describe_place(path: Sequence[tuple[str, Any]], value: Any, name: str) -> str:
    """Return what the user knows a value by: the first object on the way to it that is not of the user's own."""
    for outer_name, outer in path:
        if outer_name and is_library_object(outer):
            name, value = outer_name, outer
            break
    if not name:
        return type(value).__name__
    return f"{attribute_path(name)} ({type(value).__name__})"
