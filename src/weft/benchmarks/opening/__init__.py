"""OpenING: requests for an answer of text and images, step by step; single answers are scored by seven criteria.

Battles between such answers belong to the arena.
"""

from weft.benchmarks.opening.protocol import Opening

__all__ = ["Opening"]
