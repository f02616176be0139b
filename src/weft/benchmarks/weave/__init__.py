"""WEAVEBench (Chow et al., "WEAVE: Unleashing and Benchmarking the In-context Interleaved Comprehension and
Generation").

100 dialogues of 16 domains in 4 classes. Image turns are judged on key points, visual consistency and image quality,
text turns on accuracy."""

from weft.benchmarks.weave.protocol import Weave

__all__ = ["Weave"]
