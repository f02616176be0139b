"""ROVER-TG: answers in words that a picture of one's own helps to find."""

from weft.benchmarks.rover.tg.protocol import RoverTG

__all__ = ["RoverTG"]
