"""A study: which questions of a run, for whom, in which order. The same settings are the same study; all that it was
made of stands in the journal, so that how far it is can be told without the dataset."""

import hashlib
import time
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.judge_eval.annotation import attention, drawing
from weft.judge_eval.annotation.form import AnnotationForm, form_of
from weft.judge_eval.annotation.questions import AnnotatedQuestion, StudySource
from weft.judges.vlm import parse_scores
from weft.store.annotations import Annotation, Annotations, Study
from weft.store.blobs import Blobs
from weft.types import Image, Question, Verdict

DEFAULT_STUDY = 100
MOST_RATERS = 200
FEW = 10  # questions from which on there is always one with a known answer


class StudySettings(Struct, frozen=True):
    """What a user asks for. `each`: how many raters get each question."""

    raters: tuple[str, ...]
    sample: int
    seed: int
    each: int
    attention: float


class AnnotationItem(Struct, frozen=True):
    """A question as a person gets it. `line` says what to choose, where that is known and cannot be seen; `known`: it
    is in no number."""

    id: str
    question: Question
    form: AnnotationForm
    line: str = ""
    known: bool = False

    @property
    def images(self) -> list[Image]:
        return [part for message in self.question.messages for part in message.parts if isinstance(part, Image)]


def study_settings(
    raters: str = "1", sample: int = DEFAULT_STUDY, seed: int = 0, each: int | None = None, share: float = 0.1
) -> StudySettings:
    """`raters` are a number, or names with commas between them."""
    if raters.strip().isdecimal():
        count = int(raters)
        if not 1 <= count <= MOST_RATERS:
            raise UserError(f"--raters {raters}: give a number from 1 to {MOST_RATERS}, or names")
        names = tuple(f"rater-{number}" for number in range(1, count + 1))
    else:
        names = tuple(" ".join(name.split()) for name in raters.split(","))
    wrong = next((name for name in names if not name or len(name) > 40 or not name.isprintable()), None)
    if wrong is not None or len(set(names)) < len(names):
        raise UserError(f"--raters {raters!r}: give names of up to 40 characters, each once, with commas between them")
    if each is not None and not 1 <= each <= len(names):
        raise UserError(f"--each {each}: there are {len(names)} raters")
    if not 0 <= share <= 0.5:
        raise UserError(f"--attention {share:g}: give a share from 0 to 0.5")
    if sample < 1:
        raise UserError(f"--sample {sample}: give a number from 1 up")
    return StudySettings(names, sample, seed, each or len(names), share)


def id_of(source: StudySource, want: StudySettings) -> str:
    told: list[Any] = [source.run.id, source.rubric, want]
    return f"study-{hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:10]}"


def begin_study(source: StudySource, want: StudySettings, ratings: Annotations, blobs: Blobs) -> tuple[Study, bool]:
    """The study of these settings, and whether it is new."""
    name = id_of(source, want)
    there = next((one for one in ratings.studies(source.run.id) if one.id == name and "orders" in one.settings), None)
    if there is not None:
        return there, False
    made = Study(name, source.run.id, time.time(), _settings(source, want, blobs))
    ratings.add_study(made)
    return made, True


def _settings(source: StudySource, want: StudySettings, blobs: Blobs) -> dict[str, Any]:
    by_item = {one.item: one for one in source.asked}
    dialogues = {one.item: one.question.turn_ref.sample for one in source.asked}
    whole = drawing.drawn(dialogues, len(dialogues), want.seed)
    chosen = whole[: want.sample]
    rest = whole[want.sample :]
    shares = drawing.assigned(chosen, want.raters, want.each, want.seed)
    most = max(map(len, shares.values()))
    count = round(want.attention * most)
    if want.attention and len(chosen) >= FEW:
        count = max(1, count)
    # those that nobody rates first
    known = {attention.name_of(by_item[item]): by_item[item] for item in (rest + chosen)[:count]}
    orders = {rater: drawing.mixed(some, list(known), rater, want.seed) for rater, some in shares.items()}
    shown = [by_item[item].question for item in chosen] + [attention.shown(one, blobs)[0] for one in known.values()]
    pictures = {
        part.digest for one in shown for message in one.messages for part in message.parts if isinstance(part, Image)
    }
    return {
        **msgspec.json.decode(msgspec.json.encode(want)),
        "rubric": source.rubric,
        "questions": len(chosen),
        "orders": orders,
        "known": {name: attention.kept(attention.known_of(one)) for name, one in known.items()},
        "pictures": sorted(pictures),
    }


def items_of(source: StudySource, study: Study, blobs: Blobs) -> dict[str, AnnotationItem]:
    """All questions of a study, by name. Raises UserError where the run has not all of them any more."""
    by_item = {one.item: one for one in source.asked}
    known = attention.read(study.settings)
    made: dict[str, AnnotationItem] = {}
    for name in dict.fromkeys(item for order in study.settings["orders"].values() for item in order):
        asked = by_item.get(known[name].of if name in known else name)
        if asked is None:
            raise UserError(
                f"{study.id} has a question that {source.run.id} has no more: was it run again, or is this another weft?"
            )
        if name in known:
            made[name] = known_item(asked, blobs)
        else:
            made[name] = item_of(asked)
    return made


def item_of(asked: AnnotatedQuestion) -> AnnotationItem:
    return AnnotationItem(asked.item, asked.question, form_of(asked.question.schema, asked.lines))


def known_item(asked: AnnotatedQuestion, blobs: Blobs) -> AnnotationItem:
    question, line = attention.shown(asked, blobs)
    return AnnotationItem(attention.name_of(asked), question, form_of(question.schema, asked.lines), line, known=True)


def verdicts_of(source: StudySource, item: AnnotationItem, answer: dict[str, Any]) -> tuple[Verdict, ...]:
    """What an answer comes to, by the way that a judge's reply goes. Raises `Unusable`."""
    question = item.question
    place = item.question.turn_ref
    marks = parse_scores(source.benchmark, question, msgspec.json.encode(answer).decode())
    return tuple(
        Verdict(
            place.sample,
            place.turn,
            one.metric,
            one.value,
            one.reason,
            "person",
            (),
            one.detail,
            question.variant,
            one.score,
        )
        for one in marks
    )


def annotation_of(
    source: StudySource,
    study: str,
    item: AnnotationItem,
    rater: str,
    answer: dict[str, Any],
    *,
    seconds: float = 0.0,
    at: float = 0.0,
) -> Annotation:
    said = verdicts_of(source, item, answer)
    return Annotation(source.run.id, study, item.id, rater, said, answer, at or time.time(), seconds, item.known)
