"""How good one answer is, in seven respects from 0 to 10, by one call; with our rubric, or as the released script asks. Material: `input`,
`output`."""

from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import Answered
from weft.benchmarks.documents import TOLD, Section, Sheet, laid_out
from weft.benchmarks.opening import released
from weft.benchmarks.prompts import filled, object_schema
from weft.store.blobs import Blobs
from weft.types import Message, Part, Question, Text

CRITERIA = ("Completeness", "Content Quality", "Content Richness", "Correctness", "Human Preference Alignment", "Image-Text Coherency",
            "Multi-step Consistency")  # fmt: skip
FULL = 10


def schema() -> dict[str, Any]:
    entry = object_schema(Justification={"type": "string"}, Score={"type": "integer", "minimum": 0, "maximum": FULL})
    return object_schema(**dict.fromkeys(CRITERIA, entry))


def sections_of(ask: Sequence[Part], made: Sequence[Part]) -> list[Section]:
    return [Section("INPUT:", "what was asked for", tuple(ask)), Section("OUTPUT:", "what the model made", tuple(made))]


def about(answered: Answered, made: Sequence[Part], sheets: Sequence[Sheet] = ()) -> Question:
    system = filled(answered.rubrics.texts["criteria"], {"sheets": [Text(TOLD if sheets else "")]})
    shown = tuple(laid_out(sections_of(answered.turn.ask, made), sheets))
    return _question(answered, made, (Message("system", system), Message("user", shown)))


def as_released(answered: Answered, made: Sequence[Part], blobs: Blobs) -> Question:
    sections = [("INPUT: ", "INPUT: ", answered.turn.ask), ("\nOUTPUT: ", "\nOUTPUT: None" if not made else "\nOUTPUT: ", made)]
    return _question(answered, made, released.laid_out(sections, answered.rubrics, blobs), jpeg=True)


def _question(answered: Answered, made: Sequence[Part], messages: tuple[Message, ...], **more: Any) -> Question:
    material = {"input": answered.turn.ask, "output": tuple(made)}
    told: dict[str, Any] = {"material": material, "value": "Score", "reason": "Justification", "gold": answered.turn.gold, **more}
    return Question(CRITERIA, messages, schema(), answered.place, **told)
