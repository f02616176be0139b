"""IMUG-Bench's two questions to the judge: the true answer to a dynamic question, and the evaluation points of a picture.

The judge sees what the model really replied, text included, and only letters that are options of the question are an answer. Points
must come back complete, each once; what is missing is asked for again.
"""

import hashlib
import importlib.resources
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from weft.benchmarks import Rubrics
from weft.benchmarks.imug import mcq
from weft.benchmarks.imug.data import Choice
from weft.errors import UserError
from weft.judges.fence import fence, joined
from weft.judges.parse import Unusable
from weft.types import Image, Message, Part, Place, Question, Reply, Text, Turn

NAMES = ("system", "dynamic", "points")


def rubrics(prompts: str) -> Rubrics:
    if prompts != "weft":
        raise UserError(f"--prompts {prompts}: imug has weft's own prompts alone")
    folder = importlib.resources.files("weft.benchmarks.imug") / "rubrics"
    texts = {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in NAMES}
    return Rubrics(texts, "weft", hashlib.sha256(msgspec.json.encode(texts, order="deterministic")).hexdigest())


def about_key(rubric: Rubrics, turn: Turn, earlier: Sequence[tuple[Turn, Reply]], answer: str, place: Place) -> Question:
    """Which letters are right, given the replies that the question is about. `answer` is what the model chose: it is not shown."""
    gold: Choice = turn.gold
    told: list[Part] = []
    for other, reply in earlier:
        told += [Text(f"\nTurn {other.number + 1}. Asked: {other.asked}\nReplied: "), *(reply.parts or (Text("(nothing)"),))]
    letters = "".join(mcq.options(gold.question)) or mcq.LETTERS
    how = "Exactly one option is right." if gold.single else "One option or several may be right."
    if gold.key:
        how = f"{', '.join(gold.key)} is certainly right; say which others are right as well, or {gold.key} alone if none is."
    parts = _filled(
        rubric.texts["dynamic"],
        {
            "turns": fence(told, "the earlier turns, as they really went"),
            "question": fence([Text(gold.question)], "the question with its options"),
            "choice": (Text(how),),
        },
    )
    schema = _object(reasoning={"type": "string"}, determined_answer={"type": "string", "enum": _answers(letters, gold.single)})
    detail = {"response": answer, "key": gold.raw, "dynamic": True}
    return Question("choice", (Message("user", parts),), schema, replace(place, metric="choice"), gold=(gold, answer), detail=detail)


def about_points(
    rubric: Rubrics, turn: Turn, references: Sequence[tuple[str, Image]], made: Image, points: Sequence[str], place: Place
) -> Question:
    """How far a picture meets each point; references and the picture itself under labels that agree with their order."""
    shown: list[Part] = []
    for number, (name, image) in enumerate([*references, ("the picture to judge", made)], start=1):
        shown += [Text(f"\nImage_{number} ({name}):\n"), image]
    listed = "\n".join(f"{number}. {point}" for number, point in enumerate(points, start=1))
    parts = _filled(
        rubric.texts["points"],
        {
            "pictures": shown,
            "instruction": fence([Text(turn.asked)], "the instruction that the model was given"),
            "points": fence([Text(listed)], "the points"),
        },
    )
    ids = list(range(1, len(points) + 1))
    entry = _object(
        point_id={"type": "integer", "enum": ids}, reason={"type": "string"}, score={"type": "integer", "minimum": 0, "maximum": 5}
    )
    schema = _object(evaluation_results={"type": "array", "items": entry})
    detail = {"points": [0] * len(points)}
    return Question("points", (Message("user", parts),), schema, replace(place, metric="points"), gold=tuple(points), detail=detail)


def read(question: Question, found: dict[str, Any]) -> tuple[float, str, Any]:
    """The verdict: a share of 1, why, and what the official arithmetic needs."""
    if question.metric == "choice":
        gold, answer = question.gold
        union = "".join(sorted({*gold.key, *found["determined_answer"]}))
        none = {letter for letter, text in mcq.options(gold.question).items() if text.lower().startswith("none of")}
        key = (
            "".join(letter for letter in union if letter not in none) or union
        )  # what is certain and "none of the above" exclude each other
        detail = {"response": answer, "key": key, "dynamic": True, **({"union": union} if union != key else {})}
        return mcq.score(answer, key, mcq.options(gold.question)), f"{key} is right: {found['reasoning']}", detail
    results: list[dict[str, Any]] = found["evaluation_results"]
    ids = [int(result["point_id"]) for result in results]
    due = len(question.gold)
    missing = [number for number in range(1, due + 1) if number not in ids]
    if missing or len(ids) != due:
        what = f"points {', '.join(map(str, missing))} are missing" if missing else "a point is scored twice"
        raise Unusable(f"{what}; every point from 1 to {due} needs exactly one entry")
    scores = [int(result["score"]) for result in sorted(results, key=lambda one: one["point_id"])]
    why = "; ".join(f"{result['point_id']}: {result['score']}, {result['reason']}" for result in results)
    return sum(scores) / (5 * due), why, {"points": scores}


def _answers(letters: str, single: bool) -> list[str]:
    most = 1 if single else len(letters)
    return ["".join(some) for size in range(1, most + 1) for some in itertools.combinations(letters, size)]


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _filled(text: str, slots: dict[str, Sequence[Part]]) -> tuple[Part, ...]:
    parts: list[Part] = [Text(text)]
    for name, filling in slots.items():
        slot = f"[[{name}]]"
        at = next(i for i, part in enumerate(parts) if isinstance(part, Text) and slot in part.text)
        part = parts[at]
        before, _, after = part.text.partition(slot) if isinstance(part, Text) else ("", "", "")
        parts[at : at + 1] = [Text(before), *filling, Text(after)]
    return joined(parts)
