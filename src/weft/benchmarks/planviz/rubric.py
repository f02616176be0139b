"""PlanScore's three questions to the judge, with their pictures in the stated order.

    correctness    the made picture; for editing source, made, reference          a verdict for each key point, with
    what is seen
    visual         the made picture; for editing source, made, but for workflows, which need not resemble their page
    0 to 5
    efficiency     the made picture; for editing source, made                     0 to 5

With our rubrics what a dataset, a model or a reader of words wrote is fenced off. With the official prompts the message
is what the released code sends: the pictures as they are, then the prompt with its slots filled; no schema.

Material: `source`, `made`, `reference`, `task`, `points`, `words`."""

import re
from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.planviz.data import PlanVizGold
from weft.benchmarks.planviz.facts import PlanFacts
from weft.benchmarks.prompts import fence, fill_slots, object_schema
from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.models.endpoint import UNDECIDED
from weft.types import Image, Part, Question, Score, Text

CORRECT = "correctness"
VISUAL = "visual"
EFFICIENT = "efficiency"
METRICS = (CORRECT, VISUAL, EFFICIENT)
COLUMNS = {"Cor": CORRECT, "Vis": VISUAL, "Ef": EFFICIENT}  # as tables call them
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
ANSWERS = ("an answer", "the source again", "something else")  # what an edited picture is
FULL = 5


def score_key(metric: str, alone: bool) -> str:
    """The reply's key for the score."""
    return {CORRECT: "Correctness", EFFICIENT: "Efficiency"}.get(metric, COHERENT if alone else CONSISTENT)


def build_scale_schema(key: str) -> dict[str, Any]:
    return object_schema(explanation={"type": "string"}, **{key: {"type": "integer", "minimum": 0, "maximum": FULL}})


def build_points_schema(goal: PlanVizGold) -> dict[str, Any]:
    number = {"type": "integer", "enum": list(range(1, len(goal.points) + 1))}
    entry = object_schema(point=number, evidence={"type": "string"}, satisfied={"type": "boolean"})
    due = len(goal.points)
    if goal.is_edit:
        more: dict[str, Any] = {"picture_is": {"type": "string", "enum": list(ANSWERS)}}
    else:
        more = {}
    more |= (
        {"unnecessary_steps": {"type": "integer", "minimum": 0, "maximum": 99}} if goal.subtask == "workflow" else {}
    )
    return object_schema(**more, points={"type": "array", "items": entry, "minItems": due, "maxItems": due})


def build_points_question(answered: JudgedTurn, words: Sequence[str] | None, **more: Any) -> Question:
    """Which key points the picture meets; `words` are what a reader of words found in it, if one was asked."""
    goal: PlanVizGold = answered.turn.gold
    made = answered.image
    prompt = answered.turn.prompt_text
    more = {"detail": PlanFacts(expected=len(goal.points), deduct=answered.options.deduct), **more}
    listed = "\n".join(f"{number}. {point}" for number, point in enumerate(goal.points, start=1))
    material: dict[str, tuple[Part, ...]] = {
        **_pictures(goal, made),
        "task": (Text(prompt),),
        "points": tuple(map(Text, goal.points)),
        **({"words": tuple(map(Text, words))} if words is not None else {}),
    }
    if answered.rubrics.official:
        joined = "".join(f"{number}. {point} " for number, point in enumerate(goal.points, start=1))
        if goal.is_edit:
            pictures = [goal.source, made, goal.reference]
        else:
            pictures = [made]
        asked = _formatted(answered.rubrics.texts[f"{CORRECT} {goal.task}"], prompt, joined)
        number = {"type": "number", "minimum": 0, "maximum": len(goal.points)}
        schema = object_schema(explanation={"type": "string"}, Correctness=number)
        return answered.ask(
            CORRECT,
            _released(pictures, asked),
            schema,
            material=material,
            value_key="Correctness",
            text_only=True,
            gold=goal,
            **more,
        )
    shown = [Text("\nThe picture to judge:\n"), made]
    if goal.is_edit:
        shown = [Text("\nThe source picture, as it was given:\n"), *_some(goal.source), *shown]
        shown += [Text("\nReference, one way to do it right:\n"), goal.reference] if goal.reference else []
    slots: dict[str, Sequence[Part]] = {
        "pictures": [*shown, Text("\n")],
        "task": fence([Text(f"Request: {prompt}\n\nKey points:\n{listed}")], "the request and its key points"),
        "words": _witness(answered, words),
        "kind": [Text(answered.rubrics.texts[f"kind_{goal.subtask}_{goal.task}"])],
    }
    name = f"{CORRECT}_{goal.task}"
    return answered.ask(
        CORRECT,
        fill_slots(answered.rubrics.texts[name], slots),
        build_points_schema(goal),
        material=material,
        gold=goal,
        **more,
    )


def build_question(metric: str, answered: JudgedTurn, *, alone: bool, **more: Any) -> Question:
    """Visual quality or efficiency; `alone`: without the source."""
    goal: PlanVizGold = answered.turn.gold
    made = answered.image
    prompt = answered.turn.prompt_text
    key = score_key(metric, alone)
    more = {
        "material": {**_pictures(goal, made), "task": (Text(prompt),)},
        "value_key": key,
        "reason_key": "explanation",
        "gold": goal,
        **more,
    }
    if answered.rubrics.official:
        text = answered.rubrics.texts[f"{metric} {'gen' if alone else 'edit'}"]
        if metric == EFFICIENT:
            asked = _formatted(text, prompt)
        else:
            asked = text
        number = {"type": "number", "minimum": 0, "maximum": FULL}
        schema = object_schema(explanation={"type": "string"}, **{key: number})
        return answered.ask(
            metric, _released([made] if alone else [goal.source, made], asked), schema, text_only=True, **more
        )
    if alone:
        shown: list[Part] = []
    else:
        shown = [Text("\nThe source picture, as it was given:\n"), *_some(goal.source)]
    slots: dict[str, Sequence[Part]] = {
        "pictures": [*shown, Text("\nThe picture to judge:\n"), made, Text("\n")],
        "task": fence([Text(f"Request: {prompt}")], "the request"),
    }
    name = f"{metric}_{'alone' if alone else 'edit'}"
    return answered.ask(metric, fill_slots(answered.rubrics.texts[name], slots), build_scale_schema(key), **more)


def build_points_score(question: Question, found: dict[str, Any], *, deduct: bool) -> Score:
    """Cor from a verdict for each point. Each must be there once."""
    goal: PlanVizGold = question.gold
    entries: list[dict[str, Any]] = sorted(found["points"], key=lambda one: one["point"])
    if [one["point"] for one in entries] != list(range(1, len(goal.points) + 1)):
        raise UnusableReply(f"every point from 1 to {len(goal.points)} must be there, each once")
    left: Sequence[int] = found.get(UNDECIDED, ())
    entries = [one for one in entries if one["point"] not in left]
    met = [one["satisfied"] for one in entries]
    kind = str(found.get("picture_is", ANSWERS[0]))
    extra = int(found.get("unnecessary_steps", 0))
    if deduct:
        if goal.is_edit:
            less = extra
        else:
            less = min(1, extra)
    else:
        less = 0
    if kind == ANSWERS[0]:
        score = max(0, sum(met) - less)
    else:
        score = 0
    told = [f"it is {kind}, so no point counts"] if kind != ANSWERS[0] else []
    told += [f"{extra} unnecessary step{'s' * (extra != 1)}" + (f", {less} off" if less else "")] if extra else []
    told += [f"{'+' if one['satisfied'] else '-'} {one['point']}. {one['evidence']}" for one in entries]
    told += [f"? {number}. no plain words: not decided" for number in left]
    read = [part.text for part in question.material.get("words", ()) if isinstance(part, Text)]
    told += [f"words that OCR read: {' | '.join(read) or 'none'}"] if "words" in question.material else []
    return Score(
        CORRECT,
        score / len(met),
        "\n".join(told),
        score,
        PlanFacts(tuple(map(int, met)), tuple(left), unnecessary_steps=extra),
    )


def _pictures(goal: PlanVizGold, made: Image) -> dict[str, tuple[Part, ...]]:
    return {"source": _some(goal.source), "made": (made,), "reference": _some(goal.reference)}


def _some(image: Image | None) -> tuple[Image, ...]:
    if image is None:
        return ()
    return (image,)


def _witness(answered: JudgedTurn, words: Sequence[str] | None) -> Sequence[Part]:
    if words is None:
        return []
    told = Text("\n".join(words) if words else "(no words)")
    return [Text(answered.rubrics.texts["witness"]), *fence([told], "what the reader found, line by line"), Text("\n")]


def _released(pictures: Sequence[Image | None], text: str) -> list[Part]:
    return [*(picture for picture in pictures if picture is not None), Text(text)]


def _formatted(text: str, *slots: str) -> str:
    """A prompt with its slots filled in their order, as `str.format` does it; what is filled in is not looked at
    again."""
    if text.count("{}") != len(slots):
        raise UserError(
            f"a prompt of the checkout has {text.count('{}')} slots where {len(slots)} are known: is it another version?"
        )
    rest = iter(slots)
    return re.sub(r"\{\}|\{\{|\}\}", lambda match: next(rest) if match.group() == "{}" else match.group()[0], text)
