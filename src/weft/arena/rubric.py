"""The judge's question about two stored answers: which is better.

With our rubric what a dataset or a model wrote is fenced off. With the official prompt the message is what the released script sends:
steps of words and pictures under bare tags, every picture squashed to 512 x 512. Material: `input`, `first`, `second`, as shown."""

from collections.abc import Sequence
from typing import Any

from weft.arena.contestants import Duel, Made
from weft.benchmarks.base import Answered
from weft.benchmarks.documents import TOLD, Section, Sheet, laid_out
from weft.benchmarks.opening import released
from weft.benchmarks.prompts import filled, object_schema
from weft.store.blobs import Blobs
from weft.types import Message, Question, Text

BATTLE = "battle"
WINNERS = ("A", "B", "Tie(A)", "Tie(B)")
AB, BA, ONE = "order AB", "order BA", "one order"


def rivals(duel: Duel, order: str) -> tuple[Made, Made]:
    """Who stands as A, and who as B."""
    return (duel.second, duel.first) if order == BA else (duel.first, duel.second)


def schema() -> dict[str, Any]:
    return object_schema(reasoning={"type": "string"}, winner={"type": "string", "enum": list(WINNERS)})


def sections_of(answered: Answered, order: str) -> list[Section]:
    a, b = rivals(answered.turn.gold, order)
    return [
        Section("INPUT:", "what was asked for", answered.turn.ask),
        Section("OUTPUT_A:", "what the first model made", a.parts),
        Section("OUTPUT_B:", "what the second model made", b.parts),
    ]


def about(answered: Answered, order: str, sheets: Sequence[Sheet] = ()) -> Question:
    system = filled(answered.rubrics.texts["battle"], {"sheets": [Text(TOLD if sheets else "")]})
    shown = tuple(laid_out(sections_of(answered, order), sheets))
    return _question(answered, order, (Message("system", system), Message("user", shown)))


def as_released(answered: Answered, order: str, blobs: Blobs) -> Question:
    a, b = rivals(answered.turn.gold, order)
    sections = [
        ("<INPUT>: ", "<INPUT>: ", answered.turn.ask),
        ("<OUTPUT_A>: ", "\n<OUTPUT_A>:", a.parts),
        ("\n<OUTPUT_B>: ", "\n<OUTPUT_B>:", b.parts),
    ]
    accepts = {**schema(), "required": ["winner"]}
    return _question(answered, order, released.laid_out(sections, answered.rubrics, blobs), accepts=accepts, plain=True, jpeg=True)


def _question(answered: Answered, order: str, messages: tuple[Message, ...], **more: Any) -> Question:
    a, b = rivals(answered.turn.gold, order)
    material = {"input": answered.turn.ask, "first": a.parts, "second": b.parts}
    told: dict[str, Any] = {"material": material, "gold": answered.turn.gold, "variant": order, **more}
    return Question((BATTLE,), messages, schema(), answered.place, **told)
