"""A study: which questions of a run, for whom, in which order. The same settings are the same study; all that it was made of stands in the
journal, so that how far it is can be told without the dataset."""

import hashlib
import time
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.judge_eval.annotation import attention, drawing
from weft.judge_eval.annotation.form import Form, form_of
from weft.judge_eval.annotation.questions import Asked, Source
from weft.judges.vlm import read_marks
from weft.store.annotations import Rating, Ratings, Study
from weft.store.blobs import Blobs
from weft.types import Image, Question, Verdict

USUAL, MOST_RATERS = 100, 200
FEW = 10  # questions from which on there is always one with a known answer


class Wanted(Struct, frozen=True):
    """What a user asks for. `each`: how many raters get each question."""

    raters: tuple[str, ...]
    sample: int
    seed: int
    each: int
    attention: float


class Item(Struct, frozen=True):
    """A question as a person gets it. `line` says what to choose, where that is known and cannot be seen; `known`: it is in no number."""

    id: str
    question: Question
    form: Form
    line: str = ""
    known: bool = False

    @property
    def images(self) -> list[Image]:
        return [part for message in self.question.messages for part in message.parts if isinstance(part, Image)]


def wanted(raters: str = "1", sample: int = USUAL, seed: int = 0, each: int | None = None, share: float = 0.1) -> Wanted:
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
    return Wanted(names, sample, seed, each or len(names), share)


def id_of(source: Source, want: Wanted) -> str:
    told: list[Any] = [source.run.id, source.rubric, want]
    return f"study-{hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:10]}"


def begun(source: Source, want: Wanted, ratings: Ratings, blobs: Blobs) -> tuple[Study, bool]:
    """The study of these settings, and whether it is new."""
    name = id_of(source, want)
    there = next((one for one in ratings.studies(source.run.id) if one.id == name and "orders" in one.settings), None)
    if there is not None:
        return there, False
    made = Study(name, source.run.id, time.time(), _settings(source, want, blobs))
    ratings.begin(made)
    return made, True


def _settings(source: Source, want: Wanted, blobs: Blobs) -> dict[str, Any]:
    by_item = {one.item: one for one in source.asked}
    dialogues = {one.item: one.question.place.sample for one in source.asked}
    whole = drawing.drawn(dialogues, len(dialogues), want.seed)
    chosen, rest = whole[: want.sample], whole[want.sample :]
    shares = drawing.assigned(chosen, want.raters, want.each, want.seed)
    most = max(map(len, shares.values()))
    count = round(want.attention * most)
    count = max(1, count) if want.attention and len(chosen) >= FEW else count
    known = {attention.name_of(by_item[item]): by_item[item] for item in (rest + chosen)[:count]}  # those that nobody rates first
    orders = {rater: drawing.mixed(some, list(known), rater, want.seed) for rater, some in shares.items()}
    shown = [by_item[item].question for item in chosen] + [attention.shown(one, blobs)[0] for one in known.values()]
    pictures = {part.digest for one in shown for message in one.messages for part in message.parts if isinstance(part, Image)}
    return {
        **msgspec.json.decode(msgspec.json.encode(want)),
        "rubric": source.rubric,
        "questions": len(chosen),
        "orders": orders,
        "known": {name: attention.kept(attention.known_of(one)) for name, one in known.items()},
        "pictures": sorted(pictures),
    }


def items_of(source: Source, study: Study, blobs: Blobs) -> dict[str, Item]:
    """All questions of a study, by name. Raises UserError where the run has not all of them any more."""
    by_item, known = {one.item: one for one in source.asked}, attention.read(study.settings)
    made: dict[str, Item] = {}
    for name in dict.fromkeys(item for order in study.settings["orders"].values() for item in order):
        asked = by_item.get(known[name].of if name in known else name)
        if asked is None:
            raise UserError(f"{study.id} has a question that {source.run.id} has no more: was it run again, or is this another weft?")
        made[name] = known_item(asked, blobs) if name in known else item_of(asked)
    return made


def item_of(asked: Asked) -> Item:
    return Item(asked.item, asked.question, form_of(asked.question.schema, asked.lines))


def known_item(asked: Asked, blobs: Blobs) -> Item:
    question, line = attention.shown(asked, blobs)
    return Item(attention.name_of(asked), question, form_of(question.schema, asked.lines), line, known=True)


def verdicts_of(source: Source, item: Item, answer: dict[str, Any]) -> tuple[Verdict, ...]:
    """What an answer comes to, by the way that a judge's reply goes. Raises `Unusable`."""
    question, place = item.question, item.question.place
    marks = read_marks(source.benchmark, question, msgspec.json.encode(answer).decode())
    return tuple(
        Verdict(place.sample, place.turn, one.metric, one.value, one.reason, "person", (), one.detail, question.variant, one.score)
        for one in marks
    )


def rating_of(
    source: Source, study: str, item: Item, rater: str, answer: dict[str, Any], *, seconds: float = 0.0, at: float = 0.0
) -> Rating:
    said = verdicts_of(source, item, answer)
    return Rating(source.run.id, study, item.id, rater, said, answer, at or time.time(), seconds, item.known)
