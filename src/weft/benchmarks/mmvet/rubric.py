"""The question about an answer: how far it agrees with the reference, in tenths. The judge reads words alone; with the
released prompt it completes a line of a table.

Material: `question`, `reference`, `answer`.
"""

from collections.abc import Mapping
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.mmvet.data import AnswerGold, list_elements
from weft.benchmarks.mmvet.official_reading import build_prompt
from weft.benchmarks.prompts import fence, fill_slots, object_schema
from weft.calls.structured_output import UnusableReply
from weft.types import Part, Question, Score, Text

CORRECTNESS = "correctness"
TENTHS = 10
NEAR = 1e-6  # a tenth written as a decimal is no further from it
SCHEMA = object_schema(reasoning={"type": "string"}, tenths={"type": "integer", "minimum": 0, "maximum": TENTHS})


def build_question(judged_turn: JudgedTurn) -> Question:
    """Return the question about a reply."""
    gold: AnswerGold = judged_turn.turn.gold
    asked = judged_turn.turn.prompt_text
    answer = judged_turn.reply.text
    material = {"question": (Text(asked),), "reference": (Text(gold.answer),), "answer": (Text(answer),)}
    is_official = judged_turn.rubrics.official_prompts
    if is_official:
        prompt = judged_turn.rubrics.texts["answer"]
        parts: tuple[Part, ...] = (Text(build_prompt(prompt, asked, gold.answer, judged_turn.reply.raw_text)),)
    else:
        slots = {
            "elements": [Text(describe_elements(gold.answer))],
            "question": fence([Text(asked)], "the question"),
            "reference": fence([Text(gold.answer)], "the reference answer"),
            "answer": fence([Text(answer)], "the answer to grade"),
        }
        parts = fill_slots(judged_turn.rubrics.texts[CORRECTNESS], slots)
    return judged_turn.ask(CORRECTNESS, parts, SCHEMA, material=material, gold=gold, text_only=is_official)


def describe_elements(answer: str) -> str:
    """Say how a reference is to be read: how many elements it has, and whether some have alternatives."""
    elements = list_elements(answer)
    words = "one element"
    if len(elements) > 1:
        words = f"{len(elements)} elements with <AND> between them, each of which is needed"
    if any(len(alternatives) > 1 for alternatives in elements):
        words += "; <OR> stands between alternatives, any one of which is enough"
    return words


def parse_number(text: str) -> dict[str, Any] | None:
    """Return the score of a reply that is a number and nothing else; None if it is something else."""
    try:
        number = float(text.strip().rstrip("."))
    except ValueError:
        return None
    if not 0 <= number <= 1:
        return None
    return {"score": number}


def build_score(parsed: Mapping[str, Any]) -> Score:
    """Return the score of a reply. Raises UnusableReply for a number of the released prompt between two tenths."""
    if "tenths" in parsed:
        tenths = int(parsed["tenths"])
    else:
        number = float(parsed["score"])
        tenths = round(TENTHS * number)
        if abs(TENTHS * number - tenths) > TENTHS * NEAR:
            raise UnusableReply(f"the score {number:g} is between two tenths")
    value = tenths / TENTHS
    return Score(CORRECTNESS, value, str(parsed.get("reasoning", "")), value)
