"""ROVER: reasoning that must cross between text and images.

`ig`: the model thinks in text, and makes an image. `tg`: the model makes an image, and answers in text.
"""

from weft.benchmarks.rover.ig import RoverIG
from weft.benchmarks.rover.tg import RoverTG

__all__ = ["RoverIG", "RoverTG"]
