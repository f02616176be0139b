"""What a benchmark's class declares, checked before anything is stored under its name: a manifest that cannot be read
again would cost every run in the home."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import Struct

from weft.benchmarks.follow_up import FollowUp
from weft.benchmarks.official import Official
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation

NAME = re.compile(r"\w[\w.-]{0,63}")  # it is part of run ids and of file names
MAX_WORD = 200  # characters of a version, a metric or an axis


def find_declaration_faults(benchmark: Any) -> Iterator[str]:
    """Yield what is wrong with a benchmark's class variables."""
    if not isinstance(benchmark.name, str) or NAME.fullmatch(benchmark.name) is None:
        yield f"name is {_quote(benchmark.name)}: up to 64 letters, digits, `-`, `_` and `.` are expected"
    if not _is_word(benchmark.version):
        yield f"version is {_quote(benchmark.version)}: a short text is expected"
    lists = {"metrics": benchmark.metrics, "axes": benchmark.axes, "derived_metrics": benchmark.derived_metrics}
    for field, words in lists.items():
        if not _are_different_words(words):
            yield f"{field} is {_quote(words)}: a tuple of different short texts is expected"
    options: Any = benchmark.Options
    if not isinstance(options, type) or not issubclass(cast(type[Any], options), Struct):
        yield f"Options is {_quote(options)}: a class derived from msgspec.Struct is expected"
    objects: tuple[tuple[str, Any, type], ...] = (
        ("presentation", benchmark.presentation, Presentation),
        ("preparation", benchmark.preparation, Preparation),
        ("official", benchmark.official or Official(), Official),
        ("follow_up", benchmark.follow_up or FollowUp(), FollowUp),
    )
    for field, value, kind in objects:
        if not isinstance(value, kind):
            yield f"{field} is {_quote(value)}: an object of a class derived from {kind.__name__} is expected"


def _are_different_words(words: Any) -> bool:
    if not isinstance(words, tuple | list):
        return False
    texts = cast(Sequence[Any], words)
    return all(map(_is_word, texts)) and len(set(texts)) == len(texts)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_WORD and value.isprintable()


def _quote(value: object) -> str:
    try:
        return ascii(value)[:60]
    except Exception:
        return type(value).__name__
