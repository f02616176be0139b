"""The question about an edit: three scores from 1 to 5 in one call, or one score for UGE.

With the released prompts the scores have the names that the prompt asks for, in its order. Material: `source` (the
image before this turn), `output`, `task`.
"""

from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.imgedit import official_reading
from weft.benchmarks.imgedit.data import MULTI_TURN, UGE, ImgEditGold
from weft.benchmarks.prompts import fence, fence_pieces, fill_slots, object_schema
from weft.types import Image, Part, Question, Score, Text

METRICS = ("compliance", "seamlessness", "detail")
UGE_METRIC = "uge"
SCALE = {"type": "integer", "minimum": 1, "maximum": official_reading.MAX_SCORE}
RELEASED_SCALE = {"type": "number", "minimum": 1, "maximum": official_reading.MAX_SCORE}


def build_question(judged_turn: JudgedTurn) -> Question:
    """Return the question about an edit, with our rubric or the released prompt."""
    gold: ImgEditGold = judged_turn.turn.gold
    if judged_turn.rubrics.official_prompts and gold.suite != MULTI_TURN:
        return _build_released_question(judged_turn)
    texts = judged_turn.rubrics.texts
    slots: dict[str, Sequence[Part]] = {"task": _build_task(judged_turn), "pictures": _build_images(judged_turn)}
    if gold.suite == UGE:
        schema = object_schema(reasoning={"type": "string"}, score=SCALE)
        return _ask(judged_turn, fill_slots(texts[UGE], slots), schema)
    slots["criteria"] = [Text(texts[f"type_{gold.edit_type or 'dialogue'}"].strip())]
    entry = object_schema(reasoning={"type": "string"}, score=SCALE)
    return _ask(judged_turn, fill_slots(texts["edit"], slots), object_schema(**dict.fromkeys(METRICS, entry)))


def list_metrics(gold: ImgEditGold) -> tuple[str, ...]:
    """Return the metrics that the judge is asked about an edit."""
    if gold.suite == UGE:
        return (UGE_METRIC,)
    return METRICS


def build_scores(question: Question, reply: dict[str, Any]) -> list[Score]:
    """Return a score for each metric, as a share of five."""
    scores: list[Score] = []
    names = list(question.schema["properties"])
    for place, metric in enumerate(question.metrics):
        entry = reply
        key = "score"
        if len(question.metrics) > 1 and not question.text_only:
            entry = reply[metric]
        elif len(question.metrics) > 1:
            key = names[place]
        number = float(entry[key])
        scores.append(Score(metric, number / official_reading.MAX_SCORE, str(entry.get("reasoning", "")), number))
    return scores


def find_image_before(judged_turn: JudgedTurn) -> Image:
    """Return the image that a turn begins with: the last one that the model made before, else the source."""
    gold: ImgEditGold = judged_turn.turn.gold
    for number in range(judged_turn.turn.number - 1, -1, -1):
        image = judged_turn.image_of_turn(number)
        if image is not None:
            return image
    return gold.source


def _build_task(judged_turn: JudgedTurn) -> Sequence[Part]:
    """Return the request; in a dialogue all requests so far, the one to judge last."""
    number = judged_turn.turn.number
    if number == 0:
        return fence([Text(judged_turn.turn.prompt_text)], "the request")
    pieces: list[tuple[str, Sequence[Part]]] = []
    for turn in judged_turn.sample.turns[: number + 1]:
        label = "Request to judge" if turn.number == number else "Earlier request"
        pieces.append((f"{label}, turn {turn.number + 1}", [Text(turn.prompt_text)]))
    return fence_pieces(pieces, "the requests")


def _build_images(judged_turn: JudgedTurn) -> Sequence[Part]:
    """Return the images; in a dialogue every one that the model made before, since a request may go back to it."""
    gold: ImgEditGold = judged_turn.turn.gold
    parts: list[Part] = [Text("\nThe source picture:\n"), gold.source]
    for number in range(judged_turn.turn.number):
        image = judged_turn.image_of_turn(number)
        if image is not None:
            parts += [Text(f"\nThe picture after turn {number + 1}:\n"), image]
    return [*parts, Text("\nThe edited picture to judge:\n"), judged_turn.image, Text("\n")]


def _build_released_question(judged_turn: JudgedTurn) -> Question:
    gold: ImgEditGold = judged_turn.turn.gold
    prompt = judged_turn.rubrics.texts[gold.edit_type or UGE]
    text = prompt.replace("<edit_prompt>", judged_turn.turn.prompt_text)
    names = official_reading.find_names(prompt) if gold.suite != UGE else ["score"]
    properties: dict[str, Any] = {**dict.fromkeys(names, RELEASED_SCALE), "reasoning": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": names, "additionalProperties": False}
    return _ask(judged_turn, (Text(text), gold.source, judged_turn.image), schema, text_only=True)


def _ask(judged_turn: JudgedTurn, parts: Sequence[Part], schema: dict[str, Any], **more: Any) -> Question:
    material: dict[str, tuple[Part, ...]] = {
        "source": (find_image_before(judged_turn),),
        "output": (judged_turn.image,),
        "task": (Text(judged_turn.turn.prompt_text),),
    }
    return judged_turn.ask(list_metrics(judged_turn.turn.gold), parts, schema, material=material, **more)
