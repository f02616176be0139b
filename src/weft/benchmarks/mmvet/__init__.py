"""MM-Vet: open questions about images that need several abilities at once, answered in words."""

from weft.benchmarks.mmvet.protocol import MMVet

__all__ = ["MMVet"]
