"""What dialogues look like, for finding those that are nearly the same: a perceptual hash of each image."""

from typing import TYPE_CHECKING

from weft.building.features import Feature

if TYPE_CHECKING:
    from PIL import Image as Pil


def _compute(image: "Pil.Image") -> str:
    from weft.datasets.perceptual_hash import perceptual_hash

    return f"{perceptual_hash(image):016x}"


PERCEPTUAL = Feature("perceptual hash", "1", _compute)
