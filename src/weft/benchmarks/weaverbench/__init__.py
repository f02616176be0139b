"""WeaverBench: one request, and a whole document of text and images back.

A judge gives eight scores; the number of images is compared with the number that the request asks for.
"""

from weft.benchmarks.weaverbench.protocol import WeaverBench

__all__ = ["WeaverBench"]
