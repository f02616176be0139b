"""Attention checks: questions with a known answer among the others. They show how far an annotator can be relied on,
and count in no score.

Where a question shows the image to judge next to something to judge it by, the check replaces it by a plain grey image,
and more than a third of full marks is wrong. For every other question, a line says which option to choose."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from weft.judge_eval.annotation.form import AnnotationForm, Path, build_form, lowest_values, value_at
from weft.judge_eval.annotation.questions import AnnotatedQuestion
from weft.store.annotations import Annotation
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Question, Text

MAX_SHARE = 1 / 3
GREY = "#8c8c8c"
OPTION_NAMES = {
    "scale": "the lowest score",
    "number": "the smallest number",
    "choice": "the first choice",
    "yes": "“no”",
}


class AttentionCheck(Struct, frozen=True):
    """The known answer to an attention check: at most a share of full marks, or fixed values."""

    of: str  # the item that the check was made from
    most: float | None = None  # the highest share of full marks that passes
    values: tuple[tuple[Path, Any], ...] = ()  # the values that pass, by their paths in the answer

    def passed(self, annotation: Annotation) -> bool:
        if self.most is None:
            return all(value_at(annotation.answer, path) == value for path, value in self.values)
        limit = self.most + 1e-9
        return all(verdict.value is not None and verdict.value <= limit for verdict in annotation.verdicts)


def check_id(question: AnnotatedQuestion) -> str:
    """The item id of the check that is made from a question. It does not reveal that it is a check."""
    return hashlib.sha256(f"known {question.item}".encode()).hexdigest()[:16]


def build_check(question: AnnotatedQuestion) -> AttentionCheck:
    if _image_to_judge(question) is not None:
        return AttentionCheck(question.item, most=MAX_SHARE)
    form = build_form(question.question.schema, question.lines)
    return AttentionCheck(question.item, values=tuple(lowest_values(form)))


def build_check_question(question: AnnotatedQuestion, blobs: Blobs) -> tuple[Question, str]:
    """The question as annotators see it, and the line that says what to choose; the line is empty where the image is
    replaced."""
    image = _image_to_judge(question)
    if image is None:
        return question.question, instruction(build_form(question.question.schema, question.lines))
    blank = blank_image(image, blobs)
    messages: list[Message] = []
    for message in question.question.messages:
        parts = [blank if isinstance(part, Image) and part.digest == image.digest else part for part in message.parts]
        messages.append(Message(message.role, tuple(parts)))
    return replace(question.question, messages=tuple(messages)), ""


def blank_image(image: Image, blobs: Blobs) -> Image:
    """A grey image of the same size."""
    from PIL import Image as Pil

    return blobs.put_pil(Pil.new("RGB", (image.width, image.height), GREY))


def instruction(form: AnnotationForm) -> str:
    """The line that says what to choose."""
    kinds = {field.kind for field in form.fields if field.required and not field.is_text}
    names = [name for kind, name in OPTION_NAMES.items() if kind in kinds]
    if len(names) == 1:
        choice = names[0]
    else:
        choice = f"{', '.join(names[:-1])} and {names[-1]}"
    if sum(not field.is_text for field in form.fields) > 1:
        choice += " everywhere"
    return f"For this one choose {choice}, whatever is shown."


def _image_to_judge(question: AnnotatedQuestion) -> Image | None:
    """The one image to judge, if it is shown once and next to something to judge it by: a grey image is surely bad
    there."""
    asked = question.question
    if len(asked.metrics) != 1 or not _has_scale(build_form(asked.schema, question.lines)):
        return None
    parts: list[Part] = []
    for message in asked.messages:
        parts += message.parts
    images = [part for part in parts if isinstance(part, Image)]
    from_reply = [image for image in images if image.digest in question.reply_images]
    if len(from_reply) != 1:
        return None
    text = "".join(part.text for part in parts if isinstance(part, Text))
    for material in asked.material.values():
        if any(_is_shown(part, images, text, from_reply[0]) for part in material):
            return from_reply[0]
    return None


def _has_scale(form: AnnotationForm) -> bool:
    return any(field.kind in ("scale", "yes") for field in form.fields)


def _is_shown(part: Part, images: Sequence[Image], text: str, to_judge: Image) -> bool:
    """Whether a part of the material, other than the image to judge, is in the question."""
    if isinstance(part, Image):
        return part.digest != to_judge.digest and any(part.digest == image.digest for image in images)
    return isinstance(part, Text) and bool(part.text.strip()) and part.text in text


def encode_check(check: AttentionCheck) -> dict[str, Any]:
    """The check as it is stored in a study's settings."""
    return {"of": check.of, "most": check.most, "values": [[list(path), value] for path, value in check.values]}


def decode_checks(settings: Mapping[str, Any]) -> dict[str, AttentionCheck]:
    """The checks of a study, by item, from its settings."""
    checks: dict[str, AttentionCheck] = {}
    for item, stored in cast(dict[str, dict[str, Any]], settings.get("known", {})).items():
        values = tuple((tuple(path), value) for path, value in stored.get("values", ()))
        checks[item] = AttentionCheck(str(stored.get("of", "")), stored.get("most"), values)
    return checks
