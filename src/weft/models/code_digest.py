"""Where a user's own model is defined, and a digest of its source that serves as its version.

A file is identified by its path inside the project that holds the journal, so that a project can be copied; a file
elsewhere by its absolute path. Code from a notebook has no lasting file: it is identified by its name, and its digest
covers all notebook code and plain values that it uses. What such code uses and cannot be digested (a pipeline in a
variable) is reported, never ignored silently.
"""

import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.errors import UserError

PLAIN_TYPES = (bool, int, float, str, bytes, type(None))
MAX_ITEMS = 1000  # of a collection that is digested


class CodeSource(Struct, frozen=True):
    """Where a user's model is defined."""

    location: str  # its file and name, as part of cache keys
    previous_location: str  # the same in older cache keys; "" if it did not change
    name: str  # for people: the file's name and its own
    digest: str  # of its source; "" if that cannot be read
    undigested_names: tuple[str, ...] = ()  # what it uses and the digest does not cover

    @property
    def in_notebook(self) -> bool:
        return self.location.startswith("notebook:")


def read_source(thing: Any, project: Path) -> CodeSource:
    """Return where a function, a class or an object's class is defined, with a digest of its source."""
    target: Any = thing
    if not inspect.isroutine(thing) and not inspect.isclass(thing):
        target = cast(Any, type(thing))
    name = str(target.__qualname__).rpartition("<locals>.")[2]
    file = _lasting_file(target)
    if file is None:
        digest, undigested = _digest_notebook_code(target)
        return CodeSource(f"notebook:{name}", "", name, digest, undigested)
    absolute = f"{file}:{name}"
    short_name = f"{file.name}:{name}"
    if file.is_relative_to(project):
        relative = f"{file.relative_to(project).as_posix()}:{name}"
        return CodeSource(relative, absolute, short_name, _digest_module(target))
    return CodeSource(absolute, "", short_name, _digest_module(target))


def version_of(source: CodeSource, called: str) -> str:
    """Return the digest as a version. Raises UserError if the source cannot be read."""
    if not source.digest:
        raise UserError(
            f"{called} has no version, and its source cannot be read to derive one; "
            "give it an attribute `version`, or --model-opt version="
        )
    return source.digest


def _lasting_file(target: Any) -> Path | None:
    """Return the file that defines the target; None for a notebook cell or code typed into a prompt."""
    try:
        file = Path(inspect.getfile(target)).absolute()
    except (OSError, TypeError):
        return None
    if file.is_file() and "ipykernel" not in str(file):
        return file
    return None


def _digest_module(target: Any) -> str:
    try:
        module = inspect.getmodule(target)
        if module and vars(module).get("__file__"):
            source = inspect.getsource(module)
        else:
            source = inspect.getsource(target)
    except (OSError, TypeError):
        return ""
    return _digest(source.encode())


def _digest(content: bytes) -> str:
    return "source:" + hashlib.sha256(content).hexdigest()[:16]


def _digest_notebook_code(target: Any) -> tuple[str, tuple[str, ...]]:
    """Return the digest of the target and all notebook code it uses, and the names that could not be digested."""
    texts: dict[str, str] = {}
    undigested: dict[str, None] = {}
    pending: list[Any] = [target]
    while pending:
        item = pending.pop()
        key = str(getattr(item, "__qualname__", item))
        if key in texts:
            continue
        try:
            texts[key] = inspect.getsource(item)
        except (OSError, TypeError):
            return "", ()
        for name, value in _used_globals(item):
            if isinstance(value, ModuleType):
                continue
            if inspect.isroutine(value) or inspect.isclass(value):
                if getattr(value, "__module__", "") == target.__module__:
                    pending.append(value)
                continue
            plain = _format_plain(value)
            if plain is not None:
                texts[f"= {name}"] = plain
            else:
                undigested[f"{name} ({type(value).__name__})"] = None
    return _digest(msgspec.json.encode(sorted(texts.items()))), tuple(undigested)


def _used_globals(item: Any) -> Iterator[tuple[str, Any]]:
    """Yield the global names that a function or a class's methods use, with their values."""
    for function in _functions_of(item):
        for name in sorted(_names_in(function.__code__)):
            if name in function.__globals__:
                yield name, function.__globals__[name]


def _functions_of(item: Any) -> Iterator[FunctionType]:
    members: Any = (inspect.unwrap(item),)
    if inspect.isclass(item):
        members = vars(item).values()
    for member in members:
        function = member
        if isinstance(member, (staticmethod, classmethod, MethodType)):
            function = cast(Any, member).__func__
        if isinstance(function, FunctionType):
            yield function


def _names_in(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names


def _format_plain(value: Any) -> str | None:
    """Return plain values and collections of them as text; None for anything else."""
    if isinstance(value, PLAIN_TYPES):
        return repr(value)
    if not isinstance(value, (list, tuple, dict, set, frozenset)):
        return None
    collection = cast(Any, value)
    kind = type(collection).__name__
    if kind == "dict":
        items: list[Any] = list(collection.items())
    elif "set" in kind:
        items = sorted(collection, key=repr)
    else:
        items = list(collection)
    if len(items) > MAX_ITEMS:
        return None
    parts: list[str] = []
    for item in items:
        part = _format_plain(item)
        if part is None:
            return None
        parts.append(part)
    return f"{kind}({', '.join(parts)})"
