"""Which images a sample has, and which of them the model is given."""

from weft.types import Image, Sample, Turn


def all_images(sample: Sample) -> tuple[Image, ...]:
    """Return a dialogue's images, each once: its numbered ones, or those of its prompts and references."""
    if sample.images:
        return sample.images
    images: dict[str, Image] = {}
    for turn in sample.turns:
        for part in (*turn.prompt, *turn.reference):
            if isinstance(part, Image):
                images.setdefault(part.digest, part)
    return tuple(images.values())


def input_images(sample: Sample) -> tuple[Image, ...]:
    """Return the images that the dialogue gives to the model, each once: all but those that it is to make.

    A reference may have the bytes of an input, as where something that was removed comes back: the input still counts.
    """
    if sample.images:
        made = {turn.image_number for turn in sample.turns}
        inputs = [image for number, image in enumerate(sample.images, start=1) if number not in made]
        others = {image.digest for turn in sample.turns if turn.image_number is None for image in _references(turn)}
        return tuple(image for image in inputs if image.digest not in others)
    shown: dict[str, Image] = {}
    for turn in sample.turns:
        for part in turn.prompt:
            if isinstance(part, Image):
                shown.setdefault(part.digest, part)
    return tuple(shown.values())


def _references(turn: Turn) -> list[Image]:
    return [part for part in turn.reference if isinstance(part, Image)]
