"""ROVER-TG: answers in text that an image of the model's own helps to find."""

from weft.benchmarks.rover.tg.protocol import RoverTG

__all__ = ["RoverTG"]
