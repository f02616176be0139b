"""IMUG-Bench's two questions to the judge: the true answer to a dynamic question, and the evaluation points of a
picture.

The judge sees what the model really replied, text included, and only letters that are options of the question are an
answer. Points must come back complete, each once; what is missing is asked for again.

Material: `made`; `given 2`, `made 3`: what those turns gave or made; for a dynamic question `reply 1`, `reply 2`, ...:
what the model said in the turns that it is about."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.imug import mcq, released
from weft.benchmarks.imug.data import ChoiceGold, PointsGold
from weft.benchmarks.imug.facts import ChoiceFacts, PointsFacts, build_choice_facts, build_zero_points
from weft.benchmarks.prompts import fence, fill_slots, object_schema
from weft.calls.structured_output import UnusableReply
from weft.types import Image, Part, Question, Score, Text

LABELS = {"given": "given in turn {}", "made": "made by the model in turn {}"}


def build_key_question(answered: JudgedTurn) -> Question:
    """Which letters are right, given the replies that the question is about. What the model chose is not shown."""
    gold: ChoiceGold = answered.turn.gold
    told: list[Part] = []
    material: dict[str, tuple[Part, ...]] = {}
    for number in gold.looks_at:
        if number - 1 in answered.dialogue:
            parts = answered.dialogue[number - 1].output
        else:
            parts = ()
        material[f"reply {number}"] = parts
        asked = f"\nTurn {number}. Asked: {answered.sample.turns[number - 1].prompt_text}\nReplied: "
        told += [Text(asked), *(parts or (Text("(nothing)"),))]
    letters = "".join(mcq.find_options(gold.question)) or mcq.LETTERS
    schema = object_schema(
        reasoning={"type": "string"}, determined_answer={"type": "string", "enum": _answers(letters, gold.single)}
    )
    accepts = object_schema(reasoning={"type": "string"}, determined_answer={"type": "string"})
    more = {
        "material": material,
        "gold": (gold, answered.reply.raw_text),
        "detail": build_choice_facts(gold, answered.reply.raw_text),
    }
    if answered.rubrics.official:
        return released.build_key_question(answered, schema, accepts, more)
    if gold.single:
        how = "Exactly one option is right."
    else:
        how = "One option or several may be right."
    if gold.key:
        how = f"{', '.join(gold.key)} is certainly right; say which others are right as well, or {gold.key} alone if none is."
    slots: dict[str, Sequence[Part]] = {
        "turns": fence(told, "the earlier turns, as they really went"),
        "question": fence([Text(gold.question)], "the question with its options"),
        "choice": (Text(how),),
    }
    return answered.ask("choice", fill_slots(answered.rubrics.texts["dynamic"], slots), schema, accepted_schema=accepts, **more)


def build_points_question(
    answered: JudgedTurn, made: Image | None, references: Sequence[tuple[int, str, Image]]
) -> Question:
    """How far a picture meets each point; references and the picture itself, if there is one, under labels that agree
    with their order."""
    gold: PointsGold = answered.turn.gold
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
        "instruction": fence([Text(answered.turn.prompt_text)], "the instruction that the model was given"),
        "points": fence([Text(listed)], "the points"),
    }
    parts = fill_slots(answered.rubrics.texts["points"], slots)
    more = {"material": material, "gold": gold.points, "detail": build_zero_points(len(gold.points))}
    return answered.ask("points", parts, points_schema(len(gold.points)), **more)


def score_choice(question: Question, found: dict[str, Any]) -> Score:
    """The model's choice by the key that the judge worked out."""
    gold, answer = question.gold
    union = "".join(sorted({*gold.key, *_letters(question, found["determined_answer"])}))
    none = {letter for letter, text in mcq.find_options(gold.question).items() if text.lower().startswith("none of")}
    # what is certain and "none of the above" exclude each other
    key = "".join(letter for letter in union if letter not in none) or union
    detail = ChoiceFacts(answer, key, dynamic=True, unlisted=not gold.listed, union=union if union != key else "")
    value = mcq.score_strict(answer, key, mcq.find_options(gold.question))
    return Score("choice", value, f"{key} is right: {found['reasoning']}", detail=detail)


def score_points(question: Question, found: dict[str, Any]) -> Score:
    results: list[dict[str, Any]] = found["evaluation_results"]
    ids = [int(result["point_id"]) for result in results]
    due = len(question.gold)
    missing = [number for number in range(1, due + 1) if number not in ids]
    if missing or len(ids) != due:
        if missing:
            what = f"points {', '.join(map(str, missing))} are missing"
        else:
            what = "a point is scored twice"
        raise UnusableReply(f"{what}; every point from 1 to {due} needs exactly one entry")
    scores = [int(result["score"]) for result in sorted(results, key=lambda one: one["point_id"])]
    why = "; ".join(f"{result['point_id']}: {result['score']}, {result['reason']}" for result in results)
    return Score("points", sum(scores) / (5 * due), why, sum(scores), PointsFacts(tuple(scores)))


def _letters(question: Question, said: str) -> str:
    """The letters of a key as judges write them: `BD`, `DB`, `B, D`, `b`, `B.`, `B and D`. Only options of the question
    are an answer."""
    allowed = question.schema["properties"]["determined_answer"]["enum"]
    letters = mcq.parse_key(said)
    if letters is not None:
        key = "".join(sorted(letters))
    else:
        key = said
    if key not in allowed:
        raise UnusableReply(f"$.determined_answer: {said[:80]!r} is none of {', '.join(allowed[:31])}")
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
    if single:
        most = 1
    else:
        most = len(letters)
    return ["".join(some) for size in range(1, most + 1) for some in itertools.combinations(letters, size)]
