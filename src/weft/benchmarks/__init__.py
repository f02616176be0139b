"""Benchmarks. `base.py` is the interface; beside it stands what all of them share: reading records, options, prompts, rows of tables,
outputs made elsewhere. Then one folder each."""

import importlib.metadata
import inspect
from pathlib import Path
from typing import Any

from weft.benchmarks.base import Answered, Benchmark, Check, Finished
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError
from weft.models.registry import load_object, load_target

__all__ = ["Answered", "Benchmark", "Check", "Finished", "Rubrics", "names", "resolve", "where"]

BUILT_IN = {"weave": "weft.benchmarks.weave:Weave", "imug": "weft.benchmarks.imug:Imug"}
WRITTEN = ("name", "version", "metrics", "load", "see", "questions", "tables")


def names() -> dict[str, str]:
    found = dict(BUILT_IN)
    found.update({point.name: point.value for point in importlib.metadata.entry_points(group="weft.benchmarks")})
    return found


def resolve(benchmark: Any) -> Benchmark:
    """A benchmark by name, from file.py:Name, or as the object or class itself."""
    if isinstance(benchmark, str):
        known = names()
        if ".py:" in benchmark:
            benchmark = load_object(benchmark)
        elif benchmark in known:
            benchmark = load_target(known[benchmark])
        else:
            raise UserError(f"unknown benchmark {benchmark!r}; known: {', '.join(sorted(known))}; or file.py:NAME for your own")
    made = benchmark() if isinstance(benchmark, type) else benchmark
    if not isinstance(made, Benchmark):
        raise UserError(f"{made!r} is no benchmark: make its class one of weft.benchmarks.Benchmark")
    kind = type(made)
    missing = [name for name in WRITTEN if not hasattr(kind, name) or getattr(kind, name) is getattr(Benchmark, name, None)]
    if missing:
        raise UserError(f"{kind.__name__} is no benchmark yet: it lacks {', '.join(missing)}")
    return made


def where(benchmark: Any) -> str:
    """Where a benchmark's code can be found again: its name, or file:NAME with the whole path."""
    if isinstance(benchmark, str) and ".py:" not in benchmark:
        return benchmark
    if isinstance(benchmark, str):
        file, _, name = benchmark.rpartition(":")
        return f"{Path(file).absolute()}:{name}"
    kind: Any = benchmark if isinstance(benchmark, type) else type(benchmark)
    if kind.__module__.startswith("weft."):
        return kind.name
    try:
        return f"{inspect.getfile(kind)}:{kind.__qualname__}"
    except (OSError, TypeError):
        return f"{kind.__module__}:{kind.__qualname__}"
