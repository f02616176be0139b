"""The judge's question about two stored answers: which is better.

With our rubric, what a dataset or a model wrote is fenced off. With the official prompt, the message is what the
released script sends: steps of text and images under bare tags, every image squashed to 512 x 512.

Material: `input`, `first`, `second`, in the order that the judge sees.
"""

from collections.abc import Sequence
from typing import Any

from weft.arena.contestants import ContestantAnswer, Duel
from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.documents import SHEETS_NOTE, DocumentSection, Sheet, format_sections
from weft.benchmarks.opening import official_questions
from weft.benchmarks.prompts import fill_slots, object_schema
from weft.store.blobs import Blobs
from weft.types import Message, Question, Text

BATTLE = "battle"
WINNERS = ("A", "B", "Tie(A)", "Tie(B)")
ORDER_AB = "order AB"
ORDER_BA = "order BA"
SINGLE_ORDER = "one order"


def order_contestants(duel: Duel, order: str) -> tuple[ContestantAnswer, ContestantAnswer]:
    """Return the answers that the judge sees as A and as B."""
    if order == ORDER_BA:
        return (duel.second, duel.first)
    return (duel.first, duel.second)


def build_schema() -> dict[str, Any]:
    return object_schema(reasoning={"type": "string"}, winner={"type": "string", "enum": list(WINNERS)})


def build_sections(judged_turn: JudgedTurn, order: str) -> list[DocumentSection]:
    a, b = order_contestants(judged_turn.turn.gold, order)
    return [
        DocumentSection("INPUT:", "what was asked for", judged_turn.turn.prompt),
        DocumentSection("OUTPUT_A:", "what the first model made", a.parts),
        DocumentSection("OUTPUT_B:", "what the second model made", b.parts),
    ]


def build_question(judged_turn: JudgedTurn, order: str, sheets: Sequence[Sheet] = ()) -> Question:
    """Return the question with our rubric. `sheets` stand for images, where there are too many to show one by one."""
    sheets_note = ""
    if sheets:
        sheets_note = SHEETS_NOTE
    system = fill_slots(judged_turn.rubrics.texts["battle"], {"sheets": [Text(sheets_note)]})
    user = tuple(format_sections(build_sections(judged_turn, order), sheets))
    return _build_question(judged_turn, order, (Message("system", system), Message("user", user)))


def build_released_question(judged_turn: JudgedTurn, order: str, blobs: Blobs) -> Question:
    """Return the question as the released script asks it, GPT-4o or an open judge."""
    a, b = order_contestants(judged_turn.turn.gold, order)
    sections = [
        ("<INPUT>: ", "<INPUT>: ", judged_turn.turn.prompt),
        ("<OUTPUT_A>: ", "\n<OUTPUT_A>:", a.parts),
        ("\n<OUTPUT_B>: ", "\n<OUTPUT_B>:", b.parts),
    ]
    messages = official_questions.build_judge_messages(sections, judged_turn.rubrics, blobs)
    is_native = official_questions.NATIVE_IMAGES in judged_turn.rubrics.texts
    accepted_schema = {**build_schema(), "required": ["winner"]}
    return _build_question(
        judged_turn, order, messages, accepted_schema=accepted_schema, text_only=True, jpeg=not is_native
    )


def _build_question(judged_turn: JudgedTurn, order: str, messages: tuple[Message, ...], **fields: Any) -> Question:
    a, b = order_contestants(judged_turn.turn.gold, order)
    return Question(
        (BATTLE,),
        messages,
        build_schema(),
        judged_turn.turn_ref,
        material={"input": judged_turn.turn.prompt, "first": a.parts, "second": b.parts},
        gold=judged_turn.turn.gold,
        variant=order,
        **fields,
    )
