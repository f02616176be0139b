"""KRIS-Bench: edits that need knowledge: of facts, of how things are, and of how to proceed."""

from weft.benchmarks.kris.protocol import Kris

__all__ = ["Kris"]
