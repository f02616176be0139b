"""GenEval: short prompts about objects, their number, colours and places, decided by an object detector."""

from weft.benchmarks.geneval.protocol import GenEval, GenEvalLong

__all__ = ["GenEval", "GenEvalLong"]
