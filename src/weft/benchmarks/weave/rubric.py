"""WEAVE's four questions to the judge (section 3.3, B.1), as requests with pictures in order.

With our rubrics, dataset text and the model's text are fenced off, and the reply's schema is asked for. With the
official prompts, the message is what the released `eval/main.py` sends, word for word: prompt, then the numbered key
points, a picture as JPEG for each `<image>`, no schema, at most 1,400 tokens.

Material: `made`, `requirements` (as they are shown), `reference 1`, `reference 2`, ... (one for each key point that
shows a picture); for an answer `reference` and `answer`."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.prompts import fence, fill_slots, join_texts, object_schema
from weft.benchmarks.weave.data import MARKER, KeyPoint
from weft.types import Image, Part, Question, Text

IMAGE_METRICS = ("key_point", "visual_consistency", "image_quality")
TEXT_METRICS = ("accuracy",)
SCORES: Mapping[str, dict[str, Any]] = {
    "key_point": {"type": "number", "minimum": 0, "maximum": 10},
    "visual_consistency": {"type": "number", "minimum": 0, "maximum": 10},
    "image_quality": {"type": "integer", "minimum": 0, "maximum": 10},
    "accuracy": {"type": "integer", "enum": [0, 5, 10]},
}


SCHEMAS = {metric: object_schema(reasoning={"type": "string"}, score=score) for metric, score in SCORES.items()}


def build_image_question(
    metric: str, answered: JudgedTurn, pictures: Sequence[Image | None], variant: str = ""
) -> Question:
    """A question about a picture: `pictures` has it, then one for each key point that shows one, in order. What is None
    is not there, and leaves no trace in the prompt, as in the released scripts."""
    text = answered.rubrics.texts[metric]
    rubrics = answered.rubrics
    points: tuple[KeyPoint, ...] = answered.turn.gold
    if metric != "image_quality":
        listed = "\n".join(f"{number}. {point.text}" for number, point in enumerate(points, start=1))
    else:
        listed = ""
    made = pictures[0]
    references = pictures[1:]
    requirements = packed(listed, references)
    if rubrics.official:
        parts = packed(text + listed, pictures)
    else:
        if requirements:
            fenced = fence(requirements, "the list of requirements")
        else:
            fenced = ()
        parts = fill_slots(text, {"picture": [made] if made else [], "requirements": fenced})
    shown = {f"reference {number}": (image,) for number, image in enumerate(references, start=1) if image is not None}
    material: dict[str, tuple[Part, ...]] = {"made": (made,) if made else (), "requirements": requirements, **shown}
    sent = {"text_only": rubrics.official, "jpeg": rubrics.official}
    return answered.ask(metric, parts, SCHEMAS[metric], material=material, gold=points, variant=variant, **sent)


def build_answer_question(answered: JudgedTurn, answer: str, variant: str = "") -> Question:
    rubrics = answered.rubrics
    text = answered.rubrics.texts["accuracy"]
    reference = "".join(part.text for part in answered.turn.reference if isinstance(part, Text))
    if rubrics.official:
        marked = (
            text.replace("{standard_answer}", "\0")
            .replace("{generated_answer}", "\1")
            .replace("{{", "{")
            .replace("}}", "}")
        )
        parts: tuple[Part, ...] = (Text(marked.replace("\0", reference).replace("\1", answer)),)
    else:
        slots = {
            "reference": fence([Text(reference)], "the reference answer"),
            "answer": fence([Text(answer)], "the answer to judge"),
        }
        parts = fill_slots(text, slots)
    material = {"reference": (Text(reference),), "answer": (Text(answer),)}
    sent = {"text_only": rubrics.official, "jpeg": rubrics.official}
    return answered.ask(
        "accuracy", parts, SCHEMAS["accuracy"], material=material, gold=reference, variant=variant, **sent
    )


def packed(text: str, pictures: Sequence[Image | None]) -> tuple[Part, ...]:
    """The text with a picture for each marker, in order; where there is none, the marker goes."""
    parts: list[Part] = []
    left = list(pictures)
    for at, piece in enumerate(text.split(MARKER)):
        if at and left:
            image = left.pop(0)
        else:
            image = None
        parts += [*((image,) if image is not None else ()), Text(piece)]
    return join_texts(parts)
