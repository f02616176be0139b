"""ROVER: reasoning that must cross between words and pictures. `ig`: thinking in words, for a picture; `tg`: a picture,
for an answer in words."""

from weft.benchmarks.rover.ig import RoverIG
from weft.benchmarks.rover.tg import RoverTG

__all__ = ["RoverIG", "RoverTG"]
