"""GEdit-Bench: real users' requests to edit an image, in English and Chinese, scored for semantics and quality."""

from weft.benchmarks.gedit.protocol import GEdit

__all__ = ["GEdit"]
