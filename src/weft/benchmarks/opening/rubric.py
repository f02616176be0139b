"""How good one answer is, in seven respects from 0 to 10, by one call; with our rubric, or as the released script asks.
Material: `input`, `output`."""

from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.documents import SHEETS_NOTE, DocumentSection, Sheet, format_sections
from weft.benchmarks.opening import released
from weft.benchmarks.prompts import fill_slots, object_schema
from weft.store.blobs import Blobs
from weft.types import Message, Part, Question, Text

CRITERIA = ("Completeness", "Content Quality", "Content Richness", "Correctness", "Human Preference Alignment", "Image-Text Coherency",
            "Multi-step Consistency")  # fmt: skip
FULL = 10


def build_schema() -> dict[str, Any]:
    entry = object_schema(Justification={"type": "string"}, Score={"type": "integer", "minimum": 0, "maximum": FULL})
    return object_schema(**dict.fromkeys(CRITERIA, entry))


def build_sections(ask: Sequence[Part], made: Sequence[Part]) -> list[DocumentSection]:
    return [
        DocumentSection("INPUT:", "what was asked for", tuple(ask)),
        DocumentSection("OUTPUT:", "what the model made", tuple(made)),
    ]


def build_question(answered: JudgedTurn, made: Sequence[Part], sheets: Sequence[Sheet] = ()) -> Question:
    system = fill_slots(answered.rubrics.texts["criteria"], {"sheets": [Text(SHEETS_NOTE if sheets else "")]})
    shown = tuple(format_sections(build_sections(answered.turn.prompt, made), sheets))
    return _question(answered, made, (Message("system", system), Message("user", shown)))


def build_released_question(answered: JudgedTurn, made: Sequence[Part], blobs: Blobs) -> Question:
    sections = [
        ("INPUT: ", "INPUT: ", answered.turn.prompt),
        ("\nOUTPUT: ", "\nOUTPUT: None" if not made else "\nOUTPUT: ", made),
    ]
    return _question(answered, made, released.build_judge_messages(sections, answered.rubrics, blobs), jpeg=True)


def _question(answered: JudgedTurn, made: Sequence[Part], messages: tuple[Message, ...], **more: Any) -> Question:
    material = {"input": answered.turn.prompt, "output": tuple(made)}
    told: dict[str, Any] = {
        "material": material,
        "value_key": "Score",
        "reason_key": "Justification",
        "gold": answered.turn.gold,
        **more,
    }
    return Question(CRITERIA, messages, build_schema(), answered.turn_ref, **told)
