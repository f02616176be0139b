"""IMUG-Bench's two questions to the judge: the true answer to a dynamic question, and the evaluation points of a picture.

The judge sees what the model really replied, text included, and only letters that are options of the question are an answer. Points
must come back complete, each once; what is missing is asked for again.

Material: `made`; `given 2`, `made 3`: what those turns gave or made; for a dynamic question `reply 1`, `reply 2`, ...: what the model said
in the turns that it is about.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import Answered
from weft.benchmarks.imug import mcq, released
from weft.benchmarks.imug.data import Choice, Points
from weft.benchmarks.imug.facts import ChoiceFacts, PointsFacts, facts_of_choice, no_points
from weft.benchmarks.prompts import fence, filled, object_schema
from weft.calls.structured_output import Unusable
from weft.types import Image, Mark, Part, Question, Text

LABELS = {"given": "given in turn {}", "made": "made by the model in turn {}"}


def about_key(answered: Answered) -> Question:
    """Which letters are right, given the replies that the question is about. What the model chose is not shown."""
    gold: Choice = answered.turn.gold
    told: list[Part] = []
    material: dict[str, tuple[Part, ...]] = {}
    for number in gold.looks_at:
        parts = answered.dialogue[number - 1].said if number - 1 in answered.dialogue else ()
        material[f"reply {number}"] = parts
        asked = f"\nTurn {number}. Asked: {answered.sample.turns[number - 1].words}\nReplied: "
        told += [Text(asked), *(parts or (Text("(nothing)"),))]
    letters = "".join(mcq.options(gold.question)) or mcq.LETTERS
    schema = object_schema(reasoning={"type": "string"}, determined_answer={"type": "string", "enum": _answers(letters, gold.single)})
    accepts = object_schema(reasoning={"type": "string"}, determined_answer={"type": "string"})
    more = {"material": material, "gold": (gold, answered.reply.words), "detail": facts_of_choice(gold, answered.reply.words)}
    if answered.rubrics.official:
        return released.about_key(answered, schema, accepts, more)
    how = "Exactly one option is right." if gold.single else "One option or several may be right."
    if gold.key:
        how = f"{', '.join(gold.key)} is certainly right; say which others are right as well, or {gold.key} alone if none is."
    slots: dict[str, Sequence[Part]] = {
        "turns": fence(told, "the earlier turns, as they really went"),
        "question": fence([Text(gold.question)], "the question with its options"),
        "choice": (Text(how),),
    }
    return answered.ask("choice", filled(answered.rubrics.texts["dynamic"], slots), schema, accepts=accepts, **more)


def about_points(answered: Answered, made: Image | None, references: Sequence[tuple[int, str, Image]]) -> Question:
    """How far a picture meets each point; references and the picture itself, if there is one, under labels that agree with their order."""
    gold: Points = answered.turn.gold
    named = [(LABELS[kind].format(turn), image) for turn, kind, image in references]
    shown: list[Part] = []
    for number, (name, image) in enumerate([*named, *([("the picture to judge", made)] if made else [])], start=1):
        shown += [Text(f"\nImage_{number} ({name}):\n"), image]
    material: dict[str, tuple[Part, ...]] = {"made": (made,) if made else ()}
    for turn, kind, image in references:
        material[f"{kind} {turn}"] = (*material.get(f"{kind} {turn}", ()), image)
    listed = "\n".join(f"{number}. {point}" for number, point in enumerate(gold.points, start=1))
    slots: dict[str, Sequence[Part]] = {
        "pictures": shown,
        "instruction": fence([Text(answered.turn.words)], "the instruction that the model was given"),
        "points": fence([Text(listed)], "the points"),
    }
    parts = filled(answered.rubrics.texts["points"], slots)
    more = {"material": material, "gold": gold.points, "detail": no_points(len(gold.points))}
    return answered.ask("points", parts, points_schema(len(gold.points)), **more)


def key_mark(question: Question, found: dict[str, Any]) -> Mark:
    """The model's choice by the key that the judge worked out."""
    gold, answer = question.gold
    union = "".join(sorted({*gold.key, *_letters(question, found["determined_answer"])}))
    none = {letter for letter, text in mcq.options(gold.question).items() if text.lower().startswith("none of")}
    key = "".join(letter for letter in union if letter not in none) or union  # what is certain and "none of the above" exclude each other
    detail = ChoiceFacts(answer, key, dynamic=True, unlisted=not gold.listed, union=union if union != key else "")
    value = mcq.score(answer, key, mcq.options(gold.question))
    return Mark("choice", value, f"{key} is right: {found['reasoning']}", detail=detail)


def points_mark(question: Question, found: dict[str, Any]) -> Mark:
    results: list[dict[str, Any]] = found["evaluation_results"]
    ids = [int(result["point_id"]) for result in results]
    due = len(question.gold)
    missing = [number for number in range(1, due + 1) if number not in ids]
    if missing or len(ids) != due:
        what = f"points {', '.join(map(str, missing))} are missing" if missing else "a point is scored twice"
        raise Unusable(f"{what}; every point from 1 to {due} needs exactly one entry")
    scores = [int(result["score"]) for result in sorted(results, key=lambda one: one["point_id"])]
    why = "; ".join(f"{result['point_id']}: {result['score']}, {result['reason']}" for result in results)
    return Mark("points", sum(scores) / (5 * due), why, sum(scores), PointsFacts(tuple(scores)))


def _letters(question: Question, said: str) -> str:
    """The letters of a key as judges write them: `BD`, `DB`, `B, D`, `b`, `B.`, `B and D`. Only options of the question are an answer."""
    allowed = question.schema["properties"]["determined_answer"]["enum"]
    letters = mcq.letters_of(said)
    key = "".join(sorted(letters)) if letters is not None else said
    if key not in allowed:
        raise Unusable(f"$.determined_answer: {said[:80]!r} is none of {', '.join(allowed[:31])}")
    return key


@functools.cache
def points_schema(count: int) -> dict[str, Any]:
    entry = object_schema(
        point_id={"type": "integer", "enum": list(range(1, count + 1))},
        reason={"type": "string"},
        score={"type": "integer", "minimum": 0, "maximum": 5},
    )
    return object_schema(evaluation_results={"type": "array", "items": entry})


def _answers(letters: str, single: bool) -> list[str]:
    most = 1 if single else len(letters)
    return ["".join(some) for size in range(1, most + 1) for some in itertools.combinations(letters, size)]
