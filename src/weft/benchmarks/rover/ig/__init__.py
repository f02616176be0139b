"""ROVER-IG: pictures that take thinking in words."""

from weft.benchmarks.rover.ig.protocol import RoverIG

__all__ = ["RoverIG"]
