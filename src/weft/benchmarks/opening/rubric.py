"""The judge's question about one answer: seven scores from 0 to 10, in one call.

It is asked with our rubric, or as the released script asks it. Material: `input`, `output`.
"""

from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.documents import SHEETS_NOTE, DocumentSection, Sheet, format_sections
from weft.benchmarks.opening import official_questions
from weft.benchmarks.prompts import fill_slots, object_schema
from weft.store.blobs import Blobs
from weft.types import Message, Part, Question, Text

CRITERIA = (
    "Completeness",
    "Content Quality",
    "Content Richness",
    "Correctness",
    "Human Preference Alignment",
    "Image-Text Coherency",
    "Multi-step Consistency",
)
MAX_SCORE = 10


def build_schema() -> dict[str, Any]:
    score = {"type": "integer", "minimum": 0, "maximum": MAX_SCORE}
    entry = object_schema(Justification={"type": "string"}, Score=score)
    return object_schema(**dict.fromkeys(CRITERIA, entry))


def build_sections(prompt: Sequence[Part], output: Sequence[Part]) -> list[DocumentSection]:
    return [
        DocumentSection("INPUT:", "what was asked for", tuple(prompt)),
        DocumentSection("OUTPUT:", "what the model made", tuple(output)),
    ]


def build_question(judged_turn: JudgedTurn, output: Sequence[Part], sheets: Sequence[Sheet] = ()) -> Question:
    """Return the question with our rubric. `sheets` stand for images, where there are too many to show one by one."""
    sheets_note = ""
    if sheets:
        sheets_note = SHEETS_NOTE
    system = fill_slots(judged_turn.rubrics.texts["criteria"], {"sheets": [Text(sheets_note)]})
    user = tuple(format_sections(build_sections(judged_turn.turn.prompt, output), sheets))
    return _build_question(judged_turn, output, (Message("system", system), Message("user", user)))


def build_released_question(judged_turn: JudgedTurn, output: Sequence[Part], blobs: Blobs) -> Question:
    """Return the question as the released script asks it."""
    empty_output = "\nOUTPUT: "
    if not output:
        empty_output = "\nOUTPUT: None"
    sections = [("INPUT: ", "INPUT: ", judged_turn.turn.prompt), ("\nOUTPUT: ", empty_output, output)]
    messages = official_questions.build_judge_messages(sections, judged_turn.rubrics, blobs)
    return _build_question(judged_turn, output, messages, jpeg=True)


def _build_question(
    judged_turn: JudgedTurn, output: Sequence[Part], messages: tuple[Message, ...], *, jpeg: bool = False
) -> Question:
    return Question(
        CRITERIA,
        messages,
        build_schema(),
        judged_turn.turn_ref,
        material={"input": judged_turn.turn.prompt, "output": tuple(output)},
        value_key="Score",
        reason_key="Justification",
        gold=judged_turn.turn.gold,
        jpeg=jpeg,
    )
