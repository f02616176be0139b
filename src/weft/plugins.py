"""What other packages add: entry points, looked up again only when something was installed since."""

import functools
import importlib.metadata
import sys
from pathlib import Path


def points(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(_all(tuple((place, _changed(place)) for place in sys.path)).select(group=group))


@functools.lru_cache(maxsize=2)
def _all(places: tuple[tuple[str, int], ...]) -> importlib.metadata.EntryPoints:
    """Every package's metadata is read for it, which takes longer than a small run; `places` is when each folder last changed."""
    return importlib.metadata.entry_points()


def _changed(place: str) -> int:
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0
