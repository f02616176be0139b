"""WEAVE's four questions to the judge (section 3.3, B.1), as requests with pictures in order.

With our rubrics, dataset text and the model's text are fenced off. With the official prompts, the message is what the released
`eval/main.py` sends, word for word: prompt, then the numbered key points, a picture for each `<image>`. (weft also asks for the reply's
schema where the server takes one; `--judge-opt max_tokens=1400` gives the released limit.)

Material: `made`, `requirements` (as they are shown), `reference 1`, `reference 2`, ... (one for each key point that shows a picture);
for an answer `reference` and `answer`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.benchmarks.base import Answered
from weft.benchmarks.prompts import fence, filled, joined, object_schema
from weft.benchmarks.weave.data import MARKER, KeyPoint
from weft.types import Image, Message, Part, Question, Text

IMAGE_METRICS = ("key_point", "visual_consistency", "image_quality")
TEXT_METRICS = ("accuracy",)
OFFICIAL_FILE = "eval/prompts.py"
OFFICIAL_PROMPTS = {
    "key_point": "prompt_keypoint_checklist",
    "visual_consistency": "prompt_visual_consistency",
    "image_quality": "prompt_image_quality",
    "accuracy": "prompt_txt_acc",
}
SCORES: Mapping[str, dict[str, Any]] = {
    "key_point": {"type": "number", "minimum": 0, "maximum": 10},
    "visual_consistency": {"type": "number", "minimum": 0, "maximum": 10},
    "image_quality": {"type": "integer", "minimum": 0, "maximum": 10},
    "accuracy": {"type": "integer", "enum": [0, 5, 10]},
}


SCHEMAS = {metric: object_schema(reasoning={"type": "string"}, score=score) for metric, score in SCORES.items()}


def about_picture(metric: str, answered: Answered, made: Image, points: Sequence[KeyPoint], references: Sequence[Image]) -> Question:
    """A question about the picture `made`; `references` has one picture for each key point that shows one, in order."""
    text, rubrics = answered.rubrics.texts[metric], answered.rubrics
    requirements = [] if metric == "image_quality" else _requirements(points, references)
    if rubrics.source == "weft":
        parts = filled(text, {"picture": [made], "requirements": fence(requirements, "the list of requirements") if requirements else ()})
    else:
        before, _, after = text.partition(MARKER)
        parts = joined([Text(before), made, Text(after.replace(MARKER, "")), *requirements])
    shown = {f"reference {number}": (image,) for number, image in enumerate(references, start=1)}
    material = {"made": (made,), "requirements": tuple(requirements), **shown}
    return Question((metric,), (Message("user", parts),), SCHEMAS[metric], answered.place, material, gold=points)


def about_answer(answered: Answered, reference: str) -> Question:
    answer, text = answered.reply.text, answered.rubrics.texts["accuracy"]
    if answered.rubrics.source == "weft":
        slots = {"reference": fence([Text(reference)], "the reference answer"), "answer": fence([Text(answer)], "the answer to judge")}
        parts = filled(text, slots)
    else:
        marked = text.replace("{standard_answer}", "\0").replace("{generated_answer}", "\1").replace("{{", "{").replace("}}", "}")
        parts = (Text(marked.replace("\0", reference).replace("\1", answer)),)
    material = {"reference": (Text(reference),), "answer": (Text(answer),)}
    return Question(("accuracy",), (Message("user", parts),), SCHEMAS["accuracy"], answered.place, material, gold=reference)


def _requirements(points: Sequence[KeyPoint], references: Sequence[Image]) -> list[Part]:
    parts: list[Part] = []
    left = list(references)
    for position, point in enumerate(points):
        before, marker, after = point.text.partition(MARKER)
        end = "\n" if position < len(points) - 1 else ""
        parts.append(Text(f"{position + 1}. {before}"))
        if marker:
            parts.append(left.pop(0))
        parts.append(Text(after + end))
    return list(joined(parts))
