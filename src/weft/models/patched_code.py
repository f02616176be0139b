"""What a user has put into installed code: functions, classes and objects of his own in its modules and classes.

    patches_in_class(LlamaForCausalLM)     # {"LlamaForCausalLM.forward": <function mine>}

Code that a library makes when it is imported, such as the methods of a dataclass, is the library's.
"""

import functools
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, cast

from weft.models.code_digest import belongs_to_weft, is_installed, is_installed_class, module_file

COMPILED = (".so", ".pyd")


def patches_in_class(kind: type) -> dict[str, Any]:
    """Return what is the user's own among the members of an installed class and its installed bases, by its place."""
    patches: dict[str, Any] = {}
    for base in kind.__mro__:
        if not is_installed_class(base) or belongs_to_weft(base.__module__):
            continue
        for name, member in vars(base).items():
            if _is_users(member):
                patches[f"{base.__qualname__}.{name}"] = member
    return patches


def patches_in_module(module: ModuleType) -> dict[str, Any]:
    """Return the user's own functions and classes in an installed module and in the installed modules that it names."""
    patches: dict[str, Any] = {}
    if belongs_to_weft(module.__name__):
        return patches
    named = [value for value in list(vars(module).values()) if type(value) is ModuleType and value is not module]
    for place in (module, *named):
        if not belongs_to_weft(place.__name__) and is_installed(place.__name__, module_file(place)):
            for name, value in list(vars(place).items()):
                # by its type: some values warn, or import something, when they are asked for their class
                if issubclass(cast(Any, type(value)), (FunctionType, type)) and _is_users(value):
                    patches[f"{place.__name__}.{name}"] = value
    return patches


def _is_users(member: Any) -> bool:
    """Return whether a member of an installed class or module is the user's own."""
    if isinstance(member, FunctionType):
        return _is_users_function(member)
    if isinstance(member, type):
        return _is_users_class(member)
    wrapped = list(_wrapped_in(member))
    if wrapped:
        return any(_is_users(function) for function in wrapped)
    return _is_users_class(cast("type[Any]", type(member)))


def _wrapped_in(member: Any) -> Iterator[Any]:
    if isinstance(member, (staticmethod, classmethod)):
        yield cast(Any, member).__func__
    elif isinstance(member, property):
        yield from (part for part in (member.fget, member.fset, member.fdel) if part is not None)
    elif isinstance(member, (functools.partial, functools.partialmethod, functools.cached_property)):
        yield cast(Any, member).func


def _is_users_function(function: FunctionType) -> bool:
    """Return whether the user wrote a function, whatever module it says that it is of."""
    file = function.__code__.co_filename
    module = str(function.__globals__.get("__name__"))
    if not file.startswith("<"):
        return not is_installed(module, file)
    return _is_users_module(module)  # a notebook's, or made by a library from a text


def _is_users_class(kind: type) -> bool:
    return _is_users_module(kind.__module__) and not is_installed_class(kind)


def _is_users_module(name: str) -> bool:
    module = sys.modules.get(name)
    if module is None or name == "__main__":
        return name == "__main__"
    file = module_file(module)
    return file is not None and not file.endswith(COMPILED) and not is_installed(name, file)
