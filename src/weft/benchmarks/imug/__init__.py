"""IMUG-Bench: multi-turn dialogues of text and images, with questions whose right answer depends on what the model
itself drew."""

from weft.benchmarks.imug.protocol import Imug

__all__ = ["Imug"]
