"""Pieces of files that other tools wrote: numbers, texts, lines."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from weft.errors import UserError
from weft.untrusted import dict_or_empty, format_for_terminal, parse_json, read_text_file

MAX_FILES = 10_000
MAX_NAME = 200
MAX_COUNT = 10**9


def number_or_none(value: Any) -> float | None:
    """Return a finite number; None for anything else. True and False are numbers, as tools write them."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number):
        return None
    return number


def count_of(path: Path, value: Any) -> int:
    """Return a number of requests or samples; 0 for anything else. Raises UserError for one that no tool counts to."""
    number = number_or_none(value)
    if number is None or number < 0:
        return 0
    if number > MAX_COUNT:
        raise UserError(f"{path}: {number:g} is no number of samples")
    return int(number)


def text_of(value: Any) -> str:
    """Return a name from a file as it may be shown."""
    if value is None:
        return ""
    return format_for_terminal(value)[:MAX_NAME]


def list_of_dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a decoded JSON list; nothing of anything else."""
    if not isinstance(value, list):
        return []
    return [cast(dict[str, Any], entry) for entry in cast(list[Any], value) if isinstance(entry, dict)]


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Return the regular files that match, sorted. Raises UserError for a folder with too many."""
    found: list[Path] = []
    for path in folder.glob(pattern):
        if path.is_file() and not path.is_symlink():
            found.append(path)
        if len(found) > MAX_FILES:
            raise UserError(f"{folder}: it has more than {MAX_FILES:,} files like {pattern}")
    return sorted(found)


def find_inside(folder: Path, name: str) -> Path | None:
    """Return the regular file of this name in a folder; None if there is none, or it lies elsewhere."""
    try:
        root = folder.resolve()
        file = (root / name).resolve()
        if file.is_relative_to(root) and file.is_file():
            return file
    except (OSError, ValueError, RuntimeError):  # a name that is too long, a zero byte, links in a circle
        return None
    return None


def read_json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file with one on each line. A last line that was cut off is left out."""
    lines = [line for line in read_text_file(path).split("\n") if line.strip()]
    for number, line in enumerate(lines, start=1):
        try:
            yield dict_or_empty(parse_json(line.encode(), f"{path}, line {number}"))
        except UserError:
            if number < len(lines):
                raise
