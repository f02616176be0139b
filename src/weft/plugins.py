"""Code that is found by its name: entry points of other packages, looked up again only when something was installed
since, and objects in a user's own files."""

import functools
import importlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from typing import Any

from weft.errors import UserError


def find_entry_points(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    return _read(group, tuple((place, _changed(place)) for place in sys.path))


@functools.lru_cache(maxsize=8)
def _read(group: str, places: tuple[tuple[str, int], ...]) -> tuple[importlib.metadata.EntryPoint, ...]:
    """Every package's metadata is read for it, which takes longer than a small run; `places` is when each folder last
    changed."""
    return tuple(importlib.metadata.entry_points(group=group))


def _changed(place: str) -> int:
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


def load_target(target: str) -> Any:
    """`package.module:name`, imported."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def load_object(text: str) -> Any:
    """`path/file.py:name`, imported from that path."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UserError(f"{text}: there is no file {file}")
    spec = importlib.util.spec_from_file_location(f"weft_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{text}: {file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{text}: importing {file} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    if not name or not hasattr(module, name):
        own = [
            n
            for n, one in vars(module).items()
            if not n.startswith("_") and getattr(one, "__module__", "") == module.__name__
        ]
        names = ", ".join(own) or "nothing of its own"
        raise UserError(
            f"{text}: {file} has no {name!r} (it has {names})"
            if name
            else f"{file}: say which, as in {file}:NAME; it has {names}"
        )
    return getattr(module, name)
