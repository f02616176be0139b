"""GenEval 2: prompts of three to ten atoms, decided by the probability of right answers about the image."""

from weft.benchmarks.geneval2.protocol import GenEval2

__all__ = ["GenEval2"]
