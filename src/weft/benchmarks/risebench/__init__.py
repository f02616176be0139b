"""RISEBench: edits that need reasoning about time, causes, space or logic."""

from weft.benchmarks.risebench.protocol import RiseBench

__all__ = ["RiseBench"]
