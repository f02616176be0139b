"""Benchmarks. `base.py` is the interface; beside it stands what all of them share: reading records, prompts, rows of tables, outputs made
elsewhere. Then one folder each."""

from weft.benchmarks.base import Answered, Benchmark, Check, Finished, is_known, names, resolve, where
from weft.benchmarks.facts import facts_of
from weft.benchmarks.follow_up import FollowUp
from weft.benchmarks.official import Official
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics

__all__ = [
    "Answered",
    "Benchmark",
    "Check",
    "Finished",
    "FollowUp",
    "Official",
    "Preparation",
    "Presentation",
    "Rubrics",
    "facts_of",
    "is_known",
    "names",
    "resolve",
    "where",
]
