"""Code that is looked up by its name: entry points of other packages, and objects in a user's own files."""

import difflib
import functools
import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

from weft.errors import UserError

imported_file: ContextVar[str] = ContextVar("imported_file", default="")  # a user's, while weft imports it


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return `did you mean NAME? ` for a name that is nearly one of the known ones; an empty text otherwise."""
    similar = difflib.get_close_matches(name, list(known), n=1)
    if not similar:
        return ""
    return f"did you mean {similar[0]}? "


def find_entry_points(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    """Return the entry points of a group. They are read again only after something was installed."""
    folders = tuple((folder, _modified_at(folder)) for folder in sys.path)
    return _read_entry_points(group, folders)


@functools.lru_cache(maxsize=8)
def _read_entry_points(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[importlib.metadata.EntryPoint, ...]:
    # Reads every installed package's metadata, which takes longer than a small run; `folders` is the cache key.
    return tuple(importlib.metadata.entry_points(group=group))


def _modified_at(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def load_target(target: str) -> Any:
    """Import `package.module:name` and return the object."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def load_object(text: str) -> Any:
    """Import `path/file.py:name` and return the object. Raises UserError if there is none, or importing fails."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UserError(f"{text}: there is no file {file}")
    module = _import_file(text, path)
    if name and hasattr(module, name):
        return getattr(module, name)
    names = ", ".join(_own_names(module)) or "nothing of its own"
    if not name:
        raise UserError(f"{file}: say which, as in {file}:NAME; it has {names}")
    raise UserError(f"{text}: {file} has no {name!r} (it has {names})")


def _import_file(text: str, path: Path) -> ModuleType:
    file = text.rpartition(":")[0]
    spec = importlib.util.spec_from_file_location(f"weft_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{text}: {file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.absolute()))
    token = imported_file.set(file)
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{text}: importing {file} raised {type(error).__name__}: {error}") from error
    finally:
        imported_file.reset(token)
        sys.path.pop(0)
    return module


def _own_names(module: ModuleType) -> list[str]:
    """Return the public names that a module defines itself."""
    names: list[str] = []
    for name, value in vars(module).items():
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
            names.append(name)
    return names
