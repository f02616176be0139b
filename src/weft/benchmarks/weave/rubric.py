"""WEAVE's four questions to the judge (section 3.3, B.1), as messages with images in order.

With our rubrics, text of the dataset and of the model is fenced off, and the reply's schema is asked for. With the
official prompts, the message is what the released `eval/main.py` sends, word for word: the prompt, then the numbered
key points, a JPEG image for each `<image>`, no schema, at most 1,400 tokens.

Material: `output`, `requirements` (as shown), `reference 1`, `reference 2`, ... (one for each key point that shows an
image); for an answer `reference` and `answer`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.prompts import fence, fence_pieces, fill_slots, join_texts, object_schema
from weft.benchmarks.weave.data import MARKER, KeyPoint
from weft.types import Image, Part, Question, Text

IMAGE_METRICS = ("key_point", "visual_consistency", "image_quality")
TEXT_METRICS = ("accuracy",)
PATH_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp")
SCORES: Mapping[str, dict[str, Any]] = {
    "key_point": {"type": "number", "minimum": 0, "maximum": 10},
    "visual_consistency": {"type": "number", "minimum": 0, "maximum": 10},
    "image_quality": {"type": "integer", "minimum": 0, "maximum": 10},
    "accuracy": {"type": "integer", "enum": [0, 5, 10]},
}

SCHEMAS = {metric: object_schema(reasoning={"type": "string"}, score=score) for metric, score in SCORES.items()}


def build_image_question(
    metric: str, judged_turn: JudgedTurn, images: Sequence[Image | None], variant: str = ""
) -> Question:
    """Build a question about an image.

    `images` are that image, then one for each key point that shows one, in order. None is a missing image, which leaves
    no trace in the prompt, as in the released scripts.
    """
    template = judged_turn.rubrics.texts[metric]
    points: tuple[KeyPoint, ...] = judged_turn.turn.gold
    numbered_points = ""
    if metric != "image_quality":
        numbered_points = "\n".join(f"{number}. {point.text}" for number, point in enumerate(points, start=1))
    judged_image: tuple[Part, ...] = ()
    if images[0] is not None:
        judged_image = (images[0],)
    if judged_turn.rubrics.official_prompts:
        parts = insert_images(template + numbered_points, images, drops=_is_taken_for_path)
    else:
        fenced = _fence_points(points, images[1:]) if numbered_points else ()
        parts = fill_slots(template, {"picture": judged_image, "requirements": fenced})
    requirements = insert_images(numbered_points, images[1:])
    material: dict[str, tuple[Part, ...]] = {"output": judged_image, "requirements": requirements}
    for number, image in enumerate(images[1:], start=1):
        if image is not None:
            material[f"reference {number}"] = (image,)
    return _ask(judged_turn, metric, parts, material, points, variant)


def _fence_points(points: Sequence[KeyPoint], images: Sequence[Image | None]) -> tuple[Part, ...]:
    """Fence each requirement by itself, with the images that it shows in the places of its markers."""
    pieces: list[tuple[str, Sequence[Part]]] = []
    shown = 0
    for number, point in enumerate(points, start=1):
        markers = point.text.count(MARKER)
        pieces.append((f"Requirement {number}", insert_images(point.text, images[shown : shown + markers])))
        shown += markers
    return fence_pieces(pieces, "the list of requirements")


def build_answer_question(judged_turn: JudgedTurn, answer: str, variant: str = "") -> Question:
    """Build the question whether a text answer agrees with the reference answer."""
    template = judged_turn.rubrics.texts["accuracy"]
    reference = "".join(part.text for part in judged_turn.turn.reference if isinstance(part, Text))
    if judged_turn.rubrics.official_prompts:
        parts: tuple[Part, ...] = (Text(_format_released(template, reference, answer)),)
    else:
        slots = {
            "reference": fence([Text(reference)], "the reference answer"),
            "answer": fence([Text(answer)], "the answer to judge"),
        }
        parts = fill_slots(template, slots)
    material = {"reference": (Text(reference),), "answer": (Text(answer),)}
    return _ask(judged_turn, "accuracy", parts, material, reference, variant)


def _ask(
    judged_turn: JudgedTurn,
    metric: str,
    parts: Sequence[Part],
    material: Mapping[str, tuple[Part, ...]],
    gold: Any,
    variant: str,
) -> Question:
    return judged_turn.ask(
        metric,
        parts,
        SCHEMAS[metric],
        material=material,
        gold=gold,
        variant=variant,
        text_only=judged_turn.rubrics.official_prompts,
        jpeg=judged_turn.rubrics.official_prompts,
    )


def _format_released(template: str, reference: str, answer: str) -> str:
    """Fill the released template as `str.format` does. Braces in the reference and the answer stay as they are."""
    marked = template.replace("{standard_answer}", "\0").replace("{generated_answer}", "\1")
    unescaped = marked.replace("{{", "{").replace("}}", "}")
    return unescaped.replace("\0", reference).replace("\1", answer)


def insert_images(
    text: str, images: Sequence[Image | None], drops: Callable[[str], bool] = lambda piece: False
) -> tuple[Part, ...]:
    """Replace each `<image>` marker by the next image. A marker without an image is removed.

    `drops` decides which pieces of text between two markers are left out.
    """
    parts: list[Part] = []
    for index, piece in enumerate(text.split(MARKER)):
        image = images[index - 1] if 1 <= index <= len(images) else None
        if image is not None:
            parts.append(image)
        if not drops(piece):
            parts.append(Text(piece))
    return join_texts(parts)


def _is_taken_for_path(piece: str) -> bool:
    """Whether the released client takes a piece of text for the path of an image, which it does not find."""
    if piece.startswith(("http://", "https://")):  # it would fetch the address; weft sends the text
        return False
    return piece.lower().endswith(PATH_ENDINGS) or piece.startswith("data:image")
