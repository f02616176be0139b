"""The judge's question about one answer: seven scores from 0 to 10, in one call.

It is asked with our rubric, or as the released script asks it. Material: `input`, `output`.
"""

from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.documents import SHEETS_NOTE, DocumentSection, Sheet, format_sections
from weft.benchmarks.opening import released
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


def build_question(answered: JudgedTurn, output: Sequence[Part], sheets: Sequence[Sheet] = ()) -> Question:
    """Return the question with our rubric. `sheets` stand for images, where there are too many to show one by one."""
    sheets_note = ""
    if sheets:
        sheets_note = SHEETS_NOTE
    system = fill_slots(answered.rubrics.texts["criteria"], {"sheets": [Text(sheets_note)]})
    user = tuple(format_sections(build_sections(answered.turn.prompt, output), sheets))
    return _build_question(answered, output, (Message("system", system), Message("user", user)))


def build_released_question(answered: JudgedTurn, output: Sequence[Part], blobs: Blobs) -> Question:
    """Return the question as the released script asks it."""
    empty_output = "\nOUTPUT: "
    if not output:
        empty_output = "\nOUTPUT: None"
    sections = [("INPUT: ", "INPUT: ", answered.turn.prompt), ("\nOUTPUT: ", empty_output, output)]
    messages = released.build_judge_messages(sections, answered.rubrics, blobs)
    return _build_question(answered, output, messages, jpeg=True)


def _build_question(
    answered: JudgedTurn, output: Sequence[Part], messages: tuple[Message, ...], *, jpeg: bool = False
) -> Question:
    return Question(
        CRITERIA,
        messages,
        build_schema(),
        answered.turn_ref,
        material={"input": answered.turn.prompt, "output": tuple(output)},
        value_key="Score",
        reason_key="Justification",
        gold=answered.turn.gold,
        jpeg=jpeg,
    )
