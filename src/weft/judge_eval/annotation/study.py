"""A study: which questions of a run, for which annotators, in which order.

The same settings give the same study. Everything that a study was made of is stored in the journal, so that its
progress can be shown without the dataset."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.judge_eval.annotation import assignment, attention
from weft.judge_eval.annotation.form import AnnotationForm, build_form
from weft.judge_eval.annotation.questions import AnnotatedQuestion, StudySource
from weft.judges.vlm import parse_scores
from weft.store.annotations import Annotation, Annotations, Study
from weft.store.blobs import Blobs
from weft.store.records import read_clock
from weft.types import Image, Question, Verdict

DEFAULT_STUDY = 100  # questions
MAX_ANNOTATORS = 200
MIN_QUESTIONS_FOR_CHECK = 10  # a study with as many questions or more has at least one attention check


class StudySettings(Struct, frozen=True):
    """What the user asks for."""

    annotators: tuple[str, ...]
    sample: int  # how many questions
    seed: int
    each: int  # how many annotators get each question
    attention: float  # attention checks, as a share of an annotator's questions


class AnnotationItem(Struct, frozen=True):
    """A question as an annotator gets it."""

    id: str
    question: Question
    form: AnnotationForm
    line: str = ""  # says what to choose, in an attention check that needs it
    is_attention_check: bool = False

    @property
    def images(self) -> list[Image]:
        return _images_of(self.question)


def _images_of(question: Question) -> list[Image]:
    images: list[Image] = []
    for message in question.messages:
        images += [part for part in message.parts if isinstance(part, Image)]
    return images


def study_settings(
    annotators: str = "1", sample: int = DEFAULT_STUDY, seed: int = 0, each: int | None = None, share: float = 0.1
) -> StudySettings:
    """Check what the user asks for. `annotators` is a number, or names with commas between them."""
    names = _parse_annotators(annotators)
    if each is not None and not 1 <= each <= len(names):
        raise UserError(f"--each {each}: there are {len(names)} annotators")
    if not 0 <= share <= 0.5:
        raise UserError(f"--attention {share:g}: give a share from 0 to 0.5")
    if sample < 1:
        raise UserError(f"--sample {sample}: give a number from 1 up")
    return StudySettings(names, sample, seed, each or len(names), share)


def _parse_annotators(text: str) -> tuple[str, ...]:
    if text.strip().isdecimal():
        count = int(text)
        if not 1 <= count <= MAX_ANNOTATORS:
            raise UserError(f"--annotators {text}: give a number from 1 to {MAX_ANNOTATORS}, or names")
        return tuple(f"annotator-{number}" for number in range(1, count + 1))
    names = tuple(" ".join(name.split()) for name in text.split(","))
    are_valid = all(name and len(name) <= 40 and name.isprintable() for name in names)
    if not are_valid or len(set(names)) < len(names):
        raise UserError(
            f"--annotators {text!r}: give names of up to 40 characters, each once, with commas between them"
        )
    return names


def study_id(source: StudySource, settings: StudySettings) -> str:
    identity: list[Any] = [source.run.id, source.rubric, settings]
    return f"study-{hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:10]}"


def begin_study(
    source: StudySource, settings: StudySettings, annotations: Annotations, blobs: Blobs
) -> tuple[Study, bool]:
    """Return the study with these settings, and whether it is new. A new one is stored."""
    name = study_id(source, settings)
    for study in annotations.studies(source.run.id):
        if study.id == name and "orders" in study.settings:
            return study, False
    study = Study(name, source.run.id, read_clock(), _stored_settings(source, settings, blobs))
    annotations.add_study(study)
    return study, True


def _stored_settings(source: StudySource, settings: StudySettings, blobs: Blobs) -> dict[str, Any]:
    """All that a study is made of, as it is stored: the user's settings, the order of each annotator, the attention
    checks, and the digests of the images."""
    by_item = {question.item: question for question in source.questions}
    dialogues = {question.item: question.question.turn_ref.sample for question in source.questions}
    drawn = assignment.draw_items(dialogues, len(dialogues), settings.seed)
    chosen = drawn[: settings.sample]
    unused = drawn[settings.sample :]
    assigned = assignment.assign_items(chosen, settings.annotators, settings.each, settings.seed)
    count = count_checks(settings, len(chosen), max(map(len, assigned.values())))
    # Checks are made from questions that nobody answers, as long as there are any.
    check_sources = [by_item[item] for item in (unused + chosen)[:count]]
    checks = {attention.check_id(question): question for question in check_sources}
    orders: dict[str, list[str]] = {}
    for annotator, items in assigned.items():
        orders[annotator] = assignment.mix_in_checks(items, list(checks), annotator, settings.seed)
    questions = [by_item[item].question for item in chosen]
    questions += [attention.build_check_question(question, blobs)[0] for question in checks.values()]
    return {
        **msgspec.json.decode(msgspec.json.encode(settings)),
        "rubric": source.rubric,
        "questions": len(chosen),
        "orders": orders,
        "known": encode_checks(checks),
        "images": digest_images(questions),
    }


def count_checks(settings: StudySettings, questions: int, longest: int) -> int:
    """How many attention checks each annotator gets; `longest` is the most questions that one of them has."""
    count = round(settings.attention * longest)
    if settings.attention and questions >= MIN_QUESTIONS_FOR_CHECK:
        return max(1, count)
    return count


def encode_checks(checks: Mapping[str, AnnotatedQuestion]) -> dict[str, Any]:
    """Attention checks as a study's settings store them, by item."""
    return {item: attention.encode_check(attention.build_check(question)) for item, question in checks.items()}


def digest_images(questions: Iterable[Question]) -> list[str]:
    digests: set[str] = set()
    for question in questions:
        digests.update(image.digest for image in _images_of(question))
    return sorted(digests)


def items_of(source: StudySource, study: Study, blobs: Blobs) -> dict[str, AnnotationItem]:
    """All items of a study, by id. Raises UserError where the run lacks one of their questions."""
    by_item = {question.item: question for question in source.questions}
    checks = attention.decode_checks(study.settings)
    items: dict[str, AnnotationItem] = {}
    for order in study.settings["orders"].values():
        for name in order:
            if name in items:
                continue
            is_check = name in checks
            question = by_item.get(checks[name].of if is_check else name)
            if question is None:
                raise UserError(
                    f"{study.id} has a question that {source.run.id} no longer has: was it run again, or is this "
                    "another version of weft?"
                )
            items[name] = check_item(question, blobs) if is_check else question_item(question)
    return items


def question_item(question: AnnotatedQuestion) -> AnnotationItem:
    return AnnotationItem(question.item, question.question, build_form(question.question.schema, question.lines))


def check_item(question: AnnotatedQuestion, blobs: Blobs) -> AnnotationItem:
    """The attention check that is made from a question."""
    asked, line = attention.build_check_question(question, blobs)
    form = build_form(asked.schema, question.lines)
    return AnnotationItem(attention.check_id(question), asked, form, line, is_attention_check=True)


def verdicts_of(source: StudySource, item: AnnotationItem, answer: dict[str, Any]) -> tuple[Verdict, ...]:
    """The verdicts of an answer, parsed like a judge's reply. Raises UnusableReply."""
    question = item.question
    scores = parse_scores(source.benchmark, question, msgspec.json.encode(answer).decode())
    return tuple(
        Verdict(
            question.turn_ref.sample,
            question.turn_ref.turn,
            score.metric,
            score.value,
            score.reason,
            "person",
            detail=score.detail,
            variant=question.variant,
            score=score.score,
        )
        for score in scores
    )


def annotation_of(
    source: StudySource,
    study: str,
    item: AnnotationItem,
    annotator: str,
    answer: dict[str, Any],
    *,
    seconds: float = 0.0,
    created_at: float = 0.0,
) -> Annotation:
    """The annotation of an answer, as of now unless `created_at` says otherwise. Raises UnusableReply."""
    return Annotation(
        source.run.id,
        study,
        item.id,
        annotator,
        verdicts_of(source, item, answer),
        answer,
        created_at or read_clock(),
        seconds,
        item.is_attention_check,
    )
