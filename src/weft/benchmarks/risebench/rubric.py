"""The questions about an edit: consistency, reasoning, plausibility; with weft's rubrics, or as the released script
asks.

Material: `source`, `output`, `reference`, `task`.
"""

import re
from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.edits.pixels import shrink_image
from weft.benchmarks.prompts import fence_pieces, fill_slots, object_schema
from weft.benchmarks.risebench.data import RiseGold
from weft.benchmarks.risebench.scoring import CONSISTENCY, PLAUSIBILITY, REASONING, list_metrics
from weft.store.blobs import Blobs
from weft.types import Image, Part, Question, Text

SLOT = re.compile(r"\{(instruct|reference)\}|\{\{|\}\}")
RELEASED_SIDE = 768  # the longest side of an image that the released script sends


def build_questions(judged_turn: JudgedTurn) -> list[Question]:
    """Return the questions with our rubrics."""
    gold: RiseGold = judged_turn.turn.gold
    return [_ask(judged_turn, metric, _fill(judged_turn, metric)) for metric in list_metrics(gold.rules)]


def build_released_questions(judged_turn: JudgedTurn, blobs: Blobs) -> list[Question]:
    """Return the questions as the released script asks them, whatever it shows as the original."""
    gold: RiseGold = judged_turn.turn.gold
    made = shrink_image(judged_turn.image, RELEASED_SIDE, blobs)
    original = shrink_image(gold.reference_image or gold.source, RELEASED_SIDE, blobs)
    questions: list[Question] = []
    for metric in list_metrics(gold.rules):
        key, shows_original = _choose_prompt(metric, gold)
        values = {"instruct": judged_turn.turn.prompt_text, "reference": gold.reference_text}
        text = judged_turn.rubrics.texts[key]
        if key not in UNFORMATTED:
            text = _format(text, values)
        images = [original, made] if shows_original else [made]
        questions.append(_ask(judged_turn, metric, [Text(text), *images], text_only=True, jpeg=True))
    return questions


# the script sends these as they are, without filling slots
UNFORMATTED = ("plausibility", "plausibility spatial", "reasoning logical, image alone")


def _choose_prompt(metric: str, gold: RiseGold) -> tuple[str, bool]:
    """Return the prompt that the script takes, and whether it shows what it takes for the original."""
    has_image = gold.reference_image is not None
    name = metric
    if gold.category == "spatial":
        name = f"{metric} spatial"
    if metric == PLAUSIBILITY:
        return name, False
    if gold.category == "logical":
        if not has_image:
            return f"{metric} logical, words", metric == CONSISTENCY
        if metric == REASONING and gold.hides_request:
            return "reasoning logical, image alone", True
        return f"{metric} logical, image", True
    if metric == CONSISTENCY:
        return name, True
    if has_image:
        return f"{name}, image", True
    if gold.shows_source:
        return f"{name}, source", True
    return name, False


def _format(text: str, values: dict[str, str]) -> str:
    """Fill `{instruct}` and `{reference}`, and undouble braces, as `str.format` does; nothing filled in is parsed."""
    return SLOT.sub(lambda match: values[match[1]] if match[1] else match[0][0], text)


def _fill(judged_turn: JudgedTurn, metric: str) -> tuple[Part, ...]:
    """Fill our rubric for a metric."""
    gold: RiseGold = judged_turn.turn.gold
    made = [Text("\nThe result to judge:\n"), judged_turn.image, Text("\n")]
    if metric == PLAUSIBILITY:
        return fill_slots(judged_turn.rubrics.texts[metric], {"pictures": made})
    pieces: list[tuple[str, Sequence[Part]]] = [("Request", [Text(judged_turn.turn.prompt_text)])]
    if gold.reference_text:
        pieces.append(("The right result, in words", [Text(gold.reference_text)]))
    images: list[Part] = [Text("\nThe source picture:\n"), gold.source]
    if gold.reference_image is not None and metric == REASONING:
        images += [Text("\nThe right result, as a picture:\n"), gold.reference_image]
    slots = {"task": fence_pieces(pieces, "the request"), "pictures": [*images, *made]}
    name = f"{metric}_logical" if gold.rules.is_logical else metric
    return fill_slots(judged_turn.rubrics.texts[name], slots)


def max_score(gold: RiseGold) -> int:
    return 1 if gold.rules.is_logical else 5


def _ask(judged_turn: JudgedTurn, metric: str, parts: Sequence[Part], **more: Any) -> Question:
    gold: RiseGold = judged_turn.turn.gold
    low = 0 if gold.rules.is_logical else 1
    score = {"type": "integer", "minimum": low, "maximum": max_score(gold)}
    return judged_turn.ask(
        metric,
        parts,
        object_schema(reasoning={"type": "string"}, score=score),
        material=_build_material(judged_turn),
        gold=gold,
        detail=gold.rules,
        **more,
    )


def _build_material(judged_turn: JudgedTurn) -> dict[str, tuple[Part, ...]]:
    gold: RiseGold = judged_turn.turn.gold
    reference: tuple[Image, ...] = ()
    if gold.reference_image is not None:
        reference = (gold.reference_image,)
    return {
        "source": (gold.source,),
        "output": (judged_turn.image,),
        "reference": reference,
        "task": (Text(judged_turn.turn.prompt_text),),
    }
