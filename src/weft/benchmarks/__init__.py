"""Benchmarks. `base.py` is the interface. Next to it are the parts that benchmarks share: options, reading records,
prompts, rows of tables, outputs made elsewhere. Each benchmark has a folder."""

from weft.benchmarks.base import (
    Benchmark,
    Check,
    JudgedTurn,
    RunResults,
    is_known,
    list_benchmarks,
    load_benchmark,
    locate_code,
)
from weft.benchmarks.facts import read_facts
from weft.benchmarks.follow_up import FollowUp
from weft.benchmarks.official import Official
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics

__all__ = [
    "Benchmark",
    "Check",
    "FollowUp",
    "JudgedTurn",
    "Official",
    "Preparation",
    "Presentation",
    "Rubrics",
    "RunResults",
    "is_known",
    "list_benchmarks",
    "load_benchmark",
    "locate_code",
    "read_facts",
]
