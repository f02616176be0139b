"""IMUG-Bench's two questions to the judge: the right answer to a dynamic question, and an image's evaluation points.

The judge sees what the model really replied, text included, and only letters that are options of the question are an
answer. Points must come back complete, each once; otherwise the judge is asked again.

Material: `output`; `given 2`, `made 3`: what those turns showed the model or made; for a dynamic question `reply 1`,
`reply 2`, ...: the model's replies to the turns that it is about.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.imug import mcq, official_questions
from weft.benchmarks.imug.data import ChoiceGold, PointsGold
from weft.benchmarks.imug.facts import ChoiceFacts, PointsFacts, build_choice_facts, build_zero_points
from weft.benchmarks.prompts import fence, fence_pieces, fill_slots, object_schema
from weft.calls.structured_output import UnusableReply
from weft.types import Image, Part, Question, Score, Text

LABELS = {"given": "given in turn {}", "made": "made by the model in turn {}"}


def build_key_question(judged_turn: JudgedTurn) -> Question:
    """Ask which letters are right, given the replies that the question is about. The model's choice is not shown."""
    gold: ChoiceGold = judged_turn.turn.gold
    turns: list[tuple[str, Sequence[Part]]] = []
    material: dict[str, tuple[Part, ...]] = {}
    for number in gold.looks_at:
        output: tuple[Part, ...] = ()
        if number - 1 in judged_turn.dialogue:
            output = judged_turn.dialogue[number - 1].output
        material[f"reply {number}"] = output
        prompt = judged_turn.sample.turns[number - 1].prompt_text
        turns += [(f"Turn {number}, asked", (Text(prompt),)), (f"Turn {number}, replied", output)]
    answers = _possible_answers("".join(mcq.find_options(gold.question)) or mcq.LETTERS, gold.single)
    schema = object_schema(reasoning={"type": "string"}, determined_answer={"type": "string", "enum": answers})
    accepted_schema = object_schema(reasoning={"type": "string"}, determined_answer={"type": "string"})
    more = {
        "material": material,
        "gold": (gold, judged_turn.reply.raw_text),
        "detail": build_choice_facts(gold, judged_turn.reply.raw_text),
    }
    if judged_turn.rubrics.official_prompts:
        return official_questions.build_key_question(judged_turn, schema, accepted_schema, more)
    slots: dict[str, Sequence[Part]] = {
        "turns": fence_pieces(turns, "the earlier turns, as they really went"),
        "question": fence([Text(gold.question)], "the question with its options"),
        "choice": (Text(_describe_choice(gold)),),
    }
    parts = fill_slots(judged_turn.rubrics.texts["dynamic"], slots)
    return judged_turn.ask("choice", parts, schema, accepted_schema=accepted_schema, **more)


def _describe_choice(gold: ChoiceGold) -> str:
    """Tell the judge how many options may be right, and which certainly are."""
    if gold.key:
        return (
            f"{', '.join(gold.key)} is certainly right; say which others are right as well, "
            f"or {gold.key} alone if none is."
        )
    if gold.single:
        return "Exactly one option is right."
    return "One option or several may be right."


def build_points_question(
    judged_turn: JudgedTurn, judged_image: Image | None, references: Sequence[tuple[int, str, Image]]
) -> Question:
    """Ask how far an image meets each evaluation point.

    `references` are (turn from 1, `given` or `made`, image). They are shown before the image `judged_image`, if any,
    each under a label with its number.
    """
    gold: PointsGold = judged_turn.turn.gold
    labelled: list[tuple[str, Image]] = []
    material: dict[str, tuple[Part, ...]] = {"output": (judged_image,) if judged_image else ()}
    for turn, kind, image in references:
        labelled.append((LABELS[kind].format(turn), image))
        name = f"{kind} {turn}"
        material[name] = (*material.get(name, ()), image)
    if judged_image:
        labelled.append(("the picture to judge", judged_image))
    images: list[Part] = []
    for number, (label, image) in enumerate(labelled, start=1):
        images += [Text(f"\nImage_{number} ({label}):\n"), image]
    points = [(f"Point {number}", (Text(point),)) for number, point in enumerate(gold.points, start=1)]
    slots: dict[str, Sequence[Part]] = {
        "pictures": images,
        "instruction": fence([Text(judged_turn.turn.prompt_text)], "the instruction that the model was given"),
        "points": fence_pieces(points, "what the points say"),
    }
    parts = fill_slots(judged_turn.rubrics.texts["points"], slots)
    count = len(gold.points)
    more: dict[str, Any] = {"material": material, "gold": gold.points, "detail": build_zero_points(count)}
    more["accepted_schema"] = points_schema(count, is_counted=False)  # `score_points` says which points are missing
    return judged_turn.ask("points", parts, points_schema(count), **more)


def score_choice(question: Question, reply: dict[str, Any]) -> Score:
    """Score the model's choice by the key that the judge worked out."""
    gold, answer = question.gold
    options = mcq.find_options(gold.question)
    union = "".join(sorted({*gold.key, *_read_key(question, reply["determined_answer"])}))
    # A certain letter and "none of the above" exclude each other.
    key = "".join(letter for letter in union if not options.get(letter, "").lower().startswith("none of")) or union
    detail = ChoiceFacts(answer, key, dynamic=True, unlisted=not gold.listed, union=union if union != key else "")
    value = mcq.score_strict(answer, key, options)
    return Score("choice", value, f"{key} is right: {reply['reasoning']}", detail=detail)


def score_points(question: Question, reply: dict[str, Any]) -> Score:
    """Score an image by its points. Raises UnusableReply unless every point has exactly one entry."""
    results: list[dict[str, Any]] = reply["evaluation_results"]
    ids = [int(result["point_id"]) for result in results]
    expected = len(question.gold)
    missing = [str(number) for number in range(1, expected + 1) if number not in ids]
    if missing or len(ids) != expected:
        problem = "a point is scored twice"
        if missing:
            problem = f"points {', '.join(missing)} are missing"
        raise UnusableReply(f"{problem}; every point from 1 to {expected} needs exactly one entry")
    in_order = sorted(results, key=lambda result: result["point_id"])
    points = [int(result["score"]) for result in in_order]
    reason = "; ".join(f"{result['point_id']}: {result['score']}, {result['reason']}" for result in results)
    return Score("points", sum(points) / (5 * expected), reason, sum(points), PointsFacts(tuple(points)))


def _read_key(question: Question, text: str) -> str:
    """Read a key as judges write it: `BD`, `DB`, `B, D`, `b`, `B.`, `B and D`.

    Raises UnusableReply if it names anything but options of the question.
    """
    allowed = question.schema["properties"]["determined_answer"]["enum"]
    letters = mcq.parse_key(text)
    key = text
    if letters is not None:
        key = "".join(sorted(letters))
    if key not in allowed:
        raise UnusableReply(f"$.determined_answer: {text[:80]!r} is none of {', '.join(allowed[:31])}")
    return key


@functools.cache
def points_schema(count: int, *, is_counted: bool = True) -> dict[str, Any]:
    """Build the schema of a reply with `count` evaluation points; if not `is_counted`, of any number of them."""
    entry = object_schema(
        point_id={"type": "integer", "enum": list(range(1, count + 1))},
        reason={"type": "string"},
        score={"type": "integer", "minimum": 0, "maximum": 5},
    )
    results: dict[str, Any] = {"type": "array", "items": entry}
    if is_counted:
        results |= {"minItems": count, "maxItems": count}
    return object_schema(evaluation_results=results)


def _possible_answers(letters: str, single: bool) -> list[str]:
    """Return every answer that a question allows: each letter, and unless `single` each combination of letters."""
    if single:
        return list(letters)
    answers: list[str] = []
    for size in range(1, len(letters) + 1):
        answers += map("".join, itertools.combinations(letters, size))
    return answers
