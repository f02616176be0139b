"""WeaverBench: one request, a whole document of words and pictures back, scored in eight respects; and whether its
pictures are as many as were asked for."""

from weft.benchmarks.weaverbench.protocol import WeaverBench

__all__ = ["WeaverBench"]
