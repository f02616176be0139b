"""weft evaluates unified multimodal models: models that read and write both text and images, in multi-turn, interleaved
dialogues.

    import weft
    run = weft.evaluate("weave", data="DATA", model=my_model, judge="openai-chat/gpt-4o-2024-08-06")
    print(run.report())
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Benchmark",
    "Image",
    "JudgedTurn",
    "Reply",
    "Run",
    "RunResults",
    "Text",
    "Thought",
    "__version__",
    "agree",
    "battle",
    "correlate",
    "distributions",
    "evaluate",
    "evaluate_async",
    "figure",
    "grid",
    "judge",
    "load",
    "measure_dataset",
    "relative",
    "runs",
    "sweep",
    "validate",
    "write",
]

if TYPE_CHECKING:
    from weft.api import Run, agree, battle, evaluate, evaluate_async, judge, load, validate, write
    from weft.api import all_runs as runs
    from weft.benchmarks.base import Benchmark, JudgedTurn, RunResults
    from weft.datasets.measure import measure_dataset
    from weft.report.case_drawing import write_case as figure
    from weft.report.correlate import correlate_models as correlate
    from weft.report.distributions import build_distributions as distributions
    from weft.report.grid import build_grid as grid
    from weft.report.relative import compare_runs as relative
    from weft.sweep_api import sweep
    from weft.types import Image, Reply, Text, Thought

_API = ("Run", "agree", "battle", "evaluate", "evaluate_async", "judge", "load", "validate", "write")
_TARGETS = {
    **dict.fromkeys(_API, "weft.api"),
    "correlate": "weft.report.correlate:correlate_models",
    "distributions": "weft.report.distributions:build_distributions",
    "figure": "weft.report.case_drawing:write_case",
    "grid": "weft.report.grid:build_grid",
    "measure_dataset": "weft.datasets.measure",
    "relative": "weft.report.relative:compare_runs",
    "runs": "weft.api:all_runs",
    "sweep": "weft.sweep_api:sweep",
    **dict.fromkeys(("Benchmark", "JudgedTurn", "RunResults"), "weft.benchmarks.base"),
    **dict.fromkeys(("Image", "Reply", "Text", "Thought"), "weft.types"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `weft --help` stays quick."""
    if name not in _TARGETS:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    module, _, attribute = _TARGETS[name].partition(":")
    value = getattr(importlib.import_module(module), attribute or name)
    globals()[name] = value
    return value
