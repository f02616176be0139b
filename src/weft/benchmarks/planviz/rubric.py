"""PlanScore's three questions to the judge, with their images in the stated order.

    correctness    the output; for editing source, output, reference
    visual         the output; for editing source, output, but not for workflows, which need not resemble their page
    efficiency     the output; for editing source, output

The judge gives a verdict with evidence for each key point, and 0 to 5 for the other two.

With our rubrics, what a dataset, a model or OCR wrote is fenced off. With the official prompts, the message is what the
released code sends: the images as they are, then the prompt with its slots filled; no schema.

Material: `source`, `output`, `reference`, `task`, `points`, `words`.
"""

import re
from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.planviz.data import PlanVizGold
from weft.benchmarks.planviz.facts import PlanFacts
from weft.benchmarks.prompts import fence, fence_pieces, fill_slots, object_schema
from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.models.endpoint import UNDECIDED
from weft.types import Image, Part, Question, Score, Text

CORRECT = "correctness"
VISUAL = "visual"
EFFICIENT = "efficiency"
METRICS = (CORRECT, VISUAL, EFFICIENT)
COLUMNS = {"Cor": CORRECT, "Vis": VISUAL, "Ef": EFFICIENT}  # of tables
CONSISTENT = "Consistency"
COHERENT = "Visual Coherence"
CONSTANTS = {
    "correctness gen": "TEMPLATE_CORRECTNESS_GENERATION",
    "correctness edit": "TEMPLATE_CORRECTNESS_EDITING",
    "visual gen": "TEMPLATE_VISUAL_GENERATION",
    "visual edit": "TEMPLATE_VISUAL_EDIT",
    "efficiency gen": "TEMPLATE_EFFICIENCY_GEN",
    "efficiency edit": "TEMPLATE_EFFICIENCY_EDIT",
}
ANSWER_KINDS = ("an answer", "the source again", "something else")  # what an edited image can be
MAX_SCORE = 5


def score_key(metric: str, without_source: bool) -> str:
    """Return the reply's key for the score."""
    if metric == CORRECT:
        return "Correctness"
    if metric == EFFICIENT:
        return "Efficiency"
    if without_source:
        return COHERENT
    return CONSISTENT


def build_scale_schema(key: str) -> dict[str, Any]:
    score = {"type": "integer", "minimum": 0, "maximum": MAX_SCORE}
    return object_schema(explanation={"type": "string"}, **{key: score})


def _build_released_schema(key: str, max_score: int) -> dict[str, Any]:
    score = {"type": "number", "minimum": 0, "maximum": max_score}
    return object_schema(explanation={"type": "string"}, **{key: score})


def build_points_schema(gold: PlanVizGold) -> dict[str, Any]:
    """Return the schema of a reply with a verdict for each key point."""
    count = len(gold.points)
    number = {"type": "integer", "enum": list(range(1, count + 1))}
    entry = object_schema(point=number, evidence={"type": "string"}, satisfied={"type": "boolean"})
    properties: dict[str, Any] = {}
    if gold.is_edit:
        properties["picture_is"] = {"type": "string", "enum": list(ANSWER_KINDS)}
    if gold.subtask == "workflow":
        properties["unnecessary_steps"] = {"type": "integer", "minimum": 0, "maximum": 99}
    properties["points"] = {"type": "array", "items": entry, "minItems": count, "maxItems": count}
    return object_schema(**properties)


def build_points_question(judged_turn: JudgedTurn, words: Sequence[str] | None, variant: str = "") -> Question:
    """Return the question which key points the image meets. `words` are the lines that OCR read in it, if it was
    asked."""
    gold: PlanVizGold = judged_turn.turn.gold
    prompt = judged_turn.turn.prompt_text
    material = _build_material(judged_turn)
    material["points"] = tuple(map(Text, gold.points))
    if words is not None:
        material["words"] = tuple(map(Text, words))
    detail = PlanFacts(expected=len(gold.points), deduct=judged_turn.options.deduct)
    if judged_turn.rubrics.official_prompts:
        numbered = "".join(f"{number}. {point} " for number, point in enumerate(gold.written_points, start=1))
        images: Sequence[Image | None] = [judged_turn.image]
        if gold.is_edit:
            images = [gold.source, judged_turn.image, gold.reference]
        return judged_turn.ask(
            CORRECT,
            _build_released_parts(
                images, _format(judged_turn.rubrics.texts[f"{CORRECT} {gold.task}"], prompt, numbered)
            ),
            _build_released_schema("Correctness", len(gold.points)),
            material=material,
            value_key="Correctness",
            text_only=True,
            gold=gold,
            detail=detail,
            variant=variant,
        )
    slots: dict[str, Sequence[Part]] = {
        "pictures": _build_points_images(gold, judged_turn.image),
        "task": fence_pieces(name_points(prompt, gold), "the request and its key points"),
        "words": _build_witness(judged_turn, words),
        "kind": [Text(judged_turn.rubrics.texts[f"kind_{gold.subtask}_{gold.task}"])],
    }
    return judged_turn.ask(
        CORRECT,
        fill_slots(judged_turn.rubrics.texts[f"{CORRECT}_{gold.task}"], slots),
        build_points_schema(gold),
        material=material,
        gold=gold,
        detail=detail,
        variant=variant,
    )


def name_points(prompt: str, gold: PlanVizGold) -> list[tuple[str, tuple[Text]]]:
    """Return the request and each key point, by what they are."""
    points = [(f"Key point {number}", (Text(point),)) for number, point in enumerate(gold.points, start=1)]
    return [("Request", (Text(prompt),)), *points]


def _build_points_images(gold: PlanVizGold, image: Image) -> list[Part]:
    parts: list[Part] = []
    if gold.source is not None:
        parts += [Text("\nThe source picture, as it was given:\n"), gold.source]
    parts += [Text("\nThe picture to judge:\n"), image]
    if gold.reference is not None:
        parts += [Text("\nReference, one way to do it right:\n"), gold.reference]
    return [*parts, Text("\n")]


def build_question(
    metric: str,
    judged_turn: JudgedTurn,
    *,
    without_source: bool,
    detail: PlanFacts | None = None,
    variant: str = "",
) -> Question:
    """Return the question about visual quality or efficiency."""
    gold: PlanVizGold = judged_turn.turn.gold
    prompt = judged_turn.turn.prompt_text
    key = score_key(metric, without_source)
    fields: dict[str, Any] = {
        "material": _build_material(judged_turn),
        "value_key": key,
        "reason_key": "explanation",
        "gold": gold,
        "detail": detail,
        "variant": variant,
    }
    if judged_turn.rubrics.official_prompts:
        images: Sequence[Image | None] = [gold.source, judged_turn.image]
        text = judged_turn.rubrics.texts[f"{metric} edit"]
        if without_source:
            images = [judged_turn.image]
            text = judged_turn.rubrics.texts[f"{metric} gen"]
        if metric == EFFICIENT:
            text = _format(text, prompt)
        parts = _build_released_parts(images, text)
        return judged_turn.ask(metric, parts, _build_released_schema(key, MAX_SCORE), text_only=True, **fields)
    image_parts: list[Part] = []
    rubric = f"{metric}_alone"
    if not without_source:
        image_parts += [Text("\nThe source picture, as it was given:\n"), *_optional(gold.source)]
        rubric = f"{metric}_edit"
    slots: dict[str, Sequence[Part]] = {
        "pictures": [*image_parts, Text("\nThe picture to judge:\n"), judged_turn.image, Text("\n")],
        "task": fence([Text(f"Request: {prompt}")], "the request"),
    }
    return judged_turn.ask(
        metric, fill_slots(judged_turn.rubrics.texts[rubric], slots), build_scale_schema(key), **fields
    )


def build_points_score(question: Question, reply: dict[str, Any], *, deduct: bool) -> Score:
    """Return Cor from a verdict for each point; undecided if all points are.

    Raises UnusableReply unless each point is there once.
    """
    gold: PlanVizGold = question.gold
    entries: list[dict[str, Any]] = sorted(reply["points"], key=lambda entry: entry["point"])
    if [entry["point"] for entry in entries] != list(range(1, len(gold.points) + 1)):
        raise UnusableReply(f"every point from 1 to {len(gold.points)} must be there, each once")
    undecided: Sequence[int] = reply.get(UNDECIDED, ())
    decided = [entry for entry in entries if entry["point"] not in undecided]
    met = tuple(int(entry["satisfied"]) for entry in decided)
    kind = str(reply.get("picture_is", ANSWER_KINDS[0]))
    unnecessary_steps = int(reply.get("unnecessary_steps", 0))
    deduction = 0
    if deduct and gold.is_edit:
        deduction = unnecessary_steps
    elif deduct:
        deduction = min(1, unnecessary_steps)
    score = 0
    if kind == ANSWER_KINDS[0]:
        score = max(0, sum(met) - deduction)
    reasons: list[str] = []
    if kind != ANSWER_KINDS[0]:
        reasons.append(f"it is {kind}, so no point counts")
    if unnecessary_steps:
        reasons.append(_describe_steps(unnecessary_steps, deduction))
    reasons += map(_describe_point, decided)
    reasons += [f"? {number}. no plain words: not decided" for number in undecided]
    if "words" in question.material:
        words = [part.text for part in question.material["words"] if isinstance(part, Text)]
        reasons.append(f"words that OCR read: {' | '.join(words) or 'none'}")
    facts = PlanFacts(met, tuple(undecided), unnecessary_steps=unnecessary_steps)
    if not met:
        return Score(CORRECT, None, "\n".join(reasons), detail=facts)
    return Score(CORRECT, score / len(met), "\n".join(reasons), score, facts)


def _describe_steps(unnecessary_steps: int, deduction: int) -> str:
    text = f"{unnecessary_steps} unnecessary step{'s' * (unnecessary_steps != 1)}"
    if deduction:
        return f"{text}, {deduction} off"
    return text


def _describe_point(entry: dict[str, Any]) -> str:
    sign = "-"
    if entry["satisfied"]:
        sign = "+"
    return f"{sign} {entry['point']}. {entry['evidence']}"


def _build_material(judged_turn: JudgedTurn) -> dict[str, tuple[Part, ...]]:
    gold: PlanVizGold = judged_turn.turn.gold
    return {
        "source": _optional(gold.source),
        "output": (judged_turn.image,),
        "reference": _optional(gold.reference),
        "task": (Text(judged_turn.turn.prompt_text),),
    }


def _optional(image: Image | None) -> tuple[Image, ...]:
    if image is None:
        return ()
    return (image,)


def _build_witness(judged_turn: JudgedTurn, words: Sequence[str] | None) -> Sequence[Part]:
    if words is None:
        return []
    lines = [" ".join(line.splitlines()) for line in words]
    reader_lines = [Text("\n".join(lines))] if lines else []
    return [
        Text(judged_turn.rubrics.texts["witness"]),
        *fence(reader_lines, "what the reader found, line by line"),
        Text("\n"),
    ]


def _build_released_parts(images: Sequence[Image | None], text: str) -> list[Part]:
    return [*(image for image in images if image is not None), Text(text)]


def _format(text: str, *slots: str) -> str:
    """Fill a prompt's slots in their order, as `str.format` does it. What is filled in is not parsed again."""
    if text.count("{}") != len(slots):
        raise UserError(
            f"a prompt of the checkout has {text.count('{}')} slots where {len(slots)} are expected: is it another "
            "version?"
        )
    values = iter(slots)

    def replace_match(match: re.Match[str]) -> str:
        if match.group() == "{}":
            return next(values)
        return match.group()[0]

    return re.sub(r"\{\}|\{\{|\}\}", replace_match, text)
