"""What other packages add: entry points, looked up again only when something was installed since."""

import functools
import importlib.metadata
import sys
from pathlib import Path


def points(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    return _read(group, tuple((place, _changed(place)) for place in sys.path))


@functools.lru_cache(maxsize=8)
def _read(group: str, places: tuple[tuple[str, int], ...]) -> tuple[importlib.metadata.EntryPoint, ...]:
    """Every package's metadata is read for it, which takes longer than a small run; `places` is when each folder last changed."""
    return tuple(importlib.metadata.entry_points(group=group))


def _changed(place: str) -> int:
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0
