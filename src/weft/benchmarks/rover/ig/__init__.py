"""ROVER-IG: images that take thinking in text."""

from weft.benchmarks.rover.ig.protocol import RoverIG

__all__ = ["RoverIG"]
