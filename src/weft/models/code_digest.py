"""Where a user's own model comes from, and which one it is, as far as its source tells.

A file is known by its path inside the project that the journal lies in, so that a project can be copied; elsewhere by
its whole path. What was defined in a notebook has no file that stays: it is known by its name, and its version is a
digest of its source with that of all notebook code and plain values that it uses. What cannot be read so (a pipeline in
a variable) is told, and not guessed."""

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


class CodeSource(Struct, frozen=True):
    """`where` a model is defined, as answers are kept under it, and `before` as they once were; what it is `called`
    there; a `digest` of its source; the names that it uses and nobody could look into."""

    location: str
    previous_location: str
    name: str
    digest: str
    undigested_names: tuple[str, ...] = ()

    @property
    def in_notebook(self) -> bool:
        return self.location.startswith("notebook:")


def read_source(thing: Any, project: Path) -> CodeSource:
    """Raises UserError where there is no source to read; `digest` is empty then if a version makes it needless."""
    target = cast(Any, thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing))
    name = str(target.__qualname__).rpartition("<locals>.")[2]
    file = _file(target)
    if file is None:
        digest, unseen = _in_notebook(target)
        return CodeSource(f"notebook:{name}", "", name, digest, unseen)
    whole = f"{file}:{name}"
    inside = file.is_relative_to(project)
    if inside:
        where = f"{file.relative_to(project).as_posix()}:{name}"
    else:
        where = whole
    return CodeSource(where, whole if inside else "", f"{file.name}:{name}", _of_module(target))


def _file(target: Any) -> Path | None:
    """A file that will be there tomorrow; none for a notebook's cell, or what was typed."""
    try:
        file = Path(inspect.getfile(target)).absolute()
    except (OSError, TypeError):
        return None
    if file.is_file() and "ipykernel" not in str(file):
        return file
    return None


def _of_module(target: Any) -> str:
    try:
        module = inspect.getmodule(target)
        if module and vars(module).get("__file__"):
            source = inspect.getsource(module)
        else:
            source = inspect.getsource(target)
    except (OSError, TypeError):
        return ""
    return "source:" + hashlib.sha256(source.encode()).hexdigest()[:16]


def _in_notebook(target: Any) -> tuple[str, tuple[str, ...]]:
    """The digest of what is defined there and used by it, and the names of what could not be looked into."""
    texts = dict[str, str]()
    unseen = dict[str, None]()
    todo: list[Any] = [target]
    while todo:
        one = todo.pop()
        key = str(getattr(one, "__qualname__", one))
        if key in texts:
            continue
        try:
            texts[key] = inspect.getsource(one)
        except (OSError, TypeError):
            return "", ()
        for function in _functions(one):
            for name in sorted(_names(function.__code__)):
                if name not in function.__globals__:
                    continue
                used = function.__globals__[name]
                if inspect.isroutine(used) or inspect.isclass(used):
                    todo += [used] if getattr(used, "__module__", "") == target.__module__ else []
                elif isinstance(used, ModuleType):
                    continue
                elif (plain := _plain(used)) is not None:
                    texts[f"= {name}"] = plain
                else:
                    unseen[f"{name} ({type(used).__name__})"] = None
    told = msgspec.json.encode(sorted(texts.items()))
    return "source:" + hashlib.sha256(told).hexdigest()[:16], tuple(unseen)


def _functions(thing: Any) -> Iterator[FunctionType]:
    if inspect.isclass(thing):
        found = vars(thing).values()
    else:
        found = (inspect.unwrap(thing),)
    for one in found:
        is_bound = isinstance(one, (staticmethod, classmethod, MethodType))
        if is_bound:
            function = cast(Any, one).__func__
        else:
            function = one
        if isinstance(function, FunctionType):
            yield function


def _names(code: CodeType) -> set[str]:
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*(_names(one) for one in inner))


def _plain(value: Any) -> str | None:
    if isinstance(value, PLAIN_TYPES):
        return repr(value)
    if not isinstance(value, (list, tuple, dict, set, frozenset)):
        return None
    kind = type(cast(Any, value)).__name__
    held = cast(Any, value)
    if kind == "dict":
        items: list[Any] = list(held.items())
    else:
        if "set" in kind:
            items = sorted(held, key=repr)
        else:
            items = list(held)
    parts = [_plain(one) for one in items[:1000]]
    if None in parts or len(items) > 1000:
        return None
    return f"{kind}({', '.join(map(str, parts))})"


def version_of(source: CodeSource, called: str) -> str:
    if not source.digest:
        raise UserError(
            f"{called} has no version, and its source cannot be read to tell one; give it an attribute `version`, or --model-opt version="
        )
    return source.digest
