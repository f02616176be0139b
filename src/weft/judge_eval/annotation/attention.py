"""Questions whose answers are known, among the others: they say how far a rater can be trusted, and are in no number.

Where a question shows the picture that is to be judged beside something to judge it by, the picture is a plain grey one
instead, and more than a third of full marks is wrong. Everywhere else a line says in plain words what to choose."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from weft.judge_eval.annotation.form import AnnotationForm, Path, form_of, found_at, lowest
from weft.judge_eval.annotation.questions import AnnotatedQuestion
from weft.store.annotations import Annotation
from weft.store.blobs import Blobs
from weft.types import Image, Message, Question, Text

MOST = 1 / 3
GREY = "#8c8c8c"


class KnownAnswer(Struct, frozen=True):
    """What is known of the answer: at most this share of full marks, or these values."""

    of: str  # the question that it was made from
    most: float | None = None
    values: tuple[tuple[Path, Any], ...] = ()

    def passed(self, rating: Annotation) -> bool:
        if self.most is not None:
            return all(one.value is not None and one.value <= self.most + 1e-9 for one in rating.verdicts)
        return all(found_at(rating.answer, path) == value for path, value in self.values)


def name_of(asked: AnnotatedQuestion) -> str:
    """Of the question with a known answer that is made from another: it does not tell that it is one."""
    return hashlib.sha256(f"known {asked.item}".encode()).hexdigest()[:16]


def known_of(asked: AnnotatedQuestion) -> KnownAnswer:
    if _alone(asked) is not None:
        return KnownAnswer(asked.item, most=MOST)
    return KnownAnswer(asked.item, values=tuple(lowest(form_of(asked.question.schema, asked.lines))))


def shown(asked: AnnotatedQuestion, blobs: Blobs) -> tuple[Question, str]:
    """The question as it is shown, and the line that says what to choose, if one does."""
    made = _alone(asked)
    if made is None:
        return asked.question, told(form_of(asked.question.schema, asked.lines))
    blank = grey(made, blobs)
    messages = [
        Message(
            message.role,
            tuple(blank if isinstance(part, Image) and part.digest == made.digest else part for part in message.parts),
        )
        for message in asked.question.messages
    ]
    return replace(asked.question, messages=tuple(messages)), ""


def grey(like: Image, blobs: Blobs) -> Image:
    from PIL import Image as Pil

    return blobs.put_pil(Pil.new("RGB", (like.width, like.height), GREY))


def told(form: AnnotationForm) -> str:
    kinds = {field.kind for field in form.fields if field.needed and not field.is_words}
    words = {"scale": "the lowest score", "number": "the smallest number", "choice": "the first choice", "yes": "“no”"}
    some = [text for kind, text in words.items() if kind in kinds]
    if len(some) == 1:
        whole = some[0]
    else:
        whole = f"{', '.join(some[:-1])} and {some[-1]}"
    many = sum(not field.is_words for field in form.fields) > 1
    return f"For this one choose {whole}{' everywhere' if many else ''}, whatever is shown."


def _alone(asked: AnnotatedQuestion) -> Image | None:
    """The picture to judge, where it is one, is shown once, and stands beside something to judge it by; then a grey one
    is surely bad."""
    question = asked.question
    if len(question.metrics) != 1 or not _has_scale(form_of(question.schema, asked.lines)):
        return None
    pictures = [part for message in question.messages for part in message.parts if isinstance(part, Image)]
    mine = [image for image in pictures if image.digest in asked.made]
    if len(mine) != 1:
        return None
    words = "".join(part.text for message in question.messages for part in message.parts if isinstance(part, Text))
    beside = any(_is_shown(part, pictures, words, mine[0]) for parts in question.material.values() for part in parts)
    if beside:
        return mine[0]
    return None


def _has_scale(form: AnnotationForm) -> bool:
    return any(field.kind in ("scale", "yes") for field in form.fields)


def _is_shown(part: Any, pictures: Sequence[Image], words: str, mine: Image) -> bool:
    if isinstance(part, Image):
        return part.digest != mine.digest and part.digest in {image.digest for image in pictures}
    return isinstance(part, Text) and bool(part.text.strip()) and part.text in words


def kept(known: KnownAnswer) -> dict[str, Any]:
    """For a study's settings."""
    return {"of": known.of, "most": known.most, "values": [[list(path), value] for path, value in known.values]}


def read(settings: Mapping[str, Any]) -> dict[str, KnownAnswer]:
    """Those of a study, by item."""
    made: dict[str, KnownAnswer] = {}
    for item, one in cast(dict[str, dict[str, Any]], settings.get("known", {})).items():
        values = tuple((tuple(path), value) for path, value in one.get("values", ()))
        made[item] = KnownAnswer(str(one.get("of", "")), one.get("most"), values)
    return made
