"""OpenING: requests that want an answer of words and pictures, step by step; single answers scored in seven respects.
Battles between such answers are fought in the arena."""

from weft.benchmarks.opening.protocol import Opening

__all__ = ["Opening"]
