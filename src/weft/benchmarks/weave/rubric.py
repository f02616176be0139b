"""WEAVE's four questions to the judge (section 3.3, B.1), as requests with pictures in order.

With our rubrics, dataset text and the model's text are fenced off. With the official prompts, the message is what the released
`eval/main.py` sends, word for word: prompt, then the numbered key points, a picture for each `<image>`. (weft also asks for the reply's
schema where the server takes one; `--judge-opt max_tokens=1400` gives the released limit.)
"""

import hashlib
import importlib.resources
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from weft.benchmarks import Rubrics
from weft.benchmarks.weave.data import MARKER, KeyPoint
from weft.errors import UserError
from weft.judges.fence import fence, joined
from weft.judges.packs import read_constants
from weft.types import Image, Message, Part, Place, Question, Text

IMAGE_METRICS = ("key_point", "visual_consistency", "image_quality")
TEXT_METRICS = ("accuracy",)
OFFICIAL_FILE = "eval/prompts.py"
OFFICIAL_NAMES = {
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


def rubrics(prompts: str) -> Rubrics:
    """`weft` for our own, `official:CHECKOUT` for the paper's from a checkout of its repository."""
    if prompts == "weft":
        folder = importlib.resources.files("weft.benchmarks.weave") / "rubrics"
        texts = {metric: (folder / f"{metric}.md").read_text(encoding="utf-8") for metric in OFFICIAL_NAMES}
        source = "weft"
    elif prompts.startswith("official:"):
        found = read_constants(Path(prompts.removeprefix("official:")), OFFICIAL_FILE, OFFICIAL_NAMES.values())
        texts = {metric: found[name] for metric, name in OFFICIAL_NAMES.items()}
        source = f"official {OFFICIAL_FILE}"
    else:
        raise UserError(f"--prompts {prompts}: give 'weft', or 'official:DIR' with a checkout of the official repository")
    return Rubrics(texts, source, hashlib.sha256(msgspec.json.encode(texts, order="deterministic")).hexdigest())


def about_picture(
    metric: str, rubric: Rubrics, made: Image, points: Sequence[KeyPoint], references: Sequence[Image], place: Place, gold: Any
) -> Question:
    """A question about a picture; `references` has one picture for each key point that shows one, in order."""
    requirements = [] if metric == "image_quality" else _requirements(points, references)
    text = rubric.texts[metric]
    if rubric.source != "weft":
        parts = _fill(text, MARKER, [made]) if metric == "image_quality" else [*_fill(text, MARKER, [made]), *requirements]
    else:
        parts = _fill(text, "[[picture]]", [made])
        if requirements:
            fenced = fence(requirements, "the list of requirements")
            parts = [one for part in parts for one in (_slot(part, "[[requirements]]", fenced))]
    return _question(metric, parts, place, gold)


def about_answer(rubric: Rubrics, reference: str, answer: str, place: Place) -> Question:
    text = rubric.texts["accuracy"]
    if rubric.source != "weft":
        filled = text.replace("{standard_answer}", "\0").replace("{generated_answer}", "\1").replace("{{", "{").replace("}}", "}")
        parts: list[Part] = [Text(filled.replace("\0", reference).replace("\1", answer))]
    else:
        parts = [Text(text)]
        for name, said, what in (("reference", reference, "the reference answer"), ("answer", answer, "the answer to judge")):
            parts = [one for part in parts for one in _slot(part, f"[[{name}]]", fence([Text(said)], what))]
    return _question("accuracy", parts, place, reference)


def _question(metric: str, parts: Sequence[Part], place: Place, gold: Any) -> Question:
    schema = {
        "type": "object",
        "properties": {"reasoning": {"type": "string"}, "score": SCORES[metric]},
        "required": ["reasoning", "score"],
        "additionalProperties": False,
    }
    return Question(metric, (Message("user", joined(parts)),), schema, replace(place, metric=metric), gold=gold)


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


def _fill(text: str, slot: str, images: Sequence[Image]) -> list[Part]:
    parts: list[Part] = []
    pieces = text.split(slot)
    for position, piece in enumerate(pieces):
        parts.append(Text(piece))
        if position < len(pieces) - 1 and position < len(images):
            parts.append(images[position])
    return parts


def _slot(part: Part, slot: str, filling: Sequence[Part]) -> Sequence[Part]:
    if not isinstance(part, Text) or slot not in part.text:
        return (part,)
    before, _, after = part.text.partition(slot)
    return (Text(before), *filling, Text(after))
